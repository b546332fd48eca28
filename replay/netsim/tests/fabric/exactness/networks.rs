//! Random small networks and what is sent on them.

use super::Case;
use super::topologies::{
    BEAT, Network, buffer, duration, grids, lattices, network, network_in_cycles, trees, without_faults,
};
use crate::flit_model::traffic::{Sending, When};
use netsim::fabric::credit::{
    AllocationOrder, Consumption, Credit, CreditConfig, InjectionChoice, InjectionConfig, InjectionDirection,
    InjectionEquals, InjectionLength, InjectionRecord, InputArbitration, LaneAllocation, SeparableConfig,
    SharedBuffersConfig, Start, VlArbitration, VlWeight,
};
use netsim::fabric::ethernet::{Ethernet, EthernetConfig};
use netsim::fabric::store_and_forward::{StoreAndForward, StoreAndForwardConfig};
use netsim::routing::{
    BubbleAt, BubbleConfig, BubbleMode, Dally, DallyConfig, Directions, Equals, Order, RoomUnit, Routes, RoutingConfig,
    RoutingError, Ties,
};
use netsim::topology::{HostPlace, TopologyConfig};
use netsim::units::{Buffer, Bytes, DurationPs, Rate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A message before hosts, mtu and flit are known.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    gap: u64,
    source: u32,
    destination: u32,
    bytes: Size,
    level: u8,
    flow: u64,
    after: Option<(usize, u64)>,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Bytes(u64),
    /// So many packets, less one byte, plus one, or neither.
    Packets(u64, u64),
    /// A packet of so many flits, likewise.
    Flits(u64, u64),
}

fn draft() -> impl Strategy<Value = Draft> {
    let beats = (1..20u64).prop_map(|beats| beats * BEAT);
    let long = 1_000_000_000..4_000_000_000u64;
    let gap = prop_oneof![20 => Just(0), 8 => beats, 4 => 0..2_000_000u64, 1 => long];
    let size = prop_oneof![
        1 => Just(Size::Bytes(0)),
        3 => (0..1_500u64).prop_map(Size::Bytes),
        3 => (1..4u64, 0..3u64).prop_map(|(packets, less)| Size::Packets(packets, less)),
        2 => (1..9u64, 0..3u64).prop_map(|(flits, less)| Size::Flits(flits, less)),
    ];
    // Few destinations and flows, so that there is contention.
    let pair = (any::<u32>(), prop_oneof![Just(0u32), any::<u32>()]);
    let level = prop_oneof![0..4u8, 0..16u8];
    let think = prop_oneof![2 => Just(0), 1 => (1..10u64).prop_map(|b| b * BEAT), 1 => 1..500_000u64];
    let after = proptest::option::weighted(0.15, (any::<usize>(), think));
    (gap, pair, size, level, 0..4u64, after).prop_map(|(gap, (source, destination), bytes, level, flow, after)| Draft {
        gap,
        source,
        destination,
        bytes,
        level,
        flow,
        after,
    })
}

/// What is sent: some drafts, and whether all come from two hosts at once.
pub(super) fn drafts(most: usize) -> impl Strategy<Value = (Vec<Draft>, bool)> {
    (vec(draft(), 1..most), proptest::bool::weighted(0.25))
}

pub(super) fn sendings(
    (drafts, crowd): &(Vec<Draft>, bool),
    hosts: usize,
    mtu: u64,
    headers: u64,
    flit: u64,
) -> Vec<Sending> {
    let hosts = u32::try_from(hosts).unwrap();
    let mut now = 0;
    let mut sendings = Vec::new();
    for (number, draft) in drafts.iter().enumerate() {
        now += if *crowd { 0 } else { draft.gap };
        let when = match draft.after {
            Some((message, think)) if number > 0 => When::After(message % number, think),
            _ => When::At(now),
        };
        let source = draft.source % if *crowd { 2 } else { hosts };
        let other = draft.destination % (hosts - 1);
        // Small packets make long messages many packets: no more than ten.
        let bytes = match draft.bytes {
            Size::Bytes(bytes) => bytes,
            Size::Packets(packets, less) => (packets * mtu + 1).saturating_sub(less),
            Size::Flits(flits, less) => (flits * flit + 1).saturating_sub(headers + less),
        };
        sendings.push(Sending {
            when,
            source,
            destination: if other < source { other } else { other + 1 },
            bytes: bytes.min(10 * mtu),
            level: draft.level,
            flow: draft.flow,
        });
    }
    sendings
}

/// Payload of a packet, its headers, a flit.
fn sizes(flits: impl Strategy<Value = u64>) -> impl Strategy<Value = (u64, u64, u64)> {
    let flit = prop_oneof![3 => Just(64u64), 2 => flits];
    let headers = prop_oneof![2 => Just(0), 1 => Just(26), 1 => 0..70u64];
    let whole = (1..9u64, Just(true));
    let any_size = (1..700u64, Just(false));
    // Parts of the 4,096 bytes in which the limit of a high table is counted.
    let part = select(vec![512u64, 1_024, 2_048, 4_096]).prop_map(|part| (part, false));
    (flit, headers, prop_oneof![3 => whole, 3 => any_size, 2 => part]).prop_map(|(flit, headers, (size, whole))| {
        // A packet of a whole number of flits often, and never of too many.
        let bytes = if whole { size * flit } else { size.min(64 * flit) };
        (bytes.saturating_sub(headers).max(1), headers, flit)
    })
}

/// Tables for `vls` virtual lanes, each of which is in the low one.
fn arbitration(vls: u8) -> impl Strategy<Value = VlArbitration> {
    let weight = prop_oneof![4 => 1..6u8, 1 => 1..=255u8];
    let table = |most: usize| vec((0..vls, weight.clone()), 0..=most);
    let limit = prop_oneof![Just(255u8), Just(0), 1..3u8];
    (table(4), table(3), proptest::bool::weighted(0.3), limit).prop_map(move |(high, extra, plain, limit)| {
        let entries = |table: Vec<(u8, u8)>| table.into_iter().map(|(vl, weight)| VlWeight(vl, weight)).collect();
        let low: Vec<VlWeight> = if plain { Vec::new() } else { entries(extra) };
        let missing = (0..vls).filter(|vl| !plain && low.iter().all(|entry| entry.0 != *vl));
        let low = low.iter().copied().chain(missing.map(|vl| VlWeight(vl, 1 + vl % 3))).collect();
        VlArbitration { high: entries(high), low, limit }
    })
}

fn lanes() -> impl Strategy<Value = (u8, Vec<u8>, VlArbitration)> {
    prop_oneof![3 => Just(1u8), 4 => 2..5u8, 1 => 5..=15u8].prop_flat_map(|vls| {
        let by_level = prop_oneof![Just(Vec::new()), vec(0..vls, 0..=16)];
        (Just(vls), by_level, arbitration(vls))
    })
}

/// A network with credits, and what is sent on it.
pub fn credit_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    credit_networks_on(network(&Just(Buffer::Unlimited).boxed()))
}

fn credit_networks_on(networks: impl Strategy<Value = Network>) -> impl Strategy<Value = Case<CreditConfig>> {
    let sizes = sizes(prop_oneof![select(vec![16, 32, 100, 128, 256]), 8..=256u64]);
    let more_credits = prop_oneof![3 => 0..4u32, 1 => 0..40u32, 1 => Just(1_000)];
    let pauses = (duration(), duration(), duration(), duration());
    let pauses = (pauses, vec(any::<bool>(), 4));
    let start = prop_oneof![3 => Just(Start::CutThrough), 1 => Just(Start::WholePacket)];
    let fabric = (networks, any::<u64>(), lanes());
    (fabric, sizes, more_credits, pauses, start, drafts(25)).prop_map(
        |((network, seed, lanes), (mtu, headers, flit), more, (pauses, there), start, drafts)| {
            let Network { topology, hosts, routing } = network;
            let (vls, sl_to_vl, arbitration) = lanes;
            // Where many wait behind each other, messages are such that packets fit into the limit of the high table.
            let fit = drafts.1 && (1..3).contains(&arbitration.limit);
            let (mtu, headers, flit) = if fit { (1_024, 0, flit.next_power_of_two()) } else { (mtu, headers, flit) };
            let largest = ((mtu + headers).div_ceil(flit) * flit).div_ceil(64);
            let or_none = |place: usize, pause: DurationPs| if there[place] { pause } else { DurationPs(0) };
            let mut config = CreditConfig {
                topology,
                seed,
                mtu: Bytes(mtu),
                headers: Bytes(headers),
                flit: Bytes(flit),
                vls,
                credits: u32::try_from(largest).unwrap() + more,
                credit_min_time: or_none(0, pauses.0),
                flit_gap: or_none(1, DurationPs(pauses.1.ps() / 4)),
                packet_gap: or_none(2, pauses.2),
                switch_delay: or_none(3, pauses.3),
                start,
                sl_to_vl,
                arbitration,
                ..CreditConfig::default()
            };
            if routing == RoutingConfig::Bubble {
                config.credits += u32::try_from(largest).unwrap();
            }
            if routing == RoutingConfig::Dor && matches!(config.topology, TopologyConfig::Torus(_)) {
                // Two classes of virtual lanes: an even number of them, of which service levels see half.
                config.vls = 2 * vls.div_ceil(2).min(7);
                for vl in &mut config.sl_to_vl {
                    *vl %= config.vls / 2;
                }
                config.arbitration = VlArbitration { low: Vec::new(), ..config.arbitration };
                config.arbitration.high.retain(|entry| entry.0 < config.vls);
            }
            config.routing = accepted(routing, |routing| {
                Credit::new(&CreditConfig { routing, ..config.clone() }, &hosts, ()).is_ok()
            });
            let mut traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
            for sending in traffic.iter_mut().filter(|_| fit) {
                sending.bytes = (sending.bytes + 1).next_multiple_of(mtu);
            }
            Case { config, hosts, traffic }
        },
    )
}

/// A network that runs in cycles, as all times are whole ones, and what is sent on it; and a cycle in picoseconds.
pub fn clocked_networks() -> impl Strategy<Value = (Case<CreditConfig>, u64)> {
    let flits = select(vec![(64, 10_000_000_000), (32, 8_000_000_000), (100, 5_000_000_000), (256, 64_000_000_000)]);
    let fabric = flits.prop_flat_map(|(flit, bps)| {
        let cycle_ps = flit * 8_000_000_000_000 / bps;
        let lanes = (1..6u8, vec(0..6u8, 0..=16));
        (Just((flit, cycle_ps)), network_in_cycles(Rate::from_bps(bps), cycle_ps), any::<u64>(), lanes)
    });
    let flits = prop_oneof![2 => Just(1u64), 2 => 2..9u64];
    let sizes = (flits, prop_oneof![2 => Just(0), 1 => 0..40u64], prop_oneof![2 => Just(0), 1 => 0..20u64]);
    let credits = prop_oneof![3 => 0..4u32, 1 => 0..40u32];
    let delay = prop_oneof![Just(0), 0..5u64];
    (fabric, sizes, credits, delay, drafts(60)).prop_map(|(fabric, (flits, headers, less), more, delay, drafts)| {
        let ((flit, cycle_ps), Network { topology, hosts, routing }, seed, (vls, mut sl_to_vl)) = fabric;
        let is_torus = routing == RoutingConfig::Dor && matches!(topology, TopologyConfig::Torus(_));
        // Two classes of virtual lanes, of which service levels see one.
        let (groups, vls) = if is_torus { (vls.div_ceil(2), 2 * vls.div_ceil(2)) } else { (vls, vls) };
        sl_to_vl.iter_mut().for_each(|vl| *vl %= groups);
        let headers = headers.min(flit - 1);
        let mtu = (flits * flit - headers).saturating_sub(less).max(1);
        let largest = ((mtu + headers).div_ceil(flit) * flit).div_ceil(64);
        let packets = if routing == RoutingConfig::Bubble { 2 } else { 1 };
        let mut config = CreditConfig {
            topology,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            vls,
            credits: u32::try_from(packets * largest).unwrap() + more,
            switch_delay: DurationPs(delay * cycle_ps),
            sl_to_vl,
            ..CreditConfig::default()
        };
        config.routing =
            accepted(routing, |routing| Credit::new(&CreditConfig { routing, ..config.clone() }, &hosts, ()).is_ok());
        let mut traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        for sending in &mut traffic {
            sending.when = match sending.when {
                When::At(time) => When::At(time / cycle_ps * cycle_ps),
                When::After(message, think) => When::After(message, think / cycle_ps * cycle_ps),
            };
        }
        (Case { config, hosts, traffic }, cycle_ps)
    })
}

/// The same whose packets commit themselves to lanes with room alone; its hosts may take all at once.
pub fn seeking_networks() -> impl Strategy<Value = (Case<CreditConfig>, u64)> {
    let routing = (lattice_routing(), 0..4u32, 1..5u8, 1..3u8);
    (clocked_networks(), routing, any::<bool>()).prop_map(|((mut case, cycle_ps), routing, multiple)| {
        let (of_lattice, kind, vcs, groups) = routing;
        let is_lattice = matches!(case.config.topology, TopologyConfig::Torus(_) | TopologyConfig::Mesh(_));
        let routing = match of_lattice {
            _ if kind == 0 => RoutingConfig::MinimalAdaptive,
            _ if !is_lattice => RoutingConfig::AdaptiveVls(Some(vcs)),
            RoutingConfig::Dally(dally) => {
                let mode = if dally.mode == Dally::Adaptive { Dally::Adaptive } else { Dally::Improved };
                RoutingConfig::Dally(DallyConfig { mode, ..dally })
            }
            RoutingConfig::BubbleVls(bubble) => {
                let mode = if bubble.mode == BubbleMode::Oblivious { BubbleMode::Smart } else { bubble.mode };
                RoutingConfig::BubbleVls(BubbleConfig { mode, bubble_at: BubbleAt::Next, ..bubble })
            }
            _ => RoutingConfig::MinimalAdaptive,
        };
        with_classes(&mut case.config, &case.hosts, routing, groups);
        if multiple {
            case.config.consumption = Consumption::Multiple;
        }
        (case, cycle_ps)
    })
}

/// A network whose packets commit themselves to lanes with room only, and what is sent on it.
pub fn minimal_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    credit_networks().prop_map(|mut case| {
        let config = &mut case.config;
        config.routing = RoutingConfig::MinimalAdaptive;
        // Rings need three classes, two of them for the escape; other networks fewer, which leaves them more levels.
        config.vls = 3 * (1 + config.vls % 2);
        config.sl_to_vl.iter_mut().for_each(|vl| *vl %= config.vls / 3);
        config.arbitration.low.clear();
        config.arbitration.high.retain(|entry| entry.0 < config.vls);
        case
    })
}

/// The routings of lattices, with `more` classes of virtual lanes than they need.
fn lattice_routing() -> impl Strategy<Value = RoutingConfig> {
    let vcs = |least: u8| (least..least + 3).prop_map(Some);
    let order = select(Order::ALL.to_vec());
    let ties = || select(Ties::ALL.to_vec());
    let dally = (select(Dally::ALL.to_vec()), order, ties(), vcs(3)).prop_map(|(mode, order, ties, vcs)| {
        let vcs = vcs.filter(|_| mode == Dally::Adaptive);
        RoutingConfig::Dally(DallyConfig { mode, order, ties, vcs })
    });
    let modes = (select(BubbleMode::ALL.to_vec()), select(BubbleAt::ALL.to_vec()));
    let equals = select(Equals::ALL.to_vec());
    let picks = (equals, select(Directions::ALL.to_vec()));
    let bubble = (modes, picks, ties(), vcs(2)).prop_map(|((mode, bubble_at), (equals, directions), ties, vcs)| {
        let room = RoomUnit::Credits;
        RoutingConfig::BubbleVls(BubbleConfig { mode, bubble_at, equals, room, directions, ties, vcs })
    });
    let others = select(vec![
        RoutingConfig::Dor,
        RoutingConfig::Bubble,
        RoutingConfig::MinimalAdaptive,
        RoutingConfig::DorTies(Ties::Draw),
    ]);
    prop_oneof![4 => dally, 5 => bubble, 1 => others]
}

/// `config` with `routing`, whose classes make `groups` service levels' lanes; on a network with all its cables if it does not get round
/// those that are missing.
fn with_classes(config: &mut CreditConfig, hosts: &[HostPlace], routing: RoutingConfig, groups: u8) {
    let classes = |config: &CreditConfig| {
        let topology = config.topology.build(hosts).unwrap();
        let routes = Routes::new(&routing, &topology, 1)?;
        routes.deadlock_freedom(&topology)?;
        Ok::<_, RoutingError>((routes.classes(), routes.packets_of_room()))
    };
    if classes(config).is_err() {
        config.topology = without_faults(config.topology.clone());
    }
    let Ok((classes, packets)) = classes(config) else {
        // One way, where only ways axis by axis are without deadlock.
        return with_classes(config, hosts, RoutingConfig::Dor, groups);
    };
    config.routing = routing;
    let groups = groups.min(15 / classes);
    config.vls = classes * groups;
    config.sl_to_vl.iter_mut().for_each(|vl| *vl %= groups);
    config.arbitration.low.clear();
    config.arbitration.high.retain(|entry| entry.0 < config.vls);
    let largest = (config.mtu.get() + config.headers.get()).div_ceil(config.flit.get()) * config.flit.get();
    config.credits += u32::try_from(largest.div_ceil(64)).unwrap() * (packets - 1);
}

/// A lattice with any of its routings, and what is sent on it.
pub fn lattice_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    let networks =
        prop_oneof![3 => lattices(&Just(Buffer::Unlimited).boxed()), 1 => grids(&Just(Buffer::Unlimited).boxed())];
    (credit_networks_on(networks), lattice_routing(), 1..3u8).prop_map(|(mut case, routing, groups)| {
        with_classes(&mut case.config, &case.hosts, routing, groups);
        case
    })
}

/// A tree whose packets choose among links and virtual lanes, and what is sent on it.
pub fn spread_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    let networks = trees(&Just(Buffer::Unlimited).boxed());
    (credit_networks_on(networks), 1..5u8, 1..4u8).prop_map(|(mut case, vcs, groups)| {
        with_classes(&mut case.config, &case.hosts, RoutingConfig::AdaptiveVls(Some(vcs)), groups);
        case
    })
}

/// Networks with any input arbitration, and what is sent on them.
pub fn arbitrated_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    use InputArbitration::{Age, Fifo, Longest, Random, RoundRobin};
    let adaptive = prop_oneof![3 => credit_networks(), 1 => minimal_networks()];
    let rules = select(vec![RoundRobin, Random, Fifo, Fifo, Longest, Longest, Age]);
    (adaptive, rules).prop_map(|(mut case, rule)| {
        case.config.input_arbitration = rule;
        case
    })
}

/// Networks whose switches allocate, with any arbitration, and what is sent on them.
pub fn allocated_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    use InputArbitration::{Age, Fifo, Longest, Random, RoundRobin};
    // Boxed: together they are too large for the stack of a test.
    let networks = prop_oneof![
        3 => credit_networks().boxed(),
        1 => minimal_networks().boxed(),
        1 => shared_networks().boxed(),
        1 => lattice_networks().boxed()
    ];
    let rules = || select(vec![RoundRobin, RoundRobin, RoundRobin, Random, Fifo, Longest, Age]);
    let order = select(vec![AllocationOrder::InputFirst, AllocationOrder::OutputFirst]);
    let cycle = prop_oneof![3 => Just(0), 3 => (1..4u64).prop_map(|beats| beats * BEAT), 2 => 1..400_000u64];
    let allocation = (order, 1..4u8, rules(), cycle.prop_map(DurationPs));
    (networks, rules(), allocation).prop_map(|(mut case, rule, (order, iterations, queue_arbitration, cycle))| {
        case.config.input_arbitration = rule;
        case.config.allocation = Some(SeparableConfig { order, iterations, queue_arbitration, cycle });
        case
    })
}

/// Networks whose VLs share buffers, and what is sent on them.
pub fn shared_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    let more = || prop_oneof![2 => Just(0u32), 3 => 0..12u32, 1 => 0..200u32];
    let networks = prop_oneof![3 => credit_networks(), 2 => minimal_networks()];
    (networks, more(), more(), more()).prop_map(|(mut case, exclusive, pool, max)| {
        let config = &mut case.config;
        // What the network has for each VL is what its routing needs, and more.
        let exclusive = config.credits.min(200) + exclusive;
        let largest = (config.mtu.get() + config.headers.get()).div_ceil(config.flit.get()) * config.flit.get();
        let least =
            u32::try_from(largest.div_ceil(64)).unwrap() * if config.routing == RoutingConfig::Bubble { 2 } else { 1 };
        let exclusive = exclusive.min(least + pool);
        let size = exclusive * u32::from(config.vls) + pool;
        config.shared_buffers = Some(SharedBuffersConfig { size, exclusive, max: exclusive + max });
        config.credits = CreditConfig::default().credits;
        case
    })
}

/// Networks whose switches hand hosts a packet of each queue at a time, whose lanes have one packet at a time, or both, and what is
/// sent on them.
pub fn exclusive_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    use InputArbitration::{Age, Fifo, Longest, Random, RoundRobin};
    let networks = prop_oneof![
        2 => credit_networks().boxed(),
        2 => minimal_networks().boxed(),
        5 => lattice_networks().boxed(),
        2 => spread_networks().boxed(),
        2 => shared_networks().boxed(),
    ];
    let rules = select(vec![RoundRobin, RoundRobin, RoundRobin, Random, Fifo, Longest, Age]);
    (networks, any::<bool>(), proptest::bool::weighted(0.8), rules).prop_map(|(mut case, multiple, exclusive, rule)| {
        case.config.input_arbitration = rule;
        if multiple {
            case.config.consumption = Consumption::Multiple;
        }
        if exclusive {
            let config = CreditConfig { lane_allocation: LaneAllocation::Exclusive, ..case.config.clone() };
            if Credit::new(&config, &case.hosts, ()).is_ok() {
                case.config = config;
            }
        }
        case
    })
}

/// Networks whose hosts have several queues, and what is sent on them.
pub fn injected_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    use InjectionChoice::{Dor, DorShortest, LongestPath, Shortest, ShortestProfitable};
    let networks = prop_oneof![
        1 => credit_networks().boxed(),
        5 => lattice_networks().boxed(),
        1 => minimal_networks().boxed(),
        2 => exclusive_networks().boxed(),
    ];
    let choice = select(vec![Shortest, Dor, DorShortest, ShortestProfitable, LongestPath]);
    let as_program = (any::<bool>(), any::<bool>(), any::<bool>());
    (networks, choice, 1..6u8, 0..3u64, as_program).prop_map(|(mut case, choice, queues, full, as_program)| {
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let routing = case.config.routing.with_vls(case.config.vls);
        let routes = Routes::new(&routing, &topology, 1).unwrap();
        let (last, first, anew) = as_program;
        let by_axes = |choice| matches!(choice, Dor | DorShortest);
        let injection = |choice, queues| InjectionConfig {
            queues,
            choice,
            full: (choice == DorShortest).then_some(full),
            direction: if last && by_axes(choice) { InjectionDirection::Last } else { InjectionDirection::First },
            equals: if first && choice == ShortestProfitable { InjectionEquals::First } else { InjectionEquals::Draw },
            record: if anew && choice != Shortest { InjectionRecord::Anew } else { InjectionRecord::Packet },
            length: InjectionLength::Host,
        };
        let config = &mut case.config;
        config.injection = Some(match routes.directions() {
            Some(directions) if choice != Shortest => injection(choice, u8::try_from(directions).unwrap()),
            _ => injection(Shortest, queues),
        });
        config.vls = routes.classes();
        config.routing = routing;
        config.sl_to_vl.clear();
        config.arbitration = VlArbitration::default();
        if Credit::new(config, &case.hosts, ()).is_err() {
            config.injection = None;
        }
        case
    })
}

/// Networks in which lanes or queues of hosts are compared by flits, and what is sent on them.
pub fn flit_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    let networks =
        prop_oneof![3 => lattices(&Just(Buffer::Unlimited).boxed()), 1 => grids(&Just(Buffer::Unlimited).boxed())];
    let modes = (select(BubbleAt::ALL.to_vec()), select(Equals::ALL.to_vec()));
    let ways = (select(Directions::ALL.to_vec()), select(Ties::ALL.to_vec()), (2..5u8).prop_map(Some));
    let shortest = (modes, ways).prop_map(|((bubble_at, equals), (directions, ties, vcs))| {
        let (mode, room) = (BubbleMode::Shortest, RoomUnit::Flits);
        RoutingConfig::BubbleVls(BubbleConfig { mode, bubble_at, equals, room, directions, ties, vcs })
    });
    let compared = (credit_networks_on(networks), shortest, 1..3u8).prop_map(|(mut case, routing, groups)| {
        case.config.credit_min_time = DurationPs(0);
        with_classes(&mut case.config, &case.hosts, routing, groups);
        case
    });
    let networks = prop_oneof![2 => compared, 2 => injected_networks()];
    (networks, proptest::bool::weighted(0.8), any::<bool>()).prop_map(|(mut case, exclusive, multiple)| {
        case.config.credit_min_time = DurationPs(0);
        if let Some(injection) = &mut case.config.injection
            && !matches!(injection.choice, InjectionChoice::Dor | InjectionChoice::LongestPath)
        {
            injection.length = InjectionLength::Switch;
        }
        if multiple {
            case.config.consumption = Consumption::Multiple;
        }
        if exclusive {
            let config = CreditConfig { lane_allocation: LaneAllocation::Exclusive, ..case.config.clone() };
            if Credit::new(&config, &case.hosts, ()).is_ok() {
                case.config = config;
            }
        }
        case
    })
}

/// Networks in which packets of hosts come behind those that are under way, and what is sent on them.
pub fn transit_networks() -> impl Strategy<Value = Case<CreditConfig>> {
    let networks = prop_oneof![
        2 => credit_networks().boxed(),
        2 => arbitrated_networks().boxed(),
        2 => minimal_networks().boxed(),
        4 => lattice_networks().boxed(),
        1 => exclusive_networks().boxed(),
    ];
    let priority = prop_oneof![1 => Just(0.0), 2 => Just(1.0), 3 => 0.0..1.0f64];
    (networks, priority, 0..3u32).prop_map(|(mut case, transit_priority, injection_reserve)| {
        case.config.transit_priority = transit_priority;
        let largest = (case.config.mtu.get() + case.config.headers.get()).div_ceil(case.config.flit.get());
        let more = u32::try_from((largest * case.config.flit.get()).div_ceil(64)).unwrap() * injection_reserve;
        let config = CreditConfig { injection_reserve, credits: case.config.credits + more, ..case.config.clone() };
        if Credit::new(&config, &case.hosts, ()).is_ok() {
            case.config = config;
        }
        case
    })
}

/// `routing`, or one that is accepted where this one is refused: by a circle of links that might wait for each other, or
/// because it wants credits.
fn accepted(routing: RoutingConfig, accepts: impl Fn(RoutingConfig) -> bool) -> RoutingConfig {
    if accepts(routing.clone()) { routing } else { RoutingConfig::UpDown }
}

/// A network with TCP at its hosts, and what is sent on it.
pub fn ethernet_networks() -> impl Strategy<Value = Case<EthernetConfig>> {
    let fabric = (network(&buffer()), any::<u64>(), (duration(), duration()));
    let hosts = (buffer(), 1..12u32, 0..18u32, prop_oneof![Just(1_500u64), 100..1_600u64], 1..60u64);
    (fabric, hosts, drafts(40)).prop_map(|((network, seed, delays), tcp, drafts)| {
        let Network { topology, hosts, routing } = network;
        let (host_queue, initial_window, quick_acks, mtu, segments) = tcp;
        let mut config = EthernetConfig {
            topology,
            seed,
            mtu: Bytes(mtu),
            switch_delay: delays.0,
            host_delay: delays.1,
            host_queue,
            initial_window,
            quick_acks,
            ..EthernetConfig::default()
        };
        config.routing =
            accepted(routing, |routing| Ethernet::new(&EthernetConfig { routing, ..config.clone() }, &hosts).is_ok());
        let mut traffic = sendings(&drafts, hosts.len(), mtu, 52, 64);
        // Some messages are long enough for windows to open, and to lose something.
        for sending in traffic.iter_mut().filter(|sending| sending.flow == 0) {
            sending.bytes *= segments;
        }
        Case { config, hosts, traffic }
    })
}

/// A network that stores and forwards, and what is sent on it.
pub fn stored_networks() -> impl Strategy<Value = Case<StoreAndForwardConfig>> {
    let sizes = sizes(1..300u64);
    let fabric = (network(&buffer()), any::<u64>(), duration());
    (fabric, sizes, drafts(40)).prop_map(|((network, seed, switch_delay), (mtu, headers, flit), drafts)| {
        let Network { topology, hosts, routing } = network;
        let mut config = StoreAndForwardConfig {
            topology,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            switch_delay,
            ..StoreAndForwardConfig::default()
        };
        config.routing = accepted(routing, |routing| {
            StoreAndForward::new(&StoreAndForwardConfig { routing, ..config.clone() }, &hosts, ()).is_ok()
        });
        let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        Case { config, hosts, traffic }
    })
}
