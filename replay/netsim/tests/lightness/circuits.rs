//! Circuits against a slow, plain model of the circuit switch; and that no two of them ever hold one port.
//!
//! The model has no queue of events: it looks for the next time at which anything happens, goes there, and does what the
//! deliverable says. Cases in which two things that exclude each other happen in one picosecond are left out.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::FabricConfig;
use netsim::fabric::lightness::{CircuitSpan, Lightness};
use netsim::network::{CircuitFigures, HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::BTreeMap;

const STARTUP: u64 = 1_678_000;
const BYTE: u64 = 2_150;
const MAX_PACKET: u64 = 1_500;

#[derive(Clone, Copy, Debug)]
struct Message {
    at: u64,
    from: usize,
    to: usize,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    racks: usize,
    ports: usize,
    set_up: u64,
    retry: u64,
    hold: u64,
    idle: u64,
    cable: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Down,
    /// It will be asked for then.
    Asking(u64),
    /// Ports (input, output), and when it is up.
    SettingUp(usize, usize, u64),
    /// Ports, and since when.
    Up(usize, usize, u64),
}

#[derive(Clone)]
struct Pair {
    state: State,
    /// Packets: message, bytes, whether it is the message's last.
    packets: Vec<(usize, u64, bool)>,
    sent: Option<u64>,
    idle_since: u64,
}

#[derive(Debug, Default, PartialEq)]
struct Run {
    done: BTreeMap<u64, u64>,
    circuits: Vec<(u32, u32, u64, Option<u64>)>,
    requests: u64,
}

/// Two things that exclude each other happened at once.
struct Tie;

fn model(messages: &[Message], times: Times) -> Result<Run, Tie> {
    let Times { racks, ports, .. } = times;
    let down = Pair { state: State::Down, packets: Vec::new(), sent: None, idle_since: 0 };
    let mut pairs = vec![down; racks * racks];
    let mut run = Run::default();
    let mut coming = messages.to_vec();
    coming.reverse();
    let (mut last, mut last_output) = (vec![0; racks], 0);
    loop {
        let release = |pair: &Pair| match pair.state {
            State::Up(..) if pair.packets.is_empty() => Some(pair.idle_since + times.idle),
            _ => None,
        };
        let of_pair = |pair: &Pair| {
            let of_state = match pair.state {
                State::Asking(at) | State::SettingUp(_, _, at) => Some(at),
                _ => None,
            };
            [of_state, pair.sent, release(pair)].into_iter().flatten().min()
        };
        let next = pairs.iter().filter_map(of_pair).chain(coming.last().map(|message| message.at)).min();
        let Some(now) = next else { return Ok(run) };
        let mut things = 0;

        // What was idle for long is released.
        for pair in &mut pairs {
            if release(pair) == Some(now) {
                things += 1;
                close(&mut run, pair, now);
            }
        }
        // Messages come and are cut into packets.
        while coming.last().is_some_and(|message| message.at == now) {
            let index = messages.len() - coming.len();
            things += 1;
            let Message { from, to, bytes, .. } = coming.pop().unwrap();
            let pair = &mut pairs[from * racks + to];
            let count = bytes.div_ceil(MAX_PACKET).max(1);
            for number in 0..count {
                let payload = (bytes - number * MAX_PACKET).min(MAX_PACKET);
                pair.packets.push((index, payload.max(80), number + 1 == count));
            }
            if pair.state == State::Down {
                pair.state = State::Asking(now + times.cable);
            }
        }
        // Circuits come up; packets have been sent.
        for pair in &mut pairs {
            if let State::SettingUp(input, output, at) = pair.state
                && at == now
            {
                things += 1;
                pair.state = State::Up(input, output, now);
                pair.idle_since = now;
            }
            if pair.sent == Some(now) {
                things += 1;
                pair.sent = None;
                let (message, _, is_last) = pair.packets.remove(0);
                if is_last {
                    run.done.insert(message as u64, now + 2 * times.cable);
                }
                pair.idle_since = now;
            }
        }
        for pair in &mut pairs {
            if matches!(pair.state, State::Up(..)) && pair.sent.is_none() && !pair.packets.is_empty() {
                pair.sent = Some(now + STARTUP + pair.packets[0].1 * BYTE);
            }
        }
        // Requests of the instant: each output's behind the rack that it granted last, outputs behind the last one.
        let behind = |number: usize, last: usize| (number + racks - last - 1) % racks;
        let mut asking: Vec<usize> =
            (0..racks * racks).filter(|pair| pairs[*pair].state == State::Asking(now)).collect();
        asking.sort_by_key(|pair| (behind(pair % racks, last_output), behind(pair / racks, last[pair % racks])));
        if things > 1 && !asking.is_empty() {
            return Err(Tie);
        }
        for pair in asking {
            let (from, to) = (pair / racks, pair % racks);
            run.requests += 1;
            let port = |rack: usize, input: bool, pairs: &[Pair]| {
                let holder = |port: usize| {
                    pairs.iter().position(|pair| match pair.state {
                        State::SettingUp(i, o, _) | State::Up(i, o, _) => port == if input { i } else { o },
                        _ => false,
                    })
                };
                let mut of_rack = rack * ports..(rack + 1) * ports;
                of_rack.clone().find(|port| holder(*port).is_none()).map(|port| (port, None)).or_else(|| {
                    of_rack.find_map(|port| {
                        let holder = holder(port)?;
                        match pairs[holder].state {
                            State::Up(_, _, since) if pairs[holder].packets.is_empty() && now - since >= times.hold => {
                                Some((port, Some(holder)))
                            }
                            _ => None,
                        }
                    })
                })
            };
            let (input, output) = (port(from, true, &pairs), port(to, false, &pairs));
            if let (Some((input, of_input)), Some((output, of_output))) = (input, output) {
                for holder in [of_input, of_output].into_iter().flatten() {
                    close(&mut run, &mut pairs[holder], now);
                }
                pairs[pair].state = State::SettingUp(input, output, now + times.set_up + times.cable);
                (last[to], last_output) = (from, to);
                let port = |port: usize| u32::try_from(port).unwrap();
                run.circuits.push((port(input), port(output), now, None));
            } else {
                pairs[pair].state = State::Asking(now + 2 * times.cable + times.retry);
            }
        }
    }
}

fn close(run: &mut Run, pair: &mut Pair, now: u64) {
    let State::Up(input, _, _) = pair.state else { panic!("only what is up is closed") };
    let open = run.circuits.iter_mut().find(|circuit| circuit.0 as usize == input && circuit.3.is_none());
    open.unwrap().3 = Some(now);
    pair.state = State::Down;
}

fn simulation(messages: &[Message], times: Times) -> Run {
    let Times { racks, ports, set_up, retry, hold, idle, cable } = times;
    let text = format!(
        "kind = \"lightness\"\ndecision = \"ocs\"\nserver_rate = \"unlimited\"\nocs_wavelengths = {ports}\n\
         photonic_packet_max = \"1500B\"\ntor_max_messages = 1000000\ncable_delay = \"{cable}ps\"\n\
         ocs_first_message_delay = \"{set_up}ps\"\nretry_request_delay = \"{retry}ps\"\ncircuit_hold = \"{hold}ps\"\n\
         circuit_idle = \"{idle}ps\"\n"
    );
    let FabricConfig::Lightness(config) = text.parse().unwrap() else { panic!("another kind") };
    let mut network = Lightness::new(&config, &lab(racks, 1)).unwrap();
    let mut deliveries = Vec::new();
    let mut flows = BTreeMap::new();
    let mut reached = 0;
    for (token, Message { at, from, to, bytes }) in (0..).zip(messages) {
        // What is handed over at one time is handed over before anything happens.
        if *at > reached {
            while network.advance(SimTime(*at), &mut deliveries) < SimTime(*at) {}
            reached = *at;
        }
        let ends = [*from, *to].map(|rack| HostIndex(u32::try_from(rack).unwrap()));
        let flow = *flows.entry(ends).or_insert_with(|| network.open_flow(ends[0], ends[1]));
        network.send(SimTime(*at), flow, *bytes, Token(token));
    }
    while network.next_event().is_some() {
        network.advance(SimTime::MAX, &mut deliveries);
    }
    let requests = network.figures().counters.iter().find(|(name, _)| name == "circuit requests").unwrap().1;
    let span = |span: &CircuitSpan| (span.input, span.output, span.granted.0, span.released.map(|at| at.0));
    Run {
        done: deliveries.iter().map(|delivery| (delivery.token.0, delivery.at.0)).collect(),
        circuits: network.circuits().iter().map(span).collect(),
        requests,
    }
}

/// Whether no port is held by two circuits at once.
fn never_overlap(circuits: &[(u32, u32, u64, Option<u64>)]) -> bool {
    circuits.iter().enumerate().all(|(number, one)| {
        circuits[number + 1..].iter().all(|later| {
            let shares = one.0 == later.0 || one.1 == later.1;
            !shares || one.3.is_some_and(|released| released <= later.2)
        })
    })
}

fn times() -> impl Strategy<Value = Times> {
    (2..5usize, 1..3usize, 1..60_000_000u64, 1_000_001..9_000_000u64, 0..30_000_000u64, 1..80_000_000u64, 0..500_000u64)
        .prop_map(|(racks, ports, set_up, retry, hold, idle, cable)| Times {
            racks,
            ports,
            set_up,
            retry,
            hold,
            idle,
            cable,
        })
}

fn case() -> impl Strategy<Value = (Times, Vec<Message>)> {
    times().prop_flat_map(|times| {
        let gap = prop_oneof![3 => 0..30_000_000u64, 1 => Just(0)];
        let one = (gap, 0..times.racks, 1..times.racks, 0..6_000u64);
        let messages = prop::collection::vec(one, 1..16).prop_map(move |list| {
            let mut at = 0;
            let message = |(gap, from, step, bytes): (u64, usize, usize, u64)| {
                at += gap;
                Message { at, from, to: (from + step) % times.racks, bytes }
            };
            list.into_iter().map(message).collect()
        });
        (Just(times), messages)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn circuits_and_delivery_times_are_the_plain_models((times, messages) in case()) {
        let Ok(expected) = model(&messages, times) else { return Err(TestCaseError::reject("at once")) };
        let run = simulation(&messages, times);
        prop_assert!(never_overlap(&run.circuits), "{:?}", run.circuits);
        prop_assert_eq!(run.done.len(), messages.len());
        prop_assert_eq!(run, expected);
    }
}

#[test]
fn the_plain_model_knows_evictions_and_refusals() {
    let times =
        Times { racks: 3, ports: 1, set_up: 20_000_000, retry: 3_000_001, hold: 5_000_000, idle: 90_000_000, cable: 0 };
    let to = |at, from| Message { at, from, to: 2, bytes: 4_000 };
    let messages = [to(0, 0), to(1, 1), to(200, 0)];
    let Ok(expected) = model(&messages, times) else { panic!("no tie") };
    assert!(expected.requests > 3 && expected.circuits.len() == 2, "{expected:?}");
    assert_eq!(simulation(&messages, times), expected);
}

#[test]
fn requests_of_one_instant_are_granted_in_turn() {
    // Three ToRs want the only port of a fourth one, again and again at the same instants.
    let times = Times { racks: 4, ports: 1, set_up: 10_000_000, retry: 20_000_000, hold: 0, idle: 1, cable: 0 };
    let messages: Vec<Message> = (0..3).map(|from| Message { at: 0, from, to: 3, bytes: 1_000 }).collect();
    let granted: Vec<u32> = simulation(&messages, times).circuits.iter().map(|circuit| circuit.0).collect();
    // Rack 0 counts as the one that was granted last.
    assert_eq!(granted, [1, 2, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// What circuits and the packet switch carried is what was delivered, and nothing passes while circuits are set up.
    #[test]
    fn bytes_add_up_and_nothing_passes_during_a_set_up(
        messages in prop::collection::vec((0..300u64, 0..4u32, 1..4u32, 80..60_000u64), 1..30),
        decision in prop_oneof![Just("ocs"), Just("by-size"), Just("by-flow"), Just("by-prediction"), Just("by-circuit")],
        set_up in 1..200u64,
        hold in 0..30u64,
    ) {
        let text = format!(
            "kind = \"lightness\"\ndecision = \"{decision}\"\ndecision_threshold = \"20kB\"\nserver_rate = \"unlimited\"\n\
             ocs_wavelengths = 1\nphotonic_packet_min = \"1B\"\nocs_first_message_delay = \"{set_up}us\"\n\
             retry_request_delay = \"7us\"\ncircuit_hold = \"{hold}us\"\ncircuit_idle = \"90us\"\ninterval = \"1us\"\n"
        );
        let mut network = fabric(&text, &lab(4, 1));
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        let mut deliveries = Vec::new();
        for (token, (at, from, step, bytes)) in (0..).zip(&sorted) {
            let at = SimTime::from_ns(at * 1_000);
            while network.advance(at, &mut deliveries) < at {}
            let flow = network.open_flow(HostIndex(*from), HostIndex((from + step) % 4));
            network.send(at, flow, *bytes, Token(token));
        }
        deliveries.extend(run_all(&mut network));
        prop_assert_eq!(deliveries.len(), sorted.len());
        let figures = network.figures();
        let sent: u64 = sorted.iter().map(|(_, _, _, bytes)| *bytes).sum();
        let of_links = |begin: &str| -> u64 {
            figures.links.iter().filter(|link| link.name.starts_with(begin)).map(|link| link.bytes).sum()
        };
        let by_circuits: u64 = figures.circuits.iter().map(|circuit| circuit.bytes).sum();
        prop_assert_eq!(by_circuits + of_links("OPS."), sent, "each byte crosses one of both switches once");
        let Some(totals) = &figures.circuit_totals else {
            prop_assert!(figures.circuits.is_empty());
            return Ok(());
        };
        prop_assert_eq!((totals.granted, totals.bytes), (figures.circuits.len() as u64, by_circuits));
        prop_assert_eq!(totals.requests, totals.granted + totals.refused);
        let (held, lost) = totals.held_and_set_up_ps(SimTime::LATEST);
        let each = figures.circuits.iter();
        let released = |circuit: &CircuitFigures| circuit.released.unwrap_or(SimTime::LATEST);
        prop_assert_eq!(held, each.clone().map(|one| u128::from(released(one).since_ps(one.granted))).sum::<u128>());
        prop_assert_eq!(lost, each.map(|one| u128::from(one.up.unwrap().since_ps(one.granted))).sum::<u128>());
        for circuit in &figures.circuits {
            let (up, last) = (circuit.up.unwrap(), circuit.last_used);
            prop_assert!(circuit.asked <= circuit.granted && circuit.granted < up);
            prop_assert!(last.is_none_or(|last| last > up && last <= released(circuit)));
            // With one port a rack's link to the switch carries what its only circuit does.
            let link = figures.links.iter().find(|link| link.name == format!("{}->OCS", circuit.from)).unwrap();
            let whole = circuit.granted.0.div_ceil(1_000_000)..up.0 / 1_000_000;
            for interval in whole {
                let passed = link.bytes_by_interval().get(usize::try_from(interval).unwrap()).copied().unwrap_or(0);
                prop_assert_eq!(passed, 0, "while {:?} is set up", circuit);
            }
            // No port is held twice.
            for other in &figures.circuits {
                let same = (circuit.from == other.from) || (circuit.to == other.to);
                let apart = released(circuit) <= other.granted || released(other) <= circuit.granted;
                prop_assert!(std::ptr::eq(circuit, other) || !same || apart);
            }
        }
    }
}
