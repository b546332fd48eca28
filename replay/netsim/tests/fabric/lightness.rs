//! The LIGHTNESS fabric beyond what was published: contention, circuits, decisions, and what is counted of them.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::{Fabric, FabricConfig};
use netsim::network::{Delivery, FlowKind, HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;

fn counter(network: &Fabric, name: &str) -> u64 {
    let figures = network.figures();
    figures.counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

const IDEAL_SERVERS: &str = "kind = \"lightness\"\nserver_rate = \"unlimited\"\nswitch_delay = \"0ns\"\n";

#[test]
fn within_a_rack_packets_stay_electrical() {
    let text = "kind = \"lightness\"\nserver_rate = \"8Gbps\"\nserver_delay = \"5ns\"\nswitch_delay = \"200ns\"\n";
    let mut network = fabric(text, &lab(2, 2));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    network.send(SimTime::ZERO, flow, 1_000, Token(0));
    // Twice 1,000 bytes at 1 ns, two cables, the switch.
    assert_eq!(run_all(&mut network)[0].at, SimTime::from_ns(2_000 + 10 + 200));
    assert_eq!(counter(&network, "packets within racks"), 1);
    assert_eq!(counter(&network, "ACKs"), 0);
}

#[test]
fn of_two_that_collide_one_passes_and_the_other_comes_again() {
    let text = format!("{IDEAL_SERVERS}wavelengths = 1\n");
    let mut network = fabric(&text, &lab(3, 1));
    for source in [0, 1] {
        let flow = network.open_flow(HostIndex(source), HostIndex(2));
        network.send(SimTime::ZERO, flow, 1_500, Token(u64::from(source)));
    }
    let deliveries = run_all(&mut network);
    assert_eq!((counter(&network, "ACKs"), counter(&network, "NACKs")), (2, 1));
    let figures = network.figures();
    assert_eq!((figures.drops, figures.retransmissions), (1, 1));
    // The loser is again at the switch 3,276 ns after its first decision, when the winner's 1,200 ns are long over.
    assert_eq!(deliveries[1].at.since_ps(deliveries[0].at), 3_276_000);
}

#[test]
fn who_wins_a_collision_changes() {
    let text = format!("{IDEAL_SERVERS}wavelengths = 1\n");
    let mut network = fabric(&text, &lab(3, 1));
    let flows: Vec<_> = [0, 1].map(|source| network.open_flow(HostIndex(source), HostIndex(2))).to_vec();
    let mut winners = Vec::new();
    for round in 0..10u64 {
        let at = SimTime::from_ns(round * 100_000);
        let mut deliveries = Vec::new();
        while network.advance(at, &mut deliveries) < at {}
        for flow in &flows {
            network.send(at, *flow, 1_500, Token(u64::from(flow.0)));
        }
        network.advance(SimTime::MAX, &mut deliveries);
        winners.push(deliveries.last().unwrap().token.0);
    }
    assert!(winners.contains(&0) && winners.contains(&1), "{winners:?}");
}

#[test]
fn other_outputs_and_other_wavelengths_do_not_collide() {
    // Four racks in a ring: everyone sends at once, nobody to the same one.
    let mut network = fabric(&format!("{IDEAL_SERVERS}wavelengths = 1\n"), &lab(4, 1));
    for source in 0..4 {
        let flow = network.open_flow(HostIndex(source), HostIndex((source + 1) % 4));
        network.send(SimTime::ZERO, flow, 1_500, Token(u64::from(source)));
    }
    let deliveries = run_all(&mut network);
    assert!(deliveries.iter().all(|delivery| delivery.at == deliveries[0].at));
    assert_eq!(counter(&network, "NACKs"), 0);
    // With conversion two packets of one wavelength find two outputs.
    let collisions = |conversion: bool| {
        let text = format!("{IDEAL_SERVERS}wavelengths = 4\nwavelength_conversion = {conversion}\n");
        let mut network = fabric(&text, &lab(4, 8));
        for source in 0..24 {
            let flow = network.open_flow(HostIndex(source), HostIndex(24 + source % 8));
            network.send(SimTime::ZERO, flow, 30_000, Token(0));
        }
        run_all(&mut network);
        counter(&network, "NACKs")
    };
    assert!(collisions(true) < collisions(false), "{} and {}", collisions(true), collisions(false));
}

#[test]
fn a_larger_window_keeps_the_channel_busy() {
    let time = |window: u32| {
        let text = format!("{IDEAL_SERVERS}photonic_packet_max = \"1500B\"\nwindow = {window}\n");
        let mut network = fabric(&text, &lab(2, 1));
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        network.send(SimTime::ZERO, flow, 15_000, Token(0));
        run_all(&mut network)[0].at.0
    };
    // Ten packets: with window 1 each but the last waits for routing, slot and ACK (51 ns).
    assert_eq!(time(1) - time(2), 9 * 51_000);
    assert_eq!(time(2), 10 * (1_678_000 + 3_225_000) + 31_000 + 1_200_000);
}

#[test]
fn with_a_window_a_nack_reorders_packets_and_the_server_puts_them_in_order() {
    let text = format!("{IDEAL_SERVERS}photonic_packet_max = \"1500B\"\nwindow = 4\ndrop = [1]\n");
    let mut network = fabric(&text, &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for token in 0..6 {
        network.send(SimTime::ZERO, flow, 1_500, Token(token));
    }
    let order: Vec<u64> = run_all(&mut network).iter().map(|delivery| delivery.token.0).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    assert!(counter(&network, "reordered packets") >= 1);
}

/// Sends 1,000 bytes from each of `pairs` at the times in us, and gives back when they arrive in us (rounded down).
fn circuits(keys: &str, racks: usize, pairs: &[(u64, u32, u32)]) -> (Vec<u64>, Fabric) {
    let text =
        format!("{IDEAL_SERVERS}decision = \"ocs\"\nwavelengths = 1\nocs_first_message_delay = \"100us\"\n{keys}");
    let mut network = fabric(&text, &lab(racks, 1));
    let mut deliveries: Vec<Delivery> = Vec::new();
    for (token, (at, source, destination)) in pairs.iter().enumerate() {
        let at = SimTime::from_ns(at * 1_000);
        while network.advance(at, &mut deliveries) < at {}
        let flow = network.open_flow(HostIndex(*source), HostIndex(*destination));
        network.send(at, flow, 1_000, Token(token as u64));
    }
    while network.next_event().is_some() {
        network.advance(SimTime::MAX, &mut deliveries);
    }
    deliveries.sort_by_key(|delivery| delivery.token.0);
    (deliveries.iter().map(|delivery| delivery.at.0 / 1_000_000).collect(), network)
}

#[test]
fn a_circuit_is_released_when_idle_and_set_up_again() {
    // 3.8 us a packet. The second and the third find the circuit, the fourth comes 200 us later, after the release.
    let times = [(0, 0, 1), (200, 0, 1), (300, 0, 1), (500, 0, 1)];
    let (at, network) = circuits("circuit_idle = \"150us\"\n", 2, &times);
    assert_eq!(at, [103, 203, 303, 603]);
    assert_eq!(counter(&network, "circuits set up"), 2);
    // At the end nothing keeps it up either.
    assert_eq!(counter(&network, "circuits released"), 2);
}

#[test]
fn an_idle_circuit_is_given_up_for_a_waiting_request_once_it_was_held() {
    let keys = "circuit_hold = \"30us\"\nretry_request_delay = \"10us\"\n";
    // Both want the only port of rack 2. Circuits are up at 100 us; the other asks again each 10 us until 130 us.
    let (at, network) = circuits(keys, 3, &[(0, 0, 2), (5, 1, 2)]);
    assert_eq!(at, [103, 5 + 130 + 100 + 3]);
    assert_eq!(counter(&network, "circuits evicted"), 1);
    // Refused at 5, 15, ..., 125 us; granted at 135.
    assert_eq!(counter(&network, "circuits refused"), 13);
    assert_eq!(counter(&network, "circuit requests"), 15);
}

#[test]
fn a_circuit_that_is_used_is_not_given_up() {
    let text = format!(
        "{IDEAL_SERVERS}decision = \"ocs\"\nwavelengths = 1\nocs_first_message_delay = \"100us\"\ncircuit_hold = \"0s\"\n\
         retry_request_delay = \"10us\"\n"
    );
    let mut network = fabric(&text, &lab(3, 1));
    let (long, short) = (network.open_flow(HostIndex(0), HostIndex(2)), network.open_flow(HostIndex(1), HostIndex(2)));
    // 31 packets of 72 us: the circuit is in use for 2.2 ms, and its port wanted all the while.
    network.send(SimTime::ZERO, long, 1_000_000, Token(0));
    let later = SimTime::from_ns(50_000);
    network.advance(later, &mut Vec::new());
    network.send(later, short, 1_000, Token(1));
    let order: Vec<u64> = run_all(&mut network).iter().map(|delivery| delivery.token.0).collect();
    assert_eq!(order, [0, 1]);
    assert_eq!((counter(&network, "circuits set up"), counter(&network, "circuits evicted")), (2, 1));
}

#[test]
fn of_requests_of_one_instant_one_is_granted() {
    let (at, network) = circuits("circuit_hold = \"0s\"\nretry_request_delay = \"7us\"\n", 3, &[(0, 0, 2), (0, 1, 2)]);
    let mut sorted = at;
    sorted.sort_unstable();
    // The other is refused until the first circuit is idle: at 105 us, its 15th try.
    assert_eq!(sorted, [103, 105 + 100 + 3]);
    assert_eq!(counter(&network, "circuits set up"), 2);
}

#[test]
fn by_size_sends_large_messages_over_circuits() {
    let text = format!(
        "{IDEAL_SERVERS}decision = \"by-size\"\ndecision_threshold = \"100kB\"\nocs_first_message_delay = \"1us\"\n"
    );
    let mut network = fabric(&text, &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    network.send(SimTime::ZERO, flow, 99_999, Token(0));
    network.send(SimTime::ZERO, flow, 100_000, Token(1));
    let order: Vec<u64> = run_all(&mut network).iter().map(|delivery| delivery.token.0).collect();
    assert_eq!(order, [0, 1]);
    assert_eq!((counter(&network, "packets by OPS"), counter(&network, "packets by circuit")), (4, 4));
}

#[test]
fn by_flow_takes_the_circuit_once_a_flow_has_sent_much() {
    let text = format!(
        "{IDEAL_SERVERS}decision = \"by-flow\"\ndecision_threshold = \"100kB\"\nocs_first_message_delay = \"1us\"\n\
         photonic_packet_max = \"10kB\"\n"
    );
    let mut network = fabric(&text, &lab(2, 1));
    let (flow, other) = (network.open_flow(HostIndex(0), HostIndex(1)), network.open_flow(HostIndex(0), HostIndex(1)));
    // Ten packets of 10 kB make a flow large, in however many messages; another flow of the pair is its own.
    network.send(SimTime::ZERO, flow, 95_000, Token(0));
    network.send(SimTime::ZERO, flow, 55_000, Token(1));
    network.send(SimTime::ZERO, other, 100_000, Token(2));
    assert_eq!(run_all(&mut network).len(), 3);
    assert_eq!((counter(&network, "packets by OPS"), counter(&network, "packets by circuit")), (11 + 10, 5));
}

#[test]
fn by_destination_takes_the_circuit_to_the_named_hosts_and_racks() {
    let text = format!(
        "{IDEAL_SERVERS}decision = \"by-destination\"\ncircuit_destinations = [\"w2\", \"rack2\"]\n\
         ocs_first_message_delay = \"1us\"\n"
    );
    let mut network = fabric(&text, &lab(3, 2));
    // To w2 alone of rack1, to both of rack2.
    for destination in [2, 3, 4, 5] {
        let flow = network.open_flow(HostIndex(0), HostIndex(destination));
        network.send(SimTime::ZERO, flow, 1_000, Token(u64::from(destination)));
    }
    assert_eq!(run_all(&mut network).len(), 4);
    assert_eq!((counter(&network, "packets by OPS"), counter(&network, "packets by circuit")), (1, 3));
    let config: FabricConfig = "kind = \"lightness\"\ncircuit_destinations = [\"w9\"]".parse().unwrap();
    let Err(error) = netsim::fabric::build(&config, &lab(3, 2)) else { panic!("w9 is not there") };
    let said = "fabric.circuit_destinations = w9: no host or rack has this name; there are the racks rack0, rack1, rack2, and the hosts w0, w1,";
    assert!(error.to_string().starts_with(said), "{error}");
    let config: FabricConfig = "kind = \"lightness\"\ndecision = \"by-destination\"".parse().unwrap();
    let Err(error) = netsim::fabric::build(&config, &lab(3, 2)) else { panic!("nobody is named") };
    assert!(error.to_string().contains("circuit_destinations = []"), "{error}");
    // Of many names some are told.
    let config: FabricConfig = "kind = \"lightness\"\ncircuit_destinations = [\"x\"]".parse().unwrap();
    let Err(error) = netsim::fabric::build(&config, &lab(1, 40)) else { panic!("x is not there") };
    assert!(
        error.to_string().ends_with("the racks rack0, and the hosts w0, w1, w2, w3, w4, w5, w6, w7, w8 and so on"),
        "{error}"
    );
}

#[test]
fn by_kind_takes_the_circuit_for_flows_of_the_named_kinds() {
    let text = format!("{IDEAL_SERVERS}decision = \"by-kind\"\nocs_first_message_delay = \"1us\"\n");
    let passed = |kinds: &str| {
        let mut network = fabric(&format!("{text}circuit_kinds = {kinds}\n"), &lab(2, 4));
        let kinds = [FlowKind::Calls, FlowKind::Storage, FlowKind::Shuffle, FlowKind::Other];
        for ((token, packets), kind) in (0..).zip([1, 10, 100, 1_000]).zip(kinds) {
            let flow = network.open_flow(HostIndex(0), HostIndex(4));
            // Of the last one nothing is said.
            if kind != FlowKind::Other {
                network.describe(flow, kind);
            }
            network.send(SimTime::ZERO, flow, packets * (32 << 10), Token(token));
        }
        assert_eq!(run_all(&mut network).len(), 4);
        (counter(&network, "packets by OPS"), counter(&network, "packets by circuit"))
    };
    assert_eq!(passed("[\"shuffle\"]"), (1_011, 100));
    assert_eq!(passed("[\"shuffle\", \"storage\"]"), (1_001, 110));
    assert_eq!(passed("[\"other\"]"), (111, 1_000));
    assert_eq!(passed("[\"calls\", \"storage\", \"shuffle\", \"other\"]"), (0, 1_111));
    let of = |kinds: &str| format!("{text}circuit_kinds = {kinds}\n").parse::<FabricConfig>();
    let Err(error) = netsim::fabric::build(&of("[]").unwrap(), &lab(2, 1)) else { panic!("no kind") };
    assert!(error.to_string().contains("circuit_kinds = []"), "{error}");
    let error = of("[\"shufle\"]").unwrap_err().to_string();
    assert!(error.contains("shufle") && error.contains("`shuffle`"), "{error}");
}

/// What a refused request is told again and again is known: its repetitions cost nothing, and are counted.
#[test]
fn repetitions_of_a_refused_request_are_no_events() {
    let run = |retry: &str| {
        let text = format!(
            "{IDEAL_SERVERS}decision = \"ocs\"\nocs_wavelengths = 1\ncable_delay = \"250ns\"\nretry_request_delay = \"{retry}\"\n"
        );
        let mut network = fabric(&text, &lab(4, 1));
        for source in 0..3 {
            let flow = network.open_flow(HostIndex(source), HostIndex(3));
            network.send(SimTime::from_ns(u64::from(source)), flow, 1_000, Token(u64::from(source)));
        }
        // Two of three wait; seen at two times, in between and after all.
        let mut deliveries = Vec::new();
        while deliveries.is_empty() {
            network.advance(SimTime::from_ns(2_000_000_000), &mut deliveries);
        }
        let early = (counter(&network, "circuit requests"), counter(&network, "circuits refused"));
        let events = network.figures().events;
        deliveries.extend(run_all(&mut network));
        let late = (counter(&network, "circuit requests"), counter(&network, "circuits refused"));
        assert_eq!(late.0, late.1 + 3, "each circuit was granted once");
        (deliveries.len(), early, events, late)
    };
    // The first message is there after 753,003.5 us and what it takes itself, and two repeat each (1 + .75) or (1,000 + .75) us.
    let (often, rarely) = (run("1us"), run("1ms"));
    assert_eq!((often.0, rarely.0), (3, 3));
    let repeated = |each_ns: u64| 2 * (753_000_000 / each_ns);
    assert!(often.1.1.abs_diff(repeated(1_500)) < 20, "{often:?}");
    assert!(rarely.1.1.abs_diff(repeated(1_000_500)) < 6, "{rarely:?}");
    assert!(often.2 < 100 && rarely.2 < 100, "{often:?} {rarely:?}");
}

#[test]
fn the_packet_switch_arbitrates_as_it_is_told() {
    // Slots so long that both channels' packets are there in each: whoever loses asks again in the next one.
    let order = |arbiter: &str| {
        let text = format!("{IDEAL_SERVERS}wavelengths = 1\nops_slot = \"10us\"\nops_arbiter = \"{arbiter}\"\n");
        let mut network = fabric(&text, &lab(3, 1));
        let flows = [0, 1].map(|source| network.open_flow(HostIndex(source), HostIndex(2)));
        for _ in 0..5 {
            for (token, flow) in (0..).zip(flows) {
                network.send(SimTime::ZERO, flow, 1_500, Token(token));
            }
        }
        run_all(&mut network).iter().map(|delivery| delivery.token.0).collect::<Vec<_>>()
    };
    assert_eq!(order("lowest"), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(order("round-robin"), [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    assert_ne!(order("random"), order("lowest"));
}

#[test]
fn of_one_fibre_only_one_packet_passes_to_another_one_at_a_time() {
    // Eight packets on two wavelengths of one fibre to another one, at the same instant: 1,200 ns each at the output.
    let last = |keys: &str| {
        let text = format!("{IDEAL_SERVERS}wavelengths = 2\nops_rate = \"1Gbps\"\n{keys}");
        let mut network = fabric(&text, &lab(2, 8));
        for source in 0..8 {
            let flow = network.open_flow(HostIndex(source), HostIndex(8 + source));
            network.send(SimTime::ZERO, flow, 1_500, Token(u64::from(source)));
        }
        let deliveries = run_all(&mut network);
        assert_eq!((deliveries.len(), counter(&network, "NACKs")), (8, 0), "the ToR keeps clear of its own packets");
        deliveries.last().unwrap().at
    };
    let (one, any) = (last(""), last("ops_one_per_fibre = false\n"));
    assert!(one >= SimTime::from_ns(8 * 12_000) && any < one, "{one} and {any}");
}

#[test]
fn a_short_packet_behind_a_long_one_does_not_meet_it_at_the_output() {
    // 32 KiB keep the output for 26 us, 80 B are there after 1.9.
    let text = format!("{IDEAL_SERVERS}wavelengths = 1\n");
    let mut network = fabric(&text, &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for token in 0..100 {
        network.send(SimTime::ZERO, flow, if token % 2 == 0 { 32 << 10 } else { 80 }, Token(token));
    }
    let deliveries = run_all(&mut network);
    assert_eq!((deliveries.len(), counter(&network, "ACKs"), counter(&network, "NACKs")), (100, 100, 0));
    // The short one is decided about when the long one has just left.
    let gap = deliveries[1].at.since_ps(deliveries[0].at);
    assert!((64_000..66_000).contains(&gap), "{gap}");
}

#[test]
fn refusals_are_counted_by_their_cause() {
    let of = |network: &Fabric, cause: &str| counter(network, &format!("NACKs: {cause}"));
    let text =
        format!("{IDEAL_SERVERS}wavelengths = 4\nphotonic_packet_max = \"1500B\"\ndrop = [3]\ntor_output_buffer = 2\n");
    let mut network = fabric(&text, &lab(5, 4));
    for source in 0..20 {
        for step in [4, 8, 13] {
            let flow = network.open_flow(HostIndex(source), HostIndex((source + step) % 20));
            network.send(SimTime::ZERO, flow, 20_000, Token(0));
        }
    }
    assert_eq!(run_all(&mut network).len(), 60);
    let own = of(&network, "the ToR's own packet in the way") + of(&network, "a packet of the same fibre in the way");
    let others = of(&network, "another ToR's packet in the way");
    let (places, faults) = (of(&network, "no place in the ToR's output"), of(&network, "faults"));
    assert_eq!((own, faults), (0, 1));
    assert!(others > 0, "{others}");
    assert_eq!(own + others + places + faults, counter(&network, "NACKs"));
}

#[test]
fn several_fibres_a_tor_carry_several_packets_at_once() {
    let last = |keys: &str| {
        let text = format!("{IDEAL_SERVERS}wavelengths = 1\n{keys}");
        let mut network = fabric(&text, &lab(2, 8));
        for source in 0..8 {
            let flow = network.open_flow(HostIndex(source), HostIndex(8 + source));
            network.send(SimTime::ZERO, flow, 32 << 10, Token(u64::from(source)));
        }
        let at = run_all(&mut network).last().unwrap().at.0;
        (at, counter(&network, "NACKs"))
    };
    let (one, four) = (last(""), last("fibers = 8\nwavelength_assignment = \"least-loaded\"\n"));
    assert_eq!((one.1, four.1), (0, 0));
    // Two a fibre in place of eight.
    assert!(four.0 * 3 < one.0, "{four:?} and {one:?}");
    let circuits = |keys: &str| last(&format!("decision = \"ocs\"\nocs_first_message_delay = \"1us\"\n{keys}")).0;
    // One circuit joins two ToRs, however many fibres there are.
    assert_eq!(circuits(""), circuits("ocs_fibers = 8\n"));
}

#[test]
fn more_fibres_to_the_circuit_switch_let_a_tor_have_more_circuits() {
    let (one, _) = circuits("", 4, &[(0, 0, 1), (0, 0, 2), (0, 0, 3)]);
    let (three, network) = circuits("ocs_fibers = 12\n", 4, &[(0, 0, 1), (0, 0, 2), (0, 0, 3)]);
    assert_eq!(three, [103, 103, 103]);
    assert!(one.iter().max() > three.iter().max(), "{one:?}");
    assert_eq!(counter(&network, "circuits refused"), 0);
}

#[test]
fn circuits_are_seen_in_the_figures() {
    let (_, network) =
        circuits("circuit_hold = \"30us\"\nretry_request_delay = \"10us\"\n", 3, &[(0, 0, 2), (5, 1, 2)]);
    let circuits = network.figures().circuits;
    let seen: Vec<_> = circuits
        .iter()
        .map(|circuit| (circuit.from.as_str(), circuit.to.as_str(), circuit.evicted, circuit.packets))
        .collect();
    assert_eq!(seen, [("rack0", "rack2", true, 1), ("rack1", "rack2", false, 1)]);
    assert_eq!(circuits[0].up, Some(SimTime::from_ns(100_000)));
    assert!(circuits[0].released.unwrap() <= circuits[1].granted);
}

#[test]
fn wavelengths_are_assigned_as_asked_for() {
    // One flow: hashed it keeps to one channel, else it takes all that are free.
    let channels = |assignment: &str| {
        let text = format!(
            "{IDEAL_SERVERS}wavelengths = 4\nops_one_per_fibre = false\nwavelength_assignment = \"{assignment}\"\n"
        );
        let mut network = fabric(&text, &lab(2, 1));
        let flow = network.open_flow(HostIndex(0), HostIndex(1));
        network.send(SimTime::ZERO, flow, 12 * (32 << 10), Token(0));
        assert_eq!(run_all(&mut network).len(), 1);
        let links = network.figures().links;
        links.iter().filter(|link| link.name.starts_with("rack0->OPS") && link.packets > 0).count()
    };
    assert_eq!(["hashed", "least-loaded", "first-fit"].map(channels), [1, 4, 4]);
}

#[test]
fn by_circuit_uses_the_packet_switch_until_the_circuit_is_up() {
    let text = format!("{IDEAL_SERVERS}decision = \"by-circuit\"\nocs_first_message_delay = \"500us\"\n");
    let mut network = fabric(&text, &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    network.send(SimTime::ZERO, flow, 10_000_000, Token(0));
    run_all(&mut network);
    let (packets, circuits) = (counter(&network, "packets by OPS"), counter(&network, "packets by circuit"));
    assert_eq!(packets + circuits, 10_000_000u64.div_ceil(32 << 10));
    // 500 us at 72 us a packet, and what the ToR's buffer held then.
    assert!((6..=8 + 64).contains(&packets), "{packets}");
    assert_eq!(counter(&network, "circuits set up"), 1);
}

#[test]
fn a_full_buffer_of_one_channel_does_not_stop_what_goes_elsewhere() {
    let text = "kind = \"lightness\"\ntor_max_messages = 2\nwavelengths = 1\n";
    let mut network = fabric(text, &lab(2, 2));
    let far = network.open_flow(HostIndex(0), HostIndex(2));
    let near = network.open_flow(HostIndex(0), HostIndex(1));
    network.send(SimTime::ZERO, far, 50_000_000, Token(0));
    network.send(SimTime::from_ns(0), near, 32_768, Token(1));
    let first = run_all(&mut network)[0];
    assert_eq!(first.token, Token(1));
    assert!(first.at < SimTime::from_ns(200_000), "{}", first.at);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn acks_nacks_and_packets_add_up(
        flows in prop::collection::vec((0u32..8, 0u32..8, 1u64..200_000), 1..30),
        window in 1u32..6,
        wavelengths in 1u32..4,
        head in any::<bool>(),
        conversion in any::<bool>(),
        drop in prop::collection::vec(1u64..50, 0..6),
    ) {
        let decided = if head { "head" } else { "tail" };
        let text = format!(
            "kind = \"lightness\"\nwindow = {window}\nwavelengths = {wavelengths}\nops_decision = \"{decided}\"\n\
             wavelength_conversion = {conversion}\nphotonic_packet_max = \"1500B\"\ndrop = {drop:?}\n"
        );
        let mut network = fabric(&text, &lab(4, 2));
        let mut across = 0;
        let mut within = 0;
        let mut messages = 0;
        for (source, destination, bytes) in flows {
            if source == destination {
                continue;
            }
            let flow = network.open_flow(HostIndex(source), HostIndex(destination));
            network.send(SimTime::ZERO, flow, bytes, Token(messages));
            messages += 1;
            let packets = bytes.div_ceil(1_500);
            if source / 2 == destination / 2 { within += packets } else { across += packets }
        }
        let deliveries = run_all(&mut network);
        prop_assert_eq!(deliveries.len() as u64, messages);
        let figures = network.figures();
        prop_assert_eq!(counter(&network, "ACKs"), across);
        prop_assert_eq!(counter(&network, "packets by OPS"), across);
        prop_assert_eq!(counter(&network, "packets within racks"), within);
        prop_assert_eq!(counter(&network, "NACKs"), figures.retransmissions);
        prop_assert_eq!(counter(&network, "NACKs"), figures.drops);
        let sent: u64 = figures.links.iter().filter(|link| link.name.contains("->OPS")).map(|link| link.packets).sum();
        prop_assert_eq!(sent, across + figures.retransmissions);
        if window == 1 {
            prop_assert_eq!(counter(&network, "reordered packets"), 0);
        }
    }
}
