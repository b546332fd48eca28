//! Values at their limits end in a result or an error.

use coflow::circuit::{Birkhoff, MaxWeight, Priority, Solstice, all_stop, sunflow};
use coflow::packet::{Clock, EqualShare, Madd, MaxMin, Order, simulate};
use coflow::{CoflowError, MAX_PORTS, Workload};
use netsim::units::{DurationPs, Rate};

use crate::{MS, RATE, coflow};

fn one(bytes: f64) -> Workload {
    Workload::new(2, vec![coflow(1, 0, &[(0, 1, bytes)])]).unwrap()
}

#[test]
fn coflows_that_make_no_sense_are_refused() {
    let wrong = |ports, coflow| Workload::new(ports, vec![coflow]).unwrap_err().to_string();
    assert_eq!(wrong(2, coflow(1, 0, &[])), "coflow 1 has no flow");
    assert_eq!(wrong(2, coflow(1, 0, &[(0, 2, 1.0)])), "coflow 1: port 2, but the switch has ports 0 to 1");
    for bytes in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e19] {
        let text = wrong(2, coflow(1, 0, &[(0, 1, bytes)]));
        assert_eq!(text, "coflow 1 has a flow that is not of more than 0 and at most 1e18 bytes");
    }
    assert_eq!(wrong(MAX_PORTS + 1, coflow(1, 0, &[(0, 1, 1.0)])), "2049 ports: from 1 to 2048 can be simulated");
}

#[test]
fn what_no_clock_can_tell_is_refused_by_every_scheduler() {
    let slow = one(1e9);
    let too_long = |found: Result<_, CoflowError>| matches!(found, Err(CoflowError::TooLong { .. }));
    assert!(too_long(simulate(&slow, RATE, Clock::default(), &mut EqualShare)));
    assert!(too_long(sunflow(&slow, RATE, MS, Priority::Shortest, |_| {})));
    assert!(too_long(all_stop(&slow, RATE, MS, &mut Birkhoff, |_| {})));
    let found = simulate(&slow, RATE, Clock::default(), &mut EqualShare).unwrap_err().to_string();
    assert_eq!(found, "a port would be busy for 11.6 days, more than 10.0: take a higher rate or fewer coflows");
    let unlimited = sunflow(&slow, Rate::UNLIMITED, MS, Priority::Shortest, |_| {});
    assert_eq!(unlimited, Err(CoflowError::Unlimited));
    let delay = sunflow(&one(1.0), RATE, DurationPs::from_ms(100_001), Priority::Shortest, |_| {});
    assert_eq!(delay.unwrap_err().to_string(), "a reconfiguration delay of 100.001 s: at most 100 s");
}

#[test]
fn long_delays_and_late_arrivals_come_to_an_end() {
    let day = 86_400_000;
    let many: Vec<_> = (0..50).map(|id| coflow(id, 140 * day, &[(0, 1, 3.0), (1, 0, 2.0), (1, 1, 1.0)])).collect();
    let workload = Workload::new(2, many).unwrap();
    let delay = DurationPs::from_ms(100_000);
    assert!(sunflow(&workload, RATE, delay, Priority::Arrival, |_| {}).is_ok());
    assert!(all_stop(&workload, RATE, delay, &mut Solstice { shortest: delay }, |_| {}).is_ok());
    assert!(simulate(&workload, RATE, Clock::default(), &mut MaxMin::default()).is_ok());
    let clock = Clock { tick: delay, epoch: delay };
    assert!(simulate(&workload, RATE, clock, &mut Madd { order: Order::Arrival }).is_ok());
    // So many set-ups that 150 days are over.
    let ports = 1_000;
    let all_to_one: Vec<_> = (0..15)
        .map(|id| {
            let flows: Vec<_> = (0..ports).map(|from| (from, 0, 1.0)).collect();
            coflow(id, 149 * day, &flows)
        })
        .collect();
    let workload = Workload::new(usize::from(ports), all_to_one).unwrap();
    let found = sunflow(&workload, RATE, delay, Priority::Arrival, |_| {});
    assert!(matches!(found, Err(CoflowError::Endless { .. })), "{found:?}");
    assert!(matches!(all_stop(&workload, RATE, delay, &mut Birkhoff, |_| {}), Err(CoflowError::Endless { .. })));
}

#[test]
fn slots_without_number_are_given_up() {
    let scheduler = &mut MaxWeight { slot: DurationPs(1) };
    let found = all_stop(&one(1e3), RATE, DurationPs::ZERO, scheduler, |_| {}).unwrap_err().to_string();
    assert_eq!(found, "more than 10000000 slots: hold matchings for longer, or take a higher rate or fewer coflows");
}

#[test]
fn the_fastest_ports_and_the_smallest_flows_take_a_picosecond_or_more() {
    let workload = one(1e-9);
    for found in [
        simulate(&workload, Rate::from_bps(u64::MAX - 1), Clock::default(), &mut MaxMin::default()).unwrap(),
        sunflow(&workload, Rate::from_bps(u64::MAX - 1), DurationPs::ZERO, Priority::Shortest, |_| {}).unwrap(),
    ] {
        assert_eq!(found[0].time(), DurationPs(1));
    }
}
