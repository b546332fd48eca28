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
mod racks;
mod show;
mod traffic;
mod windows;

use std::collections::BTreeMap;
use std::io;

use trace::ids::HostId;
use trace::manifest::{LinkEstimate, NetworkEstimate};
use trace::rows::HostRow;

use crate::capture::HostCapture;
use crate::compact::Connections;
use crate::maps::HashMap;
use crate::spilled::RecordLog;
pub use full_times::FullTimes;
pub use show::show;
pub(crate) use traffic::{FlowTraffic, Traffic};

use plateau::{Plateau, plateau};
use racks::{DirectedLink, Racks};
use traffic::ByWindow;
use windows::{Carried, Ends, Load, PARTS, Parts, Sample, WINDOW_NS, WindowSample};

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

/// What is known of the links.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub estimates: Vec<LinkEstimate>,
    /// By host: when its link to the switch was full.
    pub full_uplinks: Vec<FullTimes>,
}

/// Memory that what a link carried may take, bytes.
const LINK_BYTES: usize = 128 << 10;

/// What each link carried, window by window.
fn loads<'h>(traffic: &ByWindow, racks: &Racks<'h>) -> io::Result<BTreeMap<DirectedLink<'h>, RecordLog<Carried>>> {
    let mut loads: BTreeMap<DirectedLink, RecordLog<Carried>> = BTreeMap::new();
    let mut ways = Ways::new(racks);
    // By places of links: bytes in the window, and the places that carried any.
    let (mut sums, mut carrying): (Vec<[u64; PARTS]>, Vec<usize>) = (Vec::new(), Vec::new());
    traffic.each(|window, seen| {
        for seen in seen {
            let Some((places, parts)) = ways.of(seen) else { continue };
            for place in places {
                sums.resize(sums.len().max(place + 1), [0; PARTS]);
                if sums[*place] == [0; PARTS] {
                    carrying.push(*place);
                }
                sums[*place].iter_mut().zip(parts).for_each(|(sum, part)| *sum += u64::from(part));
            }
        }
        for place in carrying.drain(..) {
            let log = loads.entry(ways.links[place]).or_insert_with(|| RecordLog::within(LINK_BYTES));
            log.push(Carried::of(window, &std::mem::take(&mut sums[place])))?;
        }
        Ok(())
    })?;
    Ok(loads)
}

/// The links over which what was seen went, by their places among all.
struct Ways<'r, 'h> {
    racks: &'r Racks<'h>,
    links: Vec<DirectedLink<'h>>,
    places: HashMap<DirectedLink<'h>, usize>,
    known: HashMap<Ends, Vec<usize>>,
}

impl<'r, 'h> Ways<'r, 'h> {
    fn new(racks: &'r Racks<'h>) -> Self {
        Self { racks, links: Vec::new(), places: HashMap::default(), known: HashMap::default() }
    }

    /// The links whose load it is, and their bytes; `None` = it is nobody's. The sender's own link carries what the sender saw,
    /// the others what the receiver did.
    fn of(&mut self, seen: &WindowSample) -> Option<(&[usize], Parts)> {
        let (links, places) = (&mut self.links, &mut self.places);
        let way = self.known.entry(seen.ends).or_insert_with(|| {
            let way = self.racks.way(seen.ends).into_iter();
            let place = |link| {
                *places.entry(link).or_insert_with(|| {
                    links.push(link);
                    links.len() - 1
                })
            };
            way.map(place).collect()
        });
        match seen.what {
            Sample::Sent(parts) => Some((&way[..1], parts)),
            Sample::Arrived(parts) => Some((&way[1..], parts)),
            Sample::Took(_) | Sample::Lost => None,
        }
    }
}

/// Links on a plateau.
type Plateaus<'h> = BTreeMap<DirectedLink<'h>, Plateau>;

/// What is known of a link that was full.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    windows: usize,
    /// The longest wait of what may have waited in front of it, nanoseconds.
    waited_ns: u64,
    overflowed: bool,
}

/// In how many windows each link on a plateau was full, while no other link may have been what held its bytes up, and how long what
/// may wait here and nowhere else waited then. `full` are the windows in which any was full, in their order.
fn full_links<'h>(
    traffic: &ByWindow,
    racks: &Racks<'h>,
    (plateaus, full): (&Plateaus<'h>, &[u64]),
    direct: bool,
) -> io::Result<BTreeMap<DirectedLink<'h>, Full>> {
    let mut found: BTreeMap<DirectedLink, Full> = BTreeMap::new();
    let mut ways = Ways::new(racks);
    traffic.each(|number, seen| {
        if full.binary_search(&number).is_err() {
            return Ok(());
        }
        let mut loads: BTreeMap<DirectedLink, Load> = BTreeMap::new();
        for seen in seen {
            let Some((places, parts)) = ways.of(seen) else { continue };
            let places = places.to_vec();
            for link in places.into_iter().map(|place| ways.links[place]).filter(|link| plateaus.contains_key(link)) {
                loads.entry(link).or_default().add(seen.ends, &parts);
            }
        }
        let window = Window { number, seen, loads, traffic, plateaus };
        for link in window.loads.keys().filter(|link| window.was_full(**link)) {
            if window.is_explained(*link, direct) {
                continue;
            }
            let full = found.entry(*link).or_default();
            full.windows += 1;
            let here = window.loads[link].ends().filter(|ends| window.waits_only_at(*link, *ends, racks));
            for ends in here {
                full.waited_ns = full.waited_ns.max(window.waited_ns(ends).unwrap_or(0));
                full.overflowed |= window.lost(ends);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// What went on in a window.
struct Window<'w, 'h> {
    number: u64,
    seen: &'w [WindowSample],
    /// What the links carried that are on a plateau.
    loads: BTreeMap<DirectedLink<'h>, Load>,
    traffic: &'w ByWindow,
    plateaus: &'w Plateaus<'h>,
}

impl Window<'_, '_> {
    /// Whether a link was full.
    fn was_full(&self, link: DirectedLink) -> bool {
        let load = self.loads.get(&link).map(|load| load.carried(self.number));
        load.zip(self.plateaus.get(&link)).is_some_and(|(load, plateau)| plateau.holds(load.bytes) && load.is_even)
    }

    /// Whether another link may have been what held up the bytes of one that was full.
    fn is_explained(&self, link: DirectedLink, direct: bool) -> bool {
        let load = &self.loads[&link];
        self.loads.iter().any(|(other, there)| {
            let same = direct
                && matches!(
                    (link, *other),
                    (DirectedLink::Out(_), DirectedLink::In(_)) | (DirectedLink::In(_), DirectedLink::Out(_))
                );
            *other != link
                && !same
                && self.was_full(*other)
                && load.common_bytes(there) as f64 >= MOST * load.bytes() as f64
                && may_hold_up(*other, link, || self.waited(load))
        })
    }

    /// Whether bytes between two hosts wait in front of no other link that was full at the same time; that of the sender apart, where
    /// nothing was seen of them yet.
    fn waits_only_at(&self, link: DirectedLink, ends: Ends, racks: &Racks) -> bool {
        let ours = |other: &DirectedLink| {
            *other == link || matches!((link, *other), (DirectedLink::Out(_), DirectedLink::In(_)))
        };
        racks.way(ends).iter().skip(1).filter(|other| !ours(other)).all(|other| match (link, other) {
            // Between racks anything may wait, whether or not it fills windows.
            (DirectedLink::Down(_), _) => false,
            _ => !self.was_full(*other),
        })
    }

    /// Whether bytes waited on their way, behind the link of their sender.
    fn waited(&self, load: &Load) -> bool {
        load.ends().filter_map(|ends| self.waited_ns(ends)).max() > Some(WAITED_NS)
    }

    /// The longest wait of what arrived: beyond the least time between the two.
    fn waited_ns(&self, ends: Ends) -> Option<u64> {
        let took = self.of(ends).find_map(|what| match what {
            Sample::Took(ns) => Some(ns),
            _ => None,
        });
        took.map(|took| took.abs_diff(self.traffic.least_ns(ends)))
    }

    /// Whether packets that left were sent again.
    fn lost(&self, ends: Ends) -> bool {
        self.of(ends).any(|what| what == Sample::Lost)
    }

    fn of(&self, ends: Ends) -> impl Iterator<Item = Sample> {
        self.seen.iter().filter(move |seen| seen.ends == ends).map(|seen| seen.what)
    }
}

/// Estimates the links' rates and queues from what hosts sent each other.
pub(crate) fn links(hosts: &[HostCapture], traffic: Traffic) -> io::Result<Links> {
    let traffic = traffic.by_window()?;
    let racks = Racks::of(hosts);
    let (mut plateaus, mut carried_bps) = (Plateaus::new(), BTreeMap::new());
    let (mut full_uplinks, mut full) = (vec![FullTimes::default(); hosts.len()], Vec::new());
    for (link, log) in loads(&traffic, &racks)? {
        let windows: Vec<Carried> = log.iter().collect();
        log.check()?;
        let most = windows.iter().map(|window| window.bytes).max();
        let even = windows.iter().filter(|window| window.is_even).map(|window| window.bytes);
        // A host's own packets are up to 64 KiB long, and all of one counts where it begins.
        let burst = if matches!(link, DirectedLink::Up(_)) { 2 * BURST_BYTES } else { BURST_BYTES };
        carried_bps.insert(link, carried_for_long(&windows));
        let Some(plateau) = most.and_then(|most| plateau(even, most, burst)) else { continue };
        plateaus.insert(link, plateau);
        let was_full = windows.iter().filter(|window| plateau.holds(window.bytes) && window.is_even);
        full.extend(was_full.map(|window| window.window));
        if let DirectedLink::Up(host) = link {
            full_uplinks[host] = FullTimes::of(plateau, &windows);
        }
    }
    let direct = racks.several() == 2;
    full.sort_unstable();
    full.dedup();
    let full = full_links(&traffic, &racks, (&plateaus, &full), direct)?;
    let estimates = carried_bps
        .iter()
        // Between two racks what leaves the one comes to the other: one link.
        .filter(|(link, _)| !(direct && matches!(link, DirectedLink::In(_))))
        .map(|(link, carried_bps)| {
            let (from, to) = racks.names(*link, hosts, direct);
            let full = full.get(link).copied().unwrap_or_default();
            let plateau = plateaus.get(link).filter(|_| full.windows >= FULL_WINDOWS);
            let seen = plateau.filter(|_| !matches!(link, DirectedLink::Up(_)));
            LinkEstimate {
                from,
                to,
                rate_bps: plateau.map_or(*carried_bps, |it| per_window(it.bytes)),
                at_least: plateau.is_none(),
                full_s: full.windows as f64 * WINDOW_NS as f64 / 1e9,
                queue_bytes: seen.map(|plateau| bytes_in(per_window(plateau.bytes), full.waited_ns)),
                overflowed: seen.is_some() && full.overflowed,
            }
        })
        .collect();
    Ok(Links { estimates, full_uplinks })
}

/// Bits per second of bytes in a window.
const fn per_window(bytes: u64) -> u64 {
    bytes.saturating_mul(8 * (1_000_000_000 / WINDOW_NS))
}

/// What a link of so many bits per second carries in a time. A time that no clock tells right may be of any length.
fn bytes_in(rate_bps: u64, ns: u64) -> u64 {
    let bytes = u128::from(rate_bps / 8) * u128::from(ns) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The most that a link carried for a while, bits per second, less what a burst may have been of it: no link has a lower rate.
fn carried_for_long(windows: &[Carried]) -> u64 {
    let most_of = |count: u64| {
        let (mut sum, mut behind, mut most) = (0, 0, 0);
        for Carried { window, bytes, .. } in windows {
            sum += bytes;
            while windows[behind].window + count <= *window {
                sum -= windows[behind].bytes;
                behind += 1;
            }
            most = sum.max(most);
        }
        per_window(most.saturating_sub(BURST_BYTES)) / count
    };
    WHILES.into_iter().map(most_of).max().unwrap_or(0)
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

/// The estimate with the least round trips of handshakes within racks and between them.
#[must_use]
pub(crate) fn estimate(links: Vec<LinkEstimate>, hosts: &[HostRow], connections: &Connections) -> NetworkEstimate {
    // Hosts whose rack is not known tell nothing.
    let is_placed = |host: &&HostRow| host.captured && !host.rack.is_empty();
    let rack = |host: HostId| hosts.get(host.index()).filter(is_placed).map(|host| &host.rack);
    let least = |across: bool| {
        let between = connections.iter().filter(|connection| !connection.ends.loopback).filter(|connection| {
            rack(connection.ends.client_host)
                .zip(rack(connection.ends.server_host))
                .is_some_and(|(client, server)| (client != server) == across)
        });
        between.filter_map(|connection| connection.figures.handshake_ns).min()
    };
    NetworkEstimate { links, rack_round_trip_ns: least(false), across_round_trip_ns: least(true) }
}

#[cfg(test)]
mod tests {
    use super::bytes_in;

    #[test]
    fn a_wait_of_any_length_has_its_bytes() {
        assert_eq!(bytes_in(100_000_000, 20_000_000), 250_000);
        // 25 minutes at 100 Mbit/s: bits times nanoseconds have no room in 64 bits.
        assert_eq!(bytes_in(100_000_000, 1_500_000_000_000), 18_750_000_000);
        assert_eq!(bytes_in(u64::MAX, u64::MAX), u64::MAX);
    }
}
