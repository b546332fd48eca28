//! Any text is read as coflows or refused with a line; small ones come to an end under every scheduler, or are refused; no coflow
//! beats its bound; never a panic.
use coflow::benchmark::{Megabyte, parse};
use coflow::circuit::{Birkhoff, MatrixScheduler, MaxWeight, Priority, Solstice, all_stop, sunflow};
use coflow::packet::{Clock, Completion, EqualShare, Madd, MaxMin, Order, RateAllocator, simulate};
use coflow::{CoflowError, Workload, bounds};
use netsim::units::{DurationPs, Rate};

/// What must hold for any input.
pub fn check(text: &str) {
    let workload = match parse(text, Megabyte::Decimal) {
        Ok(workload) => workload,
        Err(error) => return assert!(error.line <= text.lines().count().max(1), "{error}"),
    };
    let flows: usize = workload.coflows().iter().map(|coflow| coflow.flows.len()).sum();
    if workload.ports() > 16 || flows > 64 {
        return;
    }
    let delay = DurationPs::from_ms(10);
    for rate in [Rate::from_bps(1_000_000_000), Rate::from_bps(1), Rate::from_bps(u64::MAX - 1)] {
        for clock in [Clock::default(), Clock { tick: delay, epoch: DurationPs::from_ms(1_000) }] {
            let allocators: [Box<dyn RateAllocator>; 4] = [
                Box::new(MaxMin::default()),
                Box::new(EqualShare),
                Box::new(Madd { order: Order::Arrival }),
                Box::new(Madd { order: Order::LeftBottleneck }),
            ];
            for mut allocator in allocators {
                ends(&workload, rate, clock.epoch, simulate(&workload, rate, clock, &mut *allocator));
            }
        }
        let schedulers: [Box<dyn MatrixScheduler>; 3] = [
            Box::new(Birkhoff),
            Box::new(Solstice { shortest: delay }),
            Box::new(MaxWeight { slot: DurationPs::from_ms(60_000) }),
        ];
        for mut scheduler in schedulers {
            ends(&workload, rate, DurationPs::ZERO, all_stop(&workload, rate, delay, &mut *scheduler, |_| {}));
        }
        for priority in [Priority::Shortest, Priority::Arrival] {
            ends(&workload, rate, DurationPs::ZERO, sunflow(&workload, rate, delay, priority, |_| {}));
        }
    }
}

fn ends(workload: &Workload, rate: Rate, epoch: DurationPs, found: Result<Vec<Completion>, CoflowError>) {
    let Ok(completions) = found else { return };
    assert_eq!(completions.len(), workload.coflows().len());
    for (coflow, done) in workload.coflows().iter().zip(&completions) {
        assert!(done.start <= done.end && (epoch > DurationPs::ZERO || done.start == coflow.arrival), "{done:?}");
        // Less than a thousandth of a byte of a flow may be left, and times have 53 bits.
        let bound = bounds::packet_bound(coflow, rate).ps() as f64;
        let nothing = 8e9 / rate.bps().unwrap_or(u64::MAX) as f64 * coflow.flows.len() as f64 + bound * 1e-9 + 1.0;
        assert!(done.time().ps() as f64 + nothing >= bound, "{done:?} {bound}");
    }
}
