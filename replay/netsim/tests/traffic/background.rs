//! Traffic beside the one that is measured.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRun};
use std::sync::atomic::AtomicBool;

const LINK: &str = "host_link = { rate = \"10Gbps\", delay = \"50ns\" }";

fn switch(kind: &str) -> String {
    format!("kind = \"{kind}\"\nrouting = \"shortest\"\n[topology]\nshape = \"single-switch\"\nnodes = 16\n{LINK}")
}

fn run(traffic: &str, fabric: &str) -> TrafficRun {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let config: FabricConfig = fabric.parse().unwrap();
    let options = RunOptions { keep: true, ..RunOptions::default() };
    traffic::run(&traffic, &config, 3, options, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

#[test]
fn links_carry_it_and_no_figure_of_the_traffic_holds_it() {
    for kind in ["credit", "input-queued", "input-output-queued", "store-and-forward"] {
        let own = "pattern = \"uniform\"\nload = 0.1\nflits = 2\narrivals = \"exponential\"";
        let alone = run(own, &switch(kind));
        let both =
            run(&format!("{own}\nbackground = {{ pattern = \"uniform\", load = 0.3, flits = 2 }}"), &switch(kind));
        let (alone, figures) = (&alone.figures, &both.figures);
        // The hosts draw the same as without it.
        assert_eq!((alone.offered_load, alone.background), (figures.offered_load, 0), "{kind}");
        let mean = |run: &netsim::statistics::RunFigures| {
            run.links.iter().map(|link| link.utilisation.unwrap()).sum::<f64>() / run.links.len() as f64
        };
        assert!((mean(alone) - 0.1).abs() < 0.005, "{kind}: {}", mean(alone));
        assert!((mean(figures) - 0.4).abs() < 0.01, "{kind}: {}", mean(figures));
        assert!((figures.accepted_load.unwrap() - 0.1).abs() < 0.005, "{kind}: {:?}", figures.accepted_load);
        let times = figures.background as f64 / figures.packets as f64;
        assert!((times - 3.0).abs() < 0.15, "{kind}: {times} times as many packets");
        assert!(figures.packet.mean() > alone.packet.mean(), "{kind}: it is in the way");
        assert_eq!(both.packets.len() as u64, figures.packets, "{kind}: packets of the background are not told");
        assert_eq!((figures.undelivered, figures.saturation.is_saturated()), (0, false), "{kind}");
    }
}

#[test]
fn it_goes_on_beside_traffic_that_ends_by_itself() {
    for own in [
        "pattern = \"uniform\"\ncount = 20\nload = 0.2",
        "pattern = \"uniform\"\nbursts = 4\nburst = 5",
        "pattern = \"ping-pong\"\ncount = 20",
    ] {
        let alone = run(own, &switch("input-output-queued"));
        let background = "background = { pattern = \"tornado\", load = 0.5, arrivals = \"fixed\" }";
        let both = run(&format!("{own}\n{background}"), &switch("input-output-queued"));
        let (alone, figures) = (&alone.figures, &both.figures);
        assert_eq!((alone.messages, alone.packets), (figures.messages, figures.packets), "{own}");
        // Half of the time of 16 hosts in packets of 8 flits.
        let expected = figures.simulated_ps as f64 / 6_400.0 * 16.0 * 0.5 / 8.0;
        let share = figures.background as f64 / expected;
        assert!((0.85..1.05).contains(&share), "{own}: {} of {expected} packets beside", figures.background);
        assert!(figures.simulated_ps >= alone.simulated_ps, "{own}: it is in the way");
    }
}

#[test]
fn a_host_that_is_full_hands_nothing_over_of_either() {
    let own = "pattern = \"uniform\"\nload = 0.9\nflits = 8\ninjection_queue = 2";
    let background = "background = { pattern = \"uniform\", load = 0.9, flits = 8 }";
    let both = run(&format!("{own}\n{background}"), &switch("input-output-queued"));
    assert!(both.figures.source_queue.unwrap() <= 3.0, "{:?}", both.figures.source_queue);
    let sum = both.figures.accepted_load.unwrap() * 2.0;
    assert!(sum > 0.75 && sum <= 1.0, "each has half of what links carry: {sum}");
}

#[test]
fn what_a_background_cannot_say_is_refused_by_name() {
    let refused = |background: &str, engine| {
        let traffic: TrafficConfig =
            format!("pattern = \"uniform\"\nload = 0.1\nbackground = {{ {background} }}").parse().unwrap();
        let config: FabricConfig = switch("credit").parse().unwrap();
        let options = RunOptions { engine, ..RunOptions::default() };
        traffic::run(&traffic, &config, 3, options, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string()
    };
    for (background, wanted) in [
        ("load = 65.0", "traffic.background.load = 65.0"),
        ("measurement = \"1us\"", "traffic.background.measurement: the background is not measured"),
        ("bursts = 3", "traffic.background.bursts"),
        ("pattern = \"ping-pong\"", "traffic.background.pattern"),
        ("hosts = 4", "traffic.background.hosts"),
        ("background = { load = 0.1 }", "traffic.background.background"),
        ("radix = 4", "traffic.background.radix: it belongs to pattern = \"tornado\""),
        ("pattern = \"tornado\", radix = 5", "traffic.background.radix = 5"),
    ] {
        let error = refused(background, EngineKind::Auto);
        assert!(error.contains(wanted), "{background}: {error}");
    }
    assert!(refused("load = 0.2", EngineKind::Windows).contains("windows"));
}
