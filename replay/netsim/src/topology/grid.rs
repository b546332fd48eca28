//! The form of meshes and tori.

/// The form of a mesh or torus. Router (c0, c1, ...) has number c0 + size0 (c1 + size1 (c2 + ...)), and hosts number x
/// concentration and following.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Routers in each dimension.
    pub size: Vec<u32>,
    /// Whether the ends of each dimension are joined.
    pub wraps: bool,
    /// Hosts at each router.
    pub concentration: u32,
}

impl Grid {
    /// How many routers there are.
    #[must_use]
    pub fn routers(&self) -> u32 {
        self.size.iter().product()
    }

    /// Whether a dimension is a ring: two routers are joined by one cable, not by two.
    #[must_use]
    pub fn is_ring(&self, dimension: usize) -> bool {
        self.wraps && self.size[dimension] > 2
    }

    /// The coordinates of a router.
    #[must_use]
    pub fn coordinates(&self, router: u32) -> Vec<u32> {
        let mut rest = router;
        let coordinate = |size: &u32| {
            let here = rest % size;
            rest /= size;
            here
        };
        self.size.iter().map(coordinate).collect()
    }

    /// How far apart the numbers of neighbours in `dimension` are.
    #[must_use]
    pub fn stride(&self, dimension: usize) -> u32 {
        self.size[..dimension].iter().product()
    }
}
