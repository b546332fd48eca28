//! The links of racks, and the way over them from one host to another.

use super::windows::Ends;
use crate::capture::HostCapture;

/// A link, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum DirectedLink<'h> {
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
pub(super) struct Racks<'h> {
    of: Vec<&'h str>,
}

impl<'h> Racks<'h> {
    /// A host whose rack is not known stands in the first one that is, as in a replay.
    pub fn of(hosts: &'h [HostCapture]) -> Self {
        let first = hosts.iter().map(|host| host.rack.as_str()).find(|rack| !rack.is_empty()).unwrap_or_default();
        let rack = |host: &'h HostCapture| if host.rack.is_empty() { first } else { host.rack.as_str() };
        Self { of: hosts.iter().map(rack).collect() }
    }

    /// The links over which bytes go from one host to another, in their order.
    pub fn way(&self, ends: Ends) -> Vec<DirectedLink<'h>> {
        let (from, to) = (self.of[ends.from], self.of[ends.to]);
        let between = if from == to { vec![] } else { vec![DirectedLink::Out(from), DirectedLink::In(to)] };
        [vec![DirectedLink::Up(ends.from)], between, vec![DirectedLink::Down(ends.to)]].concat()
    }

    pub fn several(&self) -> usize {
        let mut racks = self.of.clone();
        racks.sort_unstable();
        racks.dedup();
        racks.len()
    }

    /// What people call both ends of a link. With `direct` the racks are two, with one link between them.
    pub fn names(&self, link: DirectedLink, hosts: &[HostCapture], direct: bool) -> (String, String) {
        let switch = |rack: &str| if rack.is_empty() { "switch".to_owned() } else { rack.to_owned() };
        let other = |rack: &str| {
            let other = self.of.iter().find(|other| **other != rack).filter(|_| direct);
            other.map_or_else(|| "core".to_owned(), |other| switch(other))
        };
        match link {
            DirectedLink::Up(host) => (hosts[host].name.clone(), switch(self.of[host])),
            DirectedLink::Down(host) => (switch(self.of[host]), hosts[host].name.clone()),
            DirectedLink::Out(rack) => (switch(rack), other(rack)),
            DirectedLink::In(rack) => (other(rack), switch(rack)),
        }
    }
}
