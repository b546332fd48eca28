//! The loop that lets a workload and a network take turns. Every run is one call of [`run`]: recorded jobs, synthetic traffic,
//! external simulators, lists of messages.
//!
//! ```
//! use netsim::engine::{self, End, Workload};
//! use netsim::fabric::{self, FabricConfig};
//! use netsim::network::{Delivery, FlowId, HostIndex, Network, Token};
//! use netsim::time::SimTime;
//! use netsim::topology::HostPlace;
//!
//! /// Two hosts that send a ball to and fro, `left` times.
//! struct PingPong {
//!     ways: [FlowId; 2],
//!     left: u64,
//!     served: bool,
//! }
//!
//! impl<N: Network> Workload<N> for PingPong {
//!     fn next_tick(&self, _: &N) -> Option<SimTime> {
//!         (!self.served).then_some(SimTime::ZERO)
//!     }
//!     fn tick(&mut self, now: SimTime, network: &mut N) {
//!         self.served = true;
//!         network.send(now, self.ways[0], 64, Token(self.left));
//!     }
//!     fn delivered(&mut self, ball: &Delivery, network: &mut N) {
//!         self.left -= 1;
//!         if self.left > 0 {
//!             network.send(ball.at, self.ways[usize::from(self.left % 2 == 1)], 64, Token(self.left));
//!         }
//!     }
//!     fn is_done(&self) -> bool {
//!         self.left == 0
//!     }
//! }
//!
//! let config: FabricConfig = toml::from_str("kind = \"ideal\"\nlatency = \"5us\"")?;
//! let hosts = ["a", "b"].map(|name| HostPlace { name: name.to_owned(), rack: "r".to_owned() });
//! let mut network = fabric::build(&config, &hosts)?;
//! let (there, back) = network.open_connection(HostIndex(0), HostIndex(1));
//! let mut game = PingPong { ways: [there, back], left: 10, served: false };
//! assert_eq!(engine::run(&mut network, &mut game, SimTime::LATEST), End::Done(SimTime(10 * 5_000_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::network::{Delivery, FlowId, HostIndex, Network, Simulation, Token};
use crate::time::SimTime;
use std::collections::BTreeMap;

/// What sends over a network `N`, and because of what.
pub trait Workload<N> {
    /// Whether it waits for deliveries. One that does is told of all that arrive in an instant before it ticks in that instant.
    /// One that does not is never told, and ticks before the network does anything in that instant; so the network
    /// goes on to its next tick without a stop.
    const REACTS: bool = true;

    /// When it next does something of its own accord; `None`: not before a delivery.
    fn next_tick(&self, network: &N) -> Option<SimTime>;

    /// The time of its tick has come.
    fn tick(&mut self, now: SimTime, network: &mut N);

    /// Something that it sent has arrived, now.
    fn delivered(&mut self, delivery: &Delivery, network: &mut N) {
        let _ = (delivery, network);
    }

    /// Whether nothing more needs to be simulated.
    fn is_done(&self) -> bool;
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The workload is done; the time of what made it so.
    Done(SimTime),
    /// Neither the workload nor the network has anything to do any more.
    Idle,
    /// What comes next comes later than the run was to last; its time.
    Limit(SimTime),
}

/// When the next thing happens, in the workload or the network.
pub fn next_time<N: Simulation, W: Workload<N>>(network: &N, workload: &W) -> Option<SimTime> {
    workload.next_tick(network).into_iter().chain(network.next_event()).min()
}

/// Lets `workload` and `network` take turns until the workload is done, nothing happens any more, or what comes next comes
/// after `until`.
pub fn run<N: Simulation, W: Workload<N>>(network: &mut N, workload: &mut W, until: SimTime) -> End {
    let mut deliveries = Vec::new();
    let mut now = SimTime::ZERO;
    while !workload.is_done() {
        let tick = workload.next_tick(network);
        let event = network.next_event();
        let Some(next) = tick.into_iter().chain(event).min() else { return End::Idle };
        if next > until || next == SimTime::MAX {
            return End::Limit(next);
        }
        let tick = tick.filter(|tick| *tick <= until);
        if W::REACTS && event.is_some_and(|event| tick.is_none_or(|tick| event <= tick)) {
            now = network.advance(tick.unwrap_or(until), &mut deliveries);
            deliveries.drain(..).for_each(|delivery| workload.delivered(&delivery, network));
            continue;
        }
        if !W::REACTS {
            network.run_before(tick.unwrap_or(until.plus_ps(1)));
        }
        now = tick.unwrap_or(until);
        if tick.is_some() {
            workload.tick(now, network);
        }
    }
    End::Done(now)
}

/// A message of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it is handed over.
    pub at: SimTime,
    /// Where it starts.
    pub source: HostIndex,
    /// Where it goes.
    pub destination: HostIndex,
    /// How long it is.
    pub bytes: u64,
}

/// Messages at given times. Those of a pair of hosts share a flow.
#[derive(Debug)]
pub struct Departures<'a> {
    list: &'a [Departure],
    next: usize,
    flows: BTreeMap<(HostIndex, HostIndex), FlowId>,
    /// When each message was delivered, by its place in the list.
    pub delivered: BTreeMap<usize, SimTime>,
}

impl<'a> Departures<'a> {
    /// The messages of `list`, in the order of their times.
    #[must_use]
    pub const fn new(list: &'a [Departure]) -> Self {
        Self { list, next: 0, flows: BTreeMap::new(), delivered: BTreeMap::new() }
    }
}

impl<N: Network> Workload<N> for Departures<'_> {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        self.list.get(self.next).map(|departure| departure.at)
    }

    fn tick(&mut self, now: SimTime, network: &mut N) {
        let Some(Departure { source, destination, bytes, .. }) = self.list.get(self.next).copied() else { return };
        let flow = self.flows.entry((source, destination)).or_insert_with(|| network.open_flow(source, destination));
        network.send(now, *flow, bytes, Token(self.next as u64));
        self.next += 1;
    }

    fn delivered(&mut self, delivery: &Delivery, _: &mut N) {
        if let Ok(place) = usize::try_from(delivery.token.0) {
            self.delivered.insert(place, delivery.at);
        }
    }

    fn is_done(&self) -> bool {
        self.delivered.len() == self.list.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::fabric::ideal::{Ideal, IdealConfig};
    use crate::topology::HostPlace;
    use crate::units::DurationPs;

    const LATENCY: u64 = 1_000;

    fn network() -> Ideal {
        let place = |name: &str| HostPlace { name: name.to_owned(), rack: "r".to_owned() };
        let config = IdealConfig { latency: DurationPs(LATENCY), ..IdealConfig::default() };
        Ideal::new(&config, &[place("a"), place("b")])
    }

    /// Sends at 0, ticks again when that arrives, and notes what comes first.
    struct Order<const REACTS: bool> {
        ticks: Vec<u64>,
        seen: Vec<&'static str>,
    }

    impl<const REACTS: bool> Workload<Ideal> for Order<REACTS> {
        const REACTS: bool = REACTS;

        fn next_tick(&self, _: &Ideal) -> Option<SimTime> {
            self.ticks.last().copied().map(SimTime)
        }

        fn tick(&mut self, now: SimTime, network: &mut Ideal) {
            self.ticks.pop();
            self.seen.push("tick");
            if now == SimTime::ZERO {
                let flow = network.open_flow(HostIndex(0), HostIndex(1));
                network.send(now, flow, 1, Token(0));
            } else {
                self.seen.push(if network.next_event().is_some() { "still under way" } else { "arrived" });
            }
        }

        fn delivered(&mut self, _: &Delivery, _: &mut Ideal) {
            self.seen.push("delivery");
        }

        fn is_done(&self) -> bool {
            false
        }
    }

    fn order<const REACTS: bool>(until: u64) -> (End, Vec<&'static str>) {
        let mut workload = Order::<REACTS> { ticks: vec![LATENCY, 0], seen: Vec::new() };
        (run(&mut network(), &mut workload, SimTime(until)), workload.seen)
    }

    #[test]
    fn who_waits_for_deliveries_is_told_before_the_tick_of_that_instant_and_others_tick_first() {
        assert_eq!(order::<true>(u64::MAX), (End::Idle, vec!["tick", "delivery", "tick", "arrived"]));
        assert_eq!(order::<false>(u64::MAX), (End::Idle, vec!["tick", "tick", "still under way"]));
    }

    #[test]
    fn nothing_happens_behind_the_limit() {
        assert_eq!(order::<true>(LATENCY - 1), (End::Limit(SimTime(LATENCY)), vec!["tick"]));
        assert_eq!(order::<false>(LATENCY - 1), (End::Limit(SimTime(LATENCY)), vec!["tick"]));
    }
}
