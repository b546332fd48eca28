//! Output ports, each in one line of the cache.
//!
//! A port does what [`Port::strict`](crate::fabric::port::Port::strict) does for a wire, with the same results. Packets of the largest size whose time is a whole
//! number of picoseconds follow each other in even steps, so that how many wait can be reckoned from when the link falls
//! free; a list is kept only while others wait among them.

use std::collections::{HashMap, VecDeque};
use std::hint::select_unpredictable;

use compact_str::CompactString;

use super::shared::Shared;
use crate::count::count;
use crate::fabric::port::Passage;
use crate::kernel::Divisor;
use crate::network::LinkFigures;
use crate::time::SimTime;
use crate::topology::{Link, LinkId, NodeId};
use crate::units::{Buffer, Rate};

/// No list.
const NONE: u32 = u32::MAX;

/// What ports of one kind of link have in common.
#[derive(Clone, Copy)]
struct LinkClass {
    rate: Rate,
    /// From a packet's last bit until it is dealt with at the other end.
    delay_ps: u64,
    /// The most packets that may wait, and the most bytes of them.
    max_packets: u64,
    max_bytes: u64,
    /// The time of a packet of the largest size, if that is a whole number; else 0.
    step_ps: u64,
    by_step: Divisor,
}

/// One direction of a cable with the queue in front of it, and where it leads.
#[repr(align(64))]
pub(super) struct OutPort {
    /// When all that it has taken so far has left, and what that left of a picosecond.
    free_ps: u64,
    remainder: u64,
    /// What it has taken so far, and the most bytes that waited.
    bytes: u64,
    packets: u64,
    queue_max: u64,
    class: u32,
    /// The list of packets that wait, if they are not all of the largest size.
    list: u32,
    pub link: LinkId,
    pub to: NodeId,
    pub part: u16,
    pub block: u16,
}

/// What a port was.
pub(super) struct SavedPort {
    free_ps: u64,
    remainder: u64,
    bytes: u64,
    packets: u64,
    queue_max: u64,
    list: Option<Box<[(u64, u32)]>>,
}

/// Ports of a part, by their numbers there.
#[derive(Default)]
pub(super) struct Ports {
    ports: Vec<OutPort>,
    classes: Vec<LinkClass>,
    /// How many packets each port has dropped; empty until one has.
    drops: Vec<u64>,
    lists: Vec<VecDeque<(u64, u32)>>,
    spare_lists: Vec<u32>,
    largest: u32,
}

impl Ports {
    /// The ports in front of `links`.
    pub fn new(shared: &Shared, links: impl ExactSizeIterator<Item = LinkId>) -> Self {
        let largest = shared.largest;
        let mut made = Self {
            ports: Vec::with_capacity(links.len()),
            classes: Vec::new(),
            drops: Vec::new(),
            lists: Vec::new(),
            spare_lists: Vec::new(),
            largest,
        };
        let mut known = HashMap::new();
        for id in links {
            let link = shared.topology.link(id);
            let extra = if shared.topology.is_host(link.to) { 0 } else { shared.switch_delay };
            let class = *known.entry((link.rate, link.delay_ps, buffer_key(link.buffer), extra)).or_insert_with(|| {
                made.classes.push(LinkClass::new(link, extra, largest));
                count(made.classes.len() - 1)
            });
            let place = shared.place(link.to);
            made.ports.push(OutPort {
                free_ps: 0,
                remainder: 0,
                bytes: 0,
                packets: 0,
                queue_max: 0,
                class,
                list: NONE,
                link: id,
                to: link.to,
                part: place.part,
                block: place.block,
            });
        }
        made
    }

    /// Brings `ports` into the cache, many at a time.
    #[inline]
    pub fn prefetch(&self, ports: impl Iterator<Item = usize>) {
        let sum = ports.fold(0u64, |sum, port| sum.wrapping_add(self.ports[port].free_ps));
        std::hint::black_box(sum);
    }

    #[inline]
    pub fn get(&self, port: usize) -> &OutPort {
        &self.ports[port]
    }

    /// When all that `port` has taken so far has left.
    #[inline]
    pub fn free(&self, port: usize) -> SimTime {
        SimTime(self.ports[port].free_ps)
    }

    /// How many packets `port` has taken so far.
    #[inline]
    pub fn packets(&self, port: usize) -> u64 {
        self.ports[port].packets
    }

    /// Sends a packet of `bytes` at `start`, when the link is free: a host's, whose queue is kept elsewhere.
    #[inline]
    pub fn send(&mut self, port: usize, start: SimTime, bytes: u32) -> Passage {
        let (begin, arrives) = self.take(port, start.0, bytes);
        Passage { started: SimTime(begin), sent: SimTime(self.ports[port].free_ps), arrives: SimTime(arrives) }
    }

    /// Offers a packet of `bytes` at `now`: when it arrives at the other end, and the port; or `None` if it is dropped.
    #[inline(always)]
    pub fn offer(&mut self, port: usize, now: SimTime, bytes: u32) -> Option<(SimTime, &OutPort)> {
        let state = &self.ports[port];
        let class = &self.classes[state.class as usize];
        if bytes != self.largest || class.step_ps == 0 || state.remainder != 0 || state.list != NONE {
            return self.offer_uneven(port, now, bytes);
        }
        // Whether a packet finds others before it is not to be foreseen: no branch.
        let is_busy = state.free_ps > now.0;
        let start = select_unpredictable(is_busy, state.free_ps, now.0);
        let ahead = class.steps(start.wrapping_sub(now.0).saturating_sub(1)).wrapping_add(1);
        let queued = select_unpredictable(is_busy, ahead, 0);
        let queued_bytes = queued * u64::from(bytes);
        if !class.has_room(queued, queued_bytes) {
            self.count_drop(port);
            return None;
        }
        let state = &mut self.ports[port];
        state.queue_max = state.queue_max.max(queued_bytes);
        state.free_ps = start.saturating_add(class.step_ps);
        state.bytes += u64::from(bytes);
        state.packets += 1;
        Some((SimTime(state.free_ps.saturating_add(class.delay_ps)), state))
    }

    /// The same where packets do not follow each other in even steps.
    #[inline(never)]
    fn offer_uneven(&mut self, port: usize, now: SimTime, bytes: u32) -> Option<(SimTime, &OutPort)> {
        let free = self.ports[port].free_ps;
        if free > now.0 && !self.queue(port, now.0, bytes) {
            self.count_drop(port);
            return None;
        }
        if free <= now.0 && self.ports[port].list != NONE {
            self.drop_list(port);
        }
        let (_, arrives) = self.take(port, now.0, bytes);
        Some((SimTime(arrives), &self.ports[port]))
    }

    #[cold]
    fn count_drop(&mut self, port: usize) {
        if self.drops.is_empty() {
            self.drops.resize(self.ports.len(), 0);
        }
        self.drops[port] += 1;
    }

    /// Puts a packet behind those that wait at `now`. Returns whether there was room.
    fn queue(&mut self, port: usize, now: u64, bytes: u32) -> bool {
        let OutPort { free_ps, remainder, list, class, .. } = self.ports[port];
        let class = self.classes[class as usize];
        let even = list == NONE && class.step_ps > 0 && remainder == 0;
        let (waiting, waiting_bytes) = if even {
            let waiting = class.steps(free_ps - now - 1);
            (waiting, waiting * u64::from(self.largest))
        } else {
            self.strike_out(port, now)
        };
        let room = class.has_room(waiting + 1, waiting_bytes + u64::from(bytes));
        if room {
            if !(even && bytes == self.largest) {
                self.put_in_list(port, waiting, bytes);
            }
            let port = &mut self.ports[port];
            port.queue_max = port.queue_max.max(waiting_bytes + u64::from(bytes));
        }
        room
    }

    /// The packets that wait at `now`, and their bytes, by the port's list.
    fn strike_out(&mut self, port: usize, now: u64) -> (u64, u64) {
        let list = self.ports[port].list;
        let Some(list) = self.lists.get_mut(list as usize) else { return (0, 0) };
        while list.front().is_some_and(|(start, _)| *start <= now) {
            list.pop_front();
        }
        (list.len() as u64, list.iter().map(|(_, bytes)| u64::from(*bytes)).sum())
    }

    /// Notes a packet of `bytes` that waits behind `waiting` others, which are of the largest size unless there is a list.
    #[cold]
    fn put_in_list(&mut self, port: usize, waiting: u64, bytes: u32) {
        if self.ports[port].list == NONE {
            let number = self.spare_list();
            let state = &mut self.ports[port];
            state.list = number;
            let step = self.classes[state.class as usize].step_ps;
            let starts = (1..=waiting).rev().map(|steps| (state.free_ps - steps * step, self.largest));
            self.lists[number as usize].extend(starts);
        }
        let OutPort { list, free_ps, .. } = self.ports[port];
        self.lists[list as usize].push_back((free_ps, bytes));
    }

    /// An empty list.
    fn spare_list(&mut self) -> u32 {
        self.spare_lists.pop().unwrap_or_else(|| {
            self.lists.push(VecDeque::new());
            count(self.lists.len() - 1)
        })
    }

    /// Nothing waits any more.
    #[cold]
    fn drop_list(&mut self, port: usize) {
        let list = std::mem::replace(&mut self.ports[port].list, NONE);
        self.lists[list as usize].clear();
        self.spare_lists.push(list);
    }

    /// Takes the link for a packet of `bytes` from `now` on, as soon as it is free: when it begins to leave, and when it arrives.
    #[inline]
    fn take(&mut self, port: usize, now: u64, bytes: u32) -> (u64, u64) {
        let state = &mut self.ports[port];
        let class = &self.classes[state.class as usize];
        state.remainder = select_unpredictable(state.free_ps < now, 0, state.remainder);
        let time = if bytes == self.largest && class.step_ps > 0 && state.remainder == 0 {
            class.step_ps
        } else {
            class.rate.next_time_ps(bytes, &mut state.remainder)
        };
        let start = select_unpredictable(state.free_ps > now, state.free_ps, now);
        state.free_ps = start.saturating_add(time);
        state.bytes += u64::from(bytes);
        state.packets += 1;
        (start, state.free_ps.saturating_add(class.delay_ps))
    }

    /// Bytes of packets that have begun to leave before `now`, the time up to which all is known.
    pub fn begun_bytes(&self, port: usize, now: SimTime) -> u64 {
        let OutPort { free_ps, list, class, bytes, .. } = self.ports[port];
        let step = self.classes[class as usize].step_ps;
        let later = match self.lists.get(list as usize) {
            Some(list) => list.iter().filter(|(start, _)| *start >= now.0).map(|(_, bytes)| u64::from(*bytes)).sum(),
            None if step > 0 => (free_ps.saturating_sub(now.0) / step).saturating_mul(self.largest.into()),
            None => 0,
        };
        bytes - later
    }

    /// How many ports there are.
    pub const fn len(&self) -> usize {
        self.ports.len()
    }

    /// What `port` is, to be made so again.
    pub fn save(&self, port: usize) -> SavedPort {
        let OutPort { free_ps, remainder, bytes, packets, queue_max, list, .. } = self.ports[port];
        let list = self.lists.get(list as usize).map(|list| list.iter().copied().collect());
        SavedPort { free_ps, remainder, bytes, packets, queue_max, list }
    }

    /// Makes `port` what it was before a packet was offered, which was `dropped` or not.
    pub fn restore(&mut self, port: usize, saved: SavedPort, dropped: bool) {
        if dropped && let Some(drops) = self.drops.get_mut(port) {
            *drops -= 1;
        }
        if self.ports[port].list != NONE {
            self.drop_list(port);
        }
        if let Some(list) = saved.list {
            let number = self.spare_list();
            self.lists[number as usize].extend(list);
            self.ports[port].list = number;
        }
        let SavedPort { free_ps, remainder, bytes, packets, queue_max, .. } = saved;
        let port = &mut self.ports[port];
        (port.free_ps, port.remainder, port.bytes, port.packets, port.queue_max) =
            (free_ps, remainder, bytes, packets, queue_max);
    }

    /// What was counted at each port, in place of the ports.
    pub fn take_counts(&mut self) -> PortCounts {
        let Self { ports, drops, .. } = std::mem::take(self);
        let count = |port: &OutPort| [port.bytes, port.packets, port.queue_max];
        PortCounts { counts: ports.iter().map(count).collect(), drops }
    }
}

/// What was counted at the ports of a part.
pub(super) struct PortCounts {
    /// Bytes, packets, and the most bytes that waited.
    counts: Vec<[u64; 3]>,
    /// Empty if no port has dropped any.
    drops: Vec<u64>,
}

impl PortCounts {
    /// Bytes, packets, the most bytes that waited, and the packets that were dropped at `port`.
    pub fn of(&self, port: usize) -> [u64; 4] {
        let [bytes, packets, queue_max_bytes] = self.counts[port];
        [bytes, packets, queue_max_bytes, self.drops.get(port).copied().unwrap_or(0)]
    }
}

/// What was counted at a port, as [`PortCounts::of`] has it, as the figures of link `name` with `rate`.
pub(super) fn link_figures(name: CompactString, rate: Rate, counts: [u64; 4]) -> LinkFigures {
    let [bytes, packets, queue_max_bytes, drops] = counts;
    let rate_bps = rate.bps().unwrap_or(0);
    LinkFigures { name, rate_bps, bytes, packets, drops, queue_max_bytes, intervals: None }
}

impl LinkClass {
    fn new(link: Link, extra_ps: u64, largest: u32) -> Self {
        let mut remainder = 0;
        let time = link.rate.next_time_ps(largest, &mut remainder);
        let step_ps = if remainder == 0 { time } else { 0 };
        let (max_packets, max_bytes) = match link.buffer {
            Buffer::Packets(most) => (most.into(), u64::MAX),
            Buffer::Bytes(most) => (u64::MAX, most),
            Buffer::Unlimited => (u64::MAX, u64::MAX),
        };
        Self {
            rate: link.rate,
            delay_ps: link.delay_ps.saturating_add(extra_ps),
            max_packets,
            max_bytes,
            step_ps,
            by_step: Divisor::new(step_ps),
        }
    }

    /// How many whole steps there are in `ps` picoseconds.
    #[inline]
    fn steps(&self, ps: u64) -> u64 {
        self.by_step.quotient(ps)
    }

    /// Whether `queued` packets of `bytes` bytes together may wait.
    #[inline]
    fn has_room(&self, queued: u64, bytes: u64) -> bool {
        queued <= self.max_packets && bytes <= self.max_bytes
    }
}

/// A buffer, to be looked up.
const fn buffer_key(buffer: Buffer) -> (u8, u64) {
    match buffer {
        Buffer::Packets(most) => (0, most as u64),
        Buffer::Bytes(most) => (1, most),
        Buffer::Unlimited => (2, 0),
    }
}
