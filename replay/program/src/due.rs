//! What a program does at which time, in order. Most things of a kind come in that order: those cost no search.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use netsim::time::SimTime;

use crate::builder::OperationId;

/// What has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// An operation that waits for nothing but its time.
    Earliest(OperationId),
    /// An operation that a CPU did.
    Ended(OperationId),
    /// A CPU that is free and has operations: last, when all that is ready at that time is known.
    Choose(CpuIndex),
}

/// A CPU of a rank: they are numbered by rank, then by the program's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CpuIndex(pub u32);

/// All that is due: by time, then in the order of [`Due`].
#[derive(Debug, Default)]
pub(crate) struct DueEvents {
    earliest: DueQueue<(SimTime, OperationId)>,
    ended: DueQueue<(SimTime, OperationId)>,
    choose: DueQueue<(SimTime, CpuIndex)>,
}

impl DueEvents {
    pub fn push(&mut self, at: SimTime, due: Due) {
        match due {
            Due::Earliest(id) => self.earliest.push((at, id)),
            Due::Ended(id) => self.ended.push((at, id)),
            Due::Choose(cpu) => self.choose.push((at, cpu)),
        }
    }

    /// When the first is due.
    pub fn next_time(&self) -> Option<SimTime> {
        let times = [self.earliest.first().map(|(at, _)| *at), self.ended.first().map(|(at, _)| *at)];
        times.into_iter().chain([self.choose.first().map(|(at, _)| *at)]).flatten().min()
    }

    pub fn pop(&mut self) -> Option<Due> {
        let next = Some(self.next_time()?);
        if self.earliest.first().map(|(at, _)| *at) == next {
            return self.earliest.pop().map(|(_, id)| Due::Earliest(id));
        }
        if self.ended.first().map(|(at, _)| *at) == next {
            return self.ended.pop().map(|(_, id)| Due::Ended(id));
        }
        self.choose.pop().map(|(_, cpu)| Due::Choose(cpu))
    }
}

/// A priority queue, the least first: what is pushed behind all others stands in a list, all else in a heap.
#[derive(Debug)]
struct DueQueue<T> {
    in_order: VecDeque<T>,
    others: BinaryHeap<Reverse<T>>,
}

impl<T> Default for DueQueue<T>
where
    T: Ord,
{
    fn default() -> Self {
        Self { in_order: VecDeque::new(), others: BinaryHeap::new() }
    }
}

impl<T: Ord> DueQueue<T> {
    fn push(&mut self, thing: T) {
        if self.in_order.back().is_none_or(|last| *last <= thing) {
            self.in_order.push_back(thing);
        } else {
            self.others.push(Reverse(thing));
        }
    }

    fn first(&self) -> Option<&T> {
        match (self.in_order.front(), self.others.peek()) {
            (Some(first), Some(Reverse(other))) => Some(first.min(other)),
            (first, other) => first.or_else(|| other.map(|Reverse(other)| other)),
        }
    }

    fn pop(&mut self) -> Option<T> {
        let in_order = match (self.in_order.front(), self.others.peek()) {
            (Some(first), Some(Reverse(other))) => first <= other,
            (first, _) => first.is_some(),
        };
        if in_order { self.in_order.pop_front() } else { self.others.pop().map(|Reverse(other)| other) }
    }
}
