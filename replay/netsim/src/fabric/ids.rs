//! Numbers of what is in a fabric, each a type of its own. Nodes and links are numbered by the topology.

macro_rules! ids {
    ($( $(#[$doc:meta])* $Id:ident ),+ $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $Id(pub u32);

            impl $Id {
                /// None: the end of a list.
                pub const NONE: Self = Self(u32::MAX);
            }

            impl From<$Id> for usize {
                #[inline]
                fn from(id: $Id) -> Self {
                    id.0 as Self
                }
            }

            impl From<usize> for $Id {
                #[inline]
                fn from(index: usize) -> Self {
                    Self(crate::count::count(index))
                }
            }
        )+
    };
}

ids! {
    /// A packet under way.
    PacketId,
    /// A message under way.
    MessageId,
    /// One virtual lane of one link, and the queue at its end.
    LaneId,
    /// A packet that gives its credits back.
    ReturnId,
    /// What asks an `omni-path` switch's crossbars: one of its inputs or central links.
    UnitId,
}
