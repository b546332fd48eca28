//! What a run in windows asks of whoever wants it: messages host by host, and an observer a part.

use super::threads::{WindowProgress, WindowsCost};
use crate::fabric::optimistic::OptimisticCost;
use crate::fabric::packet::{Message, Observer};
use crate::network::{HostIndex, NetworkFigures, Token};
use crate::time::SimTime;

/// The messages of hosts, each host's in the order of time.
pub trait HostMessages: Send {
    /// When `host` hands over its next message, if it does.
    fn next_time(&self, host: HostIndex) -> Option<SimTime>;

    /// That message; `None` if there is none at that time after all. Either way, the one behind it comes next.
    fn take(&mut self, host: HostIndex) -> Option<Message>;
}

/// What sees the packets of one part. A packet is lost or delivered where it is, perhaps in another part than its source's.
pub trait PartObserver: Observer + Send + Sync + Sized {
    /// One that has seen nothing yet, for a part more.
    fn for_part(&self) -> Self;

    /// A host of this part hands `message` over at `at`.
    fn handed_over(&mut self, at: SimTime, message: &Message);

    /// A message of `packets` packets, more than one, is under way to a host of this part.
    fn opened(&mut self, token: Token, packets: u64);

    /// Adds what another part's has seen.
    fn merge(&mut self, other: Self);
}

/// At which times a run that has sent all that counts looks whether that has arrived.
pub trait LastStops<O> {
    /// What counts and has not arrived, as one part's observer has seen it: what others have seen makes it whole.
    fn awaited(&self, observer: &O) -> i64;

    /// Whether a packet counts that was handed over at a time.
    fn counts(&self, handed_over: SimTime) -> bool;

    /// The stop behind `now`, the time up to which it has run; `None` if there is none. `outlasts`: a packet that counts is certainly under way at
    /// the end of the window in which `now` lies.
    fn next(&self, now: SimTime, outlasts: bool) -> Option<SimTime>;
}

/// [`WindowedRun::run_stops`], one run after the other.
pub(in crate::fabric) fn stop_by_stop<O: PartObserver>(
    run: &mut impl WindowedRun<O>,
    mut now: SimTime,
    mut look: impl FnMut(WindowProgress) -> bool,
    stops: &impl LastStops<O>,
) -> (SimTime, bool) {
    while run.observers().map(|observer| stops.awaited(observer)).sum::<i64>() != 0 {
        let outlasts = run.outlasts_window(now, |at| stops.counts(at));
        let Some(next) = stops.next(now, outlasts) else { break };
        now = next;
        if run.run_before(now, &mut look) {
            return (now, true);
        }
    }
    (now, false)
}

/// A network that is run in windows, or optimistically.
pub trait WindowedRun<O: PartObserver> {
    /// Runs until `until`, that instant not included. `look` is called between two windows (optimistically: when it is known
    /// before which time all is sure); when it returns true, the run stops there. Returns whether it did.
    fn run_before(&mut self, until: SimTime, look: impl FnMut(WindowProgress) -> bool) -> bool;

    /// Runs on from `now`, where it is, stop by stop until nothing is awaited any more or there are no more stops. Returns where it is then, and
    /// whether `look` stopped it.
    fn run_stops(
        &mut self,
        now: SimTime,
        look: impl FnMut(WindowProgress) -> bool,
        stops: &(impl LastStops<O> + Sync),
    ) -> (SimTime, bool)
    where
        Self: Sized,
    {
        stop_by_stop(self, now, look, stops)
    }

    /// Runs on at most `threads` threads, each with parts next to each other; without it, on as many as there are cores.
    fn on_threads(&mut self, threads: usize);

    /// How many parts it has.
    fn parts(&self) -> usize;

    /// The width of a window, in picoseconds.
    fn window_ps(&self) -> u64;

    /// Whether a packet that was handed over when it `counts` is certainly under way still at the end of the window in which `now` lies, the
    /// time up to which it has run. `false` where that is not known.
    fn outlasts_window(&self, _now: SimTime, _counts: impl Fn(SimTime) -> bool) -> bool {
        false
    }

    /// What it has taken so far.
    fn cost(&self) -> WindowsCost;

    /// What it has taken so far to run it optimistically; `None` if it is not.
    fn optimistic_cost(&self) -> Option<OptimisticCost> {
        None
    }

    /// Events so far: as many as the event engine would have needed.
    fn events(&self) -> u64;

    /// What all parts have seen so far. It is as if nothing had been seen before.
    fn observers<'a>(&'a self) -> impl Iterator<Item = &'a O>
    where
        O: 'a;

    /// The same, to be changed.
    fn observers_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut O>
    where
        O: 'a;

    /// What all parts have seen, together.
    fn into_observer(self) -> O;

    /// Virtual lanes of each link.
    fn lanes(&self) -> u32;

    /// Bytes of packets that have begun to cross each virtual lane of each link before `now`, the time up to which it has run, link by
    /// link.
    fn lane_bytes(&mut self, now: SimTime) -> Vec<u64>;

    /// Forgets what is under way, which is most of the memory: no window can be run after it. What was counted stays.
    fn forget_packets(&mut self);

    /// What was counted. State of links is given up for it where that is most of what is left in memory: no window can be run after it.
    fn take_figures(&mut self) -> NetworkFigures;
}
