//! The slow models of the fabrics against what follows from `docs/fabric.md` with pencil and paper.

use crate::common::lab;
use crate::flit_model::traffic::{Seen, Sending, When};
use crate::flit_model::{credit, cut, store_and_forward, t};
use netsim::fabric::credit::{CreditConfig, Start, VlArbitration, VlWeight};
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::routing::RoutingConfig;
use netsim::topology::{GridConfig, LeafSpineConfig, LinkConfig, RacksConfig, TopologyConfig};
use netsim::units::{Buffer, Bytes, DurationPs, Rate};

/// A flit of 64 bytes at 10 Gbit/s.
const FLIT: u64 = 51_200;
/// The default delay of a switch.
const SWITCH: u64 = 200_000;

fn racks(host: LinkConfig, uplink: LinkConfig) -> TopologyConfig {
    TopologyConfig::Racks(RacksConfig { host_link: host, uplink, ..RacksConfig::default() })
}

fn with_delay(rate: u64, delay: u64) -> LinkConfig {
    LinkConfig { rate: Rate::from_bps(rate), delay: Some(DurationPs(delay)), ..LinkConfig::default() }
}

fn message(at: u64, source: u32, destination: u32, bytes: u64) -> Sending {
    Sending { when: When::At(at), source, destination, bytes, level: 0, flow: 0 }
}

/// What `credit` does among `hosts` hosts in each of `racks` racks.
fn play_credit(config: &CreditConfig, racks: usize, hosts: usize, traffic: &[Sending]) -> Seen {
    let topology = config.topology.build(&lab(racks, hosts)).unwrap();
    credit::play(config, &topology, traffic, None)
}

fn play_stored(config: &StoreAndForwardConfig, hosts: usize, traffic: &[Sending]) -> Seen {
    let topology = config.topology.build(&lab(1, hosts)).unwrap();
    store_and_forward::play(config, &topology, traffic, None)
}

fn arrivals(seen: &Seen) -> Vec<u64> {
    seen.packets.iter().map(|packet| packet.arrived.0).collect()
}

fn departures(seen: &Seen) -> Vec<u64> {
    seen.packets.iter().map(|packet| packet.left.0).collect()
}

/// The numbers of the packets of host 0, in the order in which they left it.
fn order_left(seen: &Seen) -> Vec<u64> {
    let mut left: Vec<_> = seen.packets.iter().map(|packet| (packet.left, packet.number)).collect();
    left.sort_unstable();
    left.into_iter().map(|(_, number)| number).collect()
}

#[test]
fn messages_are_cut_at_the_mtu() {
    assert_eq!(cut(0, 100, 26), [26]);
    assert_eq!(cut(0, 100, 0), [1]);
    assert_eq!(cut(100, 100, 26), [126]);
    assert_eq!(cut(201, 100, 0), [100, 100, 1]);
}

#[test]
fn flits_without_a_pause_lose_no_fraction_of_a_picosecond() {
    // 512 bits at 3 Gbit/s are 170,666 2/3 ps.
    let b = crate::flit_model::bits(64);
    assert_eq!([1, 2, 3].map(|i| t(i, b, 0, 3_000_000_000, 0)), [170_666, 341_333, 512_000]);
    assert_eq!([1, 2].map(|i| t(i, b, 2_000_000_000, 3_000_000_000, 10)), [170_667, 341_344]);
}

#[test]
fn alone_a_packet_takes_what_the_page_says() {
    // 2,048 + 26 bytes are 33 flits; 2 links and a switch, then 3 links and 2 switches.
    for (racks_used, to, switches) in [(1, 1, 1), (2, 2, 2)] {
        let links = switches + 1;
        let mut config = CreditConfig {
            topology: racks(with_delay(10_000_000_000, 5_000), with_delay(10_000_000_000, 7_000)),
            ..CreditConfig::default()
        };
        let seen = play_credit(&config, racks_used, 2, &[message(11, 0, to, 2_048)]);
        let delays = 2 * 5_000 + (links - 2) * 7_000;
        assert_eq!(arrivals(&seen), [11 + switches * (FLIT + SWITCH) + 33 * FLIT + delays]);
        assert_eq!(u64::from(seen.packets[0].switches), switches);
        config.start = Start::WholePacket;
        let seen = play_credit(&config, racks_used, 2, &[message(11, 0, to, 2_048)]);
        assert_eq!(arrivals(&seen), [11 + switches * (33 * FLIT + SWITCH) + 33 * FLIT + delays]);
        assert_eq!(seen.deliveries.len(), 1);
    }
}

#[test]
fn a_packet_waits_as_a_whole_in_front_of_a_faster_link() {
    let config = CreditConfig {
        topology: racks(with_delay(10_000_000_000, 0), with_delay(40_000_000_000, 0)),
        ..CreditConfig::default()
    };
    let seen = play_credit(&config, 2, 1, &[message(0, 0, 1, 2_048)]);
    // Whole at the first switch; its flits follow each other at the rate of the last link behind the second.
    assert_eq!(arrivals(&seen), [33 * FLIT + SWITCH + FLIT / 4 + SWITCH + 33 * FLIT]);
}

#[test]
fn gaps_and_remainders() {
    let mut config = CreditConfig {
        topology: racks(with_delay(3_000_000_000, 0), LinkConfig::default()),
        headers: Bytes(0),
        flit_gap: DurationPs(10),
        ..CreditConfig::default()
    };
    // Two packets of 2 flits: 341,333 ps and 1/3; two of 3 flits would be whole.
    let two = [message(0, 0, 1, 128), message(0, 0, 1, 128)];
    assert_eq!(departures(&play_credit(&config, 1, 2, &two)), [0, 341_343]);
    config.packet_gap = DurationPs(7);
    let three = [message(0, 0, 1, 128), message(0, 0, 1, 128), message(0, 0, 1, 128)];
    // The second takes floor(341,333 1/3 + 1/3), the third starts with 2/3.
    assert_eq!(departures(&play_credit(&config, 1, 2, &three)), [0, 341_350, 682_700]);
    // A fourth behind them: 341,333 1/3 + 2/3 = 341,334.
    let four = [three[0], three[1], three[2], message(0, 0, 1, 128)];
    assert_eq!(departures(&play_credit(&config, 1, 2, &four)), [0, 341_350, 682_700, 1_024_051]);
    // After a pause the fraction is gone.
    let pause = [three[0], message(341_351, 0, 1, 128), message(341_351, 0, 1, 128)];
    assert_eq!(departures(&play_credit(&config, 1, 2, &pause)), [0, 341_351, 682_701]);
}

#[test]
fn one_credit_makes_a_round_trip_for_every_packet() {
    let delay = 3_000;
    let mut config = CreditConfig {
        topology: racks(with_delay(10_000_000_000, delay), LinkConfig::default()),
        headers: Bytes(0),
        credits: 1,
        ..CreditConfig::default()
    };
    let traffic = [message(0, 0, 1, 64), message(0, 0, 1, 64), message(0, 0, 1, 64)];
    // There, through the switch, off its buffer, and the update back.
    let round = FLIT + delay + SWITCH + FLIT + delay;
    assert_eq!(departures(&play_credit(&config, 1, 2, &traffic)), [0, round, 2 * round]);
    // The second update may leave 1 us behind the first only.
    config.credit_min_time = DurationPs::from_us(1);
    let seen = play_credit(&config, 1, 2, &traffic);
    assert_eq!(departures(&seen), [0, round, round + 1_000_000]);
    // Two packets of 2 flits in a buffer of 3 credits: the second needs both credits of the first but one.
    config.credit_min_time = DurationPs(0);
    config.credits = 3;
    let traffic = [message(0, 0, 1, 128), message(0, 0, 1, 128)];
    assert_eq!(departures(&play_credit(&config, 1, 2, &traffic)), [0, round]);
}

#[test]
fn inputs_take_turns_behind_the_one_last_taken() {
    let config = CreditConfig { headers: Bytes(0), switch_delay: DurationPs(0), ..CreditConfig::default() };
    let config = CreditConfig { topology: racks(with_delay(10_000_000_000, 0), LinkConfig::default()), ..config };
    let mut traffic = Vec::new();
    for source in [2, 1, 0] {
        traffic.extend([message(0, source, 3, 64), message(0, source, 3, 64)]);
    }
    let seen = play_credit(&config, 1, 4, &traffic);
    let by_arrival = |seen: &Seen| {
        let mut packets = seen.packets.clone();
        packets.sort_by_key(|packet| packet.arrived);
        packets.iter().map(|packet| packet.source.0).collect::<Vec<_>>()
    };
    assert_eq!(by_arrival(&seen), [0, 1, 2, 0, 1, 2]);
    // Host 0 alone first; then its next packet comes last of three.
    let traffic = [message(0, 0, 3, 64), message(1, 0, 3, 64), message(1_200, 1, 3, 64), message(1_200, 2, 3, 64)];
    let seen = play_credit(&config, 1, 4, &[traffic[0], traffic[1], traffic[2], traffic[3]]);
    assert_eq!(by_arrival(&seen), [0, 1, 2, 0]);
}

#[test]
fn virtual_lanes_take_turns_by_their_weights() {
    let mut config = CreditConfig { headers: Bytes(0), vls: 2, ..CreditConfig::default() };
    let level = |level: u8| Sending { level, ..message(0, 0, 1, 64) };
    // Packets 0 to 3 on VL 0, 4 to 7 on VL 1.
    let traffic = [0, 0, 0, 0, 1, 1, 1, 1].map(level);
    let mut order = |high: &[VlWeight], low: &[VlWeight], limit: u8| {
        config.arbitration = VlArbitration { high: high.to_vec(), low: low.to_vec(), limit };
        order_left(&play_credit(&config, 1, 2, &traffic))
    };
    assert_eq!(order(&[], &[], 255), [0, 4, 1, 5, 2, 6, 3, 7]);
    assert_eq!(order(&[], &[VlWeight(0, 2), VlWeight(1, 1)], 255), [0, 1, 4, 2, 3, 5, 6, 7]);
    assert_eq!(order(&[VlWeight(1, 1)], &[], 255), [4, 5, 6, 7, 0, 1, 2, 3]);
    assert_eq!(order(&[VlWeight(1, 1)], &[VlWeight(0, 1)], 0), [4, 0, 5, 1, 6, 2, 7, 3]);
    // A limit of 4,096 bytes is never reached by 4 packets of 64 bytes.
    assert_eq!(order(&[VlWeight(1, 1)], &[], 1), [4, 5, 6, 7, 0, 1, 2, 3]);
}

#[test]
fn the_limit_of_the_high_table_counts_whole_flits() {
    // Packets of 2,048 bytes: two are 4,096.
    let mut config = CreditConfig { headers: Bytes(0), vls: 2, credits: 1_000, ..CreditConfig::default() };
    config.arbitration = VlArbitration { high: vec![VlWeight(1, 1)], low: vec![VlWeight(0, 1)], limit: 1 };
    let level = |level: u8| Sending { level, ..message(0, 0, 1, 2_048) };
    let traffic = [0, 0, 1, 1, 1, 1, 1].map(level);
    assert_eq!(order_left(&play_credit(&config, 1, 2, &traffic)), [2, 3, 0, 4, 5, 1, 6]);
}

#[test]
fn an_answer_leaves_at_the_instant_of_the_delivery() {
    let answer = Sending { when: When::After(0, 0), ..message(0, 1, 0, 38) };
    let seen = play_credit(&CreditConfig::default(), 1, 2, &[message(0, 0, 1, 38), answer]);
    let once = 2 * FLIT + SWITCH;
    assert_eq!((departures(&seen), arrivals(&seen)), (vec![0, once], vec![once, 2 * once]));
}

#[test]
fn heads_that_choose_in_one_instant_see_what_others_chose() {
    let (host_link, uplink) = (with_delay(10_000_000_000, 0), with_delay(10_000_000_000, 0));
    let tree = LeafSpineConfig { leaves: 2, spines: 2, hosts: 2, host_link, uplink, ..LeafSpineConfig::default() };
    for seed in 0..20 {
        let config = CreditConfig {
            topology: TopologyConfig::LeafSpine(tree.clone()),
            routing: RoutingConfig::Adaptive,
            seed,
            ..CreditConfig::default()
        };
        // Whichever spine the first one draws, the other one takes the other: both find their way free.
        let seen = play_credit(&config, 1, 4, &[message(0, 0, 2, 2_048), message(0, 1, 3, 2_048)]);
        assert_eq!(arrivals(&seen), [3 * (FLIT + SWITCH) + 33 * FLIT; 2]);
    }
}

/// A ring of five routers with two hosts at each, on which a flit of 64 bytes takes [`FLIT`].
fn ring(routing: RoutingConfig, vls: u8, credits: u32) -> CreditConfig {
    let (host_link, link) = (with_delay(10_000_000_000, 3_000), with_delay(10_000_000_000, 3_000));
    let grid = GridConfig { size: vec![5], concentration: 2, host_link, link, ..GridConfig::default() };
    let topology = TopologyConfig::Torus(grid);
    CreditConfig { topology, routing, vls, credits, headers: Bytes(0), mtu: Bytes(64), ..CreditConfig::default() }
}

#[test]
fn a_packet_enters_a_ring_where_two_have_room() {
    // Two packets of one credit, from router 0 to router 1, where two credits are all.
    let traffic = [message(0, 0, 2, 64), message(0, 1, 2, 64)];
    let seen = play_credit(&ring(RoutingConfig::Bubble, 1, 2), 1, 10, &traffic);
    let hop = FLIT + 3_000 + SWITCH;
    // The second one starts into the ring when the first one's credit is back.
    let back = hop + hop + FLIT + 3_000;
    assert_eq!(arrivals(&seen), [2 * hop + FLIT + 3_000, back + hop + FLIT + 3_000]);
    // With three credits it follows at once.
    let seen = play_credit(&ring(RoutingConfig::Bubble, 1, 3), 1, 10, &traffic);
    assert_eq!(arrivals(&seen), [2 * hop + FLIT + 3_000, 2 * hop + 2 * FLIT + 3_000]);
}

#[test]
fn packets_before_and_behind_the_dateline_have_buffers_of_their_own() {
    // Both cross the link from router 3 to router 4, where there is one credit for each VL: the first one to stay there,
    // the other one on its way over the dateline to router 0.
    let traffic = [message(0, 6, 8, 64), message(0, 7, 0, 64)];
    let hop = FLIT + 3_000 + SWITCH;
    let seen = play_credit(&ring(RoutingConfig::Dor, 2, 1), 1, 10, &traffic);
    assert_eq!(arrivals(&seen), [2 * hop + FLIT + 3_000, 3 * hop + 2 * FLIT + 3_000]);
}

fn stored(buffer: Buffer) -> StoreAndForwardConfig {
    let link = LinkConfig { buffer, ..with_delay(8_000_000_000, 5) };
    StoreAndForwardConfig {
        topology: racks(link, LinkConfig::default()),
        switch_delay: DurationPs(100),
        ..StoreAndForwardConfig::default()
    }
}

#[test]
fn stored_packets_take_their_time_on_every_link() {
    // A byte takes 1,000 ps.
    let seen = play_stored(&stored(Buffer::Unlimited), 2, &[message(0, 0, 1, 1_600), message(0, 0, 1, 0)]);
    assert_eq!(departures(&seen), [0, 1_500_000, 1_600_000]);
    // The packet of 100 bytes and that of 1 byte wait behind the first one.
    assert_eq!(arrivals(&seen), [3_000_110, 3_100_110, 3_101_110]);
    assert_eq!(seen.packets.iter().map(|packet| packet.flits).collect::<Vec<_>>(), [24, 2, 1]);
}

#[test]
fn stored_packets_are_dropped_where_there_is_no_room() {
    let traffic = [0, 1, 2, 3].map(|source| message(u64::from(source), source, 4, 1_000));
    let lost = |buffer: Buffer| {
        let seen = play_stored(&stored(buffer), 5, &traffic);
        assert_eq!(seen.packets.len() + seen.dropped.len(), 4);
        seen.dropped.iter().map(|dropped| (dropped.source.0, dropped.at.0)).collect::<Vec<_>>()
    };
    assert_eq!(lost(Buffer::Unlimited), []);
    assert_eq!(lost(Buffer::Packets(2)), [(3, 1_000_108)]);
    assert_eq!(lost(Buffer::Packets(0)), [(1, 1_000_106), (2, 1_000_107), (3, 1_000_108)]);
    assert_eq!(lost(Buffer::Bytes(1_999)), [(2, 1_000_107), (3, 1_000_108)]);
    assert_eq!(lost(Buffer::Bytes(2_000)), [(3, 1_000_108)]);
}

#[test]
fn a_link_goes_on_before_packets_are_offered() {
    // The link to host 3 is free again when the packet of host 2 is offered: the waiting one leaves its place to it.
    let traffic = [message(0, 0, 3, 1_000), message(0, 1, 3, 1_000), message(1_000_000, 2, 3, 1_000)];
    let seen = play_stored(&stored(Buffer::Packets(1)), 4, &traffic);
    assert_eq!(seen.dropped, []);
    assert_eq!(seen.packets[2].arrived.0, 4_000_110);
}
