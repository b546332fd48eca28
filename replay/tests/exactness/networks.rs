//! Random small networks and what is sent on them.

use super::Case;
use crate::flit_model::traffic::{Sending, When};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use replay::fabric::HostPlace;
use replay::fabric::credit::{CreditConfig, Start, VlArbitration, VlWeight};
use replay::fabric::store_and_forward::StoreAndForwardConfig;
use replay::routing::RoutingConfig;
use replay::topology::{FatTreeConfig, Joined, LinkConfig, RacksConfig, TopologyConfig};
use replay::units::{Buffer, Bytes, DurationPs, Rate};

/// A flit of 64 bytes at 10 Gbit/s: the beat to which times are often set, so that much happens at one instant.
const BEAT: u64 = 51_200;

fn rate() -> impl Strategy<Value = Rate> {
    let whole = select(vec![10_000_000_000, 20_000_000_000, 40_000_000_000]);
    // 64 bytes are no whole number of picoseconds.
    let broken = select(vec![3_000_000_000, 7_000_000_000, 9_999_999_937, 56_000_000_000, 111_111_111_111]);
    prop_oneof![3 => whole, 2 => broken, 1 => 5_000_000_000..400_000_000_000u64].prop_map(Rate::from_bps)
}

fn duration() -> impl Strategy<Value = DurationPs> {
    let beats = (1..8u64).prop_map(|beats| beats * BEAT);
    prop_oneof![3 => Just(0), 2 => beats, 1 => 1..3u64, 2 => 1..400_000u64].prop_map(DurationPs)
}

fn link(buffer: impl Strategy<Value = Buffer>) -> impl Strategy<Value = LinkConfig> {
    (rate(), duration(), buffer).prop_map(|(rate, delay, buffer)| LinkConfig {
        rate,
        delay: Some(delay),
        buffer,
        ..LinkConfig::default()
    })
}

fn buffer() -> BoxedStrategy<Buffer> {
    prop_oneof![Just(Buffer::Unlimited), (0..5u32).prop_map(Buffer::Packets), (0..4_000u64).prop_map(Buffer::Bytes)]
        .boxed()
}

/// A topology and its hosts. Often all links are the same, which makes much happen at one instant.
fn topology(buffer: impl Strategy<Value = Buffer> + Clone) -> impl Strategy<Value = (TopologyConfig, Vec<HostPlace>)> {
    let links = prop_oneof![link(buffer.clone()).prop_map(|link| (link, link)), (link(buffer.clone()), link(buffer)),];
    let racks = (links, 1..4usize, 2..10usize, any::<bool>(), any::<bool>());
    let tree = (0..3u32, 1..4u32, 1..3u32);
    (racks, tree).prop_map(|((links, racks, hosts, side_by_side, core), (shape, cores, factor))| {
        let (host_link, uplink) = links;
        let hosts = places(racks, hosts, side_by_side);
        let topology = if shape == 0 {
            let joined = if core { Joined::Core } else { Joined::Auto };
            TopologyConfig::Racks(RacksConfig { host_link, uplink, joined })
        } else {
            TopologyConfig::FatTree(FatTreeConfig { nodes: None, racks: None, cores, factor, host_link, uplink })
        };
        (topology, hosts)
    })
}

/// `hosts` hosts in `racks` racks, one rack after the other or by turns.
fn places(racks: usize, hosts: usize, side_by_side: bool) -> Vec<HostPlace> {
    let racks = racks.min(hosts);
    let rack = |host: usize| if side_by_side { host % racks } else { host * racks / hosts };
    (0..hosts).map(|host| HostPlace { name: format!("w{host}"), rack: format!("rack{}", rack(host)) }).collect()
}

/// A message before hosts, mtu and flit are known.
#[derive(Clone, Debug)]
struct Draft {
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
    let gap = prop_oneof![5 => Just(0), 2 => beats, 1 => 0..2_000_000u64];
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
fn drafts(most: usize) -> impl Strategy<Value = (Vec<Draft>, bool)> {
    (vec(draft(), 1..most), proptest::bool::weighted(0.25))
}

fn sendings((drafts, crowd): &(Vec<Draft>, bool), hosts: usize, mtu: u64, headers: u64, flit: u64) -> Vec<Sending> {
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

fn routing() -> impl Strategy<Value = RoutingConfig> {
    select(vec![RoutingConfig::Ecmp, RoutingConfig::DModK])
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
    let sizes = sizes(prop_oneof![select(vec![16, 32, 100, 128, 256]), 8..300u64]);
    let more_credits = prop_oneof![3 => 0..4u32, 1 => 0..40u32, 1 => Just(1_000)];
    let pauses = (duration(), duration(), duration(), duration());
    let pauses = (pauses, vec(any::<bool>(), 4));
    let start = prop_oneof![3 => Just(Start::CutThrough), 1 => Just(Start::WholePacket)];
    let fabric = (topology(Just(Buffer::Unlimited)), routing(), any::<u64>(), lanes());
    let traffic = drafts(25);
    (fabric, sizes, more_credits, pauses, start, traffic).prop_map(
        |((topology, routing, seed, lanes), (mtu, headers, flit), more, (pauses, there), start, drafts)| {
            let (topology, hosts) = topology;
            let (vls, sl_to_vl, arbitration) = lanes;
            let largest = ((mtu + headers).div_ceil(flit) * flit).div_ceil(64);
            let or_none = |place: usize, pause: DurationPs| if there[place] { pause } else { DurationPs(0) };
            let config = CreditConfig {
                topology,
                routing,
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
            let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
            Case { config, hosts, traffic }
        },
    )
}

/// A network that stores and forwards, and what is sent on it.
pub fn stored_networks() -> impl Strategy<Value = Case<StoreAndForwardConfig>> {
    let sizes = sizes(1..300u64);
    let fabric = (topology(buffer()), routing(), any::<u64>(), duration());
    (fabric, sizes, drafts(40)).prop_map(|((topology, routing, seed, switch_delay), (mtu, headers, flit), drafts)| {
        let (topology, hosts) = topology;
        let config = StoreAndForwardConfig {
            topology,
            routing,
            seed,
            mtu: Bytes(mtu),
            headers: Bytes(headers),
            flit: Bytes(flit),
            switch_delay,
            ..StoreAndForwardConfig::default()
        };
        let traffic = sendings(&drafts, hosts.len(), mtu, headers, flit);
        Case { config, hosts, traffic }
    })
}
