//! The interfaces of the network namespace, which of them to record, and the host's addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use serde::Serialize;
use trace::packet::Direction;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Whether it is up.
    pub up: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The interface that shows the same packets, so that this one is left out unless it is named.
    pub seen_on: Option<String>,
}

/// All interfaces of the network namespace, by name.
///
/// # Errors
/// If the kernel does not list them.
pub fn list() -> io::Result<Vec<Interface>> {
    let mut found: BTreeMap<String, Interface> = BTreeMap::new();
    for entry in getifaddrs()? {
        let interface = found.entry(entry.interface_name.clone()).or_insert_with(|| Interface {
            name: entry.interface_name.clone(),
            loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
            up: entry.flags.contains(InterfaceFlags::IFF_UP),
            addresses: Vec::new(),
            seen_on: seen_on(Path::new("/sys/class/net"), &entry.interface_name),
        });
        let address = entry.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        });
        interface.addresses.extend(address);
    }
    Ok(found.into_values().collect())
}

/// Packets of a bond's or bridge's port are seen on the bond or bridge as well; those of a VLAN or macvlan device on
/// the device below. `None` where sysfs does not tell, or is that of another namespace.
fn seen_on(sysfs: &Path, name: &str) -> Option<String> {
    let about = sysfs.join(name);
    let index = fs::read_to_string(about.join("ifindex")).ok()?;
    if index.trim().parse::<u32>().ok()? != if_nametoindex(name).ok()? {
        return None;
    }
    let master = |name: &str| {
        let link = fs::read_link(sysfs.join(name).join("master")).ok()?;
        link.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    if let Some(master) = master(name) {
        return Some(master);
    }
    let below = fs::read_dir(&about).ok()?.flatten().find_map(|entry| {
        let entry = entry.file_name();
        entry.to_string_lossy().strip_prefix("lower_").map(str::to_owned)
    })?;
    (master(&below).as_deref() != Some(name)).then_some(below)
}

/// Why there is nothing to record.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// A named interface does not exist.
    #[error("there is no interface \"{name}\" in this network namespace; there are: {known}")]
    Unknown {
        /// As it was named.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A named interface is down.
    #[error("interface \"{name}\" is down: `ip link set {name} up` first, or leave it out")]
    Down {
        /// Its name.
        name: String,
    },
    /// None is up.
    #[error("no interface of this network namespace is up; there are: {known}")]
    NoneUp {
        /// Those that exist.
        known: String,
    },
}

/// The interfaces to record: those named, else all that are up and whose packets no other one shows.
///
/// # Errors
/// If a named one is missing or down, or none is up.
pub fn choose(all: &[Interface], named: &[String]) -> Result<Vec<Interface>, ChoiceError> {
    let known = || all.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>().join(", ");
    if named.is_empty() {
        let up = |name: &String| all.iter().any(|other| other.up && other.name == *name);
        let chosen: Vec<_> = all
            .iter()
            .filter(|interface| interface.up && !interface.seen_on.as_ref().is_some_and(up))
            .cloned()
            .collect();
        return if chosen.is_empty() { Err(ChoiceError::NoneUp { known: known() }) } else { Ok(chosen) };
    }
    let named: BTreeSet<_> = named.iter().collect();
    named
        .into_iter()
        .map(|name| match all.iter().find(|interface| interface.name == *name) {
            None => Err(ChoiceError::Unknown { name: name.clone(), known: known() }),
            Some(interface) if !interface.up => Err(ChoiceError::Down { name: name.clone() }),
            Some(interface) => Ok(interface.clone()),
        })
        .collect()
}

/// The host's own addresses, to tell the direction of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    v4: Vec<Ipv4Addr>,
    v6: Vec<Ipv6Addr>,
}

impl OwnAddresses {
    /// Of these interfaces.
    #[must_use]
    pub fn of(interfaces: &[Interface]) -> Self {
        let all: BTreeSet<IpAddr> =
            interfaces.iter().flat_map(|interface| interface.addresses.iter().copied()).collect();
        let mut own = Self::default();
        for address in all {
            match address {
                IpAddr::V4(address) => own.v4.push(address),
                IpAddr::V6(address) => own.v6.push(address),
            }
        }
        own
    }

    /// Which way a packet went.
    #[must_use]
    pub fn direction(&self, source: IpAddr, destination: IpAddr) -> Direction {
        direction(self.has(source), self.has(destination))
    }

    /// The same of IPv4 addresses.
    #[must_use]
    #[inline]
    pub fn direction_v4(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Direction {
        direction(self.has_v4(source), self.has_v4(destination))
    }

    fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.has_v4(address),
            IpAddr::V6(address) => address.is_loopback() || self.v6.contains(&address),
        }
    }

    fn has_v4(&self, address: Ipv4Addr) -> bool {
        address.is_loopback() || self.v4.contains(&address)
    }
}

fn direction(from_here: bool, to_here: bool) -> Direction {
    match (from_here, to_here) {
        (true, true) => Direction::Loopback,
        (true, false) => Direction::Out,
        (false, true) => Direction::In,
        (false, false) => Direction::Foreign,
    }
}
