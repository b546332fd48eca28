//! Completion times that can be worked out by hand.

use coflow::circuit::{Birkhoff, MatrixScheduler, MaxWeight, Priority, Rotor, Solstice, all_stop, sunflow};
use coflow::packet::{Clock, Completion, EqualShare, Madd, MaxMin, Order, RateAllocator, simulate};
use coflow::{Workload, bounds};
use netsim::units::DurationPs;

use crate::{MS, RATE, coflow};

fn milliseconds(completions: &[Completion]) -> Vec<u64> {
    completions.iter().map(|one| (one.time().ps() + MS.ps() / 2) / MS.ps()).collect()
}

fn over_packets(workload: &Workload, mut allocator: impl RateAllocator) -> Vec<u64> {
    milliseconds(&simulate(workload, RATE, Clock::default(), &mut allocator).unwrap())
}

/// A long coflow, then a short one, both from port 0 to port 1.
fn long_then_short() -> Workload {
    Workload::new(2, vec![coflow(1, 0, &[(0, 1, 100.0)]), coflow(2, 0, &[(0, 1, 20.0)])]).unwrap()
}

#[test]
fn two_coflows_share_a_port_as_each_scheduler_has_it() {
    let workload = long_then_short();
    assert_eq!(over_packets(&workload, MaxMin::default()), [120, 40]);
    assert_eq!(over_packets(&workload, EqualShare), [120, 40]);
    assert_eq!(over_packets(&workload, Madd { order: Order::Arrival }), [100, 120]);
    assert_eq!(over_packets(&workload, Madd { order: Order::LeftBottleneck }), [120, 20]);
}

#[test]
fn a_long_coflow_that_is_almost_done_is_short() {
    let workload = Workload::new(2, vec![coflow(1, 0, &[(0, 1, 100.0)]), coflow(2, 90, &[(0, 1, 20.0)])]).unwrap();
    assert_eq!(over_packets(&workload, Madd { order: Order::LeftBottleneck }), [100, 30]);
    assert_eq!(over_packets(&workload, Madd { order: Order::FirstBottleneck }), [120, 20]);
}

/// Port 0 sends to 1 and 2, port 3 sends to 1: the first flow has to share with both others.
#[test]
fn what_a_flow_cannot_take_goes_to_others_with_max_min_only() {
    let flows = [coflow(1, 0, &[(0, 1, 60.0)]), coflow(2, 0, &[(0, 2, 60.0)]), coflow(3, 0, &[(3, 1, 60.0)])];
    let four = coflow(4, 0, &[(3, 1, 60.0)]);
    let workload = Workload::new(4, [&flows[..], &[four]].concat()).unwrap();
    // Port 1 receives three flows, a third each; port 0 gives the rest, two thirds, to its other flow.
    assert_eq!(over_packets(&workload, MaxMin::default()), [180, 90, 180, 180]);
    assert_eq!(over_packets(&workload, EqualShare)[1], 120);
}

#[test]
fn all_flows_of_a_coflow_end_with_its_bottleneck() {
    let shuffle = [(0, 1, 30.0), (0, 2, 60.0), (3, 1, 10.0)];
    let workload = Workload::new(4, vec![coflow(1, 0, &shuffle)]).unwrap();
    assert_eq!(bounds::packet_bound(&workload.coflows()[0], RATE), DurationPs::from_ms(90));
    assert_eq!(over_packets(&workload, Madd { order: Order::Arrival }), [90]);
}

#[test]
fn ticks_show_ends_late_and_epochs_let_coflows_begin_early() {
    let workload = Workload::new(2, vec![coflow(1, 95, &[(0, 1, 21.0)])]).unwrap();
    let found = |tick, epoch| {
        let clock = Clock { tick: DurationPs::from_ms(tick), epoch: DurationPs::from_ms(epoch) };
        let one = simulate(&workload, RATE, clock, &mut EqualShare).unwrap()[0];
        [one.start.0, one.end.0].map(|time| time / MS.ps())
    };
    assert_eq!(found(0, 0), [95, 116]);
    assert_eq!(found(8, 0), [95, 120]);
    assert_eq!(found(8, 40), [80, 104]);
}

#[test]
fn each_new_circuit_costs_its_delay() {
    let delay = DurationPs::from_ms(10);
    // Port 0 sends to 1 and to 2, port 3 to 1: nothing else can be at once with the second.
    let workload = Workload::new(4, vec![coflow(1, 0, &[(0, 1, 30.0), (0, 2, 60.0), (3, 1, 25.0)])]).unwrap();
    assert_eq!(bounds::circuit_bound(&workload.coflows()[0], RATE, delay), DurationPs::from_ms(110));
    let found = sunflow(&workload, RATE, delay, Priority::Shortest, |_| {}).unwrap();
    assert_eq!(milliseconds(&found), [110]);
}

/// Two ports that have 30 ms for themselves and 60 for each other.
#[test]
fn a_switch_that_stops_costs_a_delay_for_each_matching() {
    let delay = DurationPs::from_ms(10);
    let flows = [(0, 0, 30.0), (0, 1, 60.0), (1, 0, 60.0), (1, 1, 30.0)];
    let workload = Workload::new(2, vec![coflow(1, 0, &flows)]).unwrap();
    let found = |scheduler: &mut dyn MatrixScheduler| {
        milliseconds(&all_stop(&workload, RATE, delay, scheduler, |_| {}).unwrap())
    };
    assert_eq!(found(&mut Birkhoff), [10 + 30 + 10 + 60]);
    // A slot for each binary digit: 60 = 32 + 16 + 8 + 4, 30 = 16 + 8 + 4 + 2.
    assert_eq!(found(&mut Solstice { shortest: MS }), [8 * 10 + 90]);
    // The most waiting: 60 each, of which 50 go; then the 30; then the last 10.
    assert_eq!(found(&mut MaxWeight { slot: DurationPs::from_ms(50) }), [10 + 50 + 10 + 30 + 10 + 10]);
}

/// Each pair has 1/(n - 1) of the time, less the set-ups: 90 of 100 ms in each of 4 turns.
#[test]
fn a_rotor_gives_each_pair_its_turn() {
    let (ports, slot, delay) = (5_u16, DurationPs::from_ms(90), DurationPs::from_ms(10));
    for shift in 1..ports {
        // Three slots are full, 10 ms are left for the fourth.
        let workload = Workload::new(5, vec![coflow(1, 0, &[(2, (2 + shift) % ports, 280.0)])]).unwrap();
        let found = all_stop(&workload, RATE, delay, &mut Rotor { slot }, |_| {}).unwrap();
        assert_eq!(milliseconds(&found), [3 * 400 + u64::from(shift - 1) * 100 + 10 + 10]);
    }
    // All to all: each port sends all the time but for set-ups.
    let flows: Vec<_> = (0..ports)
        .flat_map(|from| (0..ports).map(move |to| (from, to, 90.0)))
        .filter(|flow| flow.0 != flow.1)
        .collect();
    let workload = Workload::new(5, vec![coflow(1, 0, &flows)]).unwrap();
    let found = all_stop(&workload, RATE, delay, &mut Rotor { slot }, |_| {}).unwrap();
    assert_eq!(milliseconds(&found), [400]);
    // A port that has something for itself takes a turn for it.
    let workload = Workload::new(5, vec![coflow(1, 0, &[(2, 2, 5.0), (0, 1, 5.0)])]).unwrap();
    let found = all_stop(&workload, RATE, delay, &mut Rotor { slot }, |_| {}).unwrap();
    assert_eq!(milliseconds(&found), [115]);
}

#[test]
fn a_shorter_coflow_takes_a_circuit_which_is_set_up_again() {
    let delay = DurationPs::from_ms(10);
    let coflows = [coflow(1, 0, &[(0, 1, 100.0)]), coflow(2, 50, &[(0, 2, 20.0)])];
    let workload = Workload::new(3, coflows.to_vec()).unwrap();
    let found = |priority| milliseconds(&sunflow(&workload, RATE, delay, priority, |_| {}).unwrap());
    // 40 ms of the first are sent when the second comes, takes 30, and the first pays 10 again for its other 60.
    assert_eq!(found(Priority::Shortest), [150, 30]);
    assert_eq!(found(Priority::Arrival), [110, 90]);
    // A circuit to the same port goes on, whosever bytes it carries.
    let coflows = [coflow(1, 0, &[(0, 1, 100.0)]), coflow(2, 50, &[(0, 1, 20.0)])];
    let workload = Workload::new(2, coflows.to_vec()).unwrap();
    let found = sunflow(&workload, RATE, delay, Priority::Shortest, |_| {}).unwrap();
    assert_eq!(milliseconds(&found), [140, 20]);
}

/// At 42 ms the first coflow needs port 1 for itself, and the second cannot use the 19 ms before that: a circuit would be up
/// just then. So none is there when the third asks for it, of which nobody could know.
#[test]
fn circuits_are_planned_without_knowing_who_comes_next() {
    let coflows = [
        coflow(1, 3, &[(0, 1, 20.0), (1, 0, 1.0), (1, 1, 1.0)]),
        coflow(2, 20, &[(0, 1, 42.0), (1, 0, 1.0), (0, 0, 53.0)]),
        coflow(3, 42, &[(1, 0, 1.0)]),
    ];
    let workload = Workload::new(2, coflows.to_vec()).unwrap();
    let found = sunflow(&workload, RATE, DurationPs::from_ms(19), Priority::Shortest, |_| {}).unwrap();
    assert_eq!(milliseconds(&found)[2], 19 + 1);
}
