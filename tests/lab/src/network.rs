//! The lab's network: namespaces, a bridge for each rack, veth pairs, and rates.
//!
//! Every host is joined to its rack's bridge by a veth pair; a veth pair between the bridges is the uplink. Offloads
//! are off on both ends of each, so that segments on the wire are what a switch would see. Both ends of a link send
//! through an htb class of the link's rate into a pfifo, as a port with a small buffer does.

use std::fs;
use std::path::Path;

use crate::error::{Context, Result};

use crate::lease;
use crate::netns;
use crate::plan::{HostPlan, Plan, RACKS};
use crate::tool::run_words;
use crate::units::LinkRate;

/// Bytes that a shaper lets pass at once. With it htb keeps its rate to 1 Gbit/s without loss; with less it does not.
pub const BURST_BYTES: u32 = 32 * 1024;

/// Congestion control of the hosts: what Hadoop clusters have. (The machine's own may be another.)
pub const CONGESTION_CONTROL: &str = "cubic";

/// Settings of the hosts' TCP that explain a capture; read back into the truth.
pub const REPORTED_SYSCTLS: [&str; 6] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
];

/// Congestion controls that a namespace may choose; a setting of the whole machine.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// How fast links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Links of the hosts.
    pub links: LinkRate,
    /// The link between the racks.
    pub uplink: LinkRate,
    /// Queue at each end of a link, packets.
    pub queue_packets: u32,
}

/// Makes the network of a lab. What it makes is found again by its names; [`lease`] removes it.
///
/// # Errors
/// If a tool fails; the message has its words.
pub fn up(plan: &Plan, shape: &Shape) -> Result<()> {
    let fabric = plan.fabric();
    add_namespace(&fabric)?;
    for rack in 0..RACKS {
        let bridge = bridge(rack);
        run_words(&format!(
            "ip -n {fabric} link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
        ))?;
        run_words(&format!("ip -n {fabric} link set {bridge} up"))?;
    }
    run_words(&format!("ip -n {fabric} link add up1 type veth peer name up2"))?;
    for (end, rack) in [("up1", 0), ("up2", 1)] {
        join_bridge(&fabric, end, rack)?;
        shape_end(&fabric, end, shape.uplink, shape.queue_packets)?;
    }
    for host in &plan.hosts {
        add_host(plan, host, shape)?;
    }
    set_congestion_control(plan)
}

/// Bridge of a rack: the name of its switch.
#[must_use]
pub fn bridge(rack: usize) -> String {
    format!("r{}", rack + 1)
}

fn add_namespace(namespace: &str) -> Result<()> {
    run_words(&format!("ip netns add {namespace}"))?;
    run_words(&format!("ip -n {namespace} link set lo up"))?;
    netns::within(namespace, || {
        let switch = Path::new("/proc/sys/net/ipv6/conf/all/disable_ipv6");
        if switch.exists() {
            fs::write(switch, "1").context("cannot turn IPv6 off")?;
        }
        Ok(())
    })
}

fn add_host(plan: &Plan, host: &HostPlan, shape: &Shape) -> Result<()> {
    let fabric = plan.fabric();
    let namespace = &host.namespace;
    let port = format!("p-{}", host.name);
    add_namespace(namespace)?;
    run_words(&format!("ip -n {fabric} link add {port} type veth peer name eth0 netns {namespace}"))?;
    join_bridge(&fabric, &port, host.rack)?;
    offloads_off(namespace, "eth0")?;
    run_words(&format!("ip -n {namespace} addr add {}/16 broadcast + dev eth0", host.address))?;
    run_words(&format!("ip -n {namespace} link set eth0 up"))?;
    shape_end(&fabric, &port, shape.links, shape.queue_packets)?;
    shape_end(namespace, "eth0", shape.links, shape.queue_packets)?;
    for (name, contents) in etc_files(plan) {
        lease::write_etc(namespace, name, &contents)?;
    }
    Ok(())
}

/// Files in the hosts' `/etc` by which they know each other's names, and nobody else's.
#[must_use]
pub fn etc_files(plan: &Plan) -> [(&'static str, String); 3] {
    [
        ("hosts", plan.hosts_file()),
        ("resolv.conf", String::new()),
        ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
    ]
}

fn join_bridge(fabric: &str, device: &str, rack: usize) -> Result<()> {
    offloads_off(fabric, device)?;
    run_words(&format!("ip -n {fabric} link set {device} master {} up", bridge(rack)))?;
    Ok(())
}

/// Segments of more than a frame would be seen otherwise, and the shaper would count them as one packet.
fn offloads_off(namespace: &str, device: &str) -> Result<()> {
    run_words(&format!("ip netns exec {namespace} ethtool -K {device} tso off gso off gro off"))?;
    Ok(())
}

fn shape_end(namespace: &str, device: &str, rate: LinkRate, queue_packets: u32) -> Result<()> {
    let LinkRate::Shaped(bps) = rate else { return Ok(()) };
    run_words(&format!("tc -n {namespace} qdisc add dev {device} root handle 1: htb default 10"))?;
    run_words(&format!(
        "tc -n {namespace} class add dev {device} parent 1: classid 1:10 htb rate {bps}bit ceil {bps}bit \
         burst {BURST_BYTES} cburst {BURST_BYTES} quantum {BURST_BYTES}"
    ))?;
    run_words(&format!("tc -n {namespace} qdisc add dev {device} parent 1:10 handle 10: pfifo limit {queue_packets}"))?;
    Ok(())
}

/// A namespace may only choose what the machine allows: allow it for as long as it takes, then put the setting back.
fn set_congestion_control(plan: &Plan) -> Result<()> {
    let _alone = lease::lock_machine()?;
    let before = fs::read_to_string(ALLOWED).with_context(|| format!("cannot read {ALLOWED}"))?;
    let missing = !before.split_whitespace().any(|name| name == CONGESTION_CONTROL);
    if missing {
        let with = format!("{} {CONGESTION_CONTROL}", before.trim());
        fs::write(ALLOWED, &with)
            .with_context(|| format!("cannot allow {CONGESTION_CONTROL} in {ALLOWED}: does the kernel have it?"))?;
    }
    let set = plan.hosts.iter().try_for_each(|host| {
        netns::within(&host.namespace, || {
            fs::write("/proc/sys/net/ipv4/tcp_congestion_control", CONGESTION_CONTROL)
                .with_context(|| format!("cannot set the congestion control {CONGESTION_CONTROL}"))
        })
    });
    if missing {
        fs::write(ALLOWED, before.trim()).with_context(|| format!("cannot reset {ALLOWED}"))?;
    }
    set
}

/// Reads the settings of a host's kernel that the truth tells, by name.
///
/// # Errors
/// If the namespace cannot be entered.
pub fn sysctls(namespace: &str) -> Result<Vec<(String, String)>> {
    netns::within(namespace, || {
        Ok(REPORTED_SYSCTLS
            .iter()
            .filter_map(|name| {
                let path = format!("/proc/sys/{}", name.replace('.', "/"));
                let value = fs::read_to_string(path).ok()?;
                let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
                Some(((*name).to_owned(), value))
            })
            .collect())
    })
}
