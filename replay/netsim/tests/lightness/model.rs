//! ToRs and the packet switch against a slow, plain model of both.
//!
//! The model has no queue of events: it looks for the next time at which anything happens, goes there, and does
//! what the deliverable says, as plainly as possible. Servers' links are ideal. Fibres, wavelengths and who gets them,
//! conversion, windows, the time of the decision, the serialisation at the output, the Output's buffer and faults are drawn.
//! Cases in which two things happen to one ToR in one picosecond are left out: the simulator draws their order.

use crate::common::{fabric, lab, run_all};
use netsim::fabric::Fabric;
use netsim::kernel::random::{below, draw};
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
const SEED: u64 = 1;

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
    fibres: usize,
    wavelengths: usize,
    assignment: &'static str,
    conversion: bool,
    one_per_fibre: bool,
    window: usize,
    cable: u64,
    at_head: bool,
    again: bool,
    buffer: Option<u32>,
    drop: BTreeSet<u64>,
}

impl Setup {
    fn plain(racks: usize) -> Self {
        let (window, cable, at_head, again, buffer, drop) = (1, 0, false, true, None, BTreeSet::new());
        let (fibres, wavelengths, assignment, conversion, one_per_fibre) = (1, 1, "hashed", false, true);
        Self {
            racks,
            fibres,
            wavelengths,
            assignment,
            conversion,
            one_per_fibre,
            window,
            cable,
            at_head,
            again,
            buffer,
            drop,
        }
    }

    /// Channels of a ToR.
    fn channels(&self) -> usize {
        self.fibres * self.wavelengths
    }

    /// Whether packets on different channels of a ToR have nothing to do with each other.
    fn channels_apart(&self) -> bool {
        self.fibres == 1 && !self.conversion && !self.one_per_fibre
    }

    /// How long a packet keeps its output in use, and how long after the decision it is through.
    fn at_output(&self, bytes: u64) -> (u64, u64) {
        match (self.at_head, self.again) {
            (true, _) => (bytes * BYTE_AT_TOR, bytes * BYTE_AT_TOR),
            (false, true) => (bytes * BYTE_AT_OPS, bytes * BYTE_AT_OPS),
            (false, false) => (bytes * BYTE_AT_OPS, 0),
        }
    }

    /// The outputs that serve a packet of `channel` to ToR `to`, in the order in which they are taken.
    fn outputs(&self, channel: usize, to: usize) -> Vec<usize> {
        let all = self.channels();
        let serves = |output: &usize| self.conversion || output % self.wavelengths == channel % self.wavelengths;
        (0..all).map(|step| (channel + step) % all).filter(serves).map(|output| to * all + output).collect()
    }
}

/// What a run came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    /// When each message was whole, and all before it between the two.
    done: BTreeMap<u64, u64>,
    acks: u64,
    /// NACKs by their cause.
    others: u64,
    same_fibre: u64,
    no_place: u64,
    faults: u64,
    /// Those whose own ToR's packet was in the way.
    own: u64,
    reordered: u64,
    /// Packets that began to leave each channel, those that began again among them.
    attempts: Vec<u64>,
}

impl Run {
    fn nacks(&self) -> u64 {
        self.others + self.same_fibre + self.no_place + self.faults + self.own
    }
}

#[derive(Clone, Copy)]
struct Packet {
    message: usize,
    to: usize,
    bytes: u64,
    /// Its place among the packets from its ToR to the other one.
    number: usize,
    /// Its place among those that its channel sent.
    order: usize,
}

/// When one of a ToR's packets passes the packet switch, if it does.
#[derive(Clone, Copy)]
struct Passage {
    channel: usize,
    packet: Packet,
    from: u64,
    until: u64,
}

/// A channel of a ToR.
#[derive(Clone, Default)]
struct Channel {
    waiting: VecDeque<Packet>,
    again: Vec<Packet>,
    sending_until: Option<u64>,
    /// Packets on their way to the packet switch, and when they will be decided about.
    flying: Vec<(u64, Packet)>,
    /// Answers on their way: when they will have been dealt with, and whether they are ACKs.
    answers: Vec<(u64, bool, Packet)>,
    unacknowledged: usize,
    /// Packets that it was given and that are not acknowledged.
    load: usize,
    sent: usize,
    /// When it looks again because it kept clear of its ToR's packets.
    looks: BTreeSet<u64>,
    /// Whether anything happened to it in this instant.
    awake: bool,
}

/// Two things happened to one ToR at once.
struct Tie;

/// On which channel of its ToR a packet goes whose flow is the `flow`th one.
fn assigned(tor: &[Channel], flow: usize, setup: &Setup) -> usize {
    let least = || (0..tor.len()).min_by_key(|channel| (tor[*channel].load, *channel)).unwrap();
    match setup.assignment {
        "hashed" => usize::try_from(below(draw(SEED, 0, flow as u64), tor.len() as u64)).unwrap(),
        "least-loaded" => least(),
        _ => tor.iter().position(|channel| channel.load == 0).unwrap_or_else(least),
    }
}

/// The first end of a slot, from `soonest` on, at which a packet can pass that keeps its output for `used`, with at most `most`
/// of its own ToR's packets at once: slot by slot.
fn clear_of(passages: &[Passage], soonest: u64, used: u64, most: usize) -> u64 {
    let free = |at: u64| {
        let moments = passages.iter().map(|own| own.from).filter(|from| *from > at && *from < at + used).chain([at]);
        let at_once = |moment: u64| passages.iter().filter(|own| own.from <= moment && moment < own.until).count();
        moments.map(at_once).max().is_none_or(|own| own < most)
    };
    (0..).map(|slot| soonest + slot * SLOT).find(|at| free(*at)).unwrap()
}

fn model(messages: &[Message], setup: &Setup) -> Result<Run, Tie> {
    let (racks, all) = (setup.racks, setup.channels());
    let mut tors: Vec<Vec<Channel>> = vec![vec![Channel::default(); all]; racks];
    let mut passages: Vec<Vec<Passage>> = vec![Vec::new(); racks];
    // Of each output: until when it is in use, and by which ToR and channel.
    let mut outputs = vec![(0, (0, 0)); racks * all];
    let mut places = vec![0; racks];
    let mut planned = vec![0; racks * racks];
    let mut flows: Vec<(usize, usize)> = Vec::new();
    // Packets on their way from the packet switch: when they arrive, from where.
    let mut leaving: Vec<(u64, usize, Packet)> = Vec::new();
    let mut arrived: Vec<Vec<(usize, usize, u64)>> = vec![Vec::new(); racks * racks];
    let mut decided = 0;
    let mut run = Run { attempts: vec![0; racks * all], ..Run::default() };
    let mut coming: VecDeque<(usize, Message)> = messages.iter().copied().enumerate().collect();
    loop {
        // The next time at which anything happens.
        let of_channel = |channel: &Channel| {
            let decisions = channel.flying.iter().map(|(at, _)| *at);
            let answers = channel.answers.iter().map(|(at, _, _)| *at);
            decisions.chain(answers).chain(channel.sending_until).chain(channel.looks.first().copied()).min()
        };
        let others = leaving.iter().map(|(at, _, _)| *at).chain(coming.front().map(|(_, message)| message.at));
        let Some(now) = tors.iter().flatten().filter_map(of_channel).chain(others).min() else { break };
        // Things that happen to a ToR as a whole, and to each of its channels.
        let mut things = vec![(0, vec![0; all]); racks];

        // Messages come, and are cut into packets.
        while let Some((index, message)) = coming.front().copied().filter(|(_, message)| message.at == now) {
            coming.pop_front();
            let Message { from, to, bytes, .. } = message;
            things[from].0 += 1;
            let flow = flows.iter().position(|flow| *flow == (from, to)).unwrap_or_else(|| {
                flows.push((from, to));
                flows.len() - 1
            });
            for number in 0..bytes.div_ceil(MAX_PACKET).max(1) {
                let payload = (bytes - number * MAX_PACKET).min(MAX_PACKET);
                let pair = &mut planned[from * racks + to];
                let packet = Packet { message: index, to, bytes: payload.max(MIN_PACKET), number: *pair, order: 0 };
                *pair += 1;
                let chosen = assigned(&tors[from], flow, setup);
                let channel = &mut tors[from][chosen];
                channel.waiting.push_back(packet);
                channel.load += 1;
                channel.awake = true;
            }
        }
        // Channels become free, or look again; ACKs and NACKs have been dealt with.
        for (rack, tor) in tors.iter_mut().enumerate() {
            for (number, channel) in tor.iter_mut().enumerate() {
                let mut happened = usize::from(channel.looks.remove(&now));
                if channel.sending_until == Some(now) {
                    channel.sending_until = None;
                    happened += 1;
                }
                while let Some(index) = channel.answers.iter().position(|(at, _, _)| *at == now) {
                    let (_, ack, packet) = channel.answers.remove(index);
                    happened += 1;
                    if ack {
                        channel.unacknowledged -= 1;
                        channel.load -= 1;
                    } else {
                        passages[rack].retain(|own| own.channel != number || own.packet.order != packet.order);
                        channel.again.push(packet);
                        channel.again.sort_by_key(|packet| packet.order);
                    }
                }
                channel.awake |= happened > 0;
                things[rack].1[number] += happened;
            }
        }
        for (of_tor, of_channels) in things {
            let together: usize = of_tor + of_channels.iter().sum::<usize>();
            let apart = setup.channels_apart() && of_tor == 0 && of_channels.iter().all(|things| *things <= 1);
            if together > 1 && !apart {
                return Err(Tie);
            }
        }
        // Packets arrive at the other ToRs.
        while let Some(index) = leaving.iter().position(|(at, _, _)| *at == now) {
            let (_, from, packet) = leaving.remove(index);
            places[packet.to] -= 1;
            arrived[from * racks + packet.to].push((packet.number, packet.message, now));
        }
        // The packet switch decides, output by output, the lowest ToR and channel first.
        let mut due: Vec<(usize, usize, usize, Packet)> = Vec::new();
        for (rack, tor) in tors.iter_mut().enumerate() {
            for (number, channel) in tor.iter_mut().enumerate() {
                while let Some(index) = channel.flying.iter().position(|(at, _)| *at == now) {
                    let packet = channel.flying.remove(index).1;
                    due.push((packet.to * all + number, rack, number, packet));
                }
            }
        }
        due.sort_by_key(|(output, rack, number, _)| (*output, *rack, *number));
        for (_, rack, number, packet) in due {
            decided += 1;
            let fibre = number / setup.wavelengths;
            let wanted = setup.outputs(number, packet.to);
            let free: Vec<usize> = wanted.iter().copied().filter(|output| outputs[*output].0 <= now).collect();
            let from_same_fibre = |output: usize| {
                let ports = output / setup.wavelengths * setup.wavelengths;
                let used = |port: usize| outputs[port].0 > now && outputs[port].1 == (rack, fibre);
                setup.one_per_fibre && (ports..ports + setup.wavelengths).any(used)
            };
            let may = free.iter().copied().find(|output| !from_same_fibre(*output));
            let room = setup.buffer.is_none_or(|most| places[packet.to] < most);
            let own = wanted.iter().all(|output| outputs[*output].1.0 == rack);
            let cause = match may {
                _ if setup.drop.contains(&decided) => &mut run.faults,
                None if !free.is_empty() => &mut run.same_fibre,
                None if own => &mut run.own,
                None => &mut run.others,
                Some(_) if !room => &mut run.no_place,
                Some(_) => &mut run.acks,
            };
            *cause += 1;
            let passes = may.filter(|_| room && !setup.drop.contains(&decided));
            if let Some(output) = passes {
                let (used, through) = setup.at_output(packet.bytes);
                outputs[output] = (now + used, (rack, fibre));
                places[packet.to] += 1;
                leaving.push((now + through + setup.cable, rack, packet));
            }
            tors[rack][number].answers.push((now + setup.cable + ACK, passes.is_some(), packet));
        }
        // Free channels send: what was refused first, else something new if the window allows.
        for (rack, tor) in tors.iter_mut().enumerate() {
            for (number, channel) in tor.iter_mut().enumerate() {
                if !std::mem::take(&mut channel.awake) || channel.sending_until.is_some() {
                    continue;
                }
                let (mut packet, startup) = match (channel.again.first(), channel.waiting.front()) {
                    (Some(packet), _) => (*packet, 0),
                    (None, Some(packet)) if channel.unacknowledged < setup.window => (*packet, STARTUP),
                    _ => continue,
                };
                let stream = packet.bytes * BYTE_AT_TOR;
                let routing = startup + if setup.at_head { 0 } else { stream } + setup.cable + ROUTING;
                // The first end of a slot that is strictly later.
                let decided = ((now + routing) / SLOT + 1) * SLOT;
                let (used, _) = setup.at_output(packet.bytes);
                // Not before its ToR's own packets are out of the way: it looks again as early as it then can start.
                let meets = |own: &Passage| {
                    let any = setup.conversion || setup.one_per_fibre;
                    own.packet.to == packet.to && (any || own.channel % setup.wavelengths == number % setup.wavelengths)
                };
                let in_way: Vec<Passage> = passages[rack].iter().copied().filter(meets).collect();
                let outputs = setup.outputs(number, packet.to).len();
                let most = if setup.one_per_fibre { setup.fibres } else { outputs };
                let clear = clear_of(&in_way, decided, used, most);
                if clear > decided {
                    channel.looks.insert(clear - SLOT - routing);
                    continue;
                }
                if channel.again.is_empty() {
                    channel.waiting.pop_front();
                    channel.unacknowledged += 1;
                    packet.order = channel.sent;
                    channel.sent += 1;
                } else {
                    channel.again.remove(0);
                }
                run.attempts[rack * all + number] += 1;
                passages[rack].push(Passage { channel: number, packet, from: decided, until: decided + used });
                channel.sending_until = Some(now + startup + stream);
                channel.flying.push((decided, packet));
            }
            passages[rack].retain(|own| own.until > now);
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
    let Setup { wavelengths, assignment, conversion, one_per_fibre, .. } = setup;
    let fibres = setup.fibres * setup.racks;
    let text = format!(
        "kind = \"lightness\"\nserver_rate = \"unlimited\"\nphotonic_packet_max = \"1500B\"\nseed = {SEED}\n\
         wavelengths = {wavelengths}\nfibers = {fibres}\nwavelength_assignment = \"{assignment}\"\n\
         wavelength_conversion = {conversion}\nops_one_per_fibre = {one_per_fibre}\ntor_max_messages = 1000000\nops_arbiter = \"lowest\"\nwindow = {window}\ncable_delay = \"{cable}ps\"\n\
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
    let because = |cause: &str| of(&format!("NACKs: {cause}"));
    let attempts = figures.links.iter().filter(|link| link.name.contains("->OPS")).map(|link| link.packets).collect();
    let run = Run {
        done,
        acks: of("ACKs"),
        own: because("the ToR's own packet in the way"),
        others: because("another ToR's packet in the way"),
        same_fibre: because("a packet of the same fibre in the way"),
        no_place: because("no place in the ToR's output"),
        faults: because("faults"),
        reordered: of("reordered packets"),
        attempts,
    };
    assert_eq!(run.nacks(), of("NACKs"), "each NACK has one cause");
    assert_eq!(run.attempts.iter().sum::<u64>(), of("ACKs") + of("NACKs"), "each attempt is answered once");
    run
}

/// Messages of different pairs, at times that differ (a ToR serves the flows of one instant in turn, the model does not).
fn messages(racks: usize, bytes: u64, gap: u64, number: usize) -> impl Strategy<Value = Vec<Message>> {
    let one = (1..gap, 0..racks, 1..racks, 0..bytes);
    prop::collection::vec(one, 1..number).prop_map(move |list| {
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
        |(window, cable, at_head, again, buffer, drop)| Setup {
            window,
            cable,
            at_head,
            again,
            buffer,
            drop,
            ..Setup::plain(4)
        },
    )
}

/// The same with several fibres and wavelengths. Where channels of a ToR have to do with each other, messages are single packets:
/// those of a longer one would start in one instant.
fn cases_of_channels() -> impl Strategy<Value = (Setup, Vec<Message>)> {
    let assignment = prop_oneof![Just("hashed"), Just("least-loaded"), Just("first-fit")];
    let channels = (1..4usize, 1..5usize, assignment, any::<bool>(), any::<bool>());
    (setups(), channels).prop_flat_map(|(setup, (fibres, wavelengths, assignment, conversion, one_per_fibre))| {
        let setup = Setup { fibres, wavelengths, assignment, conversion, one_per_fibre, ..setup };
        let most = if setup.channels_apart() { 6_000 } else { MAX_PACKET + 1 };
        (Just(setup), messages(4, most, 1_500_000, 40))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, max_global_rejects: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn delivery_times_and_counts_are_the_plain_models(messages in messages(4, 6_000, 40_000_000, 12), setup in setups()) {
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

    #[test]
    fn fibres_and_wavelengths_are_used_as_in_the_plain_model((setup, messages) in cases_of_channels()) {
        let Ok(expected) = model(&messages, &setup) else {
            return Err(TestCaseError::reject("two things at one ToR at once"));
        };
        prop_assert_eq!(expected.own, 0, "no ToR is in its own way");
        prop_assert_eq!(simulation(&messages, &setup), expected);
    }
}

/// Poisson arrivals from each ToR to all others, packets of many sizes.
fn poisson(racks: usize, mean_gap: u64, number: u64) -> Vec<Message> {
    let unit = |what: u64, count: u64| (draw(7, what, count) >> 11) as f64 / (1u64 << 53) as f64;
    let mut messages = Vec::new();
    for from in 0..racks {
        let mut at = 0;
        for count in 0..number {
            let of = |what: u64| unit(what * 1_000 + from as u64, count);
            at += 1 + (libm::log(1.0 - of(1)) * -(mean_gap as f64)) as u64;
            let to = (from + 1 + (of(2) * (racks - 1) as f64) as usize) % racks;
            messages.push(Message { at, from, to, bytes: MIN_PACKET + (of(3) * 1_420.0) as u64 });
        }
    }
    messages.sort_by_key(|message| message.at);
    messages
}

#[test]
fn losses_at_any_load_are_the_plain_models() {
    let mut compared = 0;
    for racks in [2, 4, 8, 16, 32] {
        for wavelengths in [1, 2, 4] {
            let mut losses = Vec::new();
            for mean_gap in [100_000_000, 20_000_000, 5_000_000] {
                let setup = Setup { wavelengths, one_per_fibre: false, ..Setup::plain(racks) };
                let messages = poisson(racks, mean_gap, 1_200 / racks as u64);
                let Ok(expected) = model(&messages, &setup) else { continue };
                compared += 1;
                assert_eq!(expected.own, 0);
                assert_eq!(expected.others, expected.nacks(), "without faults and buffers only others are in the way");
                losses.push(expected.others);
                assert_eq!(
                    simulation(&messages, &setup),
                    expected,
                    "{racks} ToRs, {wavelengths} wavelengths, {mean_gap} ps"
                );
            }
            assert!(racks > 2 || losses.iter().all(|lost| *lost == 0), "two ToRs have nobody in their way: {losses:?}");
            assert!(racks == 2 || losses.is_sorted(), "more load, more collisions: {losses:?}");
        }
    }
    assert!(compared > 40, "{compared} of 45 cases have no two things at once");
}

#[test]
fn the_plain_model_knows_collisions_and_full_outputs() {
    // Two ToRs with messages of several packets to a third one: outputs are found in use.
    let to = |at, from| Message { at, from, to: 2, bytes: 15_000 };
    let messages = [to(0, 0), to(700_500, 1)];
    let setup = Setup::plain(3);
    let Ok(expected) = model(&messages, &setup) else { panic!("no tie") };
    assert!(expected.nacks() > 0, "{expected:?}");
    assert_eq!(simulation(&messages, &setup), expected);
    // A cable so long that a packet is still on it when the other ToR's next one is decided about: with one place at its
    // end that one is refused.
    let long = Setup { cable: 5_000_037, buffer: Some(1), ..Setup::plain(3) };
    let (messages, full) = (0..1_000)
        .find_map(|shift| {
            let messages = [to(0, 0), to(700_503 + shift * 7_001, 1)];
            let full = model(&messages, &long).ok()?;
            let free = model(&messages, &Setup { buffer: None, ..long.clone() }).ok()?;
            (full.nacks() > free.nacks()).then_some((messages, full))
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
