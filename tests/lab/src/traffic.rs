//! What the kernel counts on the lab's interfaces and in the queues of its links: a check on what a recorder saw.

use std::fs;

use crate::error::{Context, Result};
use serde_json::Value;
use trace::truth::{InterfaceTraffic, Truth};

use crate::netns;
use crate::plan::Plan;
use crate::tool;

/// The kernel's counters at one time, in the order of the plan's hosts and of the truth's links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    interfaces: Vec<Vec<InterfaceTraffic>>,
    drops: Vec<(u64, u64)>,
}

impl Counters {
    /// Reads all counters of a lab.
    ///
    /// # Errors
    /// If a namespace cannot be entered or a tool fails.
    pub fn read(plan: &Plan) -> Result<Self> {
        let fabric = plan.fabric();
        let mut interfaces = Vec::new();
        let mut drops = Vec::new();
        for host in &plan.hosts {
            interfaces.push(netns::within(&host.namespace, || {
                let text = fs::read_to_string("/proc/thread-self/net/dev").context("cannot read interface counters")?;
                Ok(parse_interfaces(&text))
            })?);
            let port = format!("p-{}", host.name);
            drops.push((queue_drops(&host.namespace, "eth0")?, queue_drops(&fabric, &port)?));
        }
        drops.push((queue_drops(&fabric, "up1")?, queue_drops(&fabric, "up2")?));
        Ok(Self { interfaces, drops })
    }

    /// Writes into the truth what was counted since `before`.
    pub fn tell_since(&self, before: &Self, truth: &mut Truth) {
        let hosts = truth.hosts.iter_mut().zip(self.interfaces.iter().zip(&before.interfaces));
        for (host, (now, then)) in hosts {
            host.interfaces = now.iter().zip(then).map(|(now, then)| difference(now, then)).collect();
        }
        let links = truth.links.iter_mut().zip(self.drops.iter().zip(&before.drops));
        for (link, (now, then)) in links {
            link.drops_ab = now.0.saturating_sub(then.0);
            link.drops_ba = now.1.saturating_sub(then.1);
        }
    }
}

fn difference(now: &InterfaceTraffic, then: &InterfaceTraffic) -> InterfaceTraffic {
    InterfaceTraffic {
        name: now.name.clone(),
        received_packets: now.received_packets.saturating_sub(then.received_packets),
        received_bytes: now.received_bytes.saturating_sub(then.received_bytes),
        sent_packets: now.sent_packets.saturating_sub(then.sent_packets),
        sent_bytes: now.sent_bytes.saturating_sub(then.sent_bytes),
        dropped_packets: now.dropped_packets.saturating_sub(then.dropped_packets),
    }
}

/// Reads `/proc/net/dev`: two lines of headings, then `name: received ... sent ...` with eight numbers each.
fn parse_interfaces(text: &str) -> Vec<InterfaceTraffic> {
    let mut all: Vec<InterfaceTraffic> = text
        .lines()
        .skip(2)
        .filter_map(|line| {
            let (name, numbers) = line.split_once(':')?;
            let numbers: Vec<u64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
            Some(InterfaceTraffic {
                name: name.trim().to_owned(),
                received_bytes: *numbers.first()?,
                received_packets: *numbers.get(1)?,
                sent_bytes: *numbers.get(8)?,
                sent_packets: *numbers.get(9)?,
                dropped_packets: numbers.get(3)? + numbers.get(11)?,
            })
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Packets that the queue of a shaped device had no room for; 0 where it is unshaped.
fn queue_drops(namespace: &str, device: &str) -> Result<u64> {
    let stated = tool::run_words(&format!("tc -n {namespace} -s -j qdisc show dev {device}"))?;
    let queues: Value = serde_json::from_str(&stated)
        .with_context(|| format!("tc tells of {device} in {namespace} what is no JSON: {stated}"))?;
    let queues = queues.as_array().map_or(&[][..], Vec::as_slice);
    Ok(queues.iter().filter(|queue| queue["kind"] == "pfifo").filter_map(|queue| queue["drops"].as_u64()).sum())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    1000      10    0    0    0     0          0         0     1000      10    0    0    0     0       0          0
  eth0: 2000 20 0 1 0 0 0 0 3000 30 0 2 0 0 0 0
";

    #[test]
    fn counters_are_read_by_their_columns() {
        let read = parse_interfaces(DEV);
        let names: Vec<&str> = read.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["eth0", "lo"]);
        let eth0 = &read[0];
        assert_eq!((eth0.received_bytes, eth0.received_packets), (2000, 20));
        assert_eq!((eth0.sent_bytes, eth0.sent_packets, eth0.dropped_packets), (3000, 30, 3));
    }

    #[test]
    fn the_truth_gets_what_came_in_between() {
        let counters = |packets, drops| Counters {
            interfaces: vec![vec![InterfaceTraffic { sent_packets: packets, ..InterfaceTraffic::default() }]],
            drops: vec![drops],
        };
        let mut truth = Truth { hosts: vec![Default::default()], links: vec![Default::default()], ..Truth::default() };
        counters(50, (7, 9)).tell_since(&counters(20, (3, 9)), &mut truth);
        assert_eq!(truth.hosts[0].interfaces[0].sent_packets, 30);
        assert_eq!((truth.links[0].drops_ab, truth.links[0].drops_ba), (4, 0));
    }
}
