//! Ping-pong: questions, and their answers.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRun, TrafficRunError};
use std::sync::atomic::AtomicBool;

/// Eight hosts at one switch. A packet of 1,500 B takes 1.2 us on a link and 100 ns over it.
const STORED: &str = r#"
    kind = "store-and-forward"
    mtu = "1500B"
    headers = "0B"
    switch_delay = "0ns"
    [topology]
    shape = "single-switch"
    host_link = { rate = "10Gbps", delay = "100ns" }
"#;

/// What a packet of 1,500 B takes from host to host, in picoseconds; and one of 150 B.
const WAY_PS: u64 = 2 * 1_300_000;
const SHORT_WAY_PS: u64 = 2 * 220_000;

fn tried(traffic: &str, fabric: &str) -> Result<TrafficRun, TrafficRunError> {
    let traffic: TrafficConfig = format!("pattern = \"ping-pong\"\n{traffic}").parse().unwrap();
    let config: FabricConfig = fabric.parse().unwrap();
    traffic::run(&traffic, &config, 3, RunOptions::default(), &AtomicBool::new(false), &mut |_| {})
}

fn run(traffic: &str, fabric: &str) -> TrafficRun {
    tried(traffic, fabric).unwrap()
}

#[test]
fn a_round_trip_is_both_ways_and_the_turnaround_however_many_there_are() {
    for count in [1, 7, 50] {
        let run = run(&format!("hosts = 8\ncount = {count}\nturnaround = \"3us\""), STORED);
        let figures = &run.figures;
        let takes = 2 * WAY_PS + 3_000_000;
        // Of each two hosts one asks.
        assert_eq!((figures.round_trip.count(), figures.messages, figures.packets), (4 * count, 8 * count, 8 * count));
        assert_eq!((figures.round_trip.min(), figures.round_trip.max()), (takes, takes));
        assert_eq!((figures.message.min(), figures.message.max()), (WAY_PS, WAY_PS));
        assert_eq!((figures.simulated_ps, figures.measured_ps), (count * takes, (0, count * takes)));
        assert!(!figures.saturation.is_saturated() && figures.undelivered == 0);
    }
}

#[test]
fn answers_have_a_length_of_their_own() {
    let run = run("hosts = 8\ncount = 5\nreply = \"150B\"\npartner = \"second-nearest\"", STORED);
    let takes = WAY_PS + SHORT_WAY_PS;
    assert_eq!((run.figures.round_trip.min(), run.figures.round_trip.max()), (takes, takes));
    assert_eq!(run.figures.simulated_ps, 5 * takes);
}

#[test]
fn clocked_fabrics_answer_in_the_cycle_of_the_arrival() {
    // 8 flits, links that take 8 cycles beside the one in which a flit is sent.
    let host_link = "host_link = { rate = \"10Gbps\", delay = \"50ns\" }";
    let topology = format!("routing = \"shortest\"\n[topology]\nshape = \"single-switch\"\n{host_link}");
    let cycle_ps = 6_400;
    let fabric = format!("kind = \"input-output-queued\"\n{topology}");
    let way = 2 * (1 + 8) + 8 - 1;
    let run = run("hosts = 4\ncount = 6\nflits = 8", &fabric);
    assert_eq!((run.figures.round_trip.min(), run.figures.round_trip.max()), (2 * way * cycle_ps, 2 * way * cycle_ps));
    for kind in ["input-queued", "omni-path", "credit"] {
        let run = self::run("hosts = 4\ncount = 6", &format!("kind = \"{kind}\"\n{topology}"));
        let (message, trip) = (&run.figures.message, &run.figures.round_trip);
        assert_eq!((message.min(), trip.count()), (message.max(), 12), "{kind}");
        assert_eq!((trip.min(), trip.max()), (2 * message.max(), 2 * message.max()), "{kind}");
    }
}

#[test]
fn every_fabric_takes_them_and_a_window_has_several_out() {
    let link = "host_link = { rate = \"10Gbps\", delay = \"50ns\" }";
    for fabric in [
        "kind = \"ideal\"\nrate = \"10Gbps\"".to_owned(),
        "kind = \"ideal\"\nlatency = \"2us\"".to_owned(),
        format!("kind = \"ethernet\"\n[topology]\nshape = \"single-switch\"\n{link}"),
        format!("kind = \"credit\"\nrouting = \"shortest\"\n[topology]\nshape = \"single-switch\"\n{link}"),
        format!("kind = \"input-queued\"\nrouting = \"shortest\"\n[topology]\nshape = \"single-switch\"\n{link}"),
    ] {
        let run = run("hosts = 8\ncount = 30\nwindow = 3\npartner = \"random\"", &fabric);
        let figures = &run.figures;
        assert_eq!((figures.round_trip.count(), figures.messages, figures.undelivered), (240, 480, 0), "{fabric}");
    }
    // Three questions share a host's link one after the other, and their answers the way back.
    let alone = run("hosts = 2\ncount = 30", STORED).figures.simulated_ps;
    let three = run("hosts = 2\ncount = 30\nwindow = 3", STORED).figures;
    assert_eq!((alone, three.simulated_ps), (30 * 2 * WAY_PS, 10 * 2 * WAY_PS + 2 * 1_200_000));
}

#[test]
fn a_time_measures_those_that_are_asked_in_it() {
    let run = run("hosts = 8\nwarm_up = \"10us\"\nmeasurement = \"52us\"\ndrain = \"20us\"", STORED);
    let takes = 2 * WAY_PS;
    let asked = (0u64..100).map(|number| number * takes).filter(|at| (10_000_000..62_000_000).contains(at));
    assert_eq!(run.figures.round_trip.count(), 4 * asked.count() as u64);
}

#[test]
fn hosts_take_longer_by_what_is_drawn() {
    for (keys, deviation_us) in [
        ("{ distribution = \"exponential\", mean = \"2us\" }", 2.0),
        ("{ distribution = \"uniform\", mean = \"2us\", deviation = \"1us\" }", 1.0),
        ("{ distribution = \"normal\", mean = \"2us\", deviation = \"300ns\" }", 0.3),
    ] {
        let run = run(&format!("hosts = 8\ncount = 2000\nturnaround = \"1us\"\nnoise = {keys}"), STORED);
        let trips = &run.figures.round_trip;
        let (mean, deviation) = (trips.mean().unwrap() / 1e6, trips.deviation().unwrap() / 1e6);
        let expected = 2.0 * WAY_PS as f64 / 1e6 + 1.0 + 2.0;
        let error = deviation_us / (trips.count() as f64).sqrt();
        assert!((mean - expected).abs() < 4.0 * error, "{keys}: {mean} us, not {expected}");
        assert!((deviation / deviation_us - 1.0).abs() < 0.05, "{keys}: {deviation} us");
        assert!(trips.min() >= 2 * WAY_PS + 1_000_000, "{keys}: nothing is quicker than without");
    }
}

#[test]
fn what_is_lost_is_asked_again() {
    let few = STORED.replace("delay = \"100ns\"", "delay = \"100ns\", buffer = \"1 packets\"");
    let run = run("hosts = 8\ncount = 100\nwindow = 8\npartner = \"random\"", &few);
    let figures = &run.figures;
    assert!(figures.drops > 0 && figures.losses.in_network == figures.drops, "{:?}", figures.losses);
    assert_eq!(figures.round_trip.count() + figures.drops, 800, "a question without an answer counts as one");
    assert_eq!(figures.undelivered, 0);
}

#[test]
fn what_contradicts_a_ping_pong_is_refused() {
    for (traffic, wanted) in [
        ("hosts = 8\nload = 0.5", "traffic.load: in a ping-pong"),
        ("hosts = 8\nbursts = 3", "traffic.bursts"),
        ("hosts = 8\nwindow = 0", "traffic.window = 0: 1 to 65536"),
        ("hosts = 7\ncount = 2", "an even number of hosts"),
        ("hosts = 6\ncount = 2\npartner = \"second-nearest\"", "a multiple of 4"),
        ("hosts = 8\nnoise = { mean = \"1us\", deviation = \"1us\" }", "traffic.noise.deviation: an exponential"),
        ("hosts = 8\nnoise = { distribution = \"normal\", mean = \"1us\" }", "traffic.noise.deviation: normal"),
        (
            "hosts = 8\nnoise = { distribution = \"uniform\", mean = \"1us\", deviation = \"600ns\" }",
            "traffic.noise.deviation = 600ns",
        ),
        ("hosts = 8\ncount = 4\nwarm_up = \"1us\"", "traffic.warm_up"),
    ] {
        let error = tried(traffic, STORED).unwrap_err().to_string();
        assert!(error.contains(wanted), "{traffic}: {error}");
    }
    let traffic: TrafficConfig = "pattern = \"uniform\"\nhosts = 8\npartner = \"nearest\"".parse().unwrap();
    assert!(traffic.check().unwrap_err().to_string().contains("it belongs to pattern = \"ping-pong\""));
    let traffic: TrafficConfig = "pattern = \"ping-pong\"\nhosts = 8\ncount = 3".parse().unwrap();
    let options = RunOptions { engine: EngineKind::Windows, ..RunOptions::default() };
    let run = traffic::run(&traffic, &STORED.parse().unwrap(), 3, options, &AtomicBool::new(false), &mut |_| {});
    assert!(run.unwrap_err().to_string().contains("windows"));
}
