//! One interface: from the kernel's ring to its packet file.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pcap::{Active, Capture, Precision};
use trace::agent::now_ns;
use trace::mark::MarkKind;

use crate::clock::ClockWatch;
use crate::counters::{Counters, InterfaceCounter};
use crate::filter;
use crate::follow::Shared;
use crate::frame::LinkLayer;
use crate::held::HoldRule;
use crate::interfaces::{Interface, OwnAddresses};
use crate::keep::KeepRule;
use crate::pcapng::PcapngSink;
use crate::recorder::Recorder;
use crate::sink::PacketSink;

/// The kernel hands over a part of the ring that is not full after this time, milliseconds.
const HAND_OVER_MS: i32 = 100;
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

/// How interfaces are recorded.
#[derive(Clone, Debug)]
pub struct CaptureSettings {
    /// Filter, in the syntax of pcap-filter(7); empty = everything.
    pub filter: String,
    /// Captured bytes of a frame at most.
    pub snap_length: u32,
    /// The kernel's ring, bytes.
    pub ring_bytes: u32,
    /// What is kept of payloads.
    pub keep: KeepRule,
    /// Bounds of what waits until it is known whether it is Hadoop's.
    pub hold: HoldRule,
}

/// Why an interface cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel does not let us.
    #[error(
        "no permission to record interface {interface} ({reason}): run as root, or give the program the right with \
         `setcap cap_net_raw+ep PATH/sniffer`"
    )]
    Permission {
        /// Which.
        interface: String,
        /// What libpcap says.
        reason: String,
    },
    /// libpcap cannot open it.
    #[error("interface {interface} cannot be opened: {reason}")]
    Open {
        /// Which.
        interface: String,
        /// What libpcap says.
        reason: String,
    },
    /// The filter does not compile.
    #[error("filter \"{filter}\" cannot be set on {interface}: {reason} (see `man 7 pcap-filter`)")]
    Filter {
        /// Which interface.
        interface: String,
        /// The filter.
        filter: String,
        /// What libpcap says.
        reason: String,
    },
    /// It carries something that is not understood.
    #[error("interface {interface} has link type {linktype}, in which no IP packets are known to be found")]
    Link {
        /// Which interface.
        interface: String,
        /// libpcap's number.
        linktype: i32,
    },
}

/// An open interface: the kernel already collects its packets.
pub struct OpenInterface {
    capture: Capture<Active>,
    link: LinkLayer,
    counter: InterfaceCounter,
    snap_length: u32,
}

/// Opens an interface and sets the filter: that of `following`, if Hadoop's ports are followed, else that of the settings.
///
/// # Errors
/// If the right is missing, the interface cannot be opened, or the filter does not compile.
pub fn open(
    interface: &Interface,
    settings: &CaptureSettings,
    following: Option<&Shared>,
) -> Result<OpenInterface, OpenError> {
    let name = || interface.name.clone();
    let capture = Capture::from_device(interface.name.as_str())
        .map(|capture| {
            capture
                .snaplen(i32::try_from(settings.snap_length).unwrap_or(i32::MAX))
                .buffer_size(i32::try_from(settings.ring_bytes).unwrap_or(i32::MAX))
                .timeout(HAND_OVER_MS)
                .precision(Precision::Nano)
                .promisc(false)
        })
        .and_then(Capture::open)
        .map_err(|error| {
            let reason = error.to_string();
            let permission = ["ermission", "not permitted", "Try running as root"];
            if permission.iter().any(|word| reason.contains(word)) {
                OpenError::Permission { interface: name(), reason }
            } else {
                OpenError::Open { interface: name(), reason }
            }
        })?;
    let linktype = capture.get_datalink().0;
    let link = LinkLayer::of_linktype(linktype).ok_or_else(|| OpenError::Link { interface: name(), linktype })?;
    let mut capture =
        capture.setnonblock().map_err(|error| OpenError::Open { interface: name(), reason: error.to_string() })?;
    let counter = InterfaceCounter::begin(&interface.name, interface.loopback);
    if let Some(shared) = following {
        let followed = shared.followed();
        let program = filter::program(&followed.filtered_by(), followed.ephemeral_from, settings.snap_length);
        filter::attach(&capture, &program).map_err(|error| OpenError::Filter {
            interface: name(),
            filter: "Hadoop's ports".to_owned(),
            reason: error.to_string(),
        })?;
    } else if !settings.filter.is_empty() {
        capture.filter(&settings.filter, true).map_err(|error| OpenError::Filter {
            interface: name(),
            filter: settings.filter.clone(),
            reason: error.to_string(),
        })?;
    }
    Ok(OpenInterface { capture, link, counter, snap_length: settings.snap_length })
}

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

impl OpenInterface {
    /// What its frames begin with.
    #[must_use]
    pub fn link(&self) -> LinkLayer {
        self.link
    }
}

/// The name of an interface's packet file.
#[must_use]
pub fn file_name(interface: &str) -> String {
    format!("packets-{}.hpk", interface.replace('/', "_"))
}

/// Records until `stop` is set or the interface vanishes; then empties the ring of what came before the stop.
pub fn record(open: OpenInterface, recording: Recording, settings: &CaptureSettings) {
    let OpenInterface { mut capture, link, counter, snap_length } = open;
    let counters = Arc::clone(&recording.counters);
    let stop = Arc::clone(&recording.stop);
    let name = recording.interface.name.clone();
    let following = recording.following.clone();
    let mut recorder = Recorder::new(recording, link, settings);
    let mut watch =
        Watch { counter, statistics: Statistics::default(), clock: ClockWatch::default(), last_ns: now_ns() };
    let mut followed_version = following.as_ref().map_or(0, |shared| shared.version());
    let mut last_flush = Instant::now();
    let mut last_look = Instant::now();
    let mut stopping: Option<Instant> = None;
    let mut failed = false;
    let gather = GATHER.min(Duration::from_nanos(u64::from(settings.ring_bytes) / RING_BYTES_PER_NS));
    loop {
        if stopping.is_none() && stop.load(Ordering::Relaxed) {
            stopping = Some(Instant::now());
            recorder.until(now_ns());
        }
        if let Some(shared) = &following
            && shared.version() != followed_version
        {
            followed_version = shared.version();
            let followed = shared.followed();
            let program = filter::program(&followed.filtered_by(), followed.ephemeral_from, snap_length);
            if let Err(error) = filter::attach(&capture, &program) {
                counters.note(format!(
                    "{name}: the kernel did not take a new filter, so new ports may be missing: {error}"
                ));
            }
            recorder.follow(&followed);
        }
        let taken = capture.dispatch(Some(FRAMES_AT_ONCE), |packet| {
            let (seconds, nanoseconds) = (packet.header.ts.tv_sec, packet.header.ts.tv_usec);
            let time_ns = u64::try_from(seconds).unwrap_or(0) * 1_000_000_000 + u64::try_from(nanoseconds).unwrap_or(0);
            recorder.take(time_ns, packet.data, packet.header.len);
        });
        let taken = match taken {
            Ok(taken) => taken,
            // The interface is gone; what the kernel had collected of it before may still come.
            Err(error) if !failed => {
                counters.note(format!("{name}: recording ended early: {error}"));
                recorder.mark(MarkKind::Vanished, watch.last_ns, 0, 0);
                failed = true;
                stopping = Some(Instant::now());
                0
            }
            Err(_) => break,
        };
        if last_look.elapsed() >= LOOK_EVERY {
            watch.look(&mut capture, &mut recorder, &counters);
            last_look = Instant::now();
        }
        if last_flush.elapsed() >= FLUSH_EVERY {
            recorder.flush();
            last_flush = Instant::now();
        }
        recorder.publish();
        if recorder.is_full() {
            stop.store(true, Ordering::Relaxed);
            break;
        }
        if stopping.is_some_and(|since| recorder.is_past_the_end() || since.elapsed() > EMPTY_WITHIN) {
            break;
        }
        if taken == 0 {
            if !wait(&capture, &counters, &name) && stopping.is_some() {
                break;
            }
        } else if (MANY_FRAMES..FRAMES_AT_ONCE).contains(&taken) && stopping.is_none() {
            thread::sleep(gather);
        }
    }
    watch.look(&mut capture, &mut recorder, &counters);
    recorder.end(failed);
}

/// What is looked at now and then: the kernel's counters and the clock.
struct Watch {
    counter: InterfaceCounter,
    statistics: Statistics,
    clock: ClockWatch,
    last_ns: u64,
}

impl Watch {
    fn look(&mut self, capture: &mut Capture<Active>, recorder: &mut Recorder, counters: &Counters) {
        let from_ns = std::mem::replace(&mut self.last_ns, now_ns());
        let (dropped, interface_dropped) = self.statistics.read(capture, counters);
        recorder.mark(MarkKind::KernelDrops, from_ns, dropped, 0);
        recorder.mark(MarkKind::InterfaceDrops, from_ns, interface_dropped, 0);
        if let Some(step_ns) = self.clock.step() {
            recorder.mark(MarkKind::ClockStep, from_ns, 0, step_ns);
        }
        if let Some(count) = self.counter.count() {
            recorder.interface_counted(count);
        }
        recorder.expire();
    }
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
