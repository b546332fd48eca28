//! The network of a capture, from its packets: rates of links that were full, queues in front of them, round trips.
//!
//! Links are those of racks: from each host to its rack's switch and back, and from each rack to the others and back. Time is cut
//! into windows of 50 ms. A link was *full* in a window if it carried what it carries in many windows and hardly ever more
//! (a plateau), and if no other link that was on a plateau at the same time carried most of the same bytes: then it is not known which of
//! the two held them up. Of a link that was never full only a lower bound of its rate is known.

pub mod file;
mod full_times;
mod plateau;
mod queues;
mod show;
mod windows;

use std::collections::BTreeMap;

use rayon::prelude::*;
use trace::ids::HostId;
use trace::manifest::{LinkEstimate, NetworkEstimate};
use trace::rows::{ConnectionRow, HostRow};

use crate::capture::HostCapture;
use crate::join::{AddressBook, ObservedFlow};
use crate::survey::Views;
pub use full_times::FullTimes;
pub use show::show;

use plateau::{Plateau, plateau};
use queues::Waits;
use windows::{Carried, Ends, Load, WINDOW_NS, Windows};

/// A link was full if it was so, and no other explains it, in so many windows: half a second in all.
const FULL_WINDOWS: usize = 10;
/// A link that carries so much of another one's bytes may be what holds them up.
const MOST: f64 = 0.9;
/// Bytes that waited longer than this before they arrived, waited behind the sender's own link and not in front of it: nanoseconds.
const WAITED_NS: u64 = 1_000_000;
/// A token bucket lets so much pass at once after a pause, bytes: more than it carries for long.
const BURST_BYTES: u64 = 64 << 10;

/// For how long a link carries something, in windows: a burst counts less, the longer.
const WHILES: [u64; 5] = [1, 2, 4, 10, 20];

/// A link, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DirectedLink<'h> {
    /// From a host to its rack's switch.
    Up(usize),
    /// To a host from its rack's switch.
    Down(usize),
    /// From a rack to the others.
    Out(&'h str),
    /// To a rack from the others.
    In(&'h str),
}

/// Hosts of racks.
struct Racks<'h> {
    of: Vec<&'h str>,
}

impl<'h> Racks<'h> {
    /// A host whose rack is not known stands in the first one that is, as in a replay.
    fn of(hosts: &'h [HostCapture]) -> Self {
        let first = hosts.iter().map(|host| host.rack.as_str()).find(|rack| !rack.is_empty()).unwrap_or_default();
        let rack = |host: &'h HostCapture| if host.rack.is_empty() { first } else { host.rack.as_str() };
        Self { of: hosts.iter().map(rack).collect() }
    }

    /// The links over which bytes go from one host to another, in their order.
    fn way(&self, ends: Ends) -> Vec<DirectedLink<'h>> {
        let (from, to) = (self.of[ends.from], self.of[ends.to]);
        let between = if from == to { vec![] } else { vec![DirectedLink::Out(from), DirectedLink::In(to)] };
        [vec![DirectedLink::Up(ends.from)], between, vec![DirectedLink::Down(ends.to)]].concat()
    }

    fn several(&self) -> usize {
        let mut racks = self.of.clone();
        racks.sort_unstable();
        racks.dedup();
        racks.len()
    }
}

/// What a link carried, window by window.
type Loads = BTreeMap<u64, Load>;

/// A link on a plateau.
struct Filled {
    plateau: Plateau,
    windows: Loads,
}

impl Filled {
    /// Whether it was full in a window.
    fn was_full(&self, load: &Load) -> bool {
        self.plateau.holds(load.bytes()) && load.is_even()
    }
}

/// What is known of the links.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub estimates: Vec<LinkEstimate>,
    /// By host: when its link to the switch was full.
    pub full_uplinks: Vec<FullTimes>,
}

/// What hosts sent each other, and how long it was under way.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    carried: Carried,
    waits: Waits,
}

impl Traffic {
    /// Of a flow's packets, with times on one clock.
    pub fn of(flow: &ObservedFlow, views: &Views, book: &AddressBook) -> Self {
        Self { carried: Carried::of(&flow.key, views, book), waits: Waits::of(&flow.key, views, book) }
    }

    /// With that of another flow.
    pub fn add(&mut self, other: Self) {
        self.carried.add(other.carried);
        self.waits.add(other.waits);
    }
}

/// Estimates the links' rates and queues from what hosts sent each other.
pub(crate) fn links(hosts: &[HostCapture], traffic: Traffic) -> Links {
    let Traffic { carried, mut waits } = traffic;
    let racks = Racks::of(hosts);
    let mut filled: BTreeMap<DirectedLink, Filled> = BTreeMap::new();
    // Windows are made link by link, and those of links on no plateau are not needed any more.
    let mut carried_bps: BTreeMap<DirectedLink, u64> = BTreeMap::new();
    let reckoned = by_link(&carried, &racks).into_par_iter().map(|(link, parts)| {
        let windows = loads(&parts);
        let most = windows.values().map(Load::bytes).max();
        let even = windows.values().filter(|load| load.is_even()).map(Load::bytes);
        // A host's own packets are up to 64 KiB long, and all of one counts where it begins.
        let burst = if matches!(link, DirectedLink::Up(_)) { 2 * BURST_BYTES } else { BURST_BYTES };
        let plateau = most.and_then(|most| plateau(even, most, burst));
        (link, carried_for_long(&windows), plateau.map(|plateau| Filled { plateau, windows }))
    });
    for (link, bps, full) in reckoned.collect::<Vec<_>>() {
        carried_bps.insert(link, bps);
        filled.extend(full.map(|full| (link, full)));
    }
    drop(carried);
    waits.retain(|ends| racks.way(*ends).iter().any(|link| filled.contains_key(link)));
    let direct = racks.several() == 2;
    let full_uplink = |host: usize| {
        let filled = filled.get(&DirectedLink::Up(host));
        filled.map(|filled| FullTimes::of(filled.plateau, &filled.windows)).unwrap_or_default()
    };
    let full_uplinks = (0..hosts.len()).map(full_uplink).collect();
    let estimates = carried_bps
        .iter()
        // Between two racks what leaves the one comes to the other: one link.
        .filter(|(link, _)| !(direct && matches!(link, DirectedLink::In(_))))
        .map(|(link, carried_bps)| {
            let (from, to) = names(*link, hosts, &racks, direct);
            let full = full_windows(*link, &filled, &waits, direct);
            let plateau = filled.get(link).map(|filled| filled.plateau).filter(|_| full.len() >= FULL_WINDOWS);
            let seen = plateau.filter(|_| !matches!(link, DirectedLink::Up(_)));
            // What waits or is lost here and nowhere else, while the link was full.
            let here: Vec<(Ends, u64)> = full
                .iter()
                .flat_map(|window| {
                    let load = filled.get(link).and_then(|filled| filled.windows.get(window));
                    load.into_iter().flat_map(Load::ends).map(|ends| (ends, *window))
                })
                .filter(|(ends, window)| seen.is_some() && waits_only_at(*link, *ends, *window, &racks, &filled))
                .collect();
            let waited_ns = here.iter().filter_map(|(ends, window)| waits.longest(*ends, *window)).max().unwrap_or(0);
            let queue = seen.map(|plateau| per_window(plateau.bytes) / 8 * waited_ns / 1_000_000_000);
            LinkEstimate {
                from,
                to,
                rate_bps: plateau.map_or(*carried_bps, |it| per_window(it.bytes)),
                at_least: plateau.is_none(),
                full_s: full.len() as f64 * WINDOW_NS as f64 / 1e9,
                queue_bytes: queue,
                overflowed: here.iter().any(|(ends, window)| waits.lost(*ends, *window)),
            }
        })
        .collect();
    Links { estimates, full_uplinks }
}

/// Bits per second of bytes in a window.
const fn per_window(bytes: u64) -> u64 {
    bytes.saturating_mul(8 * (1_000_000_000 / WINDOW_NS))
}

/// The most that a link carried for a while, bits per second, less what a burst may have been of it: no link has a lower rate.
fn carried_for_long(windows: &Loads) -> u64 {
    let bytes: Vec<(u64, u64)> = windows.iter().map(|(at, load)| (*at, load.bytes())).collect();
    let most_of = |count: u64| {
        let (mut sum, mut behind, mut most) = (0, 0, 0);
        for (at, carried) in &bytes {
            sum += carried;
            while bytes[behind].0 + count <= *at {
                sum -= bytes[behind].1;
                behind += 1;
            }
            most = sum.max(most);
        }
        per_window(most.saturating_sub(BURST_BYTES)) / count
    };
    WHILES.into_iter().map(most_of).max().unwrap_or(0)
}

/// What hosts sent each other over each link.
fn by_link<'c, 'h>(carried: &'c Carried, racks: &Racks<'h>) -> BTreeMap<DirectedLink<'h>, Vec<(Ends, &'c Windows)>> {
    let mut by_link: BTreeMap<DirectedLink, Vec<(Ends, &Windows)>> = BTreeMap::new();
    for (ends, windows) in &carried.sent {
        by_link.entry(DirectedLink::Up(ends.from)).or_default().push((*ends, windows));
    }
    for (ends, windows) in &carried.arrived {
        for link in racks.way(*ends).into_iter().skip(1) {
            by_link.entry(link).or_default().push((*ends, windows));
        }
    }
    by_link
}

/// What a link carried in each window.
fn loads(parts: &[(Ends, &Windows)]) -> Loads {
    let mut loads = Loads::new();
    for (ends, windows) in parts {
        for (window, parts) in *windows {
            loads.entry(*window).or_default().add(*ends, parts);
        }
    }
    loads
}

/// The windows in which a link was full, and no other link may have been what held its bytes up.
fn full_windows(link: DirectedLink, filled: &BTreeMap<DirectedLink, Filled>, waits: &Waits, direct: bool) -> Vec<u64> {
    let Some(own) = filled.get(&link) else { return Vec::new() };
    let explains = |window: u64, load: &Load| {
        filled.iter().any(|(other, of_other)| {
            let same = direct
                && matches!(
                    (link, *other),
                    (DirectedLink::Out(_), DirectedLink::In(_)) | (DirectedLink::In(_), DirectedLink::Out(_))
                );
            let Some(there) = of_other.windows.get(&window).filter(|_| *other != link && !same) else { return false };
            of_other.was_full(there)
                && load.common_bytes(there) as f64 >= MOST * load.bytes() as f64
                && may_hold_up(*other, link, || waited(waits, load, window))
        })
    };
    own.windows
        .iter()
        .filter(|(window, load)| own.was_full(load) && !explains(**window, load))
        .map(|(window, _)| *window)
        .collect()
}

/// Whether bytes between two hosts wait in front of no other link that was full at the same time; that of the sender apart, where
/// nothing was seen of them yet.
fn waits_only_at(
    link: DirectedLink,
    ends: Ends,
    window: u64,
    racks: &Racks,
    filled: &BTreeMap<DirectedLink, Filled>,
) -> bool {
    let ours =
        |other: &DirectedLink| *other == link || matches!((link, *other), (DirectedLink::Out(_), DirectedLink::In(_)));
    racks.way(ends).iter().skip(1).filter(|other| !ours(other)).all(|other| match (link, other) {
        // Between racks anything may wait, whether or not it fills windows.
        (DirectedLink::Down(_), _) => false,
        _ => {
            filled.get(other).is_none_or(|filled| filled.windows.get(&window).is_none_or(|load| !filled.was_full(load)))
        }
    })
}

/// Whether the bytes of a window waited on their way, behind the link of their sender.
fn waited(waits: &Waits, load: &Load, window: u64) -> bool {
    load.ends().filter_map(|ends| waits.longest(ends, window)).max() > Some(WAITED_NS)
}

/// Whether `other` may be what holds bytes up that cross `own` too. What waits in front of a sender's own link has not left the
/// sender yet; what waits elsewhere is under way for longer.
fn may_hold_up(other: DirectedLink, own: DirectedLink, waited: impl Fn() -> bool) -> bool {
    match (other, own) {
        (DirectedLink::Up(_), _) => !waited(),
        (_, DirectedLink::Up(_)) => waited(),
        _ => true,
    }
}

fn names(link: DirectedLink, hosts: &[HostCapture], racks: &Racks, direct: bool) -> (String, String) {
    let switch = |rack: &str| if rack.is_empty() { "switch".to_owned() } else { rack.to_owned() };
    let other = |rack: &str| {
        let other = racks.of.iter().find(|other| **other != rack).filter(|_| direct);
        other.map_or_else(|| "core".to_owned(), |other| switch(other))
    };
    match link {
        DirectedLink::Up(host) => (hosts[host].name.clone(), switch(racks.of[host])),
        DirectedLink::Down(host) => (switch(racks.of[host]), hosts[host].name.clone()),
        DirectedLink::Out(rack) => (switch(rack), other(rack)),
        DirectedLink::In(rack) => (other(rack), switch(rack)),
    }
}

/// The estimate with the least round trips of handshakes within racks and between them.
#[must_use]
pub(crate) fn estimate(links: Vec<LinkEstimate>, hosts: &[HostRow], connections: &[ConnectionRow]) -> NetworkEstimate {
    // Hosts whose rack is not known tell nothing.
    let is_placed = |host: &&HostRow| host.captured && !host.rack.is_empty();
    let rack = |host: HostId| hosts.get(host.index()).filter(is_placed).map(|host| &host.rack);
    let least = |across: bool| {
        let between = connections.iter().filter(|row| !row.loopback).filter(|row| {
            rack(row.client_host)
                .zip(rack(row.server_host))
                .is_some_and(|(client, server)| (client != server) == across)
        });
        between.filter_map(|row| row.handshake_ns).min()
    };
    NetworkEstimate { links, rack_round_trip_ns: least(false), across_round_trip_ns: least(true) }
}
