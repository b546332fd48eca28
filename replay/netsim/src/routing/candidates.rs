//! What a switch is told of a packet's way.

use crate::topology::LinkId;

/// Where a packet may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates<'a> {
    /// The links, in order; never empty.
    pub links: &'a [LinkId],
    /// The first class of virtual lanes that it may take: 0, or below [`super::Routes::classes`].
    pub class: u8,
    /// How many classes it may take, from there on.
    pub classes: u8,
    /// Whether the packet enters a ring that must keep a bubble: room for two packets is needed.
    pub enters_ring: bool,
}

/// Which of several links a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one at this position.
    Index(usize),
    /// The one with the most credits: the switch knows.
    ByCredits,
}
