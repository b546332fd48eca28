//! `ethernet` in windows beside its event engine: the same messages at the same picosecond, the same figures, for any number of parts and
//! threads.

use crate::exactness::listed::{bytes_at, listed, stops, without_answers};
use crate::exactness::networks::ethernet_networks;
use crate::exactness::{Case, difference, networks_config, run};
use crate::flit_model::traffic::{Seen, Sending, When};
use netsim::fabric::ethernet::windows::Windowed;
use netsim::fabric::ethernet::{Ethernet, EthernetConfig};
use netsim::fabric::flow_packets::FlowPackets;
use netsim::fabric::windows::{Unsuited, WindowedRun, WindowsWanted};
use netsim::network::{HostIndex, NetworkFigures, Simulation};
use netsim::time::SimTime;
use netsim::topology::HostPlace;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// The hosts of one message after the other, as they are handed over before a time.
fn ends_in_order(traffic: &[Sending]) -> impl FnMut(SimTime) -> Option<(HostIndex, HostIndex)> {
    let mut messages: Vec<(u64, usize)> = Vec::new();
    for (number, sending) in traffic.iter().enumerate() {
        let When::At(at) = sending.when else { panic!("answers need deliveries") };
        messages.push((at, number));
    }
    messages.sort_unstable();
    let hosts =
        |(at, number): (u64, usize)| (at, (HostIndex(traffic[number].source), HostIndex(traffic[number].destination)));
    let mut ends = messages.into_iter().map(hosts).collect::<Vec<_>>().into_iter().peekable();
    move |until| ends.next_if(|(at, _)| *at < until.0).map(|(_, ends)| ends)
}

fn in_parts(case: &Case<EthernetConfig>, parts: usize) -> Result<Windowed, Unsuited> {
    let wanted = WindowsWanted { threads: parts, always: true, asks_back: None };
    Windowed::new(&case.config, &case.hosts, wanted).unwrap()
}

/// What a run in windows with `parts` parts on `threads` threads shows, stopped now and then on its way, and the bytes of its links at
/// these stops.
fn windows(
    case: &Case<EthernetConfig>,
    parts: usize,
    threads: usize,
    stops: &[u64],
) -> Option<(Seen, NetworkFigures, Vec<Vec<u64>>)> {
    let network = in_parts(case, parts).ok()?;
    let mut run = network.into_parts(Seen::default(), |_| listed(&case.traffic), ends_in_order(&case.traffic));
    run.on_threads(threads);
    let mut bytes = Vec::new();
    for stop in stops {
        assert!(!run.run_before(SimTime(*stop), |_| false));
        bytes.push(run.lane_bytes(SimTime(*stop)));
    }
    run.run_before(SimTime::LATEST, |_| false);
    run.forget_packets();
    let figures = run.take_figures();
    Some((run.into_observer().sorted(), figures, bytes))
}

/// In parts and on threads as `ways` says, everything is as the event engine has it. Returns in how many ways it could be run.
fn agree(case: &Case<EthernetConfig>, stops: &[u64], ways: &[(usize, usize)]) -> Result<usize, TestCaseError> {
    let topology = case.config.topology.build(&case.hosts).unwrap();
    let mut fabric = FlowPackets::new(Ethernet::new(&case.config, &case.hosts).unwrap(), Seen::default());
    let events = run(&mut fabric, &case.traffic);
    let figures = fabric.figures();
    let mut fabric = FlowPackets::new(Ethernet::new(&case.config, &case.hosts).unwrap(), ());
    let expected = (figures, bytes_at(&mut fabric, &case.traffic, stops));
    prop_assert_eq!(events.packets.len(), case.traffic.len(), "TCP delivers all");
    let mut ran = 0;
    for (parts, threads) in ways.iter().copied() {
        let Some((fast, figures, bytes)) = windows(case, parts, threads, stops) else { continue };
        if let Some(difference) = difference(&fast, &events, &topology) {
            return Err(TestCaseError::fail(format!("{parts} parts on {threads} threads\n{difference}")));
        }
        prop_assert_eq!(&(figures, bytes), &expected, "{} parts on {} threads", parts, threads);
        ran += 1;
    }
    Ok(ran)
}

const REGRESSIONS: &str = "tests/regressions/fabric_exactness_ethernet_windows.txt";

/// Threads meet at each window, and wait there for the processor where a machine is busy: fewer networks than those of one thread, whose
/// number follows PROPTEST_CASES as theirs does.
fn threads_config() -> ProptestConfig {
    let config = networks_config(0, REGRESSIONS);
    ProptestConfig { cases: config.cases.div_ceil(32), ..config }
}

fn networks() -> impl Strategy<Value = Case<EthernetConfig>> {
    without_answers(ethernet_networks())
}

/// Early stops, and some as late as time-outs are.
fn early_and_late() -> impl Strategy<Value = Vec<u64>> {
    (stops(), any::<bool>()).prop_map(|(mut stops, late)| {
        stops.iter_mut().for_each(|stop| *stop *= if late { 1_000_000 } else { 1 });
        stops
    })
}

fn check(case: &Case<EthernetConfig>, stops: &[u64], ways: &[(usize, usize)]) -> TestCaseResult {
    agree(case, stops, ways).map(drop)
}

proptest! {
    #![proptest_config(networks_config(500, REGRESSIONS))]

    #[test]
    fn in_windows_every_message_arrives_when_it_does_by_events(case in networks(), stops in early_and_late()) {
        check(&case, &stops, &[(1, 1), (2, 1), (3, 1), (16, 1)])?;
    }
}

proptest! {
    #![proptest_config(threads_config())]

    #[test]
    fn threads_show_in_nothing(case in networks(), stops in early_and_late()) {
        check(&case, &stops, &[(2, 2), (3, 3), (16, 2)])?;
    }
}

/// Four racks whose uplinks are token buckets: only the cable delays what passes at once.
fn bursts(delay: &str) -> Case<EthernetConfig> {
    let text = format!(
        "host_delay = \"0ns\"\n[topology]\nshape = \"racks\"\nhost_link = {{ rate = \"10Gbps\", delay = \"0ns\", buffer = \"20 packets\" }}\n\
         uplink = {{ rate = \"5Gbps\", delay = \"{delay}\", buffer = \"8 packets\", burst = \"6KB\" }}\n"
    );
    let place = |host: u32| HostPlace { name: format!("w{host}"), rack: format!("rack{}", host / 4) };
    let traffic = (0..60u32).map(|number| Sending {
        when: When::At(u64::from(number / 6) * 700_000),
        source: number * 7 % 16,
        destination: (number * 7 + 5) % 16,
        bytes: u64::from(number % 5) * 30_000,
        level: 0,
        flow: 0,
    });
    Case { config: toml::from_str(&text).unwrap(), hosts: (0..16).map(place).collect(), traffic: traffic.collect() }
}

#[test]
fn buckets_are_cut_where_their_cables_take_time_and_else_not_at_all() {
    let ways = [(1, 1), (2, 1), (3, 2), (5, 1)];
    assert_eq!(agree(&bursts("100ns"), &[5_000_000], &ways).unwrap(), 4);
    // One part needs no window.
    assert_eq!(agree(&bursts("0ns"), &[5_000_000], &ways).unwrap(), 1);
    let Err(Unsuited(Some(reason))) = in_parts(&bursts("0ns"), 2) else { panic!("there is no lookahead") };
    assert!(reason.contains("no time"), "{reason}");
}
