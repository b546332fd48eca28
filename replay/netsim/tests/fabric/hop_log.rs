//! Logs of hops: each packet's rows are its way, as its record says it; of input-queued switches each flit's as the slow model says.

use crate::exactness::input_output_queued::input_output_queued_networks;
use crate::exactness::input_queued::input_queued_networks;
use crate::exactness::networks::{credit_networks, minimal_networks};
use crate::exactness::omni_path::omni_path_networks;
use crate::exactness::spinnaker::routed_networks;
use crate::exactness::{Case, OnTopology, drive, networks_config};
use crate::flit_model::counting::Crossed;
use crate::flit_model::input_queued;
use crate::flit_model::traffic::Seen;
use netsim::fabric::credit::Credit;
use netsim::fabric::hop_records::{HopEvent, HopRecords, LogWanted, LoggedHop, MAX_LOGGED_PACKETS};
use netsim::fabric::input_output_queued::InputOutputQueued;
use netsim::fabric::input_queued::InputQueued;
use netsim::fabric::omni_path::OmniPath;
use netsim::fabric::packet::{PacketFabric, PacketRecord};
use netsim::fabric::spinnaker::Spinnaker;
use netsim::time::SimTime;
use netsim::topology::Topology;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn logged<F: PacketFabric<Seen>, C>(mut fabric: F, case: &Case<C>, wanted: LogWanted) -> (Seen, HopRecords) {
    assert!(fabric.log_hops(&wanted));
    let seen = drive(&mut fabric, &case.traffic);
    (seen, fabric.take_hop_log(SimTime::MAX).unwrap())
}

fn all(flits: bool) -> LogWanted {
    LogWanted { packets: MAX_LOGGED_PACKETS, flits, ..LogWanted::default() }
}

/// The rows of each packet, or of each of its flits, by source, number and flit: what leaves, what arrives, link by link. (Times of flits are rounded
/// down link by link, so that one may leave a picosecond before it has come.)
fn ways(log: &HopRecords) -> BTreeMap<(u32, u64, Option<u32>), Vec<LoggedHop>> {
    let mut ways = BTreeMap::<_, Vec<LoggedHop>>::new();
    for hop in &log.hops {
        ways.entry((hop.source, hop.number, hop.flit)).or_default().push(*hop);
    }
    for rows in ways.values_mut() {
        let (leaves, others): (Vec<LoggedHop>, Vec<LoggedHop>) =
            rows.iter().partition(|hop| hop.event == HopEvent::Leaves);
        let mut others = others.into_iter();
        *rows = leaves.into_iter().flat_map(|leaves| [Some(leaves), others.next()]).flatten().collect();
        rows.extend(others);
    }
    ways
}

/// The rows of a packet, or of a flit, lead from its source to its destination, link by link.
fn is_a_way(log: &HopRecords, rows: &[LoggedHop], record: &PacketRecord, topology: &Topology) {
    assert_eq!(rows.len() as u32, 2 * (record.switches + 1), "{rows:?}");
    let name = |place: u32| log.nodes[place as usize].as_str();
    let of_host = |host: u32| topology.name(topology.host_node(host));
    assert_eq!(name(rows[0].node), of_host(record.source.0));
    assert_eq!(name(rows[rows.len() - 1].node), of_host(record.destination.0));
    for pair in rows.chunks(2) {
        assert_eq!((pair[0].event, pair[1].event), (HopEvent::Leaves, HopEvent::Arrives));
        assert_eq!((pair[0].link, pair[0].vl), (pair[1].link, pair[1].vl));
        assert_eq!(log.links[pair[0].link as usize], format!("{}->{}", name(pair[0].node), name(pair[1].node)));
        assert!(pair[0].at_ps < pair[1].at_ps);
    }
    for pair in rows[1..].chunks(2).filter(|pair| pair.len() == 2) {
        assert_eq!(pair[0].node, pair[1].node, "what arrives at a switch leaves it");
        // Times of flits are rounded down to picoseconds, link by link.
        assert!(pair[0].at_ps <= pair[1].at_ps + 1);
    }
}

/// Logs of all packets, then of all flits: each is the way of which its record tells, and what is logged changes nothing.
fn follow<C: OnTopology, F: PacketFabric<Seen>>(case: &Case<C>, fabric: impl Fn() -> F) {
    let topology = case.config.topology().build(&case.hosts).unwrap();
    let plain = drive(&mut fabric(), &case.traffic);
    let (seen, log) = logged(fabric(), case, all(false));
    assert_eq!(seen, plain);
    let packets = ways(&log);
    for record in &seen.packets {
        let rows = &packets[&(record.source.0, record.number, None)];
        is_a_way(&log, rows, record, &topology);
        assert_eq!((rows[0].at_ps, rows[rows.len() - 1].at_ps), (record.left.0, record.arrived.0));
    }
    let (seen, log) = logged(fabric(), case, all(true));
    assert_eq!(seen, plain);
    let flits = ways(&log);
    for record in &seen.packets {
        let of = |flit: u32| &flits[&(record.source.0, record.number, Some(flit))];
        (0..record.flits).for_each(|flit| is_a_way(&log, of(flit), record, &topology));
        assert_eq!(of(0)[0].at_ps, record.left.0);
        assert_eq!(of(record.flits - 1).last().unwrap().at_ps, record.arrived.0);
        for flit in 1..record.flits {
            let in_order = of(flit - 1).iter().zip(of(flit)).all(|(before, behind)| before.at_ps < behind.at_ps);
            assert!(in_order, "flit {flit} of {record:?}");
        }
    }
}

proptest! {
    #![proptest_config(networks_config(60, "tests/regressions/fabric_hop_log.txt"))]

    #[test]
    fn logs_of_credit_networks_are_ways(case in prop_oneof![credit_networks(), minimal_networks()]) {
        follow(&case, || Credit::new(&case.config, &case.hosts, Seen::default()).unwrap());
    }

    #[test]
    fn logs_of_omni_path_networks_are_ways(case in omni_path_networks()) {
        follow(&case, || OmniPath::new(&case.config, &case.hosts, Seen::default()).unwrap());
    }

    #[test]
    fn logs_of_input_output_queued_networks_are_ways(case in input_output_queued_networks()) {
        follow(&case, || InputOutputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap());
    }

    #[test]
    fn logs_of_routed_networks_are_ways_or_end_where_packets_are_lost(case in routed_networks()) {
        let fabric = || Spinnaker::new(&case.config, &case.hosts, Seen::default()).unwrap();
        follow(&case, fabric);
        let (seen, log) = logged(fabric(), &case, all(false));
        let packets = ways(&log);
        for lost in &seen.dropped {
            let last = packets[&(lost.source.0, lost.number, None)].last().unwrap();
            prop_assert_eq!((last.event, last.at_ps), (HopEvent::Lost, lost.at.0));
        }
    }

    #[test]
    fn flits_of_input_queued_networks_go_as_the_slow_model_says(case in input_queued_networks()) {
        let fabric = || InputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap();
        follow(&case, fabric);
        let topology = case.config.topology.build(&case.hosts).unwrap();
        let mut slow = input_queued::count(&case.config, &topology, &case.traffic, None, false).crossed;
        let (_, log) = logged(fabric(), &case, all(true));
        let numbers = (0..topology.links().len()).map(|link| (topology.link_name(link.into()).into_string(), link));
        let numbers: BTreeMap<String, usize> = numbers.collect();
        prop_assume!(numbers.len() == topology.links().len(), "links between the same switches have one name");
        let crossed = |rows: &[LoggedHop]| -> Crossed {
            let LoggedHop { source, number, flit, link, vl, .. } = rows[0];
            let link = u32::try_from(numbers[&log.links[link as usize]]).unwrap();
            (source, number, flit.unwrap(), link, vl, rows[0].at_ps, rows[1].at_ps)
        };
        let mut fast: Vec<Crossed> = ways(&log).values().flat_map(|rows| rows.chunks(2)).map(crossed).collect();
        fast.sort_unstable();
        slow.sort_unstable();
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn only_chosen_packets_are_logged(case in input_output_queued_networks(), packets in 1..9u32, host in 0..4u32) {
        let fabric = || InputOutputQueued::new(&case.config, &case.hosts, Seen::default()).unwrap();
        let (seen, _) = logged(fabric(), &case, all(false));
        let mut left: Vec<&PacketRecord> = seen.packets.iter().collect();
        left.sort_by_key(|record| record.left);
        let from = left.get(left.len() / 2).map_or(SimTime::ZERO, |record| record.left);
        let chosen = |wanted: LogWanted| {
            let (_, log) = logged(fabric(), &case, wanted);
            let keys: Vec<(u32, u64)> = ways(&log).into_keys().map(|(source, number, _)| (source, number)).collect();
            assert_eq!(log.packets as usize, keys.len());
            keys
        };
        let expected = |may: &dyn Fn(&PacketRecord) -> bool| {
            let records = seen.packets.iter().filter(|record| may(record));
            records.map(|record| (record.source.0, record.number)).collect::<Vec<_>>()
        };
        let some = LogWanted { from, hosts: [host].into(), ..all(false) };
        prop_assert_eq!(chosen(some), expected(&|record| record.source.0 == host && record.left >= from));
        let one = LogWanted { numbers: [1].into(), ..all(false) };
        prop_assert_eq!(chosen(one), expected(&|record| record.number == 1));
        let first = chosen(LogWanted { packets, ..all(false) });
        prop_assert_eq!(first.len(), seen.packets.len().min(packets as usize));
        // Of those that are not logged none left before one that is.
        let of = |key: &(u32, u64)| seen.packets.iter().find(|record| (record.source.0, record.number) == *key).unwrap().left;
        let last = first.iter().map(of).max().unwrap_or(SimTime::ZERO);
        let earlier = expected(&|record| record.left < last);
        prop_assert!(earlier.iter().all(|key| first.contains(key)));
    }
}
