//! The keys of routings that choose virtual lanes: which mode, and what goes with it.

use std::fmt;

/// A choice of a key, by its name.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $choice:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$about])* $choice),+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$choice),+];

            /// Its name in configurations.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$choice => $text),+ }
            }

            /// The one called `name`; else their names.
            pub(super) fn named(name: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|choice| choice.name() == name);
                let names = || Self::ALL.iter().map(|choice| format!("\"{}\"", choice.name())).collect::<Vec<_>>();
                found.ok_or_else(|| names().join(", "))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

choices! {
    /// Which of several shortest ways a packet takes that are as long in each axis' order.
    Ties {
        /// Drawn for each packet.
        Draw = "draw",
        /// By bits of the destination's number.
        Destination = "destination",
    }
}

choices! {
    /// How datelines are kept with several virtual lanes (INSEE's Dally router, but for `entry`).
    Dally {
        /// Into each axis on class 1, on class 0 from the first router of a ring on.
        Trc = "trc",
        /// Class 0 while the end of the ring lies ahead, else 1.
        Basic = "basic",
        /// Class 1 on the whole way along a ring whose end lies ahead where it is entered, else 0 (`BookSim2`'s `dim_order`).
        Entry = "entry",
        /// As `basic`, but packets without an end ahead take either class.
        Improved = "improved",
        /// Any shortest way on more classes, as `improved` where none has room.
        Adaptive = "adaptive",
    }
}

choices! {
    /// In which order a packet's axes come.
    Order {
        /// Axis by axis.
        Dim = "dim",
        /// Forward along all axes, then back along all.
        Dir = "dir",
    }
}

choices! {
    /// How virtual lanes are chosen beside a ring that keeps a bubble (INSEE's bubble router).
    BubbleMode {
        /// Dimension by dimension on a class that is drawn where a ring is entered.
        Oblivious = "oblivious",
        /// On with its own class, any shortest way that has room, then the escape.
        Random = "random",
        /// The shortest way with most room, then the escape.
        Shortest = "shortest",
        /// Axis after axis from its own on, then the escape.
        Smart = "smart",
    }
}

choices! {
    /// Where room for two packets is asked for.
    BubbleAt {
        /// In the lane that is entered.
        Next = "next",
        /// In the lane by which the ring leads to this router, and room for one packet in the lane that is entered.
        Here = "here",
    }
}

choices! {
    /// Which of several lanes with as much room is taken.
    Equals {
        /// Any, drawn evenly.
        Draw = "draw",
        /// The first: the lowest axis, forward before back, the lowest class.
        First = "first",
    }
}

choices! {
    /// In what the room of lanes is compared.
    RoomUnit {
        /// In credits that are free and that no packet has in mind.
        Credits = "credits",
        /// In flits, which take room once they have left this router and none once they have left the next one (INSEE's program).
        Flits = "flits",
    }
}

choices! {
    /// In which directions packets are offered adaptive lanes.
    Directions {
        /// In all that lead nearer: half-way round a ring in both.
        All = "all",
        /// In those of the packet's record.
        Record = "record",
    }
}

/// The Dally router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DallyConfig {
    /// The mode.
    pub mode: Dally,
    /// The order of axes. Default: `dim`.
    pub order: Order,
    /// Default: `draw`.
    pub ties: Ties,
    /// Classes of virtual lanes, 3 at least; of `adaptive` only, others have two. Default: `fabric.vls`.
    pub vcs: Option<u8>,
}

/// The bubble router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BubbleConfig {
    /// The mode.
    pub mode: BubbleMode,
    /// Where the bubble is looked at. Default: `next`.
    pub bubble_at: BubbleAt,
    /// Of `shortest`. Default: `draw`.
    pub equals: Equals,
    /// Of `shortest`. Default: `credits`.
    pub room: RoomUnit,
    /// Of all modes but `oblivious`. Default: `all`.
    pub directions: Directions,
    /// Default: `draw`.
    pub ties: Ties,
    /// Classes of virtual lanes; 2 at least, `oblivious` 1. Default: `fabric.vls`.
    pub vcs: Option<u8>,
}

impl DallyConfig {
    /// Classes of virtual lanes.
    pub(super) fn classes(self) -> u8 {
        if self.mode == Dally::Adaptive { self.vcs.unwrap_or(3) } else { 2 }
    }
}

impl BubbleConfig {
    /// Whether lanes are compared by flits.
    pub(crate) const fn compares_flits(self) -> bool {
        matches!((self.mode, self.room), (BubbleMode::Shortest, RoomUnit::Flits))
    }

    /// Classes of virtual lanes that it needs.
    pub(super) const fn least(self) -> u8 {
        if matches!(self.mode, BubbleMode::Oblivious) { 1 } else { 2 }
    }

    /// Classes of virtual lanes.
    pub(super) fn classes(self) -> u8 {
        self.vcs.unwrap_or(self.least())
    }
}
