//! How long bytes waited on their way, beyond the least time between two hosts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::windows::{Ends, WINDOW_NS, ends};
use crate::capture::HostCapture;
use crate::capture::flows::Observed;
use crate::join::AddressBook;

/// The longest waits between two hosts, by window of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waits {
    longest_ns: BTreeMap<(Ends, u64), u64>,
    /// Windows in which a packet left that had to be sent again.
    lost: BTreeSet<(Ends, u64)>,
}

impl Waits {
    /// Of packets with payload that both hosts saw once, between the ends that are asked for.
    pub fn new(hosts: &[HostCapture], book: &AddressBook, wanted: impl Fn(&Ends) -> bool) -> Self {
        let mut ways: BTreeMap<Ends, Vec<(u64, i64)>> = BTreeMap::new();
        let mut lost = BTreeSet::new();
        for (number, host) in hosts.iter().enumerate() {
            for (key, packets) in &host.packets.flows {
                for forward in [false, true] {
                    let Some(ends) = ends(key, forward, book).filter(|ends| ends.from == number && wanted(ends)) else {
                        continue;
                    };
                    if let Some(there) = hosts[ends.to].packets.flows.get(key) {
                        let (both, again) = both_saw(packets, there, forward);
                        ways.entry(ends).or_default().extend(both);
                        lost.extend(again.into_iter().map(|left| (ends, left / WINDOW_NS)));
                    }
                }
            }
        }
        let mut longest_ns = BTreeMap::new();
        for (ends, ways) in ways {
            let least = ways.iter().map(|(_, took)| *took).min().unwrap_or(0);
            for (arrived, took) in ways {
                let longest = longest_ns.entry((ends, arrived / WINDOW_NS)).or_insert(0);
                *longest = (*longest).max(took.abs_diff(least));
            }
        }
        Self { longest_ns, lost }
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
