//! Who is where: host names, racks, addresses and namespaces of a lab, decided before anything is touched.

use std::net::Ipv4Addr;

use crate::error::{LabError, Result};

/// Racks of a lab. The uplink joins the two.
pub const RACKS: usize = 2;

/// Workers that a lab can have: the machine's memory ends long before the addresses do.
pub const MAX_WORKERS: usize = 32;

/// A host of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Host name: "m1", "w1", ...
    pub name: String,
    /// Rack by number, from 0.
    pub rack: usize,
    /// Its address on `eth0`.
    pub address: Ipv4Addr,
    /// Its network namespace.
    pub namespace: String,
    /// Whether it is the master.
    pub master: bool,
}

impl HostPlan {
    /// The rack as HDFS and YARN name it.
    #[must_use]
    pub fn rack_path(&self) -> String {
        format!("/r{}", self.rack + 1)
    }
}

/// The names and addresses of one lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What all names of the lab begin with.
    pub prefix: String,
    /// Second number of the addresses: 10.SUBNET.0.0/16.
    pub subnet: u8,
    /// The master, then the workers.
    pub hosts: Vec<HostPlan>,
}

impl Plan {
    /// Plans a master and `workers` workers; the first half of them (rounded up) and the master are in rack 1.
    ///
    /// # Errors
    /// If the prefix cannot be part of a namespace's name, or the number of workers is out of range.
    pub fn new(prefix: &str, subnet: Option<u8>, workers: usize) -> Result<Self> {
        check_prefix(prefix)?;
        if !(1..=MAX_WORKERS).contains(&workers) {
            return Err(LabError::Config(format!("{workers} workers: a lab has from 1 to {MAX_WORKERS}")));
        }
        let subnet = subnet.unwrap_or_else(|| subnet_of(prefix));
        let first_half = workers.div_ceil(RACKS);
        let master = HostPlan {
            name: "m1".to_owned(),
            rack: 0,
            address: Ipv4Addr::new(10, subnet, 1, 1),
            namespace: format!("{prefix}-m1"),
            master: true,
        };
        let workers = (1..=workers).map(|number| {
            let rack = usize::from(number > first_half);
            let name = format!("w{number}");
            HostPlan {
                rack,
                address: Ipv4Addr::new(10, subnet, rack as u8 + 1, number as u8 + 10),
                namespace: format!("{prefix}-{name}"),
                master: false,
                name,
            }
        });
        let hosts = std::iter::once(master).chain(workers).collect();
        Ok(Self { prefix: prefix.to_owned(), subnet, hosts })
    }

    /// The namespace of the switches.
    #[must_use]
    pub fn fabric(&self) -> String {
        format!("{}-fabric", self.prefix)
    }

    /// The master.
    #[must_use]
    pub fn master(&self) -> &HostPlan {
        &self.hosts[0]
    }

    /// The workers.
    #[must_use]
    pub fn workers(&self) -> &[HostPlan] {
        &self.hosts[1..]
    }

    /// The hosts of a rack.
    pub fn rack(&self, rack: usize) -> impl Iterator<Item = &HostPlan> {
        self.hosts.iter().filter(move |host| host.rack == rack)
    }

    /// The contents of `/etc/hosts` on every host.
    #[must_use]
    pub fn hosts_file(&self) -> String {
        let mut text = format!("127.0.0.1 localhost\n10.{}.0.1 operator\n", self.subnet);
        for host in &self.hosts {
            text.push_str(&format!("{} {}\n", host.address, host.name));
        }
        text
    }

    /// The table of racks that Hadoop's `TableMapping` reads: names and addresses.
    #[must_use]
    pub fn rack_table(&self) -> String {
        let mut text = String::new();
        for host in &self.hosts {
            let rack = host.rack_path();
            text.push_str(&format!("{} {rack}\n{} {rack}\n", host.name, host.address));
        }
        text
    }
}

/// Checks that a prefix can begin names of namespaces and files.
///
/// # Errors
/// If it is empty, longer than 12 characters or has others than small letters and digits.
pub fn check_prefix(prefix: &str) -> Result<()> {
    let good = !prefix.is_empty()
        && prefix.len() <= 12
        && prefix.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if !good {
        return Err(LabError::Config(format!(
            "{prefix:?} cannot be a prefix: 1 to 12 small letters and digits, as in lab2"
        )));
    }
    Ok(())
}

/// A number from 1 to 250 that differs for most prefixes (FNV-1a).
fn subnet_of(prefix: &str) -> u8 {
    let hash = prefix.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash % 250) as u8 + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_host_has_its_own_address_in_the_subnet_of_the_lab() {
        for workers in [1, 2, 3, 4, 7, MAX_WORKERS] {
            let plan = Plan::new("lab", Some(7), workers).unwrap();
            let addresses: BTreeSet<_> = plan.hosts.iter().map(|host| host.address).collect();
            assert_eq!(addresses.len(), workers + 1);
            assert!(addresses.iter().all(|address| address.octets()[..2] == [10, 7]));
        }
    }

    #[test]
    fn both_racks_have_a_worker_from_two_on() {
        for workers in 2..=MAX_WORKERS {
            let plan = Plan::new("lab", None, workers).unwrap();
            let far = plan.workers().iter().filter(|host| host.rack == 1).count();
            assert_eq!(far, workers / 2);
        }
        assert_eq!(Plan::new("lab", None, 1).unwrap().rack(1).count(), 0);
    }

    #[test]
    fn the_rack_table_knows_names_and_addresses() {
        let plan = Plan::new("lab", Some(3), 4).unwrap();
        let table = plan.rack_table();
        for line in ["m1 /r1", "10.3.1.1 /r1", "w2 /r1", "w3 /r2", "10.3.2.14 /r2"] {
            assert!(table.lines().any(|l| l == line), "{line} is not in\n{table}");
        }
        assert!(plan.hosts_file().contains("10.3.2.13 w3\n"));
    }

    #[test]
    fn prefixes_that_would_break_names_are_refused() {
        for bad in ["", "Lab", "a-b", "a/b", "lab lab", "thirteenchars"] {
            assert!(Plan::new(bad, None, 4).is_err(), "{bad}");
        }
    }

    #[test]
    fn workers_out_of_range_are_refused() {
        for bad in [0, MAX_WORKERS + 1] {
            assert!(Plan::new("lab", None, bad).is_err());
        }
    }
}
