//! Losses of the packet switch against closed forms: packets that are not sent again, from many ToRs to all others.
//!
//! An output with c wavelengths and conversion is a loss system of c servers: a packet keeps one for a constant time and is
//! refused if none is free. Its sources are the channels of the other ToRs, a finite number, and one whose packet is at the output
//! sends it no other one meanwhile: Engset's formula, which holds for any distribution of both times and comes to Erlang's
//! when there are many sources. Where decisions are made in slots as long as a packet, all packets of a slot meet, and none
//! of another slot: of n sources that send with probability q in a slot, one passes if any sends.

use crate::common::{lab, message, with_token};
use netsim::fabric::packet::{LostPacket, Observer, PacketFabric, PacketRecord};
use netsim::fabric::{self, FabricConfig, FabricKind};
use netsim::network::Simulation;
use netsim::time::SimTime;
use netsim::traffic::{self, RunOptions, TrafficConfig};
use std::sync::atomic::AtomicBool;

/// A packet's time on a wavelength: 1,500 B at 10 Gbit/s.
const PACKET_NS: f64 = 1_200.0;
const SEEDS: u64 = 10;
/// Student's t for 9 degrees of freedom and 99.9%.
const T: f64 = 4.781;

/// What became of all packets of a run.
struct Losses {
    attempts: f64,
    refused: f64,
}

fn run(racks: u32, wavelengths: u32, load: f64, keys: &str, seed: u64) -> Losses {
    // As many packets whatever the number of ToRs is.
    let until = 48_000 / racks.max(8);
    let gap_ps = PACKET_NS * 1_000.0 / load / f64::from(wavelengths);
    let traffic: TrafficConfig = format!(
        "pattern = \"uniform\"\nhosts = {racks}\nracks = {racks}\nsize = \"1500B\"\narrivals = \"exponential\"\n\
         interval = \"{gap_ps:.0}ps\"\nwarm_up = \"0us\"\nmeasurement = \"{until}us\"\ndrain = \"1ms\"\n"
    )
    .parse()
    .unwrap();
    let fabric: FabricConfig = format!(
        "kind = \"lightness\"\nserver_rate = \"unlimited\"\nphotonic_packet_max = \"1500B\"\nwavelengths = {wavelengths}\n\
         wavelength_conversion = true\nwavelength_assignment = \"least-loaded\"\nops_one_per_fibre = false\n\
         tor_startup_delay = \"0ns\"\ntor_byte_delay = \"0ns/B\"\ntor_max_messages = 1000000\nresends = 0\n\
         window = 64\n{keys}"
    )
    .parse()
    .unwrap();
    let run =
        traffic::run(&traffic, &fabric, seed, RunOptions::default(), &AtomicBool::new(false), &mut |_| {}).unwrap();
    let of = |name: &str| run.figures.counters.iter().find(|(known, _)| known == name).unwrap().1;
    let refused = of("NACKs: another ToR's packet in the way");
    for cause in
        ["the ToR's own packet in the way", "a packet of the same fibre in the way", "no place in the ToR's output"]
    {
        assert_eq!(of(&format!("NACKs: {cause}")), 0, "{cause}");
    }
    // What is under way at the end is decided about and not answered.
    let lost = of("packets lost after their last resend");
    assert!(lost == of("NACKs") && lost <= refused && refused - lost < 100, "none is sent again");
    assert!(run.figures.drops <= lost && run.figures.undelivered == 0, "what is lost is told");
    Losses { attempts: (of("packets by OPS") + refused) as f64, refused: refused as f64 }
}

/// The share of the packets that are lost, and half the width of its 99.9% confidence interval, where each channel sends `load`
/// packets in a packet's time.
fn measured(racks: u32, wavelengths: u32, load: f64, keys: &str) -> (f64, f64) {
    let runs: Vec<Losses> = (1..=SEEDS).map(|seed| run(racks, wavelengths, load, keys, seed)).collect();
    let shares: Vec<f64> = runs.iter().map(|run| run.refused / run.attempts).collect();
    let mean = shares.iter().sum::<f64>() / SEEDS as f64;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
    (mean, T * (variance / SEEDS as f64).sqrt())
}

fn binomial(n: u32, k: u32) -> f64 {
    (0..k).map(|i| f64::from(n - i) / f64::from(i + 1)).product()
}

/// The share of calls that find all `servers` busy: `sources` sources, each of which tries `rate` times in a holding time, those
/// that fail included. A source is idle but while it is served, so the rate while it is idle is found by iteration.
fn engset(sources: u32, servers: u32, rate: f64) -> f64 {
    if sources <= servers {
        return 0.0;
    }
    let mut blocked = 0.0;
    for _ in 0..200 {
        let idle_rate = rate / (1.0 - rate * (1.0 - blocked));
        let term = |k: u32| binomial(sources - 1, k) * idle_rate.powi(k.try_into().unwrap());
        blocked = term(servers) / (0..=servers).map(term).sum::<f64>();
    }
    blocked
}

fn erlang(servers: u32, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |blocked, k| offered * blocked / (f64::from(k) + offered * blocked))
}

#[test]
fn engsets_formula_comes_to_erlangs_with_many_sources() {
    assert!((erlang(4, 2.0) - 0.0952).abs() < 1e-4, "a tabled value");
    for servers in [1, 2, 4] {
        assert!((engset(100_000, servers, 1.2 / 100_000.0) - erlang(servers, 1.2)).abs() < 1e-4);
    }
    assert_eq!(engset(4, 4, 0.9), 0.0);
}

#[test]
fn losses_of_poisson_arrivals_are_engsets() {
    for racks in [2, 4, 8, 32] {
        for (wavelengths, load) in [(1, 0.1), (1, 0.4), (2, 0.2), (2, 0.4), (4, 0.4)] {
            let (share, half) = measured(racks, wavelengths, load, "");
            // Each channel sends to each of the others alike.
            let expected = engset((racks - 1) * wavelengths, wavelengths, load / f64::from(racks - 1));
            let what =
                format!("{racks} ToRs, {wavelengths} wavelengths, load {load}: {share} +- {half}, Engset {expected}");
            println!("{what}");
            // Of two ToRs nobody is in the other's way.
            assert!(racks > 2 || (share == 0.0 && expected == 0.0), "{what}");
            assert!(share <= erlang(wavelengths, f64::from(wavelengths) * load) + half, "{what}");
            // A few sources are no Poisson streams: packets of one keep a packet's time apart. Many are.
            let apart = if racks == 32 { 0.015 * expected } else { 0.5 * expected / f64::from(racks) };
            assert!(racks < 8 || (share - expected).abs() <= half + apart, "{what}");
        }
    }
}

#[test]
fn losses_in_slots_are_those_of_independent_slots() {
    for racks in [2, 4, 8, 32] {
        for load in [0.1, 0.4] {
            let (share, half) = measured(racks, 1, load, "ops_slot = \"1200ns\"\n");
            let (n, q) = (f64::from(racks - 1), load / f64::from(racks - 1));
            let expected = 1.0 - (1.0 - libm::pow(1.0 - q, n)) / (n * q);
            let what = format!("{racks} ToRs, load {load}: {share} +- {half}, slots {expected}");
            println!("{what}");
            assert!((share - expected).abs() <= half + 1e-9, "{what}");
        }
    }
}

#[test]
fn a_limit_of_resends_is_refused_where_messages_are_waited_for() {
    let config: FabricConfig = "kind = \"lightness\"\nresends = 3\n".parse().unwrap();
    let printed = fabric::build(&config, &lab(2, 1)).err().unwrap().to_string();
    assert!(printed.contains("resends") && printed.contains("synthetic traffic"), "{printed}");
    let config: FabricConfig = "kind = \"lightness\"\nresends = 3\nresequencer = \"tor\"\n".parse().unwrap();
    let printed = config.packets(&lab(2, 1), ()).err().unwrap().to_string();
    assert!(printed.contains("resends") && printed.contains("resequencer"), "{printed}");
}

/// What is lost holds nothing back: messages behind it arrive, and each is delivered or told to be lost.
#[test]
fn messages_behind_a_lost_packet_arrive() {
    // The second packet of the first message is dropped, and the sixth, the only one of the fourth message.
    let text = "kind = \"lightness\"\nserver_rate = \"unlimited\"\nphotonic_packet_max = \"1500B\"\nresends = 0\n\
                wavelengths = 1\nwindow = 2\ndrop = [2, 6]\n";
    let config: FabricConfig = text.parse().unwrap();
    let mut network = config.packets(&lab(2, 1), Lost::default()).unwrap();
    for (token, bytes) in [4_500, 1_500, 1_500, 1_500, 1_500].into_iter().enumerate() {
        network.send(SimTime::ZERO, &with_token(message(0, 1, bytes, 0), token as u64));
    }
    let mut deliveries = Vec::new();
    while network.next_event().is_some() {
        network.advance(SimTime::MAX, &mut deliveries);
    }
    let whole: Vec<u64> = deliveries.iter().map(|delivery| delivery.token.0).collect();
    assert_eq!(whole, [1, 2, 4]);
    assert_eq!(network.observer().0, [0, 3]);
}

/// The messages that were lost.
#[derive(Default)]
struct Lost(Vec<u64>);

impl Observer for Lost {
    fn delivered(&mut self, _packet: &PacketRecord) {}

    fn dropped(&mut self, packet: &LostPacket) {
        self.0.push(packet.token.0);
    }
}
