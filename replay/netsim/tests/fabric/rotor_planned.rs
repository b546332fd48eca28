//! The fabric `rotor` with circuits by demand: closed forms, what holds of its circuits whatever is sent, and schedulers from outside.

use crate::common::{lab, message, packets, with_token};
use crate::rotor::rotor;
use netsim::circuits::{CircuitScheduler, PlannedCircuit, PlanningInput};
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::fabric::rotor::{Rotor, RotorConfig};
use netsim::network::{CircuitFigures, Simulation};
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SCHEDULERS: [&str; 4] = ["max-weight", "birkhoff", "solstice", "sunflow"];

fn configured(scheduler: &str, text: &str) -> RotorConfig {
    format!("scheduler = \"{scheduler}\"\n{text}").parse().unwrap()
}

fn counter(network: &impl Simulation, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap().1
}

/// Ten packets of 1.2 us behind a set-up of 10 us; the last one takes 12 ns more to its host.
#[test]
fn what_waits_alone_takes_a_set_up_and_its_own_time() {
    for scheduler in SCHEDULERS {
        let last = |text: &str| {
            let text = format!("cable_delay = \"0ns\"\nhost_rate = \"1000Gbps\"\nslice = \"100us\"\n{text}");
            let mut network = rotor(&configured(scheduler, &text), 4, 1);
            network.send(SimTime(5_000_000), &message(1, 2, 1_436 * 10, 0));
            let arrived = packets(&mut network).iter().map(|packet| packet.arrived.0).max().unwrap();
            (arrived - 5_000_000) / 1_000
        };
        assert_eq!(last(""), 10_000 + 10 * 1_200 + 12, "{scheduler}");
        // What is planned from is 30 us old.
        assert_eq!(last("demand_age = \"30us\"\n"), 30_000 + 10_000 + 10 * 1_200 + 12, "{scheduler}");
        // Four packets a plan: three circuits.
        let limited = last("demand_limit = \"4800ns\"\n");
        if scheduler != "solstice" {
            assert_eq!(limited, 3 * 10_000 + 10 * 1_200 + 12, "{scheduler}");
        }
    }
}

/// Without a guard band the circuit is there before a packet has left its host: the circuit has to last for that time, too.
#[test]
fn what_waits_alone_comes_through_circuits_without_a_guard_band() {
    for scheduler in SCHEDULERS {
        let text = "guard = \"0us\"\nreconfiguration_delay = \"0us\"\nmargin = \"1us\"\nclock_skew = \"1us\"\nslice = \"25us\"\n";
        let mut network = rotor(&configured(scheduler, text), 3, 2);
        network.send(SimTime::ZERO, &message(2, 5, 36_887, 0));
        network.run_before(SimTime(1_000_000_000_000));
        assert_eq!(network.next_event(), None, "{scheduler}");
        assert_eq!(packets(&mut network).len(), 26, "{scheduler}");
    }
}

/// Without a scheduler by demand the same pair waits for its turn.
#[test]
fn a_pair_alone_is_sooner_done_than_by_turns() {
    let done = |scheduler: &str| {
        let mut network = rotor(&configured(scheduler, "slice = \"50us\"\n"), 16, 1);
        network.send(SimTime::ZERO, &message(0, 9, 1_000_000, 0));
        packets(&mut network).iter().map(|packet| packet.arrived).max().unwrap()
    };
    for scheduler in SCHEDULERS {
        assert!(done(scheduler).0 * 4 < done("rotor").0, "{scheduler}");
    }
}

#[test]
fn sunflow_does_not_stop_circuits_of_others() {
    let text = "cable_delay = \"0ns\"\nhost_rate = \"1000Gbps\"\ndemand_limit = \"10ms\"\n";
    let short_done = |scheduler: &str| {
        let mut network = rotor(&configured(scheduler, text), 4, 1);
        network.send(SimTime::ZERO, &message(0, 1, 1_436 * 2_000, 0));
        network.run_before(SimTime(50_000_000));
        network.send(SimTime(50_000_000), &message(2, 3, 1_436, 1));
        packets(&mut network).iter().find(|packet| packet.source.0 == 2).unwrap().arrived.0 / 1_000
    };
    // The first message needs 2.4 ms. The second one has its circuit after 10 us, or waits for the plan's end.
    assert_eq!(short_done("sunflow"), 50_000 + 10_000 + 1_200 + 12);
    assert!(short_done("birkhoff") > 2_400_000);
}

#[test]
fn keys_of_planned_circuits_are_refused_where_they_mean_nothing() {
    let refused = |scheduler: &str, text: &str, racks: usize| {
        let error = Rotor::new(&configured(scheduler, text), &lab(racks, 1), ()).err().unwrap().to_string();
        assert!(error.starts_with("fabric."), "{error}");
        error
    };
    assert!(refused("rotor", "demand_age = \"1us\"\n", 4).starts_with("fabric.demand_age"));
    assert!(refused("rotor", "demand_limit = \"1us\"\n", 4).starts_with("fabric.demand_limit"));
    assert!(refused("solstice", "demand_limit = \"0us\"\n", 4).starts_with("fabric.demand_limit"));
    assert!(refused("solstice", "uplinks = 2\n", 4).starts_with("fabric.uplinks"));
    assert!(refused("solstice", "change = \"in-turn\"\n", 4).starts_with("fabric.change"));
    assert!(refused("solstice", "routing = \"two-hop\"\n", 4).starts_with("fabric.routing"));
    assert!(refused("solstice", "", 129).starts_with("fabric.scheduler"));
}

/// A scheduler of one's own: one circuit at a time for the whole switch.
struct OneAtATime;

impl CircuitScheduler for OneAtATime {
    fn plan(&mut self, input: &PlanningInput) -> Vec<PlannedCircuit> {
        let ports = input.demand.size();
        let pairs = (0..ports * ports).map(|pair| (pair / ports, pair % ports));
        let mut begin = input.now;
        let mut plan = Vec::new();
        for (from, to) in pairs.filter(|(from, to)| input.demand.get(*from, *to) > 0) {
            let end = (begin + input.set_up).plus_ps(input.demand.get(from, to));
            plan.push(PlannedCircuit { from, to, begin, end });
            begin = end;
        }
        plan
    }
}

#[test]
fn a_scheduler_from_outside_decides() {
    let config = configured("birkhoff", "cable_delay = \"0ns\"\nhost_rate = \"1000Gbps\"\n");
    let mut network = Rotor::with(&config, &lab(4, 1), Vec::<PacketRecord>::new(), Box::new(OneAtATime)).unwrap();
    for (from, to) in [(0, 1), (2, 3)] {
        network.send(SimTime::ZERO, &message(from, to, 1_436 * 5, 0));
    }
    let last = packets(&mut network).iter().map(|packet| packet.arrived.0).max().unwrap();
    assert_eq!(last / 1_000, 2 * (10_000 + 5 * 1_200) + 12);
    assert_eq!(counter(&network, "circuits planned"), 2);
    let figures = network.figures();
    assert_eq!(figures.circuits.len(), 2);
    assert_eq!(figures.circuit_totals.unwrap().packets, 10);
}

/// What falls into a guard band counts for the budget: it is lost and sent again, and something is always left for the rest.
#[test]
fn a_budget_goes_with_losses_in_the_band() {
    for scheduler in ["rotor", "sunflow"] {
        let text = "slice = \"50us\"\nguard = \"5us\"\nreconfiguration_delay = \"5us\"\nclock_skew = \"2us\"\nbudget = \"9kB\"\n";
        let mut network = rotor(&configured(scheduler, text), 8, 1);
        (0..8).for_each(|host| network.send(SimTime::ZERO, &message(host, (host + 5) % 8, 200_000, 0)));
        assert_eq!(packets(&mut network).len(), 8 * 140, "{scheduler}");
        assert!(counter(&network, "lost: in a guard band") > 0, "{scheduler}");
    }
    let small = "clock_skew = \"10us\"\nbudget = \"9kB\"\n";
    let error = Rotor::new(&small.parse().unwrap(), &lab(4, 1), ()).err().unwrap().to_string();
    assert!(error.starts_with("fabric.budget"), "{error}");
}

fn configs() -> impl Strategy<Value = (RotorConfig, usize, usize)> {
    let times = (25..80u64, 0..6u64, 0..8u64, 0..4u64, 0..4u64);
    let demand = (0..4usize, 0..60u64, prop::option::of(2..300u64), prop::option::of(20_000..60_000u64));
    (2..9usize, 1..4usize, times, demand, 0..400u64, any::<u64>()).prop_map(
        |(racks, hosts, (slice, guard, delay, margin, skew), (scheduler, age, limit, budget), cable, seed)| {
            let mut text = format!(
                "slice = \"{slice}us\"\nguard = \"{guard}us\"\nmargin = \"{margin}us\"\nclock_skew = \"{skew}us\"\n\
                 reconfiguration_delay = {{ uniform = [\"{}us\", \"{delay}us\"] }}\ncable_delay = \"{cable}ns\"\n\
                 seed = {}\ndemand_age = \"{age}us\"\n",
                delay / 2,
                seed >> 1,
            );
            if let Some(limit) = limit {
                text += &format!("demand_limit = \"{limit}us\"\n");
            }
            if let Some(budget) = budget {
                text += &format!("budget = \"{budget}B\"\n");
            }
            (configured(SCHEDULERS[scheduler], &text), racks, hosts)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn planned_circuits_keep_apart_nothing_passes_in_a_band_and_all_arrives(
        (config, racks, hosts) in configs(),
        sends in prop::collection::vec((0..64u32, 1..64u32, 0..60_000u64, 0..150u64), 1..30),
    ) {
        prop_assume!(Rotor::new(&config, &lab(racks, hosts), ()).is_ok());
        let mut network = rotor(&config, racks, hosts);
        network.keep_passages();
        let number = u32::try_from(racks * hosts).unwrap();
        let mut at = SimTime::ZERO;
        let mut wanted = BTreeMap::new();
        for (token, (from, step, bytes, gap_us)) in (0..).zip(&sends) {
            at = at.plus_ps(gap_us * 1_000_000);
            network.run_before(at);
            let from = from % number;
            let to = (from + 1 + step % (number - 1)) % number;
            network.send(at, &with_token(message(from, to, *bytes, 0), token));
            wanted.insert(token, bytes.div_ceil(config.mtu.get()).max(1));
        }
        network.run_before(at.plus_ps(1_000_000_000_000));
        prop_assert!(network.next_event().is_none(), "a second later something waits: {:?}", network.figures().counters);
        for packet in &packets(&mut network) {
            *wanted.get_mut(&packet.token.0).unwrap() -= 1;
        }
        prop_assert!(wanted.values().all(|left| *left == 0), "each packet arrives once");

        let figures = network.figures();
        for side in [|circuit: &CircuitFigures| circuit.from.clone(), |circuit: &CircuitFigures| circuit.to.clone()] {
            let mut of_ports = BTreeMap::<String, Vec<_>>::new();
            figures.circuits.iter().for_each(|circuit| of_ports.entry(side(circuit)).or_default().push(circuit));
            for of_port in of_ports.values_mut() {
                of_port.sort_by_key(|circuit| circuit.granted);
                for pair in of_port.windows(2) {
                    let end = pair[0].released;
                    prop_assert!(end.is_some_and(|end| end <= pair[1].granted), "{pair:?}");
                }
            }
        }
        let mut by_circuit = BTreeMap::<(u32, u32), Vec<_>>::new();
        let rack = |name: &str| name.trim_start_matches("rack").parse::<u32>().unwrap();
        for circuit in &figures.circuits {
            by_circuit.entry((rack(&circuit.from), rack(&circuit.to))).or_default().push(circuit);
        }
        let mut lost = 0;
        for passage in network.passages() {
            let of_pair = by_circuit.get(&(passage.from, passage.to)).map_or(&[][..], Vec::as_slice);
            let inside = of_pair.iter().any(|circuit| {
                let up = circuit.up.unwrap();
                up <= passage.first && circuit.released.is_none_or(|end| passage.last <= end)
            });
            prop_assert!(inside || !passage.passes, "{:?}", passage);
            lost += u64::from(!passage.passes);
        }
        let of = |name: &str| counter(&network, name);
        prop_assert_eq!(lost, of("lost: in a guard band") + of("lost: the switch not reconfigured"));
        prop_assert_eq!(of("packets over circuits"), of("packets that passed circuits") + lost);
        prop_assert_eq!(of("bytes over circuits"), of("bytes that passed circuits") + of("bytes lost and sent again"));
        let totals = figures.circuit_totals;
        prop_assert_eq!(totals.map_or(0, |totals| totals.packets), of("packets over circuits"));
    }
}
