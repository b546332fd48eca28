//! Input arbitration: which of the heads is taken that ask for one VL of one link and may start there.

use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// A head that asks for a link and may start there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contender {
    /// Its queue's position among those of its switch that can ask for this link and VL, in order of queues (input link, then VL).
    pub position: u32,
    /// The queue: input link and VL as one number.
    pub queue: u32,
}

/// The heads that ask for one VL of one link at one instant and may start there.
pub trait Contest {
    /// The next of them: in order of queues, beginning behind the queue that was last taken for this link and VL. What is not
    /// asked for is not looked for.
    fn next(&mut self) -> Option<Contender>;

    /// Since when it has been ready and asked for this link.
    fn asks_since(&self, contender: Contender) -> SimTime;

    /// When its packet started on the link of its source host.
    fn injected(&self, contender: Contender) -> SimTime;

    /// Flits of the packets in its queue, whole packets: those whose first flit has arrived.
    fn waiting_flits(&self, contender: Contender) -> u64;

    /// A random number, another one for each queue and instant.
    fn draw(&self, contender: Contender) -> u64;
}

/// A rule of input arbitration. It depends on the contest alone: a link may look more often than it starts something.
pub trait InputArbiter {
    /// Takes one of the heads, if there is any.
    fn take(&self, contest: &mut impl Contest) -> Option<Contender>;

    /// Whether it always takes the first one.
    fn takes_the_first(&self) -> bool {
        false
    }
}

/// The head whose `key` is least.
#[inline(always)]
fn least<C: Contest, K: Ord>(contest: &mut C, key: impl Fn(&C, Contender) -> K) -> Option<Contender> {
    let mut taken = contest.next()?;
    let mut least = key(contest, taken);
    while let Some(contender) = contest.next() {
        let other = key(contest, contender);
        if other < least {
            (taken, least) = (contender, other);
        }
    }
    Some(taken)
}

/// The first one behind the queue that was last taken.
pub struct RoundRobin;

impl InputArbiter for RoundRobin {
    #[inline(always)]
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        contest.next()
    }

    fn takes_the_first(&self) -> bool {
        true
    }
}

/// One by chance, each as likely as the other.
pub struct Random;

impl InputArbiter for Random {
    #[inline(always)]
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        least(contest, |contest, contender| contest.draw(contender))
    }
}

/// The one that has asked longest; of several the first in order of queues.
pub struct Fifo;

impl InputArbiter for Fifo {
    #[inline(always)]
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        least(contest, |contest, contender| (contest.asks_since(contender), contender.position))
    }
}

/// The one with most flits in its queue; of several the first behind the queue that was last taken.
pub struct Longest;

impl InputArbiter for Longest {
    #[inline(always)]
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        least(contest, |contest, contender| Reverse(contest.waiting_flits(contender)))
    }
}

/// The one whose packet left its source first; of several the first in order of queues.
pub struct Age;

impl InputArbiter for Age {
    #[inline(always)]
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        least(contest, |contest, contender| (contest.injected(contender), contender.position))
    }
}

/// The rule that a configuration names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputArbitration {
    /// [`RoundRobin`].
    #[default]
    RoundRobin,
    /// [`Random`].
    Random,
    /// [`Fifo`].
    Fifo,
    /// [`Longest`].
    Longest,
    /// [`Age`].
    Age,
}

impl InputArbitration {
    /// Whether it is the one that is used where none is named.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Takes one of the heads by a rule that compares all of them: apart, so that the frequent rule stays small.
    #[inline(never)]
    fn compare(self, contest: &mut impl Contest) -> Option<Contender> {
        match self {
            Self::RoundRobin => RoundRobin.take(contest),
            Self::Random => Random.take(contest),
            Self::Fifo => Fifo.take(contest),
            Self::Longest => Longest.take(contest),
            Self::Age => Age.take(contest),
        }
    }
}

impl InputArbiter for InputArbitration {
    #[inline(always)]
    fn take(&self, contest: &mut impl Contest) -> Option<Contender> {
        if *self == Self::RoundRobin { RoundRobin.take(contest) } else { self.compare(contest) }
    }

    fn takes_the_first(&self) -> bool {
        *self == Self::RoundRobin
    }
}
