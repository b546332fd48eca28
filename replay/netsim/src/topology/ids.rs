//! How nodes and links are numbered.

/// A host or a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The other direction of the same cable.
    #[must_use]
    pub const fn back(self) -> Self {
        Self(self.0 ^ 1)
    }
}

impl From<LinkId> for usize {
    #[inline]
    fn from(link: LinkId) -> Self {
        link.0 as Self
    }
}

impl From<usize> for LinkId {
    #[inline]
    fn from(index: usize) -> Self {
        Self(crate::count::count(index))
    }
}

/// Links are numbered with 24 bits, so that event keys have room for them.
pub(super) const MAX_CABLES: u64 = 1 << 22;

/// So many entries may tables of routes have.
pub(crate) const MAX_ENTRIES: u64 = 1 << 26;
