//! ToRs and the packet switch against a slow, plain model of both.
//!
//! The model has no queue of events: it looks for the next time at which anything happens, goes there, and does
//! what the deliverable says, as plainly as possible. Servers' links are ideal, each ToR has one channel, and its
//! window is 1. Times are chosen so that no two requests ask for one output in the same slot: who passes then is drawn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fabric_common;

use fabric_common::{fabric, lab, run_all};
use proptest::prelude::*;
use replay::fabric::Fabric;
use replay::network::{HostIndex, Network, SimTime, Token};
use std::collections::{BTreeMap, BTreeSet};

const STARTUP: u64 = 1_678_000;
const BYTE_AT_TOR: u64 = 2_150;
const BYTE_AT_OPS: u64 = 800;
const ROUTING: u64 = 30_000;
const ACK: u64 = 20_000;
const SLOT: u64 = 1_000;
const LARGEST: u64 = 1_500;
const SMALLEST: u64 = 80;

/// A message between racks.
#[derive(Clone, Copy, Debug)]
struct Message {
    at: u64,
    from: usize,
    to: usize,
    bytes: u64,
}

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    /// When each message was whole.
    done: BTreeMap<u64, u64>,
    acks: u64,
    nacks: u64,
}

/// A packet that waits at a ToR.
#[derive(Clone, Copy)]
struct Packet {
    message: usize,
    last: bool,
    to: usize,
    bytes: u64,
    /// Whether its start-up was paid.
    prepared: bool,
}

/// A ToR's channel: packets in the order of their coming; the first is the one that is being sent, decided about, or
/// waits for its ACK or NACK.
#[derive(Default)]
struct Tor {
    packets: Vec<Packet>,
    /// When the first packet will be decided about; or when its ACK (true) or NACK (false) will have been dealt with.
    decision: Option<u64>,
    answer: Option<(u64, bool)>,
}

/// Whether two asked for one output in one slot.
struct Tie;

fn model(messages: &[Message], racks: usize, cable: u64, drop: &BTreeSet<u64>) -> Result<Run, Tie> {
    let mut tors: Vec<Tor> = (0..racks).map(|_| Tor::default()).collect();
    let mut output_free = vec![0; racks];
    let mut decided = 0;
    let mut run = Run::default();
    let mut coming: Vec<usize> = (0..messages.len()).collect();
    coming.sort_by_key(|index| messages[*index].at);
    loop {
        // The next time at which anything happens.
        let of_tors = tors.iter().flat_map(|tor| [tor.decision, tor.answer.map(|(at, _)| at)]).flatten();
        let Some(now) = of_tors.chain(coming.first().map(|index| messages[*index].at)).min() else { return Ok(run) };

        // Messages come, and are cut into packets.
        while let Some(index) = coming.first().copied().filter(|index| messages[*index].at == now) {
            coming.remove(0);
            let Message { from, to, bytes, .. } = messages[index];
            let count = bytes.div_ceil(LARGEST).max(1);
            for number in 0..count {
                let payload = (bytes - number * LARGEST).min(LARGEST);
                let (last, bytes) = (number + 1 == count, payload.max(SMALLEST));
                tors[from].packets.push(Packet { message: index, last, to, bytes, prepared: false });
            }
        }

        // ACKs and NACKs have been dealt with.
        for tor in &mut tors {
            if let Some((at, ack)) = tor.answer
                && at == now
            {
                tor.answer = None;
                if ack {
                    tor.packets.remove(0);
                }
            }
        }

        // The packet switch decides.
        let due: Vec<usize> = (0..racks).filter(|rack| tors[*rack].decision == Some(now)).collect();
        let outputs: BTreeSet<usize> = due.iter().map(|rack| tors[*rack].packets[0].to).collect();
        if outputs.len() < due.len() || (due.len() > 1 && !drop.is_empty()) {
            return Err(Tie);
        }
        for rack in due {
            let packet = tors[rack].packets[0];
            decided += 1;
            let passes = output_free[packet.to] <= now && !drop.contains(&decided);
            if passes {
                output_free[packet.to] = now + packet.bytes * BYTE_AT_OPS;
                run.acks += 1;
                if packet.last {
                    run.done.insert(packet.message as u64, now + packet.bytes * BYTE_AT_OPS + cable);
                }
            } else {
                run.nacks += 1;
            }
            tors[rack].decision = None;
            tors[rack].answer = Some((now + cable + ACK, passes));
        }

        // ToRs that wait for nothing send their first packet (again).
        for tor in &mut tors {
            if tor.decision.is_none()
                && tor.answer.is_none()
                && let Some(packet) = tor.packets.first_mut()
            {
                let startup = if packet.prepared { 0 } else { STARTUP };
                packet.prepared = true;
                let routed = now + startup + packet.bytes * BYTE_AT_TOR + cable + ROUTING;
                // The first end of a slot that is strictly later.
                tor.decision = Some((routed / SLOT + 1) * SLOT);
            }
        }
    }
}

fn counter(network: &Fabric, name: &str) -> u64 {
    network.figures().counters.iter().find(|(known, _)| known == name).unwrap().1
}

fn simulation(messages: &[Message], racks: usize, cable: u64, drop: &BTreeSet<u64>) -> Run {
    let drop: Vec<u64> = drop.iter().copied().collect();
    let text = format!(
        "kind = \"lightness\"\nserver_rate = \"unlimited\"\nwavelengths = 1\nphotonic_packet_max = \"1500B\"\n\
         tor_max_messages = 1000000\ncable_delay = \"{cable}ps\"\ndrop = {drop:?}\n"
    );
    let mut network = fabric(&text, &lab(racks, 1));
    let mut flows = BTreeMap::new();
    let mut deliveries = Vec::new();
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|index| messages[*index].at);
    for index in order {
        let Message { at, from, to, bytes } = messages[index];
        while network.advance(SimTime(at), &mut deliveries) < SimTime(at) {}
        let ends = (HostIndex(u32::try_from(from).unwrap()), HostIndex(u32::try_from(to).unwrap()));
        let flow = *flows.entry(ends).or_insert_with(|| network.open_flow(ends.0, ends.1));
        network.send(SimTime(at), flow, bytes, Token(index as u64));
    }
    deliveries.extend(run_all(&mut network));
    let figures = network.figures();
    assert_eq!(figures.retransmissions, counter(&network, "NACKs"), "every NACK's packet is sent again");
    assert_eq!(counter(&network, "reordered packets"), 0, "window 1 keeps the order");
    let mut done = BTreeMap::new();
    for delivery in deliveries {
        assert!(done.insert(delivery.token.0, delivery.at.0).is_none(), "delivered twice: {delivery:?}");
    }
    Run { done, acks: counter(&network, "ACKs"), nacks: counter(&network, "NACKs") }
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn delivery_times_and_counts_are_the_plain_models(
        messages in messages(4),
        cable in prop_oneof![Just(0u64), Just(250_000), 1..1_000_000u64],
        drop in prop::collection::btree_set(1..12u64, 0..4),
    ) {
        let Ok(expected) = model(&messages, 4, cable, &drop) else {
            return Err(TestCaseError::reject("two asked for one output in one slot"));
        };
        let packets: u64 = messages.iter().map(|message| message.bytes.div_ceil(LARGEST).max(1)).sum();
        prop_assert_eq!(expected.acks, packets);
        prop_assert_eq!(expected.done.len(), messages.len());
        prop_assert_eq!(simulation(&messages, 4, cable, &drop), expected);
    }
}

#[test]
fn the_plain_model_knows_collisions() {
    // Two ToRs with messages of several packets to a third one: outputs are found in use.
    let to = |at, from| Message { at, from, to: 2, bytes: 15_000 };
    let messages = [to(0, 0), to(700_500, 1)];
    let Ok(expected) = model(&messages, 3, 0, &BTreeSet::new()) else { panic!("no tie") };
    assert!(expected.nacks > 0, "{expected:?}");
    assert_eq!(simulation(&messages, 3, 0, &BTreeSet::new()), expected);
}
