//! A network that is run in windows, by its parts.

use super::seam::{LastStops, PartObserver, WindowedRun, stop_by_stop};
use super::threads::{Part, Stops, Threads, WindowProgress, WindowsCost};
use crate::network::NetworkFigures;
use crate::time::SimTime;

/// A part of a network whose packets an observer sees, and what is told of the network by all of them.
pub(in crate::fabric) trait ObservedPart: Part + Sized {
    type Observer: PartObserver;

    /// Whether nothing needs to be made ready before parts run until a time.
    const IS_READY: bool = false;

    fn observer(&self) -> &Self::Observer;

    fn observer_mut(&mut self) -> &mut Self::Observer;

    fn into_observer(self) -> Self::Observer;

    /// As [`WindowedRun::forget_packets`].
    fn forget_packets(&mut self);

    /// As [`WindowedRun::outlasts_window`], of what is in this part.
    fn outlasts(&self, _window: u64, _counts: &impl Fn(SimTime) -> bool) -> bool {
        false
    }

    /// As [`WindowedRun::lanes`].
    fn lanes(_parts: &[Self]) -> u32 {
        1
    }

    /// As [`WindowedRun::lane_bytes`]; and what other threads computed for it, in seconds.
    fn lane_bytes(parts: &[Self], shared: &Self::Shared, now: SimTime) -> (Vec<u64>, f64);

    /// As [`WindowedRun::take_figures`], of a network of so many events; and what other threads computed for it, in seconds.
    fn take_figures(parts: &mut [Self], shared: &Self::Shared, events: u64) -> (NetworkFigures, f64);
}

/// A run in windows.
pub(in crate::fabric) struct Run<P: ObservedPart, B> {
    shared: P::Shared,
    parts: Vec<P>,
    threads: Threads,
    /// Makes what all parts read ready for a run until a time.
    prepare: B,
    /// To which those of the parts are added in the end.
    observer: P::Observer,
}

impl<P: ObservedPart, B: FnMut(&mut P::Shared, SimTime)> Run<P, B> {
    /// Of parts that nothing has happened in. `prepare` makes what all of them read ready before they run until a time.
    pub fn new(shared: P::Shared, parts: Vec<P>, observer: P::Observer, prepare: B) -> Self {
        Self { shared, parts, threads: Threads::default(), prepare, observer }
    }

    /// The same, run by `threads` threads at most.
    pub fn on_at_most(mut self, threads: usize) -> Self {
        self.threads.most = self.threads.most.min(threads);
        self
    }

    /// The same, for whose parts other threads have computed so many seconds.
    pub fn with_cpu_of_others(mut self, seconds: f64) -> Self {
        self.threads.cost.others_cpu_s += seconds;
        self
    }
}

impl<P: ObservedPart, B: FnMut(&mut P::Shared, SimTime)> WindowedRun<P::Observer> for Run<P, B> {
    fn run_before(&mut self, until: SimTime, look: impl FnMut(WindowProgress) -> bool) -> bool {
        (self.prepare)(&mut self.shared, until);
        self.threads.run_before(&mut self.parts, &self.shared, until, look)
    }

    fn run_stops(
        &mut self,
        now: SimTime,
        look: impl FnMut(WindowProgress) -> bool,
        stops: &(impl LastStops<P::Observer> + Sync),
    ) -> (SimTime, bool) {
        if P::IS_READY && self.parts.len() > 1 {
            self.threads.run_stops(&mut self.parts, &self.shared, now, look, &StopsOfParts(stops))
        } else {
            stop_by_stop(self, now, look, stops)
        }
    }

    fn on_threads(&mut self, threads: usize) {
        self.threads.most = threads;
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn window_ps(&self) -> u64 {
        P::width(&self.shared)
    }

    fn outlasts_window(&self, now: SimTime, counts: impl Fn(SimTime) -> bool) -> bool {
        let window = now.0 / self.window_ps();
        self.parts.iter().any(|part| part.outlasts(window, &counts))
    }

    fn cost(&self) -> WindowsCost {
        self.threads.cost
    }

    fn events(&self) -> u64 {
        self.parts.iter().map(P::events).sum()
    }

    fn observers<'a>(&'a self) -> impl Iterator<Item = &'a P::Observer>
    where
        P::Observer: 'a,
    {
        self.parts.iter().map(P::observer)
    }

    fn observers_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut P::Observer>
    where
        P::Observer: 'a,
    {
        self.parts.iter_mut().map(P::observer_mut)
    }

    fn into_observer(self) -> P::Observer {
        let mut all = self.observer;
        self.parts.into_iter().for_each(|part| all.merge(part.into_observer()));
        all
    }

    fn lanes(&self) -> u32 {
        P::lanes(&self.parts)
    }

    fn lane_bytes(&mut self, now: SimTime) -> Vec<u64> {
        let (bytes, others_cpu_s) = P::lane_bytes(&self.parts, &self.shared, now);
        self.threads.cost.others_cpu_s += others_cpu_s;
        bytes
    }

    fn forget_packets(&mut self) {
        self.parts.iter_mut().for_each(P::forget_packets);
    }

    fn take_figures(&mut self) -> NetworkFigures {
        let events = self.events();
        let (figures, others_cpu_s) = P::take_figures(&mut self.parts, &self.shared, events);
        self.threads.cost.others_cpu_s += others_cpu_s;
        figures
    }
}

/// The last stops of a run, as its parts see them.
struct StopsOfParts<'a, S>(&'a S);

impl<P: ObservedPart, S: LastStops<P::Observer>> Stops<P> for StopsOfParts<'_, S> {
    fn awaited(&self, part: &P) -> i64 {
        self.0.awaited(part.observer())
    }

    fn outlasts(&self, part: &P, window: u64) -> bool {
        part.outlasts(window, &|handed_over| self.0.counts(handed_over))
    }

    fn next(&self, now: SimTime, outlasts: bool) -> Option<SimTime> {
        self.0.next(now, outlasts)
    }
}
