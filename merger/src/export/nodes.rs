//! Hosts as numbers of the nodes of a fabric.

use std::collections::BTreeMap;
use std::io::{self, Write};

use trace::ids::HostId;
use trace::rows::Trace;

use super::file::one_line;
use super::job_lanes::Owner;

/// The numbers of the hosts on a fabric whose racks are filled one by one and are equally large.
pub(super) struct Nodes {
    by_host: BTreeMap<HostId, usize>,
    pub racks: usize,
    /// Hosts of the largest rack.
    per_rack: usize,
}

impl Nodes {
    pub fn new(trace: &Trace) -> Self {
        let mut racks: BTreeMap<&str, Vec<HostId>> = BTreeMap::new();
        for host in &trace.hosts {
            racks.entry(&host.rack).or_default().push(host.host);
        }
        let per_rack = racks.values().map(Vec::len).max().unwrap_or(1);
        let mut by_host = BTreeMap::new();
        for (rack, hosts) in racks.values().enumerate() {
            by_host.extend(hosts.iter().enumerate().map(|(slot, host)| (*host, rack * per_rack + slot)));
        }
        Self { by_host, racks: racks.len().max(1), per_rack }
    }

    pub fn count(&self) -> usize {
        self.racks * self.per_rack
    }

    /// What belongs to no known host is on the first node.
    pub fn of(&self, trace: &Trace, owner: Owner) -> usize {
        let host = match owner {
            Owner::Process(process) => trace.processes.get(process.index()).map(|row| row.host),
            Owner::UnknownOn(host) => Some(host),
            Owner::Nobody => None,
        };
        host.and_then(|host| self.by_host.get(&host)).copied().unwrap_or(0)
    }

    pub fn write(&self, trace: &Trace, file: &mut impl Write) -> io::Result<()> {
        for host in &trace.hosts {
            let number = self.by_host[&host.host];
            writeln!(file, "{number} {} {}", one_line(&host.name), one_line(&host.rack))?;
        }
        Ok(())
    }
}
