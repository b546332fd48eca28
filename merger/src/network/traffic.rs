//! What hosts sent each other and how long it was under way, window by window.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::queues::transit_times;
use super::windows::{Ends, WindowSample, carried};
use crate::join::{AddressBook, ObservedFlow};
use crate::maps::HashMap;
use crate::spilled::{RecordLog, SharedSorter};
use crate::survey::Views;

/// What was seen of flows that were read.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    seen: SharedSorter<WindowSample>,
    least_ns: Mutex<HashMap<Ends, i64>>,
}

/// What was seen of one flow.
#[derive(Debug, Default)]
pub(crate) struct FlowTraffic {
    seen: Vec<WindowSample>,
    least_ns: Vec<(Ends, i64)>,
}

impl FlowTraffic {
    /// Of a flow's packets, with times on one clock.
    pub fn of(flow: &ObservedFlow, views: &Views, book: &AddressBook) -> Self {
        let (mut seen, mut least_ns) = (carried(&flow.key, views, book), Vec::new());
        seen.extend(transit_times(&flow.key, views, book, |ends, ns| least_ns.push((ends, ns))));
        Self { seen, least_ns }
    }
}

impl Traffic {
    /// With that of another flow.
    ///
    /// # Errors
    /// If a temporary file cannot be written.
    pub fn add(&self, flow: FlowTraffic) -> io::Result<()> {
        let mut all = self.least_ns.lock().unwrap_or_else(PoisonError::into_inner);
        for (ends, ns) in flow.least_ns {
            all.entry(ends).and_modify(|least| *least = ns.min(*least)).or_insert(ns);
        }
        drop(all);
        self.seen.extend(flow.seen)
    }

    /// All of it in the order of time, each thing once.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub(super) fn by_window(self) -> io::Result<ByWindow> {
        let Self { seen, least_ns } = self;
        let (sorted, least_ns) = (seen.sorted(), least_ns.into_inner().unwrap_or_else(PoisonError::into_inner));
        let mut joined: RecordLog<WindowSample> = RecordLog::default();
        let mut all = sorted.iter().peekable();
        while let Some(mut seen) = all.next() {
            while all.next_if(|next| seen.join(next)).is_some() {}
            joined.push(seen)?;
        }
        sorted.check()?;
        Ok(ByWindow { seen: joined, least_ns })
    }
}

/// What was seen, window by window.
pub(super) struct ByWindow {
    seen: RecordLog<WindowSample>,
    least_ns: HashMap<Ends, i64>,
}

impl ByWindow {
    /// Looks at what was seen in each window, one after the other.
    ///
    /// # Errors
    /// If `at` fails, or a temporary file cannot be read.
    pub fn each(&self, mut at: impl FnMut(u64, &[WindowSample]) -> io::Result<()>) -> io::Result<()> {
        let (mut of_window, mut all) = (Vec::new(), self.seen.iter().peekable());
        while let Some(first) = all.next() {
            of_window.clear();
            of_window.push(first);
            of_window.extend(std::iter::from_fn(|| all.next_if(|next| next.window == first.window)));
            at(first.window, &of_window)?;
        }
        self.seen.check()
    }

    /// The least time that packets between two hosts were under way, nanoseconds by the clocks of both.
    pub fn least_ns(&self, ends: Ends) -> i64 {
        self.least_ns.get(&ends).copied().unwrap_or(0)
    }
}
