//! One interface: from the kernel's ring to its packet file.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pcap::{Active, Capture};
use trace::agent::now_ns;
use trace::mark::MarkKind;
use trace::rights::{Capability, with_reserve};

use crate::capture::{self, CaptureSettings, OpenError, OpenInterface};
use crate::clock::ClockWatch;
use crate::counters::{Counters, InterfaceCounter};
use crate::filter;
use crate::follow::Shared;
use crate::frame::LinkLayer;
use crate::interfaces::{self, Interface, OwnAddresses};
use crate::pcapng::PcapngSink;
use crate::recorder::Recorder;
use crate::sink::PacketSink;

/// Longest wait for packets before looking at the clock, milliseconds.
const WAIT_MS: u16 = 100;
/// Frames taken from the ring before looking at the clock.
const FRAMES_AT_ONCE: usize = 4096;
/// From so many frames at once on, more are about to come: it costs less to let them gather for a moment than to be woken
/// for each block of the ring (some 700 frames).
const MANY_FRAMES: usize = 256;
/// Frames gather no longer than this, and only as long as the ring has room for them at any rate that there may be: for a
/// fraction of the ring that 16 bytes a nanosecond would fill.
const GATHER: Duration = Duration::from_millis(8);
const RING_BYTES_PER_NS: u64 = 16;
/// Records wait for each other no longer than this.
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// How often the clocks and the kernel's own counters are looked at: a gap is known so exactly.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// After the end of a run the ring is emptied for no longer than this.
const EMPTY_WITHIN: Duration = Duration::from_secs(3);
/// How often it is looked whether an interface that vanished is there again.
const RETURN_EVERY: Duration = Duration::from_millis(100);

/// What the thread of an interface needs to know.
pub struct Recording {
    /// Which interface.
    pub interface: Interface,
    /// Addresses of the host, of all interfaces.
    pub own: OwnAddresses,
    /// Where records go.
    pub sink: PacketSink,
    /// The same as pcapng, if that is wanted.
    pub pcapng: Option<PcapngSink>,
    /// Who tells whose a connection is, for pcapng's comments.
    pub names: Option<Arc<Shared>>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// What is followed; `None` = everything is recorded.
    pub following: Option<Arc<Shared>>,
    /// Set when the run is to end.
    pub stop: Arc<AtomicBool>,
}

/// Records until `stop` is set or the interface vanishes (for good, unless it is to be reopened); then empties the ring of
/// what came before the stop.
pub fn record(open: OpenInterface, recording: Recording, settings: &CaptureSettings) {
    let mut session = Session::new(recording, open.link, settings);
    let mut open = open;
    loop {
        let is_gone = session.record(open);
        let again = if is_gone && settings.reopen { session.wait_for_return() } else { None };
        let Some(again) = again else { return session.recorder.end(is_gone) };
        open = again;
    }
}

struct Session<'a> {
    settings: &'a CaptureSettings,
    name: String,
    link: LinkLayer,
    counters: Arc<Counters>,
    following: Option<Arc<Shared>>,
    followed_version: u64,
    stop: Arc<AtomicBool>,
    recorder: Recorder,
    clock: ClockWatch,
    looked_ns: u64,
    flushed: Instant,
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
            stop: Arc::clone(&recording.stop),
            recorder: Recorder::new(recording, link, settings),
            clock: ClockWatch::default(),
            looked_ns: now_ns(),
            flushed: Instant::now(),
            counted_before: 0,
        }
    }

    /// Records until `stop` is set or the interface vanishes: true.
    fn record(&mut self, open: OpenInterface) -> bool {
        let OpenInterface { mut capture, counter, .. } = open;
        let mut kernel = Kernel { counter, statistics: Statistics::default() };
        let gather = GATHER.min(Duration::from_nanos(u64::from(self.settings.ring_bytes) / RING_BYTES_PER_NS));
        let mut looked = Instant::now();
        let mut stopping: Option<Instant> = None;
        let mut is_gone = false;
        loop {
            if stopping.is_none() && self.stop.load(Ordering::Relaxed) {
                stopping = Some(Instant::now());
                self.recorder.until(now_ns());
            }
            self.follow(Some(&capture));
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
            self.flush_now_and_then();
            self.recorder.publish();
            if self.recorder.is_full() {
                self.stop.store(true, Ordering::Relaxed);
                break;
            }
            if stopping.is_some_and(|since| self.recorder.is_past_the_end() || since.elapsed() > EMPTY_WITHIN) {
                break;
            }
            if taken == 0 {
                if !wait(&capture, &self.counters, &self.name) && stopping.is_some() {
                    break;
                }
            } else if (MANY_FRAMES..FRAMES_AT_ONCE).contains(&taken) && stopping.is_none() {
                thread::sleep(gather);
            }
        }
        self.look(&mut capture, &mut kernel);
        if is_gone {
            self.counted_before = self.recorder.interface_is_gone();
        }
        is_gone
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
        self.recorder.mark(MarkKind::Vanished, self.looked_ns, 0, 0);
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
        if self.flushed.elapsed() >= FLUSH_EVERY {
            self.recorder.flush();
            self.flushed = Instant::now();
        }
    }

    /// Looks at the kernel's counters and the clock.
    fn look(&mut self, capture: &mut Capture<Active>, kernel: &mut Kernel) {
        let from_ns = std::mem::replace(&mut self.looked_ns, now_ns());
        let (dropped, interface_dropped) = kernel.statistics.read(capture, &self.counters);
        self.recorder.mark(MarkKind::KernelDrops, from_ns, dropped, 0);
        self.recorder.mark(MarkKind::InterfaceDrops, from_ns, interface_dropped, 0);
        if let Some(count) = kernel.counter.count() {
            self.recorder.interface_counted(self.counted_before + count);
        }
        self.look_at_clock(from_ns);
    }

    fn look_at_clock(&mut self, from_ns: u64) {
        if let Some(step_ns) = self.clock.step() {
            self.recorder.mark(MarkKind::ClockStep, from_ns, 0, step_ns);
        }
        self.recorder.expire();
    }

    /// Waits until an interface of this name is there again and up; `None` = the run ends first, or it cannot be opened.
    fn wait_for_return(&mut self) -> Option<OpenInterface> {
        let since_ns = self.looked_ns;
        while !self.stop.load(Ordering::Relaxed) {
            thread::sleep(RETURN_EVERY);
            self.follow(None);
            let from_ns = std::mem::replace(&mut self.looked_ns, now_ns());
            self.look_at_clock(from_ns);
            self.flush_now_and_then();
            self.recorder.publish();
            match self.open_again() {
                Ok(Some(open)) => {
                    // The whole time is missing, not only that up to the moment when it was noticed.
                    self.recorder.mark(MarkKind::Vanished, since_ns, 0, 0);
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

/// Waits for packets; false when none came within the time after which the kernel hands over what it has.
fn wait(capture: &Capture<Active>, counters: &Counters, name: &str) -> bool {
    // Twice the time of handing over, so that silence means that the ring is empty.
    let mut fds = [PollFd::new(capture.as_fd(), PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::from(2 * WAIT_MS)) {
        Ok(ready) => ready > 0,
        Err(Errno::EINTR) => true,
        Err(error) => {
            counters.note(format!("{name}: waiting for packets failed: {error}"));
            thread::sleep(Duration::from_millis(u64::from(WAIT_MS)));
            false
        }
    }
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
