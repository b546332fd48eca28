//! What holds for rates whatever is to be sent.

use coflow::packet::{ActiveCoflow, ActiveFlow, Clock, EqualShare, Madd, MaxMin, Order, RateAllocator, simulate};
use coflow::{Workload, bounds};
use proptest::prelude::*;

use crate::{RATE, workloads};

/// All coflows of a workload as if they had arrived together.
fn active(workload: &Workload) -> Vec<ActiveCoflow> {
    let of = |flow: &coflow::Flow| ActiveFlow { from: flow.from, to: flow.to, left: flow.bytes, rate: f64::NAN };
    let coflows = workload.coflows().iter().enumerate();
    coflows
        .map(|(index, coflow)| ActiveCoflow {
            index,
            bottleneck: bounds::packet_bound(coflow, RATE).ps() as f64,
            flows: coflow.flows.iter().map(of).collect(),
        })
        .collect()
}

/// Sums of rates: of senders, of receivers.
fn loads(coflows: &[ActiveCoflow], ports: usize) -> [Vec<f64>; 2] {
    let mut loads = [vec![0.0; ports], vec![0.0; ports]];
    for flow in coflows.iter().flat_map(|coflow| &coflow.flows) {
        loads[0][usize::from(flow.from.0)] += flow.rate;
        loads[1][usize::from(flow.to.0)] += flow.rate;
    }
    loads
}

proptest! {
    #[test]
    fn no_port_gives_more_than_it_has(workload in workloads()) {
        let mut allocators: Vec<Box<dyn RateAllocator>> = vec![Box::new(MaxMin::default()), Box::new(EqualShare)];
        for order in [Order::Arrival, Order::LeftBottleneck, Order::FirstBottleneck] {
            allocators.push(Box::new(Madd { order }));
        }
        for mut allocator in allocators {
            let mut coflows = active(&workload);
            allocator.allocate(&mut coflows, workload.ports(), 1_000.0);
            prop_assert!(coflows.iter().flat_map(|coflow| &coflow.flows).all(|flow| flow.rate >= 0.0));
            for load in loads(&coflows, workload.ports()).concat() {
                prop_assert!(load <= 1_000.0 * (1.0 + 1e-9), "{load}");
            }
        }
    }

    /// The definition: each flow has a port that is full, on which no other flow has more.
    #[test]
    fn max_min_rates_are_max_min(workload in workloads()) {
        let mut coflows = active(&workload);
        MaxMin::default().allocate(&mut coflows, workload.ports(), 1_000.0);
        let [sends, receives] = loads(&coflows, workload.ports());
        let flows: Vec<&ActiveFlow> = coflows.iter().flat_map(|coflow| &coflow.flows).collect();
        for flow in &flows {
            let full = |load: f64| load >= 1_000.0 * (1.0 - 1e-9);
            let most = |of: &dyn Fn(&ActiveFlow) -> bool| {
                flows.iter().filter(|other| of(other)).map(|other| other.rate).fold(0.0, f64::max)
            };
            let at_sender = full(sends[usize::from(flow.from.0)]) && flow.rate >= most(&|other| other.from == flow.from) * (1.0 - 1e-9);
            let at_receiver = full(receives[usize::from(flow.to.0)]) && flow.rate >= most(&|other| other.to == flow.to) * (1.0 - 1e-9);
            prop_assert!(at_sender || at_receiver, "{flow:?}");
        }
    }

    #[test]
    fn coflows_in_an_order_leave_nothing_that_another_could_take(workload in workloads()) {
        for order in [Order::Arrival, Order::LeftBottleneck] {
            let mut coflows = active(&workload);
            Madd { order }.allocate(&mut coflows, workload.ports(), 1_000.0);
            let [sends, receives] = loads(&coflows, workload.ports());
            for flow in coflows.iter().flat_map(|coflow| &coflow.flows) {
                let most = sends[usize::from(flow.from.0)].max(receives[usize::from(flow.to.0)]);
                prop_assert!(most >= 1_000.0 * (1.0 - 1e-9), "{flow:?}");
            }
        }
    }

    #[test]
    fn no_coflow_beats_its_bound_and_ports_that_all_share_are_never_idle(workload in workloads()) {
        let allocators: [(&str, Box<dyn RateAllocator>); 4] = [
            ("max-min", Box::new(MaxMin::default())),
            ("equal share", Box::new(EqualShare)),
            ("fifo", Box::new(Madd { order: Order::Arrival })),
            ("varys", Box::new(Madd { order: Order::LeftBottleneck })),
        ];
        for (name, mut allocator) in allocators {
            let done = simulate(&workload, RATE, Clock::default(), &mut *allocator).unwrap();
            for (coflow, done) in workload.coflows().iter().zip(&done) {
                let bound = bounds::packet_bound(coflow, RATE).ps();
                // A thousandth of a byte is nothing.
                prop_assert!(done.time().ps() + 12_000_000 >= bound, "{name}: {done:?} {bound}");
            }
        }
    }

    /// The first coflow of an order takes as long as if it were alone.
    #[test]
    fn the_first_to_arrive_takes_its_bound_with_fifo(workload in workloads()) {
        let done = simulate(&workload, RATE, Clock::default(), &mut Madd { order: Order::Arrival }).unwrap();
        let bound = bounds::packet_bound(&workload.coflows()[0], RATE).ps();
        prop_assert!(done[0].time().ps() <= bound + 1_000, "{:?} {bound}", done[0]);
    }
}
