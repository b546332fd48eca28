//! Sunflow beside a slow model that tries every flow at every instant at which a port may become free.

use std::collections::BTreeSet;

use coflow::circuit::{Priority, sunflow};
use coflow::{Coflow, Workload, bounds};
use netsim::units::DurationPs;
use proptest::prelude::*;

use crate::{MS, RATE, workloads};

/// A circuit that is planned: for which flow, when its ports are taken, when it is up, when they are free.
#[derive(Clone, Copy)]
struct Planned {
    coflow: usize,
    flow: usize,
    ports: (u16, u16),
    start: u64,
    up: u64,
    end: u64,
}

/// Ports and time of each flow, those of a pair together, in order.
fn flows(coflow: &Coflow) -> Vec<((u16, u16), u64)> {
    let mut flows: Vec<((u16, u16), u64)> = Vec::new();
    for flow in &coflow.flows {
        let (ports, time) = ((flow.from.0, flow.to.0), flow.bytes as u64 * MS.ps());
        match flows.iter_mut().find(|(same, _)| *same == ports) {
            Some((_, sum)) => *sum += time,
            None => flows.push((ports, time)),
        }
    }
    flows
}

/// When each coflow is complete, ps.
fn plain(workload: &Workload, delay: u64, priority: Priority) -> Vec<u64> {
    let coflows = workload.coflows();
    let mut left: Vec<Vec<((u16, u16), u64)>> = coflows.iter().map(flows).collect();
    let mut ends: Vec<u64> = coflows.iter().map(|coflow| coflow.arrival.0).collect();
    let arrivals: BTreeSet<u64> = ends.iter().copied().collect();
    let mut there: Vec<Planned> = Vec::new();
    for &now in &arrivals {
        let until = arrivals.range(now + 1..).next().copied().unwrap_or(u64::MAX);
        let mut order: Vec<usize> = (0..coflows.len()).filter(|&coflow| coflows[coflow].arrival.0 <= now).collect();
        if priority == Priority::Shortest {
            order.sort_by_key(|&coflow| bounds::packet_bound(&coflows[coflow], RATE));
        }
        let mut plan: Vec<Planned> = Vec::new();
        for coflow in order {
            let mut unplanned = left[coflow].clone();
            let mut times: BTreeSet<u64> = plan.iter().map(|one| one.end).chain([now]).collect();
            while let Some(time) = times.pop_first() {
                let rest = |ports| there.iter().find(|one| one.ports == ports).map(|one| one.up.saturating_sub(now));
                let mut tried: Vec<usize> = (0..unplanned.len()).collect();
                tried.sort_by_key(|&flow| time > now || rest(unplanned[flow].0).is_none());
                for flow in tried {
                    let (ports, time_left) = unplanned[flow];
                    let touching: Vec<Planned> =
                        plan.iter().copied().filter(|one| one.ports.0 == ports.0 || one.ports.1 == ports.1).collect();
                    if time_left == 0 || touching.iter().any(|one| one.start <= time && time < one.end) {
                        continue;
                    }
                    let free = touching.iter().map(|one| one.start).filter(|start| *start > time).min();
                    let up = time + rest(ports).filter(|_| time == now).unwrap_or(delay);
                    let busy = time_left.min(free.unwrap_or(u64::MAX).saturating_sub(up));
                    if busy > 0 {
                        unplanned[flow].1 -= busy;
                        times.insert(up + busy);
                        plan.push(Planned { coflow, flow, ports, start: time, up, end: up + busy });
                    }
                }
            }
        }
        for one in &plan {
            let sent = one.end.min(until).saturating_sub(one.up);
            if sent > 0 {
                left[one.coflow][one.flow].1 -= sent;
                ends[one.coflow] = ends[one.coflow].max(one.end.min(until));
            }
        }
        there = plan.into_iter().filter(|one| one.start < until && one.end >= until).collect();
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn circuits_are_those_of_the_plain_model(workload in workloads(), delay_ms in 0..30_u64) {
        for priority in [Priority::Shortest, Priority::Arrival] {
            let delay = DurationPs::from_ms(delay_ms);
            let found = sunflow(&workload, RATE, delay, priority, |_| {}).unwrap();
            let found: Vec<u64> = found.iter().map(|one| one.end.0).collect();
            prop_assert_eq!(found, plain(&workload, delay.ps(), priority), "{:?}", priority);
        }
    }
}
