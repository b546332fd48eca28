//! Which hosts stand in which rack.

use super::{HostPlace, TopologyError};
use std::collections::{BTreeMap, BTreeSet};

/// The hosts by rack, in the order in which racks first appear.
pub(crate) struct Placing {
    pub(crate) racks: Vec<String>,
    /// The rack of each host.
    rack_of: Vec<usize>,
}

impl Placing {
    /// Those of `hosts`.
    ///
    /// # Errors
    /// When two hosts have one name.
    pub(crate) fn of(hosts: &[HostPlace]) -> Result<Self, TopologyError> {
        let mut names = BTreeSet::new();
        let mut racks: Vec<String> = Vec::new();
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut rack_of = Vec::with_capacity(hosts.len());
        for host in hosts {
            if !names.insert(&host.name) {
                return Err(TopologyError::HostTwice { name: host.name.clone() });
            }
            rack_of.push(*numbers.entry(&host.rack).or_insert_with(|| {
                racks.push(host.rack.clone());
                racks.len() - 1
            }));
        }
        Ok(Self { racks, rack_of })
    }

    /// The rack of host `host`, by number.
    pub(crate) fn rack(&self, host: usize) -> usize {
        self.rack_of[host]
    }

    /// How many hosts stand in rack `rack`.
    pub(crate) fn hosts_in(&self, rack: usize) -> usize {
        self.rack_of.iter().filter(|r| **r == rack).count()
    }
}
