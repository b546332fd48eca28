//! Bursts: so many messages of each host at once, and the next ones when these have arrived.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRun};
use std::sync::atomic::AtomicBool;

/// Eight hosts at one switch. A packet takes 1.2 us on a link and 100 ns over it.
const SWITCH: &str = r#"
    kind = "store-and-forward"
    mtu = "1500B"
    headers = "0B"
    [topology]
    shape = "single-switch"
    host_link = { rate = "10Gbps", delay = "100ns" }
"#;

const PACKET_PS: u64 = 1_200_000;
const DELAY_PS: u64 = 100_000;

fn run(traffic: &str, fabric: &str) -> TrafficRun {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = fabric.parse().unwrap();
    traffic::run(&traffic, &config, 3, RunOptions::default(), &AtomicBool::new(false), &mut |_| {}).unwrap()
}

fn refused(traffic: &str) -> String {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = SWITCH.parse().unwrap();
    let options = RunOptions::default();
    traffic::run(&traffic, &config, 3, options, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string()
}

#[test]
fn a_burst_takes_its_packets_on_a_link_and_the_way_of_the_last_one() {
    // Each host sends to the next one: nothing is shared.
    let run = run("pattern = \"tornado\"\nshift = 1\nhosts = 8\nbursts = 3\nburst = 5", SWITCH);
    let bursts = &run.figures.bursts;
    assert_eq!(bursts.len(), 3);
    let takes = 5 * PACKET_PS + PACKET_PS + 2 * DELAY_PS;
    for (number, burst) in (0u64..).zip(bursts) {
        assert_eq!((burst.from_ps, burst.until_ps), (number * takes, (number + 1) * takes), "burst {number}");
        assert_eq!((burst.accepted, burst.lost), (40, 0));
    }
    let figures = &run.figures;
    assert_eq!((figures.packets, figures.undelivered, figures.simulated_ps), (120, 0, 3 * takes));
    assert_eq!((figures.measured_ps, figures.saturation.is_saturated()), ((0, 3 * takes), false));
    let busy = (15 * PACKET_PS) as f64 / (3 * takes) as f64;
    assert!((figures.accepted_load.unwrap() - busy).abs() < 1e-9, "{:?} of {busy}", figures.accepted_load);
    assert!((figures.links.get(0).unwrap().utilisation.unwrap() - busy).abs() < 1e-9);
}

#[test]
fn a_burst_has_as_many_messages_of_a_host_as_there_are_hosts_and_silent_hosts_send_none() {
    let all = run("pattern = \"uniform\"\nhosts = 8\nbursts = 2", SWITCH);
    assert_eq!(all.figures.bursts.iter().map(|burst| burst.accepted).collect::<Vec<_>>(), [64, 64]);
    // Four of the sixteen have a number that reads the same both ways.
    let some = run("pattern = \"bit-reversal\"\nhosts = 16\nbursts = 1\nburst = 2", SWITCH);
    assert_eq!(some.figures.bursts[0].accepted, 2 * 12);
}

#[test]
fn lost_packets_end_a_burst_too() {
    let few = SWITCH.replace("delay = \"100ns\"", "delay = \"100ns\", buffer = \"2 packets\"");
    let run = run("pattern = \"hot-spot\"\nshare = 1.0\nhosts = 8\nbursts = 4\nburst = 20", &few);
    let bursts = &run.figures.bursts;
    assert_eq!(bursts.len(), 4);
    assert!(bursts.iter().all(|burst| burst.lost > 0 && burst.until_ps > burst.from_ps), "{bursts:?}");
    // Host 0 is the spot: it sends to others.
    assert!(bursts.iter().all(|burst| burst.accepted + burst.lost == 160), "{bursts:?}");
    assert!(bursts.windows(2).all(|pair| pair[1].from_ps >= pair[0].until_ps), "{bursts:?}");
    assert_eq!(run.figures.drops, bursts.iter().map(|burst| burst.lost).sum::<u64>());
}

#[test]
fn every_fabric_takes_bursts() {
    for fabric in [
        "kind = \"ideal\"\nrate = \"10Gbps\"",
        "kind = \"ethernet\"\n[topology]\nshape = \"single-switch\"\nhost_link = { rate = \"10Gbps\", delay = \"50ns\" }",
        "kind = \"credit\"\nrouting = \"shortest\"\n[topology]\nshape = \"single-switch\"\nhost_link = { rate = \"10Gbps\", delay = \"50ns\" }",
        "kind = \"input-queued\"\nrouting = \"shortest\"\n[topology]\nshape = \"single-switch\"\nhost_link = { rate = \"10Gbps\", delay = \"50ns\" }",
        "kind = \"input-output-queued\"\nrouting = \"shortest\"\n[topology]\nshape = \"single-switch\"\nhost_link = { rate = \"10Gbps\", delay = \"50ns\" }",
    ] {
        let run = run("pattern = \"uniform\"\nhosts = 8\nbursts = 3\nburst = 4", fabric);
        let accepted: Vec<u64> = run.figures.bursts.iter().map(|burst| burst.accepted).collect();
        assert_eq!(accepted, [32, 32, 32], "{fabric}");
        let ends = run.figures.bursts.windows(2).all(|pair| pair[1].from_ps >= pair[0].until_ps);
        assert!(ends, "{fabric}: {:?}", run.figures.bursts);
    }
}

#[test]
fn what_contradicts_bursts_is_refused() {
    for (traffic, wanted) in [
        ("hosts = 8\nbursts = 0", "traffic.bursts = 0: 1 to 65536"),
        ("hosts = 8\nburst = 3", "traffic.burst: it belongs to traffic.bursts"),
        ("hosts = 8\nbursts = 2\nburst = 0", "traffic.burst = 0: 1 to 1048576"),
        ("hosts = 8\nbursts = 2\nload = 0.3", "traffic.load: with traffic.bursts"),
        ("hosts = 8\nbursts = 2\nmeasurement = \"1us\"", "traffic.measurement: with traffic.bursts"),
        ("hosts = 8\nbursts = 2\nbatches = 3\nbatch = \"1us\"", "traffic.batches: with traffic.bursts"),
    ] {
        let error = refused(traffic);
        assert!(error.contains(wanted), "{traffic}: {error}");
    }
    let traffic: TrafficConfig = "hosts = 8\nbursts = 2".parse().unwrap();
    let options = RunOptions { engine: EngineKind::Windows, ..RunOptions::default() };
    let run = traffic::run(&traffic, &SWITCH.parse().unwrap(), 3, options, &AtomicBool::new(false), &mut |_| {});
    assert!(run.unwrap_err().to_string().contains("traffic.bursts"));
}
