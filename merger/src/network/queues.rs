//! How long bytes waited on their way, beyond the least time between two hosts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use rayon::prelude::*;

use super::windows::{Ends, WINDOW_NS, ends};
use crate::capture::observed::Observed;
use crate::join::{AddressBook, ObservedFlow};
use crate::survey::Views;

/// The longest waits between two hosts, by window of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waits {
    longest_ns: BTreeMap<(Ends, u64), u64>,
    /// Windows in which a packet left that had to be sent again.
    lost: BTreeSet<(Ends, u64)>,
}

impl Waits {
    /// Of packets with payload that both hosts saw once, between the ends that are asked for.
    pub fn new(
        flows: &[ObservedFlow],
        book: &AddressBook,
        wanted: impl Fn(&Ends) -> bool + Sync,
        packets: impl Fn(&ObservedFlow) -> io::Result<Views> + Sync,
    ) -> io::Result<Self> {
        let of_flows = flows.par_iter().filter_map(|flow| {
            let both = [false, true].map(|forward| ends(&flow.key, forward, book).filter(&wanted));
            both.iter().any(Option::is_some).then_some((flow, both))
        });
        let transit =
            of_flows.map(|(flow, both)| Ok::<TransitTimes, io::Error>(TransitTimes::of_flow(both, &packets(flow)?)));
        let transit = transit.try_reduce(TransitTimes::default, |all, other| Ok(all.and(other)))?;
        let least = |ends: &Ends| transit.least_ns.get(ends).copied().unwrap_or(0);
        let longest_ns =
            transit.longest_ns.iter().map(|((ends, window), took)| ((*ends, *window), took.abs_diff(least(ends))));
        Ok(Self { longest_ns: longest_ns.collect(), lost: transit.lost })
    }

    /// The longest wait of what arrived in a window.
    pub fn longest(&self, ends: Ends, window: u64) -> Option<u64> {
        self.longest_ns.get(&(ends, window)).copied()
    }

    /// Whether packets that left in a window were sent again.
    pub fn lost(&self, ends: Ends, window: u64) -> bool {
        self.lost.contains(&(ends, window))
    }
}

/// How long packets were under way, nanoseconds by their clocks.
#[derive(Debug, Default)]
struct TransitTimes {
    least_ns: BTreeMap<Ends, i64>,
    longest_ns: BTreeMap<(Ends, u64), i64>,
    lost: BTreeSet<(Ends, u64)>,
}

impl TransitTimes {
    /// Of a flow's two directions, where they are asked for and both hosts saw them.
    fn of_flow(both: [Option<Ends>; 2], views: &Views) -> Self {
        let view = |host: usize| views.iter().find(|(other, _)| *other == host).map(|(_, view)| &view.packets[..]);
        let mut transit = Self::default();
        for (forward, ends) in [false, true].into_iter().zip(both) {
            let Some(ends) = ends else { continue };
            let (Some(sender), Some(receiver)) = (view(ends.from), view(ends.to)) else { continue };
            let (both, again) = both_saw(sender, receiver, forward);
            for (arrived, took) in both {
                transit.least_ns.entry(ends).and_modify(|least| *least = took.min(*least)).or_insert(took);
                let window = (ends, arrived / WINDOW_NS);
                transit.longest_ns.entry(window).and_modify(|longest| *longest = took.max(*longest)).or_insert(took);
            }
            transit.lost.extend(again.into_iter().map(|left| (ends, left / WINDOW_NS)));
        }
        transit
    }

    /// With what is known of other flows.
    fn and(mut self, other: Self) -> Self {
        for (ends, took) in other.least_ns {
            self.least_ns.entry(ends).and_modify(|least| *least = took.min(*least)).or_insert(took);
        }
        for (window, took) in other.longest_ns {
            self.longest_ns.entry(window).and_modify(|longest| *longest = took.max(*longest)).or_insert(took);
        }
        self.lost.extend(other.lost);
        self
    }
}

/// When packets arrived and how long they were under way, nanoseconds; without those that the sender's host saw twice: when these left
/// first.
fn both_saw(sender: &[Observed], receiver: &[Observed], forward: bool) -> (Vec<(u64, i64)>, Vec<u64>) {
    let own = |packet: &&Observed| packet.forward == forward && packet.payload_length > 0;
    let key = |packet: &Observed| (packet.sequence, packet.payload_length);
    let mut sent: HashMap<(u32, u32), Option<u64>> = HashMap::new();
    let mut again = Vec::new();
    for packet in sender.iter().filter(own) {
        let first = sent.entry(key(packet)).and_modify(|time| again.extend(time.take()));
        first.or_insert(Some(packet.time_ns));
    }
    let took = |packet: &Observed| {
        // Whoever is taken out is matched once.
        let left = sent.remove(&key(packet)).flatten()?;
        let took = i64::try_from(packet.time_ns).ok()? - i64::try_from(left).ok()?;
        Some((packet.time_ns, took))
    };
    (receiver.iter().filter(own).filter_map(took).collect(), again)
}
