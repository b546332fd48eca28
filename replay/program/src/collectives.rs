//! Collective operations as sends and receives of their ranks.
//!
//! Broadcast, reduce, gather and scatter go along a binomial tree; allreduce, allgather and barrier double distances where the number of ranks is a power of 2, else they are
//! a way to the first rank and back; alltoall exchanges in pairs, rank by rank. The trace says what each rank sends and receives in all.

use crate::builder::{Operation, RankId};

/// What ranks do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectiveKind {
    Broadcast,
    Reduce,
    AllReduce,
    Gather,
    Scatter,
    AllGather,
    Barrier,
    AllToAll,
}

impl CollectiveKind {
    /// The operation of a number in VEF.
    pub fn of_vef(word: &str) -> Result<Self, String> {
        Ok(match word {
            "0" => Self::Broadcast,
            "1" => Self::Reduce,
            "2" => Self::AllReduce,
            "3" => Self::Gather,
            "4" => Self::Scatter,
            "5" => Self::AllGather,
            "6" => Self::Barrier,
            "7" => Self::AllToAll,
            _ => {
                return Err(format!(
                    "collective operation \"{word}\": there are 0 (broadcast), 1 (reduce), 2 (allreduce), 3 (gather), 4 (scatter), 5 (allgather), 6 (barrier) and 7 (alltoall)"
                ));
            }
        })
    }
}

impl CollectiveKind {
    /// The operation of a number in Dimemas' traces.
    pub fn of_dimemas(word: &str) -> Result<Self, String> {
        Ok(match word {
            "0" => Self::Barrier,
            "1" => Self::Broadcast,
            "2" | "3" => Self::Gather,
            "4" | "5" => Self::Scatter,
            "6" | "7" => Self::AllGather,
            "8" | "9" => Self::AllToAll,
            "10" => Self::Reduce,
            "11" => Self::AllReduce,
            _ => {
                return Err(format!(
                    "collective operation \"{word}\": there are 0 (barrier), 1 (broadcast), 2 and 3 (gather), 4 and 5 (scatter), 6 and 7 (allgather), 8 and 9 (alltoall), 10 (reduce) and 11 (allreduce)"
                ));
            }
        })
    }
}

impl CollectiveKind {
    /// How many sends and receives it is among so many ranks.
    pub fn operations(self, ranks: usize) -> usize {
        let of_tree = ranks.saturating_sub(1).saturating_mul(2);
        match self {
            Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter => of_tree,
            Self::AllReduce | Self::AllGather | Self::Barrier if ranks.is_power_of_two() => {
                ranks.saturating_mul(2 * ranks.trailing_zeros() as usize)
            }
            Self::AllReduce | Self::AllGather | Self::Barrier => of_tree.saturating_mul(2),
            Self::AllToAll => of_tree.saturating_mul(ranks),
        }
    }
}

/// A rank that takes part: what it sends and receives in all, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub rank: RankId,
    pub sent: u64,
    pub received: u64,
}

/// Operations into which one collective operation may be expanded.
const MAX_OPERATIONS: usize = 1 << 26;

/// What each member does, one operation after the other. Tags count from `tag`. Without `root`, the place of that member, it is the one with bytes where the others have none.
pub(crate) fn expand(
    kind: CollectiveKind,
    root: Option<usize>,
    members: &[Member],
    tag: u64,
) -> Result<Vec<Vec<Operation>>, String> {
    if kind.operations(members.len()) > MAX_OPERATIONS {
        return Err(format!("{} ranks do that by more than {MAX_OPERATIONS} operations", members.len()));
    }
    let mut made = CollectiveBuilder { members, tag, steps: vec![Vec::new(); members.len()] };
    let largest = |of: fn(&Member) -> u64| members.iter().map(of).max().unwrap_or(0);
    let (sent, received) = (largest(|member| member.sent), largest(|member| member.received));
    match kind {
        CollectiveKind::Broadcast => made.down(root_of(root, members, |member| member.sent)?, |_| sent),
        CollectiveKind::Scatter => {
            let each = received;
            made.down(root_of(root, members, |member| member.sent)?, |below| each.saturating_mul(below));
        }
        CollectiveKind::Reduce => made.up(root_of(root, members, |member| member.received)?, |_| received),
        CollectiveKind::Gather => {
            let each = sent;
            made.up(root_of(root, members, |member| member.received)?, |below| each.saturating_mul(below));
        }
        CollectiveKind::AllReduce => made.all(|_| sent),
        CollectiveKind::Barrier => made.all(|_| 0),
        CollectiveKind::AllGather => made.all(|held| sent.saturating_mul(held)),
        CollectiveKind::AllToAll => made.pairs(),
    }
    Ok(made.steps)
}

/// The member that was named; else the one of which `of` is not 0, or the first where there is nothing to say.
fn root_of(named: Option<usize>, members: &[Member], of: fn(&Member) -> u64) -> Result<usize, String> {
    if let Some(root) = named {
        return Ok(root);
    }
    let mut roots = members.iter().enumerate().filter(|(_, member)| of(member) > 0).map(|(place, _)| place);
    match (roots.next(), roots.next()) {
        (root, None) => Ok(root.unwrap_or(0)),
        _ => Err("its root is the one rank that has bytes where the others have 0: here are several".to_owned()),
    }
}

struct CollectiveBuilder<'m> {
    members: &'m [Member],
    tag: u64,
    steps: Vec<Vec<Operation>>,
}

impl CollectiveBuilder<'_> {
    fn message(&mut self, from: usize, to: usize, bytes: u64) {
        self.send(from, to, bytes, self.tag);
        self.receive(to, from, bytes, self.tag);
    }

    fn send(&mut self, from: usize, to: usize, bytes: u64, tag: u64) {
        self.steps[from].push(Operation::Send { to: self.members[to].rank, bytes, tag });
    }

    fn receive(&mut self, to: usize, from: usize, bytes: u64, tag: u64) {
        self.steps[to].push(Operation::Receive { from: Some(self.members[from].rank), bytes, tag });
    }

    /// The edges of a binomial tree, from the root down: parent, child, and how many ranks are at or below the child.
    fn tree(&self, root: usize) -> Vec<(usize, usize, u64)> {
        let count = self.members.len();
        let mut edges = Vec::new();
        let mut step = count.next_power_of_two() / 2;
        while step > 0 {
            for parent in (0..count).step_by(2 * step).filter(|parent| parent + step < count) {
                let below = step.min(count - parent - step) as u64;
                edges.push(((parent + root) % count, (parent + step + root) % count, below));
            }
            step /= 2;
        }
        edges
    }

    fn down(&mut self, root: usize, bytes: impl Fn(u64) -> u64) {
        for (parent, child, below) in self.tree(root) {
            self.message(parent, child, bytes(below));
        }
    }

    fn up(&mut self, root: usize, bytes: impl Fn(u64) -> u64) {
        for (parent, child, below) in self.tree(root).into_iter().rev() {
            self.message(child, parent, bytes(below));
        }
    }

    /// All get what all have: `bytes` of what so many ranks have.
    fn all(&mut self, bytes: impl Fn(u64) -> u64) {
        let count = self.members.len();
        if !count.is_power_of_two() {
            self.up(0, &bytes);
            return self.down(0, |_| bytes(count as u64));
        }
        let mut step = 1;
        while step < count {
            for member in 0..count {
                let tag = self.tag + step as u64;
                self.send(member, member ^ step, bytes(step as u64), tag);
                self.receive(member, member ^ step, bytes(step as u64), tag);
            }
            step *= 2;
        }
    }

    /// In round r each sends to the r-th after it and receives from the r-th before it.
    fn pairs(&mut self) {
        let count = self.members.len();
        for round in 1..count {
            for member in 0..count {
                let (ahead, behind) = ((member + round) % count, (member + count - round) % count);
                let share = |place: usize| self.members[place].sent / (count as u64 - 1).max(1);
                let (mine, theirs) = (share(member), share(behind));
                self.send(member, ahead, mine, self.tag + round as u64);
                self.receive(member, behind, theirs, self.tag + round as u64);
            }
        }
    }
}
