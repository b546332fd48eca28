//! One interface: from the kernel's ring to its packet file.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;
use pcap::{Active, Capture};
use trace::agent::now_ns;
use trace::capabilities::{Capability, with_reserve};
use trace::capture_note::CaptureNoteKind;
use trace::signals::Signals;
use trace::waker::Waker;

use crate::capture::{self, CaptureSettings, OpenError, OpenInterface};
use crate::clock::ClockWatch;
use crate::counters::{Counters, InterfaceCounter};
use crate::filter;
use crate::follow::Shared;
use crate::frame::LinkLayer;
use crate::interfaces;
use crate::recorder::Recorder;
use crate::recording::Recording;

/// After a stop, silence of so long means that the ring is empty: twice the time after which the kernel hands over what it
/// has.
const SILENCE: Duration = Duration::from_millis(200);
/// Frames taken from the ring before looking at the clock.
const FRAMES_AT_ONCE: usize = 4096;
/// From so many frames at once on, in so short a time, more are about to come: it costs less to let them gather for a moment
/// than to be woken for each block of the ring (some 300 to 700 frames).
const MANY_FRAMES: usize = 256;
const SHORT: Duration = Duration::from_millis(25);
/// Frames gather no longer than this, and only as long as the ring has room for them at any rate that there may be: for a
/// fraction of the ring that 16 bytes a nanosecond would fill.
const GATHER: Duration = Duration::from_millis(8);
const RING_BYTES_PER_NS: u64 = 16;
/// Records are written when the last ones were so long ago: not at each hand-over of the kernel's, but at each second one.
const FLUSH_EVERY: Duration = Duration::from_millis(150);
/// If the kernel hands over nothing more, they wait no longer than this.
const FLUSH_WITHIN: Duration = Duration::from_millis(120);
/// How often the clock and the kernel's count of drops are looked at while packets come: a gap is known so exactly.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same without packets, and how often it is asked what the interface has counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// After it failed, an interface is looked at as often as with packets for so long: it may be going away.
const UNEASY: Duration = Duration::from_secs(3);
/// After the end of a run the ring is emptied for no longer than this.
const EMPTY_WITHIN: Duration = Duration::from_secs(3);
/// How often it is looked whether an interface that vanished is there again.
const RETURN_EVERY: Duration = Duration::from_millis(100);
/// Where new interfaces are recorded, one that comes back later than this is a new one: those of containers do not return.
const RETURN_WITHIN: Duration = Duration::from_secs(10);

/// Records until `stop` is set or the interface vanishes (for good, unless it is to be reopened); then empties the ring of
/// what came before the stop.
pub fn record(open: OpenInterface, recording: Recording, settings: &CaptureSettings) {
    let (counters, signals) = (Arc::clone(&recording.counters), recording.signals.clone());
    let mut session = Session::new(recording, open.link, settings);
    let mut open = open;
    loop {
        let is_gone = session.record(open);
        let again = if is_gone && settings.reopen { session.wait_for_return() } else { None };
        let Some(again) = again else { break session.recorder.end(is_gone) };
        open = again;
    }
    counters.end();
    signals.waker.wake();
}

struct Session<'a> {
    settings: &'a CaptureSettings,
    name: String,
    link: LinkLayer,
    counters: Arc<Counters>,
    following: Option<Arc<Shared>>,
    followed_version: u64,
    signals: Signals,
    waker: Waker,
    recorder: Recorder,
    clock: ClockWatch,
    looked_ns: u64,
    /// When it was last looked at before it vanished.
    vanished_since_ns: u64,
    flushed: Instant,
    /// Since when records wait to be written.
    waiting: Option<Instant>,
    /// Packets that the interface counted before it vanished.
    counted_before: u64,
}

impl<'a> Session<'a> {
    fn new(recording: Recording, link: LinkLayer, settings: &'a CaptureSettings) -> Self {
        let following = recording.following.clone();
        Self {
            settings,
            name: recording.interface.name.clone(),
            link,
            counters: Arc::clone(&recording.counters),
            followed_version: following.as_ref().map_or(0, |shared| shared.version()),
            following,
            signals: recording.signals.clone(),
            waker: recording.waker.clone(),
            recorder: Recorder::new(recording, link, settings),
            clock: ClockWatch::default(),
            looked_ns: now_ns(),
            vanished_since_ns: 0,
            flushed: Instant::now(),
            waiting: None,
            counted_before: 0,
        }
    }

    /// Records until `stop` is set or the interface vanishes: true.
    fn record(&mut self, open: OpenInterface) -> bool {
        let OpenInterface { mut capture, counter, .. } = open;
        let mut kernel = Kernel { counter, statistics: Statistics::default() };
        let gather = GATHER.min(Duration::from_nanos(u64::from(self.settings.ring_bytes) / RING_BYTES_PER_NS));
        let (mut looked, mut counted) = (Instant::now(), Instant::now());
        let mut taken_at = Instant::now();
        let mut is_news = false;
        let mut failed: Option<Instant> = None;
        let mut stopping: Option<Instant> = None;
        let mut is_gone = false;
        loop {
            if stopping.is_none() && self.signals.is_stop() {
                stopping = Some(Instant::now());
                self.recorder.until(now_ns());
            }
            self.follow(Some(&capture));
            self.recorder.expire();
            let recorder = &mut self.recorder;
            let taken = capture.dispatch(Some(FRAMES_AT_ONCE), |packet| {
                let (seconds, nanoseconds) = (packet.header.ts.tv_sec, packet.header.ts.tv_usec);
                let time_ns =
                    u64::try_from(seconds).unwrap_or(0) * 1_000_000_000 + u64::try_from(nanoseconds).unwrap_or(0);
                recorder.take(time_ns, packet.data, packet.header.len);
            });
            let taken = match taken {
                Ok(taken) => taken,
                // The interface is gone; what the kernel had collected of it before may still come.
                Err(error) if !is_gone => {
                    self.tell_of_loss(&error);
                    is_gone = true;
                    stopping = Some(Instant::now());
                    0
                }
                Err(_) => break,
            };
            if looked.elapsed() >= LOOK_EVERY {
                self.look(&mut capture, &mut kernel);
                looked = Instant::now();
            }
            if counted.elapsed() >= COUNT_EVERY {
                self.count(&kernel);
                counted = Instant::now();
            }
            self.flush_now_and_then();
            self.recorder.publish();
            if self.recorder.is_full() {
                self.signals.stop();
                break;
            }
            if stopping.is_some_and(|since| self.recorder.is_past_the_end() || since.elapsed() > EMPTY_WITHIN) {
                break;
            }
            if taken >= FRAMES_AT_ONCE {
                taken_at = Instant::now();
                continue;
            }
            let is_many = taken >= MANY_FRAMES && taken_at.elapsed() < SHORT;
            if taken > 0 {
                taken_at = Instant::now();
            }
            if is_many && stopping.is_none() {
                thread::sleep(gather);
                is_news = false;
                continue;
            }
            // What is not told by frames is that something is wrong with the interface.
            if is_news && taken == 0 {
                failed = Some(Instant::now());
                self.count(&kernel);
            }
            let is_uneasy = failed.is_some_and(|at| at.elapsed() < UNEASY);
            let limit = if stopping.is_some() { SILENCE } else { self.rest(is_uneasy, counted) };
            let waited = Instant::now();
            is_news = self.wait(&capture, limit);
            if stopping.is_some() && !is_news && waited.elapsed() >= limit {
                break;
            }
        }
        self.look(&mut capture, &mut kernel);
        self.count(&kernel);
        if is_gone {
            self.counted_before = self.recorder.interface_is_gone();
        }
        is_gone
    }

    /// How long there is nothing to do if no packet comes.
    fn rest(&self, is_uneasy: bool, counted: Instant) -> Duration {
        let look = if is_uneasy { LOOK_EVERY } else { COUNT_EVERY.saturating_sub(counted.elapsed()) };
        match self.waiting {
            Some(since) => look.min(FLUSH_WITHIN.saturating_sub(since.elapsed())),
            None => look,
        }
    }

    /// Waits for packets, or for what is rung for. Returns whether the interface has something to tell.
    fn wait(&self, capture: &Capture<Active>, limit: Duration) -> bool {
        match self.waker.wait([capture.as_fd()], limit) {
            Ok(is_news) => is_news,
            Err(error) => {
                self.counters.note(format!("{}: waiting for packets failed: {error}", self.name));
                thread::sleep(LOOK_EVERY);
                false
            }
        }
    }

    fn tell_of_loss(&mut self, error: &pcap::Error) {
        let name = &self.name;
        self.counters.note(if self.settings.reopen {
            format!("{name}: the interface went away ({error}); what passed until it came back is missing")
        } else {
            format!(
                "{name}: recording ended early: {error}; with --reopen it is recorded on when the interface comes back"
            )
        });
        self.vanished_since_ns = self.looked_ns;
        self.recorder.note(CaptureNoteKind::Vanished, self.vanished_since_ns, 0, 0);
    }

    /// Takes over what is followed now, if that has changed.
    fn follow(&mut self, capture: Option<&Capture<Active>>) {
        let Some(shared) = &self.following else { return };
        if shared.version() == self.followed_version {
            return;
        }
        self.followed_version = shared.version();
        let followed = shared.followed();
        if let Some(capture) = capture {
            let ports = followed.filtered_by();
            let program = filter::program(&ports, followed.ephemeral_from, self.settings.snap_length);
            if let Err(error) = filter::attach(capture, &program) {
                let name = &self.name;
                self.counters.note(format!(
                    "{name}: the kernel did not take a new filter, so new ports may be missing: {error}"
                ));
            }
        }
        self.recorder.follow(&followed);
    }

    fn flush_now_and_then(&mut self) {
        if !self.recorder.is_waiting() {
            self.waiting = None;
            return;
        }
        let since = *self.waiting.get_or_insert_with(Instant::now);
        if self.flushed.elapsed() >= FLUSH_EVERY || since.elapsed() >= FLUSH_WITHIN {
            self.recorder.flush();
            self.flushed = Instant::now();
            self.waiting = None;
        }
    }

    /// Looks at the kernel's count of drops and the clock.
    fn look(&mut self, capture: &mut Capture<Active>, kernel: &mut Kernel) {
        let from_ns = std::mem::replace(&mut self.looked_ns, now_ns());
        let (dropped, interface_dropped) = kernel.statistics.read(capture, &self.counters);
        self.recorder.note(CaptureNoteKind::KernelDrops, from_ns, dropped, 0);
        self.recorder.note(CaptureNoteKind::InterfaceDrops, from_ns, interface_dropped, 0);
        self.look_at_clock(from_ns);
    }

    fn count(&mut self, kernel: &Kernel) {
        if let Some(count) = kernel.counter.count() {
            self.recorder.interface_counted(self.counted_before + count);
        }
    }

    fn look_at_clock(&mut self, from_ns: u64) {
        if let Some(step_ns) = self.clock.step() {
            self.recorder.note(CaptureNoteKind::ClockStep, from_ns, 0, step_ns);
        }
    }

    /// Waits until an interface of this name is there again and up; `None` = the run ends first, or it cannot be opened.
    fn wait_for_return(&mut self) -> Option<OpenInterface> {
        let begun = Instant::now();
        while !self.signals.is_stop() {
            if self.settings.new_interfaces && begun.elapsed() > RETURN_WITHIN {
                return None;
            }
            if self.waker.wait([], RETURN_EVERY).is_err() {
                thread::sleep(RETURN_EVERY);
            }
            self.follow(None);
            let from_ns = std::mem::replace(&mut self.looked_ns, now_ns());
            self.look_at_clock(from_ns);
            self.recorder.expire();
            self.flush_now_and_then();
            self.recorder.publish();
            match self.open_again() {
                Ok(Some(open)) => {
                    // The whole time is missing, not only that up to the moment when it was noticed.
                    self.recorder.note(CaptureNoteKind::Vanished, self.vanished_since_ns, 0, 0);
                    return Some(open);
                }
                Ok(None) => {}
                Err(reason) => {
                    self.counters.note(format!("{} is there again, but is not recorded on: {reason}", self.name));
                    return None;
                }
            }
        }
        None
    }

    /// Opens it if it is there; an error if it makes no sense to try again.
    fn open_again(&self) -> Result<Option<OpenInterface>, String> {
        if if_nametoindex(self.name.as_str()).is_err() {
            return Ok(None);
        }
        let all = interfaces::list().unwrap_or_default();
        let Some(interface) = all.iter().find(|interface| interface.name == self.name && interface.up) else {
            return Ok(None);
        };
        let open = with_reserve(Capability::CAP_NET_RAW, || {
            capture::open(interface, self.settings, self.following.as_deref())
        });
        match open {
            Err(error) => Err(format!("the right to open it cannot be used: {error}")),
            Ok(Ok(open)) if open.link == self.link => Ok(Some(open)),
            Ok(Ok(_)) => Err("it has another link layer than before".to_owned()),
            // It may be about to go again.
            Ok(Err(OpenError::Open { .. } | OpenError::Filter { .. })) => Ok(None),
            Ok(Err(error)) => Err(error.to_string()),
        }
    }
}

/// What the kernel counts of an interface and of a ring.
struct Kernel {
    counter: InterfaceCounter,
    statistics: Statistics,
}

/// libpcap's counters are 32 bits wide and wrap.
#[derive(Default)]
struct Statistics {
    dropped: u32,
    interface_dropped: u32,
}

impl Statistics {
    /// Packets that the ring and the interface lost since the last call.
    fn read(&mut self, capture: &mut Capture<Active>, counters: &Counters) -> (u64, u64) {
        match capture.stats() {
            Ok(now) => {
                let dropped = u64::from(now.dropped.wrapping_sub(self.dropped));
                let interface_dropped = u64::from(now.if_dropped.wrapping_sub(self.interface_dropped));
                (self.dropped, self.interface_dropped) = (now.dropped, now.if_dropped);
                (dropped, interface_dropped)
            }
            Err(error) => {
                counters.note(format!("drops cannot be read: {error}"));
                (0, 0)
            }
        }
    }
}
