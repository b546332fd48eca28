//! Steps of ways through lattices, and those between the routers of small lattices, known in place of reckoned.

/// More steps are not kept: they would push what else is needed out of the cache.
const MAX_KNOWN: usize = 1 << 16;

/// A step of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatticeStep {
    pub(super) axis: usize,
    pub(super) forward: bool,
    /// Steps left along the axis, this one included.
    pub(super) left: u32,
}

/// The next steps between all routers of a lattice: by router, then destination, then pattern; nothing where there are too many.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTable {
    routers: usize,
    axes: usize,
    /// The axis, 4 bits, whether it goes forward, and the steps left; [`StepTable::END`] where there is no step.
    ways: Vec<u16>,
}

impl StepTable {
    const END: u16 = u16::MAX;

    /// Those of a lattice of so many routers and axes, at most 16, of which `way` reckons one.
    pub fn new(routers: u32, axes: usize, way: impl Fn(u32, u32, u32) -> Option<LatticeStep>) -> Self {
        let patterns = 1u32 << axes;
        let entries = (u64::from(routers) * u64::from(routers)).saturating_mul(u64::from(patterns));
        if entries > MAX_KNOWN as u64 {
            return Self::default();
        }
        let pairs = (0..routers).flat_map(|router| (0..routers).map(move |target| (router, target)));
        let all = pairs.flat_map(|(router, target)| (0..patterns).map(move |pattern| (router, target, pattern)));
        let packed = all.map(|(router, target, pattern)| match way(router, target, pattern) {
            // So few routers have no longer ways.
            Some(LatticeStep { axis, forward, left }) => (axis as u16) << 12 | u16::from(forward) << 11 | left as u16,
            None => Self::END,
        });
        Self { routers: routers as usize, axes, ways: packed.collect() }
    }

    /// The next step, if it is known, of packets of `pattern` at `router` for another one, `target`.
    #[inline]
    pub fn way(&self, router: u32, target: u32, pattern: u32) -> Option<Option<LatticeStep>> {
        let pair = (router as usize).wrapping_mul(self.routers).wrapping_add(target as usize);
        let pattern = pattern as usize & (1usize << self.axes).wrapping_sub(1);
        let way = *self.ways.get(pair << self.axes | pattern)?;
        let unpacked = LatticeStep {
            axis: usize::from(way >> 12),
            forward: way >> 11 & 1 == 1,
            left: u32::from(way & ((1 << 11) - 1)),
        };
        Some((way != Self::END).then_some(unpacked))
    }
}
