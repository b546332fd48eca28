//! Elephants and mice by prediction: cases worked out by hand, and a slow, plain model that goes through all that was sent anew for each
//! message.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::lightness::Lightness;
use netsim::fabric::{Fabric, FabricConfig};
use netsim::kernel::random::{below, draw};
use netsim::network::{Delivery, FlowId, FlowKind, HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;

const THRESHOLD: u64 = 20_000;
const US: u64 = 1_000_000;
const KINDS: [FlowKind; 4] = [FlowKind::Calls, FlowKind::Storage, FlowKind::Shuffle, FlowKind::Other];

fn configured(decision: &str, keys: &str) -> String {
    format!(
        "kind = \"lightness\"\nserver_rate = \"unlimited\"\nphotonic_packet_max = \"1000B\"\ndecision_threshold = \"{THRESHOLD}B\"\n\
         ocs_first_message_delay = \"1us\"\nretry_request_delay = \"1us\"\ncircuit_hold = \"1us\"\ndecision = \"{decision}\"\n{keys}"
    )
}

fn counter(network: &Fabric, name: &str) -> u64 {
    let figures = network.figures();
    figures.counters.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no counter {name}")).1
}

/// Messages that were predicted, elephants predicted to be mice, mice predicted to be elephants.
fn counted(network: &Fabric) -> [u64; 3] {
    ["messages predicted", "elephants predicted to be mice", "mice predicted to be elephants"]
        .map(|name| counter(network, name))
}

/// How many packets of 1,000 B went over circuits of messages that one flow sends one after the other.
fn by_circuit(keys: &str, sizes: &[u64]) -> (u64, [u64; 3]) {
    let mut network = fabric(&configured("by-prediction", keys), &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for (token, bytes) in (0..).zip(sizes) {
        network.send(SimTime::ZERO, flow, *bytes, Token(token));
    }
    assert_eq!(run_all(&mut network).len(), sizes.len());
    (counter(&network, "packets by circuit"), counted(&network))
}

#[test]
fn with_a_history_of_one_a_message_is_taken_for_the_last_one() {
    let (circuit, counted) = by_circuit("prediction_history = 1\n", &[20_000, 30_000, 1_000, 40_000, 50_000]);
    assert_eq!(circuit, 30 + 1 + 50);
    assert_eq!(counted, [5, 2, 1]);
}

/// After a message of 64 kB a mouse is taken for 64 kB x (7/8)^n: less than 20 kB from the ninth mouse on.
#[test]
fn of_a_history_of_eight_an_elephant_is_forgotten_after_nine_mice() {
    let sizes: Vec<u64> = std::iter::once(64_000).chain(std::iter::repeat_n(1, 20)).collect();
    assert_eq!(by_circuit("", &sizes), (9, [21, 1, 9]));
    // Messages of the threshold's size stay elephants.
    assert_eq!(by_circuit("", &[20_000; 5]), (80, [5, 1, 0]));
}

/// What has no bytes is a packet all the same, and teaches nothing.
#[test]
fn messages_without_bytes_are_not_learned_of() {
    assert_eq!(by_circuit("prediction_history = 1\n", &[30_000, 0, 0, 30_000]), (1 + 1 + 30, [2, 1, 0]));
}

#[test]
fn classes_are_learned_apart() {
    let open = |network: &mut Fabric, client, server, kind| {
        let flows = network.open_connection(HostIndex(client), HostIndex(server));
        network.describe(flows.0, kind);
        network.describe(flows.1, kind);
        flows
    };
    // A server in rack 1 answers a client in rack 0 with elephants; then something else sends from rack 1 to rack 0.
    let other = |case: usize| {
        let mut network = fabric(&configured("by-prediction", ""), &lab(3, 2));
        let first = open(&mut network, 0, 2, FlowKind::Shuffle);
        network.send(SimTime::ZERO, first.1, 50_000, Token(0));
        let flow = match case {
            // By the client of a connection, of another kind, between other racks.
            0 => open(&mut network, 2, 0, FlowKind::Shuffle).0,
            1 => open(&mut network, 0, 2, FlowKind::Storage).1,
            2 => open(&mut network, 4, 2, FlowKind::Shuffle).1,
            // Other servers of the same racks.
            _ => open(&mut network, 1, 3, FlowKind::Shuffle).1,
        };
        network.send(SimTime::ZERO, flow, 50_000, Token(1));
        assert_eq!(run_all(&mut network).len(), 2);
        counter(&network, "packets by circuit")
    };
    assert_eq!([0, 1, 2].map(other), [0; 3]);
    assert_eq!(other(3), 50);
}

/// A message counts when all of it was handed over, in however many parts; one that goes on otherwise is over before.
#[test]
fn a_message_is_learned_of_when_its_last_part_is_there() {
    let mut network = fabric(&configured("by-prediction", "prediction_history = 1\n"), &lab(2, 1));
    let flows = [0, 1].map(|_| network.open_flow(HostIndex(0), HostIndex(1)));
    let mut parts = (0..).map(Token);
    let mut send = |flow: usize, bytes, of_bytes| {
        network.send_part(SimTime::ZERO, flows[flow], bytes, of_bytes, parts.next().unwrap());
    };
    send(0, 10_000, 30_000);
    // Nothing is known yet.
    send(1, 1_000, 1_000);
    send(0, 10_000, 30_000);
    // It is taken for a mouse, as the last one that was complete.
    send(1, 25_000, 25_000);
    send(0, 10_000, 30_000);
    // The elephant is complete.
    send(1, 7_000, 50_000);
    // Of the 50,000 no more than 7,000 came: a mouse that was taken for an elephant. So what follows is taken for a mouse.
    send(1, 22_000, 22_000);
    send(1, 3_000, 3_000);
    assert_eq!(run_all(&mut network).len(), 8);
    assert_eq!(counter(&network, "packets by circuit"), 7 + 3);
    assert_eq!(counted(&network), [6, 3, 2]);
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let refused = |text: &str| {
        let FabricConfig::Lightness(config) = text.parse().unwrap() else { panic!("another kind") };
        Lightness::new(&config, &lab(2, 1)).err().unwrap().to_string()
    };
    assert!(
        refused(&configured("by-prediction", "prediction_history = 0\n")).contains("fabric.prediction_history = 0")
    );
    assert!(refused(&configured("by-size", "prediction_history = 4\n")).contains("by-prediction"));
    let planned = configured("by-prediction", "scheduler = \"solstice\"\nslice = \"1ms\"\n");
    let mut network = fabric(&planned, &lab(2, 1));
    let flow = network.open_flow(HostIndex(0), HostIndex(1));
    for token in 0..3 {
        network.send(SimTime::ZERO, flow, 30_000, Token(token));
    }
    assert_eq!(run_all(&mut network).len(), 3);
    assert_eq!(counter(&network, "packets by circuit"), 60);
}

/// A part of a message: which message it is of, and its bytes.
#[derive(Clone, Copy)]
struct Part {
    at: u64,
    message: usize,
    bytes: u64,
}

/// A message of a connection: whether its server sends it, and its bytes.
#[derive(Clone, Copy)]
struct Message {
    connection: usize,
    by_server: bool,
    bytes: u64,
}

/// A case: connections (client, server, kind), messages and their parts in the order of their times.
struct Case {
    history: u32,
    connections: Vec<(u32, u32, FlowKind)>,
    messages: Vec<Message>,
    parts: Vec<Part>,
}

const RACKS: usize = 3;
const SERVERS: usize = 2;

impl Case {
    /// The case of a number: messages of each direction of a connection follow each other, those of several go on side by side.
    fn drawn(number: u64) -> Self {
        let mut drawn = 0;
        let mut any = |bound: u64| {
            drawn += 1;
            below(draw(number, 0x7072_6564, drawn), bound)
        };
        let history = [1, 2, 3, 8][any(4) as usize];
        let hosts = (RACKS * SERVERS) as u64;
        let connections: Vec<_> = (0..2 + any(4))
            .map(|_| {
                let client = any(hosts);
                // In another rack.
                let server = (client / 2 * 2 + 2 + any(hosts - 2)) % hosts;
                (client as u32, server as u32, KINDS[any(4) as usize])
            })
            .collect();
        let (mut messages, mut parts) = (Vec::new(), Vec::new());
        for connection in 0..connections.len() {
            for by_server in [false, true] {
                let mut at = any(50);
                for _ in 0..any(8) {
                    let bytes = [100, THRESHOLD - 1, THRESHOLD, 60_000][any(4) as usize];
                    let pieces = 1 + any(3);
                    for piece in 0..pieces {
                        let bytes = bytes * (piece + 1) / pieces - bytes * piece / pieces;
                        parts.push(Part { at: at * US, message: messages.len(), bytes });
                        at += any(40);
                    }
                    messages.push(Message { connection, by_server, bytes });
                }
            }
        }
        parts.sort_by_key(|part| part.at);
        Self { history, connections, messages, parts }
    }

    /// Hands all over to a network, each message with the size for which it is to be taken: what is delivered, and how many packets
    /// crossed circuits and packet switch.
    fn run(&self, decision: &str, keys: &str, taken_for: impl Fn(usize) -> u64) -> (Vec<Delivery>, [u64; 2], Fabric) {
        let mut network = fabric(&configured(decision, keys), &lab(RACKS, SERVERS));
        let open = |(client, server, kind): &(u32, u32, FlowKind)| {
            let flows = network.open_connection(HostIndex(*client), HostIndex(*server));
            network.describe(flows.0, *kind);
            network.describe(flows.1, *kind);
            [flows.0, flows.1]
        };
        let flows: Vec<[FlowId; 2]> = self.connections.iter().map(open).collect();
        let (mut found, mut reached) = (Vec::new(), 0);
        for (token, part) in (0..).zip(&self.parts) {
            // What is handed over at one time is handed over before anything happens.
            while part.at > reached && network.advance(SimTime(part.at), &mut found) < SimTime(part.at) {}
            reached = part.at;
            let message = self.messages[part.message];
            let flow = flows[message.connection][usize::from(message.by_server)];
            network.send_part(SimTime(part.at), flow, part.bytes, taken_for(part.message), Token(token));
        }
        found.extend(run_all(&mut network));
        let packets = ["packets by circuit", "packets by OPS"].map(|name| counter(&network, name));
        (found, packets, network)
    }
}

/// What a model may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// It knows a message when its first part is there.
    LearnsAtOnce,
    /// Each part is a message.
    LearnsParts,
    ForgetsKind,
    ForgetsEnd,
    ForgetsRacks,
    /// It tells the servers of a rack apart.
    TellsServersApart,
    RoundsDown,
    /// The first message counts as little as each other one.
    StartsAtNothing,
    /// It takes what is not known for an elephant.
    ExpectsElephants,
}

const MISTAKES: [Mistake; 9] = [
    Mistake::LearnsAtOnce,
    Mistake::LearnsParts,
    Mistake::ForgetsKind,
    Mistake::ForgetsEnd,
    Mistake::ForgetsRacks,
    Mistake::TellsServersApart,
    Mistake::RoundsDown,
    Mistake::StartsAtNothing,
    Mistake::ExpectsElephants,
];

/// For which size each message is taken: for each, all that was handed over before its first part is gone through.
fn model(case: &Case, mistake: Option<Mistake>) -> Vec<u64> {
    let is = |wrong: Mistake| mistake == Some(wrong);
    let class = |message: usize| {
        let Message { connection, by_server, .. } = case.messages[message];
        let (client, server, kind) = case.connections[connection];
        let (from, to) = if by_server { (server, client) } else { (client, server) };
        let place = |host: u32| if is(Mistake::TellsServersApart) { host } else { host / 2 };
        let places = if is(Mistake::ForgetsRacks) { (0, 0) } else { (place(from), place(to)) };
        let kind = if is(Mistake::ForgetsKind) { FlowKind::Other } else { kind };
        (places, kind, by_server && !is(Mistake::ForgetsEnd))
    };
    let taken_for = |message: usize| {
        let first = case.parts.iter().position(|part| part.message == message).unwrap();
        let before = &case.parts[..first];
        // Sizes of the same class, in the order in which they became known.
        let mut known = Vec::new();
        for (index, part) in before.iter().enumerate() {
            if class(part.message) != class(message) {
                continue;
            }
            let of_same = |parts: &[Part]| parts.iter().filter(|other| other.message == part.message).count();
            let (so_far, all) = (of_same(&before[..=index]), of_same(&case.parts));
            let is_known = so_far == if is(Mistake::LearnsAtOnce) { 1 } else { all };
            if is(Mistake::LearnsParts) {
                known.push(part.bytes);
            } else if is_known {
                known.push(case.messages[part.message].bytes);
            }
        }
        let history = f64::from(case.history);
        // Numbers this small are exact in halves, thirds and eighths but for the last bits.
        let round = |value: f64| if is(Mistake::RoundsDown) { (value + 1e-6).floor() } else { (value - 1e-6).ceil() };
        let mut average: Option<f64> = is(Mistake::StartsAtNothing).then_some(0.0);
        for size in known {
            let before = average.unwrap_or(size as f64);
            average = Some(round(before + (size as f64 - before) / history));
        }
        let nothing = if is(Mistake::ExpectsElephants) { THRESHOLD as f64 } else { 0.0 };
        average.unwrap_or(nothing) as u64
    };
    (0..case.messages.len()).map(taken_for).collect()
}

const CASES: u64 = 300;

/// Whether the network does with predictions what it does where it is told the sizes that the model gives, to the picosecond.
fn agrees(case: &Case, mistake: Option<Mistake>) -> bool {
    let sizes = model(case, mistake);
    let predicting = format!("prediction_history = {}\n", case.history);
    let (found, packets, network) = case.run("by-prediction", &predicting, |message| case.messages[message].bytes);
    let told = case.run("by-size", "", |message| sizes[message]);
    assert_eq!(found.len(), case.parts.len());
    let wrong = |elephant: bool| {
        let all = sizes.iter().zip(&case.messages);
        let is_wrong = |(taken, message): &(&u64, &Message)| {
            (message.bytes >= THRESHOLD) == elephant && (**taken >= THRESHOLD) != elephant
        };
        all.filter(is_wrong).count() as u64
    };
    let figures = [case.messages.len() as u64, wrong(true), wrong(false)];
    found == told.0 && packets == told.1 && counted(&network) == figures
}

#[test]
fn the_network_predicts_as_the_plain_model_does() {
    let mut elephants = 0;
    for number in 0..CASES {
        let case = Case::drawn(number);
        assert!(agrees(&case, None), "case {number}");
        elephants += model(&case, None).iter().filter(|size| **size >= THRESHOLD).count();
    }
    assert!(elephants > 500, "{elephants}: the cases are no cases");
}

#[test]
fn mistakes_of_the_model_are_found() {
    for mistake in MISTAKES {
        let found = (0..CASES).find(|number| !agrees(&Case::drawn(*number), Some(mistake)));
        assert!(found.is_some(), "{mistake:?} is not found");
    }
}
