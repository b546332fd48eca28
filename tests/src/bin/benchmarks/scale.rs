//! Large networks of packets, beside plain models of the same.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::figure::{Figure, median};
use crate::run::{CASES, announce, json_of, number, simulate, simulate_with};

const HEAP: &str = "target/release/binary-heap";
/// `store-and-forward` at three sizes, one thread, for us and for the plain model over a binary heap.
pub const AGAINST_HEAP: [&str; 3] = ["heap-1024", "heap-65536", "heap-524288"];
/// 65,536 hosts below a three-level tree of 64-port switches.
pub const SCALE: [&str; 2] = ["scale-store-and-forward", "scale-credit"];
/// Flits of 64 bytes of their packets of 2 KiB.
const SCALE_PACKET_FLITS: f64 = 32.0;
/// TCP at the hosts.
pub const ETHERNET: [&str; 2] = ["ethernet-1024", "ethernet-16384"];
/// Flits of 64 bytes of a full frame of Ethernet: 1,514 bytes.
const FRAME_FLITS: f64 = 1_514.0 / 64.0;

pub fn against_heap(name: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let (mut ours, mut peers, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let mut latencies = (0.0, 0.0);
    for _ in 0..runs {
        let summary = simulate(name)?;
        memory.push(number(&summary, "memory_peak_bytes")? / (1u64 << 30) as f64);
        ours.push(number(&summary, "cpu_s")? * 1e9 / number(&summary, "packet_hops")?);
        let mut heap = Command::new(HEAP);
        heap.arg(Path::new(CASES).join(format!("{name}.toml")));
        let output = heap.output().with_context(|| format!("cannot run {heap:?}"))?;
        let peer = json_of(&heap, &output)?;
        peers.push(number(&peer, "cpu_s")? * 1e9 / number(&peer, "packet_hops")?);
        latencies = (number(&summary, "packet_latency_mean_ns")? / 1e3, number(&peer, "packet_latency_mean_ps")? / 1e6);
    }
    let figure = |what: &str, ours: f64, peer: f64, unit, more_is_better| Figure {
        name: format!("{name}: {what}"),
        ours,
        peer: Some(("plain model over a binary heap", peer)),
        unit,
        more_is_better,
    };
    Ok(vec![
        figure("time", median(ours), median(peers), "ns of CPU per packet-hop, set-up included", false),
        figure("mean packet latency", latencies.0, latencies.1, "us", true),
        Figure {
            name: format!("{name}: memory"),
            ours: median(memory),
            peer: None,
            unit: "GiB, results written included",
            more_is_better: false,
        },
    ])
}

pub fn at_scale(name: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let all: Vec<Value> = (0..runs).map(|_| simulate(name)).collect::<Result<_>>()?;
    let of = |what: &dyn Fn(&Value) -> Result<f64>| -> Result<f64> {
        Ok(median(all.iter().map(what).collect::<Result<_>>()?))
    };
    let figure = |what: &str, ours: f64, unit, more_is_better| Figure::alone(name, what, ours, unit, more_is_better);
    Ok(vec![
        figure(
            "packets",
            of(&|run| Ok(number(run, "packets")? / number(run, "cpu_s")?))?,
            "packets per second of CPU",
            true,
        ),
        figure("time", of(&|run| Ok(number(run, "cpu_s")? * 1e9 / number(run, "events")?))?, "ns per event", false),
        figure(
            "events",
            of(&|run| Ok(number(run, "events")? * SCALE_PACKET_FLITS / number(run, "flit_hops")?))?,
            "events per packet-hop",
            false,
        ),
        figure("memory", of(&|run| Ok(number(run, "memory_peak_bytes")? / (1u64 << 30) as f64))?, "GiB", false),
    ])
}

/// TCP, beside the same packets over `store-and-forward`, which has no hosts that answer. Both on one thread.
pub fn tcp(name: &str, runs: usize) -> Result<Vec<Figure>> {
    announce(name);
    let per_packet = |summary: &Value, packets: f64| -> Result<f64> { Ok(number(summary, "cpu_s")? * 1e9 / packets) };
    let (mut ours, mut plain, mut ours_of_data, mut plain_of_data) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut memory, mut events) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let summary = simulate(name)?;
        let (packets, data) =
            (number(&summary, "packets_from_switches")?, number(&summary, "flit_hops")? / FRAME_FLITS);
        ours.push(per_packet(&summary, packets)?);
        ours_of_data.push(per_packet(&summary, data)?);
        memory.push(number(&summary, "memory_peak_bytes")? / (1u64 << 30) as f64);
        events.push(number(&summary, "events")? / packets);
        let summary = simulate_with(name, &["fabric.kind=store-and-forward"])?;
        plain.push(per_packet(&summary, number(&summary, "packets_from_switches")?)?);
        plain_of_data.push(per_packet(&summary, number(&summary, "packet_hops")?)?);
    }
    let figure = |what: &str, ours: f64, peer, unit| Figure {
        name: format!("{name}: {what}"),
        ours,
        peer,
        unit,
        more_is_better: false,
    };
    let without = |ns: Vec<f64>| Some(("`store-and-forward` without TCP", median(ns)));
    Ok(vec![
        figure("time", median(ours), without(plain), "ns of CPU per packet and switch, acknowledgements too"),
        figure(
            "time of data",
            median(ours_of_data),
            without(plain_of_data),
            "ns of CPU per frame and switch of messages that arrived whole",
        ),
        figure("events", median(events), None, "events per packet and switch, timers too"),
        figure("memory", median(memory), None, "GiB, results written included"),
    ])
}
