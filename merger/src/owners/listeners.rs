//! Who listens where.

use std::net::SocketAddr;

use rayon::prelude::*;
use trace::ids::ProcessId;
use trace::jvm::JvmRecord;
use trace::socket::SocketRecord;

use crate::capture::HostCapture;
use crate::maps::HashMap;
use crate::processes::Processes;
use crate::records::ends_of;

/// A listening socket: on which address, whose, and when it was known of first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    local: SocketAddr,
    process: ProcessId,
    known_ns: (u64, u64),
}

/// Listening sockets by host and port. Whoever lists sockets tells of each again and again.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    by_port: HashMap<(usize, u16), Vec<Listener>>,
}

impl Listeners {
    /// Gathers what scans and JVMs say.
    #[must_use]
    pub fn gather(hosts: &[HostCapture], processes: &Processes) -> Self {
        let mut listeners = Self::default();
        for (number, host) in hosts.iter().enumerate() {
            for record in host.sockets.iter() {
                if let SocketRecord::Listen { t, netns, local, owner, .. } = record
                    && is_here(host, netns)
                {
                    listeners.add(number, t, crate::capture::flows::canonical(local), processes.owner(number, owner));
                }
            }
        }
        let jvms = hosts.iter().enumerate().flat_map(|(number, host)| host.jvms.iter().map(move |jvm| (number, jvm)));
        let of_jvms = jvms.collect::<Vec<_>>().into_par_iter().map(|(number, jvm)| {
            let process = processes.find(number, jvm.pid, jvm.start_ticks);
            let of_records = jvm.records.iter().filter_map(|record| {
                let (t, local) = listens_at(&record)?;
                Some((number, t, local, process))
            });
            of_records.collect::<Vec<_>>()
        });
        for (number, t, local, process) in of_jvms.collect::<Vec<_>>().concat() {
            listeners.add(number, t, local, process);
        }
        listeners.by_port.values_mut().for_each(Vec::shrink_to_fit);
        listeners
    }

    fn add(&mut self, host: usize, t: u64, local: SocketAddr, process: Option<ProcessId>) {
        let Some(process) = process else { return };
        let of_port = self.by_port.entry((host, local.port())).or_default();
        match of_port.iter_mut().find(|known| (known.local, known.process) == (local, process)) {
            Some(Listener { known_ns: (first, last), .. }) => (*first, *last) = ((*first).min(t), (*last).max(t)),
            None => of_port.push(Listener { local, process, known_ns: (t, t) }),
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
        let of_port = self.by_port.get(&(host, address.port()))?;
        let is_fitting = |local: SocketAddr| local.ip().is_unspecified() || local.ip() == address.ip();
        let fitting = || of_port.iter().filter(|known| is_fitting(known.local));
        let until = |known: &&Listener| (known.known_ns.1.min(t), known.local, known.process);
        let last = fitting().filter(|known| known.known_ns.0 <= t).max_by_key(until);
        let first = || fitting().min_by_key(|known| (known.known_ns.0, known.local, known.process));
        Some(last.or_else(first)?.process)
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
        assert_eq!(listeners.by_port[&(0, 9000)].len(), 3, "each is held once");
        assert!(
            !listeners.listens(1, own) && listeners.owner(0, SocketAddr::from(([10, 0, 0, 1], 9001)), 30).is_none()
        );
    }
}
