//! An estimated network as an experiment's file, which `replay run` and `replay predict` take.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use trace::manifest::{LinkEstimate, NetworkEstimate};
use trace::rows::HostRow;

/// What a host needs until TCP has dealt with a frame, and lies in a handshake's round trip: the default of the fabric's
/// `host_delay`, nanoseconds.
const HOST_DELAY_NS: u64 = 12_000;
/// A full frame, bytes.
const FRAME_BYTES: u64 = 1_514;
/// Links of a kind differ if the fastest is so much faster than the slowest.
const DIFFERENT: f64 = 1.05;

/// The text of an experiment whose fabric is the network of a trace. `trace` is what it is called in the file.
#[must_use]
pub fn experiment(network: &NetworkEstimate, hosts: &[HostRow], trace: &str) -> String {
    let racks: BTreeSet<&str> =
        hosts.iter().filter(|host| host.captured && !host.rack.is_empty()).map(|host| host.rack.as_str()).collect();
    let is_host = |name: &str| hosts.iter().any(|host| host.name == name);
    let (of_hosts, of_racks): (Vec<&LinkEstimate>, Vec<&LinkEstimate>) =
        network.links.iter().partition(|link| is_host(&link.from) || is_host(&link.to));
    let (rack_ns, across_ns) = (network.rack_round_trip_ns, network.across_round_trip_ns);
    // There and back a handshake crosses four links of hosts.
    let host_delay_ns = rack_ns.map(|ns| ns.saturating_sub(HOST_DELAY_NS) / 4);
    let crossings = if racks.len() > 2 { 4 } else { 2 };
    let uplink_delay_ns = across_ns.zip(rack_ns).map(|(across, rack)| across.saturating_sub(rack) / crossings);
    let mut text = format!(
        "# The network of {}, estimated from its packets (merger network).\n# Rates are of whole Ethernet frames.\n\n\
         name = \"recorded-network\"\n\n[workload]\nrecorded_network = true\n\n[fabric]\nkind = \"ethernet\"\n\n\
         [fabric.topology]\nshape = \"racks\"\n",
        trace.replace(char::is_control, "\u{fffd}")
    );
    text += &link("host_link", "links of hosts", &of_hosts, host_delay_ns);
    if racks.len() > 1 {
        text += &link("uplink", "links between racks", &of_racks, uplink_delay_ns);
    }
    text
}

/// The table of a kind of links, which are all alike in a fabric.
fn link(key: &str, what: &str, links: &[&LinkEstimate], delay_ns: Option<u64>) -> String {
    let mut full: Vec<u64> = links.iter().filter(|link| !link.at_least).map(|link| link.rate_bps).collect();
    full.sort_unstable();
    let mut text = format!("\n[fabric.topology.{key}]\n");
    let least = links.iter().map(|link| link.rate_bps).max().unwrap_or(0);
    let rate_bps = match (full.first(), full.last()) {
        (Some(slowest), Some(fastest)) => {
            let _ = writeln!(text, "# {} of {} {what} were full.", full.len(), links.len());
            if *fastest as f64 > *slowest as f64 * DIFFERENT {
                let _ =
                    writeln!(text, "# They differ, from {slowest} to {fastest} bits per second: this is the median.");
            }
            full[full.len() / 2].max(1)
        }
        _ => {
            let _ = writeln!(text, "# None of {} {what} was ever full: the rate is at least this.", links.len());
            least.max(1_000_000)
        }
    };
    let _ = writeln!(text, "rate = \"{rate_bps}bps\"");
    if let Some(delay_ns) = delay_ns.filter(|delay_ns| *delay_ns > 0) {
        let _ = writeln!(text, "delay = \"{delay_ns}ns\"");
    }
    let longest = |overflowed: bool| {
        links.iter().filter(|link| link.overflowed || !overflowed).filter_map(|link| link.queue_bytes).max()
    };
    if let Some(queue) = longest(true) {
        let packets = (queue as f64 / FRAME_BYTES as f64).round().max(1.0);
        let _ = writeln!(text, "# The longest queue that was seen before packets were lost: {queue} bytes.");
        let _ = writeln!(text, "buffer = \"{packets} packets\"");
    } else if let Some(queue) = longest(false) {
        let _ = writeln!(text, "# Nothing was lost: there is room for {queue} bytes at least.");
    }
    text
}
