//! Hosts that lose what finds no room, and what is counted of it.

use netsim::fabric::FabricConfig;
use netsim::traffic::{self, EngineKind, RunOptions, TrafficConfig, TrafficRun, TrafficRunError};
use std::sync::atomic::AtomicBool;

/// Four hosts at one switch; a packet has 8 flits.
const SWITCH: &str = "routing = \"shortest\"\n[topology]\nshape = \"single-switch\"\nnodes = 4\n\
                      host_link = { rate = \"10Gbps\", delay = \"0ns\" }";
/// The same flits and packets as the others have.
const CREDIT: &str = "flit = \"8B\"\nmtu = \"64B\"\nheaders = \"0B\"\ncredits = 8\nvls = 1\nswitch_delay = \"0ns\"\n";
const CYCLES: f64 = 20_000.0;
const FLITS: f64 = 8.0;

fn tried(traffic: &str, kind: &str, options: RunOptions) -> Result<TrafficRun, TrafficRunError> {
    let traffic: TrafficConfig = traffic.parse().unwrap();
    let keys = if kind == "credit" { CREDIT } else { "" };
    let config: FabricConfig = format!("kind = \"{kind}\"\n{keys}{SWITCH}").parse().unwrap();
    traffic::run(&traffic, &config, 3, options, &AtomicBool::new(false), &mut |_| {})
}

/// All but host 0 send to it at `load` each.
fn to_one(load: f64, keys: &str, kind: &str) -> TrafficRun {
    let traffic = format!(
        "pattern = \"hot-spot\"\nspots = [0]\nshare = 1.0\nload = {load:?}\narrivals = \"fixed\"\nflits = 8\nwarm_up = \"0 cycles\"\n\
         measurement = \"{CYCLES} cycles\"\n{keys}"
    );
    tried(&traffic, kind, RunOptions::default()).unwrap()
}

const KINDS: [&str; 3] = ["credit", "input-queued", "input-output-queued"];

#[test]
fn messages_at_full_queues_are_lost_and_all_that_is_handed_over_is_accounted_for() {
    for kind in KINDS {
        let run = to_one(0.6, "injection_queue = 4\nfull_queue = \"drop\"", kind);
        let figures = &run.figures;
        // All four hosts hand over what they draw: it is not left out.
        let offered = figures.offered_load.unwrap();
        assert!((offered - 0.6).abs() < 0.001, "{kind}: {offered}");
        // Host 0 takes a flit a cycle, the other three what it sends.
        let accepted = figures.accepted_load.unwrap();
        assert!((accepted - (1.0 + 0.6) / 4.0).abs() < 0.005, "{kind}: {accepted}");
        let packets = (offered * 4.0 * CYCLES / FLITS).round();
        let known = figures.packet.count() + figures.lost + figures.undelivered;
        assert!((packets - known as f64).abs() < 0.5, "{kind}: {packets} packets, {known} are known");
        assert_eq!((figures.losses.full_queue, figures.losses.all()), (figures.drops, figures.drops), "{kind}");
        let share = figures.lost as f64 / packets;
        let expected = 1.0 - (1.0 + 0.6) / (4.0 * 0.6);
        assert!((share - expected).abs() < 0.01, "{kind}: {share} are lost, not {expected}");
        assert!(figures.saturation.is_saturated(), "{kind}");
    }
}

#[test]
fn a_host_that_waits_hands_less_over_and_loses_nothing() {
    for kind in KINDS {
        let waits = to_one(0.6, "injection_queue = 4", kind);
        let said = to_one(0.6, "injection_queue = 4\nfull_queue = \"wait\"", kind);
        assert_eq!(format!("{:?}", waits.figures.packet), format!("{:?}", said.figures.packet), "it is the default");
        assert_eq!((waits.figures.drops, waits.figures.losses.all()), (0, 0));
        let offered = waits.figures.offered_load.unwrap();
        assert!((offered - (1.0 + 0.6) / 4.0).abs() < 0.01, "{kind}: {offered}");
        // A queue that never fills loses nothing either.
        let little = to_one(0.3, "injection_queue = 4\nfull_queue = \"drop\"", kind);
        assert_eq!((little.figures.drops, little.figures.undelivered), (0, 0), "{kind}");
    }
}

#[test]
fn heads_without_room_are_lost_one_by_one_and_nothing_waits_for_long() {
    for kind in KINDS {
        let waits = to_one(0.6, "", kind);
        assert!(waits.figures.source_queue.unwrap() > 100.0, "{kind}: an unlimited queue grows");
        let run = to_one(0.6, "blocked_head = \"extract\"", kind);
        let figures = &run.figures;
        assert_eq!((figures.losses.blocked_head, figures.losses.all()), (figures.drops, figures.drops), "{kind}");
        assert!(
            (figures.accepted_load.unwrap() - (1.0 + 0.6) / 4.0).abs() < 0.005,
            "{kind}: {:?}",
            figures.accepted_load
        );
        assert!(figures.source_queue.unwrap() < 1.0, "{kind}: {:?}", figures.source_queue);
        // What is in front of a packet fits into the switch: 3 hosts, 4 VCs of 16 flits at inputs and outputs.
        let mean = |run: &TrafficRun| run.figures.packet.mean().unwrap() / run.plan.link.flit_ps();
        assert!(mean(&run) < 3.0 * 4.0 * 32.0 && mean(&waits) > 2_000.0, "{kind}: {} and {}", mean(&run), mean(&waits));
        assert_eq!(figures.undelivered, 0, "{kind}: what is lost is waited for no more");
        let known = figures.packet.count() + figures.lost;
        assert!((figures.offered_load.unwrap() * 4.0 * CYCLES / FLITS - known as f64).abs() < 0.5, "{kind}");
        let free = to_one(0.3, "blocked_head = \"extract\"", kind);
        assert_eq!(free.figures.drops, 0, "{kind}: there is room");
    }
}

#[test]
fn both_reasons_are_counted_apart() {
    let run = to_one(
        8.0,
        "injection_queue = 1\nfull_queue = \"drop\"\nblocked_head = \"extract\"\npackets = 4",
        "input-output-queued",
    );
    let losses = run.figures.losses;
    assert!(losses.blocked_head > 0 && losses.full_queue > 0 && losses.in_network == 0, "{losses:?}");
    assert_eq!(losses.by_name().map(|(name, _)| name).collect::<Vec<_>>(), ["full_queue", "blocked_head"]);
}

#[test]
fn what_contradicts_losses_is_refused_by_name() {
    let refused = |traffic: &str, kind: &str, engine| {
        let options = RunOptions { engine, ..RunOptions::default() };
        tried(traffic, kind, options).unwrap_err().to_string()
    };
    for (traffic, kind, wanted) in [
        ("full_queue = \"drop\"", "input-queued", "traffic.full_queue: it says what a host does"),
        ("blocked_head = \"extract\"", "store-and-forward", "traffic.blocked_head: \"extract\""),
        ("blocked_head = \"extract\"", "spinnaker", "input-output-queued"),
        ("injection_queue = 2\nfull_queue = \"drop\"", "store-and-forward", "traffic.injection_queue"),
        ("occupancy = true", "store-and-forward", "traffic.occupancy"),
    ] {
        let error = refused(traffic, kind, EngineKind::Auto);
        assert!(error.contains(wanted), "{traffic} on {kind}: {error}");
    }
    let error = refused("occupancy = true", "credit", EngineKind::Windows);
    assert!(error.contains("traffic.occupancy") && error.contains("windows"), "{error}");
}
