//! Trees: all of them are generalised fat trees XGFT(h; m1..mh; w1..wh), with parallel cables.
//!
//! A node of level `l` (hosts: 0) has `m[l]` children and `w[l + 1]` parents, each by `p[l + 1]` cables. With M(l) =
//! m1 ... ml and W(l) = w1 ... wl, level `l` has N(l) = W(l) m(l+1) ... mh nodes. Node `x` of it is the copy `x mod W(l)`
//! of the root of subtree `x / W(l)`, which holds the hosts `h` with `h / M(l) = x / W(l)`.

use super::TopologyError;
use super::ids::MAX_CABLES;

/// The form of a tree: how many children, parents and cables to each parent the nodes of each level have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// m1 ... mh.
    children: Vec<u32>,
    /// w1 ... wh; w1 is 1.
    parents: Vec<u32>,
    /// p1 ... ph; p1 is 1.
    cables: Vec<u32>,
}

impl Tree {
    /// A tree whose numbers fit: the three lists have one entry a level.
    pub(super) fn new(children: Vec<u32>, parents: Vec<u32>, cables: Vec<u32>) -> Result<Self, TopologyError> {
        let tree = Self { children, parents, cables };
        // u64 is enough to see that u32 is not: every factor is looked at before it is taken.
        let mut total = 0u64;
        for level in 0..tree.height() {
            let up = u64::from(tree.parents[level]).saturating_mul(tree.cables[level].into());
            total = total.saturating_add(tree.count(level).saturating_mul(up));
        }
        let nodes = (0..=tree.height()).fold(0u64, |sum, level| sum.saturating_add(tree.count(level)));
        let most = MAX_CABLES;
        if total > most || nodes > 2 * most {
            return Err(TopologyError::TooLarge { cables: total.max(nodes), most });
        }
        Ok(tree)
    }

    /// The number of levels of switches.
    #[must_use]
    pub const fn height(&self) -> usize {
        self.children.len()
    }

    /// How many children a switch of `level` (1 to the height) has.
    #[must_use]
    pub fn children(&self, level: usize) -> u32 {
        self.children[level - 1]
    }

    /// How many parents a node of `level` has: 0 at the top.
    #[must_use]
    pub fn parents(&self, level: usize) -> u32 {
        self.parents.get(level).copied().unwrap_or(0)
    }

    /// How many cables lead from a node of `level` to each of its parents: 0 at the top.
    #[must_use]
    pub fn cables(&self, level: usize) -> u32 {
        self.cables.get(level).copied().unwrap_or(0)
    }

    /// W(level): how many nodes of `level` are roots of the same subtree.
    #[must_use]
    pub fn copies(&self, level: usize) -> u32 {
        self.parents[..level].iter().product()
    }

    /// M(level): how many hosts hang below a node of `level`.
    #[must_use]
    pub fn below(&self, level: usize) -> u32 {
        self.children[..level].iter().product()
    }

    /// How many nodes `level` has; level 0 are the hosts.
    #[must_use]
    pub fn nodes(&self, level: usize) -> u32 {
        u32::try_from(self.count(level)).unwrap_or(u32::MAX)
    }

    fn count(&self, level: usize) -> u64 {
        let factors = self.parents[..level].iter().chain(&self.children[level..]);
        factors.fold(1u64, |product, factor| product.saturating_mul((*factor).into()))
    }
}

/// `racks` switches with `places` hosts each, each joined to each of `tops` by `cables` cables.
pub(super) fn two_levels(places: u32, racks: u32, tops: u32, cables: u32) -> Result<Tree, TopologyError> {
    Tree::new(vec![places, racks], vec![1, tops], vec![1, cables])
}
