//! Who listens where.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;
use trace::socket::SocketRecord;

use crate::capture::HostCapture;
use crate::maps::HashMap;
use crate::processes::Processes;
use crate::records::ends_of;

/// Whose listening sockets on an address were, and when that was known of first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    process: ProcessId,
    known_ns: (u64, u64),
}

/// Listening sockets by host, address and port. Whoever lists sockets tells of each again and again.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    by_address: HashMap<(usize, IpAddr, u16), Vec<Listener>>,
    /// How often JVMs said that they listen on others than so many addresses that are believed.
    pub left_out: BTreeMap<ProcessId, u64>,
}

/// Addresses and ports on which a JVM is believed to listen: anybody can write a JVM's file.
const MAX_ADDRESSES: usize = 4096;

impl Listeners {
    /// Gathers what scans and JVMs say.
    #[must_use]
    pub fn gather(hosts: &[HostCapture], processes: &Processes) -> Self {
        let of_scans = hosts.par_iter().enumerate().map(|(number, host)| {
            let mut of_host = Self::default();
            for record in host.sockets.iter() {
                if let SocketRecord::Listen { t, netns, local, owner, .. } = record
                    && is_here(host, netns)
                {
                    of_host.add(number, t, crate::capture::flows::canonical(local), processes.owner(number, owner));
                }
            }
            of_host.by_address
        });
        let of_scans: Vec<HashMap<_, _>> = of_scans.collect();
        let mut listeners = Self { by_address: of_scans.into_iter().flatten().collect(), left_out: BTreeMap::new() };
        let jvms = hosts.iter().enumerate().flat_map(|(number, host)| host.jvms.iter().map(move |jvm| (number, jvm)));
        let of_jvms = jvms.collect::<Vec<_>>().into_par_iter().map(|(number, jvm)| {
            let process = processes.find(number, jvm.pid, jvm.start_ticks);
            let mut of_jvm = Self::default();
            for (t, local) in jvm.records.iter().filter_map(|record| listens_at(&record)) {
                let is_known = of_jvm.by_address.contains_key(&(number, local.ip(), local.port()));
                if is_known || of_jvm.by_address.len() < MAX_ADDRESSES {
                    of_jvm.add(number, t, local, process);
                } else if let Some(process) = process {
                    *of_jvm.left_out.entry(process).or_default() += 1;
                }
            }
            of_jvm
        });
        for of_jvm in of_jvms.collect::<Vec<Self>>() {
            listeners.left_out.extend(of_jvm.left_out);
            for ((host, ip, port), on_address) in of_jvm.by_address {
                for Listener { process, known_ns: (first, last) } in on_address {
                    let local = SocketAddr::new(ip, port);
                    [first, last].into_iter().for_each(|t| listeners.add(host, t, local, Some(process)));
                }
            }
        }
        listeners.by_address.values_mut().for_each(Vec::shrink_to_fit);
        listeners
    }

    fn add(&mut self, host: usize, t: u64, local: SocketAddr, process: Option<ProcessId>) {
        let Some(process) = process else { return };
        let on_address = self.by_address.entry((host, local.ip(), local.port())).or_default();
        match on_address.iter_mut().find(|known| known.process == process) {
            Some(Listener { known_ns: (first, last), .. }) => (*first, *last) = ((*first).min(t), (*last).max(t)),
            None => on_address.push(Listener { process, known_ns: (t, t) }),
        }
    }

    /// Whether somebody listens there at some time.
    #[must_use]
    pub fn listens(&self, host: usize, address: SocketAddr) -> bool {
        self.owner(host, address, u64::MAX).is_some()
    }

    /// Who listened there at a time: the one of whom was known last by then, or else the first one after.
    #[must_use]
    pub fn owner(&self, host: usize, address: SocketAddr, t: u64) -> Option<ProcessId> {
        // Who listens on all addresses does so on this one.
        let all = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let others = all.into_iter().filter(|ip| *ip != address.ip());
        let ips: Vec<IpAddr> = others.chain([address.ip()]).collect();
        let fitting = || {
            let on = |ip: &IpAddr| self.by_address.get(&(host, *ip, address.port())).map(|known| (*ip, known));
            ips.iter().filter_map(on).flat_map(|(ip, known)| known.iter().map(move |known| (ip, known)))
        };
        let until = |(ip, known): &(IpAddr, &Listener)| (known.known_ns.1.min(t), *ip, known.process);
        let last = fitting().filter(|(_, known)| known.known_ns.0 <= t).max_by_key(until);
        let first = || fitting().min_by_key(|(ip, known)| (known.known_ns.0, *ip, known.process));
        Some(last.or_else(first)?.1.process)
    }
}

/// When a JVM listened, and where, if a record says so.
fn listens_at(record: &JvmRecord) -> Option<(u64, SocketAddr)> {
    match record {
        JvmRecord::Listen { t, local, .. } => Some((*t, crate::records::address(local)?)),
        JvmRecord::Accept { t, .. } => Some((*t, ends_of(record)?.0?)),
        _ => None,
    }
}

/// Whether a record of a socket is about the network namespace whose packets were recorded.
pub(super) fn is_here(host: &HostCapture, netns: u64) -> bool {
    netns == 0 || host.netns == 0 || netns == host.netns
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_port_is_whose_it_was_last_known_to_be() {
        let (any, own) = (SocketAddr::from(([0; 4], 9000)), SocketAddr::from(([10, 0, 0, 1], 9000)));
        let [first, second, third] = [7, 8, 9].map(ProcessId);
        let mut listeners = Listeners::default();
        for t in (10..20).chain(10..15) {
            listeners.add(0, t, any, Some(first));
        }
        for t in 30..40 {
            listeners.add(0, t, any, Some(second));
            listeners.add(0, t, own, None);
        }
        listeners.add(0, 35, SocketAddr::from(([10, 0, 0, 2], 9000)), Some(third));
        let owner = |t: u64| listeners.owner(0, own, t);
        assert_eq!([0, 10, 25, 30, 99].map(owner), [first, first, first, second, second].map(Some));
        assert_eq!(listeners.by_address.values().map(Vec::len).sum::<usize>(), 3, "each is held once");
        assert!(
            !listeners.listens(1, own) && listeners.owner(0, SocketAddr::from(([10, 0, 0, 1], 9001)), 30).is_none()
        );
    }
}
