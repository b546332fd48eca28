//! Hosts that hand over bursts.

use super::bursts::{Burst, BurstPlan};
use super::drawing::Drawing;
use crate::fabric::packet::Message;
use crate::statistics::Meter;
use crate::time::SimTime;

/// Hosts that hand over bursts.
pub struct BurstSources<'a> {
    drawing: &'a Drawing,
    hosts: u32,
    plan: BurstPlan,
    /// When the present burst is handed over.
    at: SimTime,
    /// The host whose turn it is, and how many of its messages of this burst have been handed over.
    next: (u32, u64),
    done: Vec<Burst>,
    /// Packets that had arrived, and those that were lost, when the burst began.
    before: (u64, u64),
}

impl<'a> BurstSources<'a> {
    pub(super) const fn new(drawing: &'a Drawing, plan: BurstPlan, hosts: u32) -> Self {
        Self { drawing, hosts, plan, at: SimTime::ZERO, next: (0, 0), done: Vec::new(), before: (0, 0) }
    }

    /// Whether all of the present burst has been handed over.
    const fn is_handed_over(&self) -> bool {
        self.next.0 == self.hosts
    }

    /// Whether all bursts are over.
    pub const fn is_done(&self) -> bool {
        self.done.len() as u64 == self.plan.bursts
    }

    /// When the next message is handed over; `None` while what was handed over has not arrived.
    pub fn next_time(&self) -> Option<SimTime> {
        (!self.is_done() && !self.is_handed_over()).then_some(self.at)
    }

    /// The next message of the burst that is handed over at `now`.
    pub fn next_at(&mut self, now: SimTime) -> Option<Message> {
        if self.next_time() != Some(now) {
            return None;
        }
        while !self.is_handed_over() {
            let (host, number) = self.next;
            self.next = if number + 1 < self.plan.messages { (host, number + 1) } else { (host + 1, 0) };
            let count = self.done.len() as u64 * self.plan.messages + number;
            if let Some(message) = self.drawing.message(host, count) {
                return Some(message);
            }
        }
        None
    }

    /// Looks at `now` whether the present burst is over; if so, the next one begins.
    pub fn look(&mut self, now: SimTime, meter: &Meter) {
        if self.is_done() || !self.is_handed_over() || meter.outstanding() > 0 {
            return;
        }
        let until = meter.last_end().max(self.at);
        let (accepted, lost) = (meter.all_packets, meter.losses.all());
        self.done.push(Burst {
            from_ps: self.at.0,
            until_ps: until.0,
            accepted: accepted - self.before.0,
            lost: lost - self.before.1,
        });
        (self.at, self.next, self.before) = (now, (0, 0), (accepted, lost));
    }

    /// Those that are over.
    pub fn done(&self) -> &[Burst] {
        &self.done
    }
}
