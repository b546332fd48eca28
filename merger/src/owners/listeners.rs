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

/// A listening socket: since when, on which address, whose.
type Listener = (u64, SocketAddr, ProcessId);

/// Listening sockets by host and port.
#[derive(Clone, Debug, Default)]
pub struct Listeners {
    by_port: HashMap<(usize, u16), Vec<Listener>>,
}

impl Listeners {
    /// Gathers what scans and JVMs say.
    #[must_use]
    pub fn gather(hosts: &[HostCapture], processes: &Processes) -> Self {
        let mut listeners = Self::default();
        let mut add = |host: usize, t: u64, local: SocketAddr, process: Option<ProcessId>| {
            if let Some(process) = process {
                listeners.by_port.entry((host, local.port())).or_default().push((t, local, process));
            }
        };
        for (number, host) in hosts.iter().enumerate() {
            for record in host.sockets.iter() {
                if let SocketRecord::Listen { t, netns, local, owner, .. } = record
                    && is_here(host, netns)
                {
                    add(number, t, crate::capture::flows::canonical(local), processes.owner(number, owner));
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
            add(number, t, local, process);
        }
        for entries in listeners.by_port.values_mut() {
            entries.sort();
            entries.dedup_by_key(|entry| (entry.1, entry.2));
            entries.shrink_to_fit();
        }
        listeners
    }

    /// Whether somebody listens there at some time.
    #[must_use]
    pub fn listens(&self, host: usize, address: SocketAddr) -> bool {
        self.owner(host, address, u64::MAX).is_some()
    }

    /// Who listened there at a time: the last one known by then, or else the first one after.
    #[must_use]
    pub fn owner(&self, host: usize, address: SocketAddr, t: u64) -> Option<ProcessId> {
        let entries = self.by_port.get(&(host, address.port()))?;
        let mut fitting = entries.iter().filter(|(_, on, _)| on.ip().is_unspecified() || on.ip() == address.ip());
        let first = fitting.clone().next()?;
        Some(fitting.rfind(|(since, ..)| *since <= t).unwrap_or(first).2)
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
