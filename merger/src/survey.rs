//! The first look at all packets, flow by flow: which connections there are, and what two hosts saw of each other.

use std::io;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::capture::HostCapture;
use crate::capture::settled::{FlowPackets, LoneFlow};
use crate::clock::{BothSaw, PairFit, PairsSaw};
use crate::join::{self, AddressBook, FoundConnections, ObservedFlow, ObservedFlows};

/// What a flow's packets are, as each host saw them; hosts by number.
pub(crate) type Views = Vec<(usize, FlowPackets)>;

/// What the packets of all hosts are, without them.
pub(crate) struct Survey {
    /// All flows.
    pub flows: ObservedFlows,
    /// The connections of each.
    pub found: FoundConnections,
    pairs: PairsSaw,
}

impl Survey {
    /// Looks at all packets; `seen` is told how many they are, flow by flow.
    pub fn of(hosts: &[HostCapture], book: &AddressBook, seen: impl Fn(u64) + Sync) -> io::Result<Self> {
        let flows = ObservedFlows::of(hosts)?;
        let pairs = Mutex::new(PairsSaw::new(false));
        let found = FoundConnections::default();
        (0..flows.len()).into_par_iter().with_max_len(1).try_for_each(|number| {
            let flow = flows.get(number);
            let views = load(hosts, &flow)?;
            add(&pairs, both_saw(&flow, &views, book), false);
            found.extend(number, &join::find(&views))?;
            seen(packets_of(&views));
            io::Result::Ok(())
        })?;
        flows.check()?;
        Ok(Self { flows, found, pairs: pairs.into_inner().unwrap_or_else(PoisonError::into_inner) })
    }

    /// How the clocks of each pair of hosts stand to each other.
    pub fn fits(&mut self, hosts: &[HostCapture]) -> Vec<PairFit> {
        std::mem::take(&mut self.pairs).fit(&ranges(hosts))
    }

    /// The same with every packet that two hosts saw.
    pub fn whole_fits(&self, hosts: &[HostCapture], book: &AddressBook) -> io::Result<Vec<PairFit>> {
        let pairs = Mutex::new(PairsSaw::new(true));
        let flows = (0..self.flows.len()).into_par_iter().with_max_len(1).map(|number| self.flows.get(number));
        flows.filter(|flow| ends(flow, book).is_some()).try_for_each(|flow| {
            let views = load(hosts, &flow)?;
            add(&pairs, both_saw(&flow, &views, book), true);
            io::Result::Ok(())
        })?;
        self.flows.check()?;
        Ok(pairs.into_inner().unwrap_or_else(PoisonError::into_inner).fit(&ranges(hosts)))
    }
}

/// Adds what two hosts saw of a flow: all of it, or its edges.
fn add(pairs: &Mutex<PairsSaw>, both: Option<BothSaw>, keeps_all: bool) {
    if let Some(both) = both {
        let clouds = both.clouds(keeps_all);
        pairs.lock().unwrap_or_else(PoisonError::into_inner).add(clouds);
    }
}

/// How many packets they are.
pub(crate) fn packets_of(views: &Views) -> u64 {
    views.iter().map(|(_, view)| view.packets.len() as u64).sum()
}

/// When each host saw any packets.
fn ranges(hosts: &[HostCapture]) -> Vec<(i64, i64)> {
    let signed = |(first, last): (u64, u64)| (i64::try_from(first).unwrap_or(0), i64::try_from(last).unwrap_or(0));
    hosts.iter().map(|host| signed(host.packets.range_ns())).collect()
}

/// The packets of a flow, on the clocks of the hosts that saw it.
pub(crate) fn load(hosts: &[HostCapture], flow: &ObservedFlow) -> io::Result<Views> {
    let views = flow.hosts.iter().map(|&(host, place)| Ok((host, hosts[host].packets.flow(place)?)));
    views.collect()
}

/// As [`load`], for the last time.
pub(crate) fn unload(lone: Vec<(usize, LoneFlow)>) -> io::Result<Views> {
    lone.into_iter().map(|(host, flow)| Ok((host, flow.packets()?))).collect()
}

/// The hosts of a flow's lower and of its higher address, where these are two that have both seen it.
fn ends(flow: &ObservedFlow, book: &AddressBook) -> Option<(usize, usize)> {
    if flow.key.host().is_some() {
        return None;
    }
    let (low, high) = (book.host_of(flow.key.low().ip(), None)?, book.host_of(flow.key.high().ip(), None)?);
    // A third host may have seen it as well, and one of the two not at all.
    (low != high && flow.is_of(low) && flow.is_of(high)).then_some((low, high))
}

/// The two hosts that [`both_saw`] compares, the one with the lower number first.
pub(crate) fn pair(flow: &ObservedFlow, book: &AddressBook) -> Option<(usize, usize)> {
    ends(flow, book).map(|(low, high)| (low.min(high), low.max(high)))
}

/// What the two hosts between which a flow went both saw, before its times are moved.
pub(crate) fn both_saw(flow: &ObservedFlow, views: &Views, book: &AddressBook) -> Option<BothSaw> {
    let (low, high) = ends(flow, book)?;
    let of = |host: usize| {
        let (_, view) = views.iter().find(|(other, _)| *other == host)?;
        Some((host, view.packets.as_slice()))
    };
    Some(BothSaw::of(of(low)?, of(high)?))
}
