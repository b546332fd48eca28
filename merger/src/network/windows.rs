//! What hosts sent each other, in windows of time.

use std::collections::BTreeMap;

use crate::capture::flows::FlowKey;
use crate::capture::observed::Observed;
use crate::join::AddressBook;
use crate::survey::Views;

/// 50 ms: 82 full frames at 20 Mbit/s.
pub(super) const WINDOW_NS: u64 = 50_000_000;
/// A window's parts of 10 ms, which a full link fills evenly.
const PARTS: usize = 5;
/// A part of a window has at least so large a share of the mean part, where a link was full.
const EVEN: f64 = 0.5;
/// Headers of a frame: Ethernet 14, IP 20, TCP 20, time stamps 12.
const HEADERS: u64 = 66;
/// Payload of a full frame on Ethernet.
const FULL_PAYLOAD: u64 = 1_448;

/// Two hosts, by number, between which bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ends {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
}

/// Bytes of frames by window (number since the epoch) and part of it: of 10 ms, 4 GiB at most.
pub(super) type Windows = BTreeMap<u64, [u32; PARTS]>;

/// What a link carried in a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// By the hosts between which it went, ordered: a few.
    by_ends: Vec<(Ends, u64)>,
    parts: [u64; PARTS],
}

impl Load {
    pub fn add(&mut self, ends: Ends, parts: &[u32; PARTS]) {
        let bytes = parts.iter().map(|part| u64::from(*part)).sum::<u64>();
        match self.by_ends.binary_search_by_key(&ends, |(known, _)| *known) {
            Ok(at) => self.by_ends[at].1 += bytes,
            Err(at) => {
                self.by_ends.reserve_exact(1);
                self.by_ends.insert(at, (ends, bytes));
            }
        }
        self.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += u64::from(*part));
    }

    /// The hosts between which bytes went.
    pub fn ends(&self) -> impl Iterator<Item = Ends> {
        self.by_ends.iter().map(|(ends, _)| *ends)
    }

    /// Bytes between hosts between which the other carried something too.
    pub fn common_bytes(&self, other: &Self) -> u64 {
        let is_there = |ends: &Ends| other.by_ends.binary_search_by_key(ends, |(known, _)| *known).is_ok();
        self.by_ends.iter().filter(|(ends, _)| is_there(ends)).map(|(_, bytes)| bytes).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// Whether bytes came all the time, as over a full link, and not at once.
    pub fn is_even(&self) -> bool {
        let least = self.bytes() as f64 / PARTS as f64 * EVEN;
        self.parts.iter().all(|part| *part as f64 >= least)
    }
}

/// What hosts sent each other.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// As the senders saw it.
    pub(super) sent: BTreeMap<Ends, Windows>,
    /// As the receivers saw it.
    pub(super) arrived: BTreeMap<Ends, Windows>,
}

impl Carried {
    /// What a flow carried. The packets' times are on one clock.
    pub(super) fn of(key: &FlowKey, views: &Views, book: &AddressBook) -> Self {
        let mut carried = Self::default();
        for (forward, ends) in [false, true].into_iter().filter_map(|way| Some((way, ends(key, way, book)?))) {
            for (host, view) in views {
                let side = match *host {
                    host if host == ends.from => &mut carried.sent,
                    host if host == ends.to => &mut carried.arrived,
                    _ => continue,
                };
                let of_way = view.packets.iter().filter(|packet| packet.forward == forward);
                add_windows(side.entry(ends).or_default(), of_way);
            }
        }
        carried.sent.retain(|_, windows| !windows.is_empty());
        carried.arrived.retain(|_, windows| !windows.is_empty());
        carried
    }

    /// What another flow carried as well.
    pub fn add(&mut self, other: Self) {
        for (all, side) in [(&mut self.sent, other.sent), (&mut self.arrived, other.arrived)] {
            for (ends, windows) in side {
                let all = all.entry(ends).or_default();
                for (window, parts) in windows {
                    let sums = all.entry(window).or_default();
                    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(part));
                }
            }
        }
    }
}

/// The ends of a flow's direction; `None` for what stays on a host, or whose ends were not both captured.
pub(super) fn ends(key: &FlowKey, forward: bool, book: &AddressBook) -> Option<Ends> {
    let (low, high) = (book.host_of(key.low.ip(), key.host)?, book.host_of(key.high.ip(), key.host)?);
    let (from, to) = if forward { (low, high) } else { (high, low) };
    (from != to).then_some(Ends { from, to })
}

/// Bytes of a packet's frames on the wire. Where a host's card cuts segments, one packet of a capture is several frames.
fn frame_bytes(packet: &Observed) -> u64 {
    let payload = u64::from(packet.payload_length);
    payload + HEADERS * payload.div_ceil(FULL_PAYLOAD).max(1)
}

/// Adds the frames of packets, of which nearly each is in the window of the one before.
fn add_windows<'p>(windows: &mut Windows, packets: impl Iterator<Item = &'p Observed>) {
    let mut add = |window: u64, parts: &[u64; PARTS]| {
        if parts.iter().any(|part| *part > 0) {
            let sums = windows.entry(window).or_default();
            let parts = parts.iter().map(|part| u32::try_from(*part).unwrap_or(u32::MAX));
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = sum.saturating_add(part));
        }
    };
    let (mut window, mut parts) = (0, [0u64; PARTS]);
    for packet in packets {
        let of_packet = packet.time_ns / WINDOW_NS;
        if of_packet != window {
            add(window, &parts);
            (window, parts) = (of_packet, [0; PARTS]);
        }
        let part = packet.time_ns % WINDOW_NS * PARTS as u64 / WINDOW_NS;
        parts[part as usize] += frame_bytes(packet);
    }
    add(window, &parts);
}
