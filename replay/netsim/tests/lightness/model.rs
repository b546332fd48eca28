//! ToRs and the packet switch against a slow, plain model of both.
//!
//! The model has no queue of events: it looks for the next time at which anything happens, goes there, and does
//! what the deliverable says, as plainly as possible. Servers' links are ideal and each ToR has one channel. Windows, the
//! time of the decision, the serialisation at the output, the Output's buffer and faults are drawn. Cases in which two
//! things happen to one ToR in one picosecond are left out: the simulator draws their order.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::Fabric;
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const STARTUP: u64 = 1_678_000;
const BYTE_AT_TOR: u64 = 2_150;
const BYTE_AT_OPS: u64 = 800;
const ROUTING: u64 = 30_000;
const ACK: u64 = 20_000;
const SLOT: u64 = 1_000;
const MAX_PACKET: u64 = 1_500;
const MIN_PACKET: u64 = 80;

/// A message between racks.
#[derive(Clone, Copy, Debug)]
struct Message {
    at: u64,
    from: usize,
    to: usize,
    bytes: u64,
}

/// What differs from case to case.
#[derive(Clone, Debug)]
struct Setup {
    racks: usize,
    window: usize,
    cable: u64,
    at_head: bool,
    again: bool,
    buffer: Option<u32>,
    drop: BTreeSet<u64>,
}

impl Setup {
    fn plain(racks: usize) -> Self {
        Self { racks, window: 1, cable: 0, at_head: false, again: true, buffer: None, drop: BTreeSet::new() }
    }
}

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    /// When each message was whole, and all before it between the two.
    done: BTreeMap<u64, u64>,
    acks: u64,
    nacks: u64,
    /// Of these, those whose own ToR's packet was in the way.
    own: u64,
    reordered: u64,
}

#[derive(Clone, Copy)]
struct Packet {
    message: usize,
    to: usize,
    bytes: u64,
    /// Its place among the packets from its ToR to the other one.
    number: usize,
    /// Its place among those that its ToR sent.
    order: usize,
}

/// A ToR's channel.
#[derive(Default)]
struct Tor {
    waiting: VecDeque<Packet>,
    again: Vec<Packet>,
    sending_until: Option<u64>,
    /// Packets on their way to the packet switch, and when they will be decided about.
    flying: Vec<(u64, Packet)>,
    /// Answers on their way: when they will have been dealt with, and whether they are ACKs.
    answers: Vec<(u64, bool, Packet)>,
    unacknowledged: usize,
    sent: usize,
    /// Until when each output is in use by its packets, if those that are under way pass: ToR, packet, time.
    own: Vec<(usize, usize, u64)>,
    /// When it looks again because it kept clear of them.
    look: Option<u64>,
}

/// Two things happened to one ToR at once.
struct Tie;

fn model(messages: &[Message], setup: &Setup) -> Result<Run, Tie> {
    let racks = setup.racks;
    let mut tors: Vec<Tor> = (0..racks).map(|_| Tor::default()).collect();
    let mut output_free = vec![0; racks];
    let mut used_by = vec![0; racks];
    let mut places = vec![0; racks];
    let mut planned = vec![0; racks * racks];
    // Packets on their way from the packet switch: when they arrive, from where.
    let mut leaving: Vec<(u64, usize, Packet)> = Vec::new();
    let mut arrived: Vec<Vec<(usize, usize, u64)>> = vec![Vec::new(); racks * racks];
    let mut decided = 0;
    let mut run = Run::default();
    let mut coming: VecDeque<(usize, Message)> = messages.iter().copied().enumerate().collect();
    loop {
        // The next time at which anything happens.
        let of_tor = |tor: &Tor| {
            let decisions = tor.flying.iter().map(|(at, _)| *at);
            decisions.chain(tor.answers.iter().map(|(at, _, _)| *at)).chain(tor.sending_until).chain(tor.look).min()
        };
        let others = leaving.iter().map(|(at, _, _)| *at).chain(coming.front().map(|(_, message)| message.at));
        let Some(now) = tors.iter().filter_map(of_tor).chain(others).min() else { break };
        let mut things = vec![0; racks];

        // Messages come, and are cut into packets.
        while let Some((index, message)) = coming.front().copied().filter(|(_, message)| message.at == now) {
            coming.pop_front();
            let Message { from, to, bytes, .. } = message;
            things[from] += 1;
            for number in 0..bytes.div_ceil(MAX_PACKET).max(1) {
                let payload = (bytes - number * MAX_PACKET).min(MAX_PACKET);
                let pair = &mut planned[from * racks + to];
                let packet = Packet { message: index, to, bytes: payload.max(MIN_PACKET), number: *pair, order: 0 };
                tors[from].waiting.push_back(packet);
                *pair += 1;
            }
        }
        // Channels become free; ACKs and NACKs have been dealt with.
        for (rack, tor) in tors.iter_mut().enumerate() {
            if tor.sending_until == Some(now) {
                tor.sending_until = None;
                things[rack] += 1;
            }
            while let Some(index) = tor.answers.iter().position(|(at, _, _)| *at == now) {
                let (_, ack, packet) = tor.answers.remove(index);
                things[rack] += 1;
                if ack {
                    tor.unacknowledged -= 1;
                } else {
                    tor.own.retain(|(_, order, _)| *order != packet.order);
                    tor.again.push(packet);
                    tor.again.sort_by_key(|packet| packet.order);
                }
            }
        }
        if things.iter().any(|things| *things > 1) {
            return Err(Tie);
        }
        // Packets arrive at the other ToRs.
        while let Some(index) = leaving.iter().position(|(at, _, _)| *at == now) {
            let (_, from, packet) = leaving.remove(index);
            places[packet.to] -= 1;
            arrived[from * racks + packet.to].push((packet.number, packet.message, now));
        }
        // The packet switch decides, output by output, the lowest ToR first.
        let mut due: Vec<(usize, usize, Packet)> = Vec::new();
        for (rack, tor) in tors.iter_mut().enumerate() {
            while let Some(index) = tor.flying.iter().position(|(at, _)| *at == now) {
                let packet = tor.flying.remove(index).1;
                due.push((packet.to, rack, packet));
            }
        }
        due.sort_by_key(|(to, rack, _)| (*to, *rack));
        for (to, rack, packet) in due {
            decided += 1;
            let room = setup.buffer.is_none_or(|most| places[to] < most);
            let passes = output_free[to] <= now && !setup.drop.contains(&decided) && room;
            if passes {
                let (used, through) = match (setup.at_head, setup.again) {
                    (true, _) => (packet.bytes * BYTE_AT_TOR, packet.bytes * BYTE_AT_TOR),
                    (false, true) => (packet.bytes * BYTE_AT_OPS, packet.bytes * BYTE_AT_OPS),
                    (false, false) => (packet.bytes * BYTE_AT_OPS, 0),
                };
                output_free[to] = now + used;
                used_by[to] = rack;
                places[to] += 1;
                run.acks += 1;
                leaving.push((now + through + setup.cable, rack, packet));
            } else {
                run.nacks += 1;
                run.own += u64::from(output_free[to] > now && used_by[to] == rack && !setup.drop.contains(&decided));
            }
            tors[rack].answers.push((now + setup.cable + ACK, passes, packet));
        }
        // Free channels send: what was refused first, else something new if the window allows.
        for tor in &mut tors {
            if tor.look.is_some_and(|look| look <= now) {
                tor.look = None;
            }
            if tor.sending_until.is_some() {
                continue;
            }
            let (mut packet, startup) = match (tor.again.first(), tor.waiting.front()) {
                (Some(packet), _) => (*packet, 0),
                (None, Some(packet)) if tor.unacknowledged < setup.window => (*packet, STARTUP),
                _ => continue,
            };
            let stream = packet.bytes * BYTE_AT_TOR;
            let routing = startup + if setup.at_head { 0 } else { stream } + setup.cable + ROUTING;
            // The first end of a slot that is strictly later.
            let decided = |start: u64| ((start + routing) / SLOT + 1) * SLOT;
            // Not before its own packets have left the output: it looks again as early as it then can start.
            let clear = tor.own.iter().filter(|(to, _, _)| *to == packet.to).map(|(_, _, until)| *until).max();
            if let Some(clear) = clear.filter(|clear| decided(now) < *clear) {
                tor.look = Some((clear.div_ceil(SLOT) - 1) * SLOT - routing);
                continue;
            }
            if tor.again.is_empty() {
                tor.waiting.pop_front();
                tor.unacknowledged += 1;
                packet.order = tor.sent;
                tor.sent += 1;
            } else {
                tor.again.remove(0);
            }
            let used = if setup.at_head { stream } else { packet.bytes * BYTE_AT_OPS };
            tor.own.push((packet.to, packet.order, decided(now) + used));
            tor.sending_until = Some(now + startup + stream);
            tor.flying.push((decided(now), packet));
        }
    }
    for pair in arrived {
        let mut next = 0;
        let mut early = BTreeSet::new();
        for (number, _, _) in &pair {
            run.reordered += u64::from(*number != next);
            early.insert(*number);
            while early.remove(&next) {
                next += 1;
            }
        }
        // In order: a packet counts once all before it are there.
        let mut by_number = pair;
        by_number.sort_unstable();
        let mut latest = 0;
        for (_, message, at) in by_number {
            latest = latest.max(at);
            run.done.insert(message as u64, latest);
        }
    }
    Ok(run)
}

fn counter(network: &Fabric, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap().1
}

fn simulation(messages: &[Message], setup: &Setup) -> Run {
    let drop: Vec<u64> = setup.drop.iter().copied().collect();
    let (window, cable, decided, again) =
        (setup.window, setup.cable, if setup.at_head { "head" } else { "tail" }, setup.again && !setup.at_head);
    let buffer = setup.buffer.map_or_else(String::new, |most| format!("tor_output_buffer = {most}\n"));
    let text = format!(
        "kind = \"lightness\"\nserver_rate = \"unlimited\"\nwavelengths = 1\nphotonic_packet_max = \"1500B\"\n\
         tor_max_messages = 1000000\nops_arbiter = \"lowest\"\nwindow = {window}\ncable_delay = \"{cable}ps\"\n\
         ops_decision = \"{decided}\"\nops_serialises_again = {again}\ndrop = {drop:?}\n{buffer}"
    );
    let mut network = fabric(&text, &lab(setup.racks, 1));
    let mut flows = BTreeMap::new();
    let mut deliveries = Vec::new();
    for (index, Message { at, from, to, bytes }) in (0..).zip(messages.iter().copied()) {
        while network.advance(SimTime(at), &mut deliveries) < SimTime(at) {}
        let ends = (HostIndex(u32::try_from(from).unwrap()), HostIndex(u32::try_from(to).unwrap()));
        let flow = *flows.entry(ends).or_insert_with(|| network.open_flow(ends.0, ends.1));
        network.send(SimTime(at), flow, bytes, Token(index));
    }
    deliveries.extend(run_all(&mut network));
    let figures = network.figures();
    assert_eq!(figures.retransmissions, counter(&network, "NACKs"), "every NACK's packet is sent again");
    let mut done = BTreeMap::new();
    for delivery in deliveries {
        assert!(done.insert(delivery.token.0, delivery.at.0).is_none(), "delivered twice: {delivery:?}");
    }
    let of = |name: &str| counter(&network, name);
    let own = of("NACKs: the ToR's own packet in the way");
    let causes = [
        "another ToR's packet in the way",
        "a packet of the same fibre in the way",
        "no place in the ToR's output",
        "faults",
    ];
    let others: u64 = causes.iter().map(|cause| of(&format!("NACKs: {cause}"))).sum();
    assert_eq!(own + others, of("NACKs"), "each NACK has one cause");
    Run { done, acks: of("ACKs"), nacks: of("NACKs"), own, reordered: of("reordered packets") }
}

/// Messages of different pairs, at times that differ (a ToR serves the flows of one instant in turn, the model does not).
fn messages(racks: usize) -> impl Strategy<Value = Vec<Message>> {
    let one = (1..40_000_000u64, 0..racks, 1..racks, 0..6_000u64);
    prop::collection::vec(one, 1..12).prop_map(move |list| {
        let mut at = 0;
        let message = |(gap, from, step, bytes)| {
            at += gap;
            Message { at, from, to: (from + step) % racks, bytes }
        };
        list.into_iter().map(message).collect()
    })
}

fn setups() -> impl Strategy<Value = Setup> {
    let cable = prop_oneof![Just(0u64), Just(250_000), 1..1_000_000u64];
    let buffer = prop::option::of(1..4u32);
    let drop = prop::collection::btree_set(1..12u64, 0..4);
    (1..5usize, cable, any::<bool>(), any::<bool>(), buffer, drop).prop_map(
        |(window, cable, at_head, again, buffer, drop)| Setup { racks: 4, window, cable, at_head, again, buffer, drop },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn delivery_times_and_counts_are_the_plain_models(messages in messages(4), setup in setups()) {
        let Ok(expected) = model(&messages, &setup) else {
            return Err(TestCaseError::reject("two things at one ToR at once"));
        };
        let packets: u64 = messages.iter().map(|message| message.bytes.div_ceil(MAX_PACKET).max(1)).sum();
        prop_assert_eq!(expected.acks, packets);
        prop_assert_eq!(expected.done.len(), messages.len());
        prop_assert_eq!(expected.own, 0, "no ToR is in its own way");
        if setup.window == 1 {
            prop_assert_eq!(expected.reordered, 0, "window 1 keeps the order");
        }
        prop_assert_eq!(simulation(&messages, &setup), expected);
    }
}

#[test]
fn the_plain_model_knows_collisions_and_full_outputs() {
    // Two ToRs with messages of several packets to a third one: outputs are found in use.
    let to = |at, from| Message { at, from, to: 2, bytes: 15_000 };
    let messages = [to(0, 0), to(700_500, 1)];
    let setup = Setup::plain(3);
    let Ok(expected) = model(&messages, &setup) else { panic!("no tie") };
    assert!(expected.nacks > 0, "{expected:?}");
    assert_eq!(simulation(&messages, &setup), expected);
    // A cable so long that a packet is still on it when the other ToR's next one is decided about: with one place at its
    // end that one is refused.
    let long = Setup { cable: 5_000_037, buffer: Some(1), ..Setup::plain(3) };
    let (messages, full) = (0..1_000)
        .find_map(|shift| {
            let messages = [to(0, 0), to(700_503 + shift * 7_001, 1)];
            let full = model(&messages, &long).ok()?;
            let free = model(&messages, &Setup { buffer: None, ..long.clone() }).ok()?;
            (full.nacks > free.nacks).then_some((messages, full))
        })
        .unwrap();
    assert_eq!(simulation(&messages, &long), full);
}

#[test]
fn the_plain_model_knows_reordering() {
    let messages = [Message { at: 0, from: 0, to: 1, bytes: 9_000 }];
    let setup = Setup { window: 4, drop: BTreeSet::from([1]), ..Setup::plain(2) };
    let Ok(expected) = model(&messages, &setup) else { panic!("no tie") };
    assert!(expected.reordered > 0, "{expected:?}");
    assert_eq!(simulation(&messages, &setup), expected);
}
