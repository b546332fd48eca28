//! One interface: from the kernel's ring to its packet file.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pcap::{Active, Capture, Precision};
use trace::agent::now_ns;
use trace::packet::{Direction, Packet, PacketFileHeader};

use crate::counters::{Counters, add};
use crate::frame::{Frame, LinkLayer, parse};
use crate::interfaces::{self, Interface, OwnAddresses};
use crate::keep::{KeepRule, Keeper};
use crate::sink::PacketSink;

/// The kernel hands over a part of the ring that is not full after this time, milliseconds.
const HAND_OVER_MS: i32 = 100;
/// Longest wait for packets before looking at the clock, milliseconds.
const WAIT_MS: u16 = 100;
/// Frames taken from the ring before looking at the clock.
const FRAMES_AT_ONCE: usize = 4096;
/// Records wait for each other no longer than this.
const FLUSH_EVERY: Duration = Duration::from_millis(200);
/// How often the kernel's own counters are read.
const STATISTICS_EVERY: Duration = Duration::from_secs(1);
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
}

/// Opens an interface and sets the filter.
///
/// # Errors
/// If the right is missing, the interface cannot be opened, or the filter does not compile.
pub fn open(interface: &Interface, settings: &CaptureSettings) -> Result<OpenInterface, OpenError> {
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
    if !settings.filter.is_empty() {
        capture.filter(&settings.filter, true).map_err(|error| OpenError::Filter {
            interface: name(),
            filter: settings.filter.clone(),
            reason: error.to_string(),
        })?;
    }
    Ok(OpenInterface { capture, link })
}

/// What the thread of an interface needs to know.
pub struct Recording {
    /// Which interface.
    pub interface: Interface,
    /// Addresses of the host, of all interfaces.
    pub own: OwnAddresses,
    /// Where records go.
    pub sink: PacketSink,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// Set when the run is to end.
    pub stop: Arc<AtomicBool>,
}

/// Opens the packet file of an interface in `folder`.
///
/// # Errors
/// See [`PacketSink::open`].
pub fn open_sink(
    folder: &Path,
    host: &str,
    interface: &Interface,
    snap_length: u32,
    started_ns: u64,
) -> io::Result<PacketSink> {
    let header = PacketFileHeader {
        host: host.to_owned(),
        interface: interface.name.clone(),
        loopback: interface.loopback,
        snap_length,
        started_ns,
    };
    PacketSink::open(&folder.join(file_name(&interface.name)), &header)
}

/// The name of an interface's packet file.
#[must_use]
pub fn file_name(interface: &str) -> String {
    format!("packets-{}.hpk", interface.replace('/', "_"))
}

/// Records until `stop` is set or the interface vanishes; then empties the ring of what came before the stop.
pub fn record(open: OpenInterface, recording: Recording, keep: KeepRule) {
    let OpenInterface { mut capture, link } = open;
    let counters = Arc::clone(&recording.counters);
    let stop = Arc::clone(&recording.stop);
    let name = recording.interface.name.clone();
    let mut recorder = Recorder::new(recording, link, keep);
    let mut last_flush = Instant::now();
    let mut last_statistics = Instant::now();
    let mut statistics = Statistics::default();
    let mut stopping: Option<Instant> = None;
    let mut failed = false;
    loop {
        if stopping.is_none() && stop.load(Ordering::Relaxed) {
            stopping = Some(Instant::now());
            recorder.until_ns = now_ns();
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
                failed = true;
                stopping = Some(Instant::now());
                0
            }
            Err(_) => break,
        };
        recorder.publish();
        if last_flush.elapsed() >= FLUSH_EVERY {
            recorder.flush();
            last_flush = Instant::now();
        }
        if last_statistics.elapsed() >= STATISTICS_EVERY {
            statistics.read(&mut capture, &counters);
            last_statistics = Instant::now();
        }
        if stopping.is_some_and(|since| recorder.is_past_the_end || since.elapsed() > EMPTY_WITHIN) {
            break;
        }
        if taken == 0 && !wait(&capture, &counters, &name) && stopping.is_some() {
            break;
        }
    }
    statistics.read(&mut capture, &counters);
    recorder.flush();
    recorder.publish();
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
            std::thread::sleep(Duration::from_millis(u64::from(WAIT_MS)));
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
    fn read(&mut self, capture: &mut Capture<Active>, counters: &Counters) {
        match capture.stats() {
            Ok(now) => {
                add(&counters.kernel_drops, u64::from(now.dropped.wrapping_sub(self.dropped)));
                add(&counters.interface_drops, u64::from(now.if_dropped.wrapping_sub(self.interface_dropped)));
                (self.dropped, self.interface_dropped) = (now.dropped, now.if_dropped);
            }
            Err(error) => counters.note(format!("drops cannot be read: {error}")),
        }
    }
}

/// Turns frames into records.
struct Recorder {
    link: LinkLayer,
    loopback: bool,
    own: OwnAddresses,
    own_read: Instant,
    keeper: Keeper,
    sink: PacketSink,
    counters: Arc<Counters>,
    packet: Packet,
    counts: [u64; 3],
    until_ns: u64,
    is_past_the_end: bool,
    unwritten: u64,
}

impl Recorder {
    fn new(recording: Recording, link: LinkLayer, keep: KeepRule) -> Self {
        let nobody = std::net::SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            link,
            loopback: recording.interface.loopback,
            own: recording.own,
            own_read: Instant::now(),
            keeper: Keeper::new(keep),
            sink: recording.sink,
            counters: recording.counters,
            packet: Packet {
                time_ns: 0,
                direction: Direction::Foreign,
                source: nobody,
                destination: nobody,
                raw_length: 0,
                payload_length: 0,
                sequence: 0,
                acknowledgement: 0,
                flags: 0,
                window: 0,
                payload: Vec::new(),
            },
            counts: [0; 3],
            until_ns: u64::MAX,
            is_past_the_end: false,
            unwritten: 0,
        }
    }

    fn take(&mut self, time_ns: u64, frame: &[u8], wire_length: u32) {
        if time_ns > self.until_ns {
            self.is_past_the_end = true;
            return;
        }
        let segment = match parse(self.link, frame, wire_length) {
            Frame::Tcp(segment) => segment,
            Frame::Other => {
                self.counts[1] += 1;
                return;
            }
            Frame::Unparsed => {
                self.counts[2] += 1;
                return;
            }
        };
        let keep =
            self.keeper.keep(time_ns, segment.source, segment.destination, segment.flags, segment.payload_length);
        let packet = &mut self.packet;
        packet.payload.clear();
        packet.payload.extend_from_slice(&segment.payload[..segment.payload.len().min(keep)]);
        packet.time_ns = time_ns;
        packet.source = segment.source;
        packet.destination = segment.destination;
        packet.raw_length = wire_length;
        packet.payload_length = segment.payload_length;
        packet.sequence = segment.sequence;
        packet.acknowledgement = segment.acknowledgement;
        packet.flags = segment.flags;
        packet.window = segment.window;
        self.packet.direction = self.direction(segment.source.ip(), segment.destination.ip());
        match self.sink.write(&self.packet) {
            Ok(()) => self.counts[0] += 1,
            Err(error) => self.counters.note(format!("a packet cannot be recorded: {error}")),
        }
    }

    /// A packet of nobody we know may be that of an address the host has just been given.
    fn direction(&mut self, source: std::net::IpAddr, destination: std::net::IpAddr) -> Direction {
        if self.loopback {
            return Direction::Loopback;
        }
        let direction = self.own.direction(source, destination);
        if direction == Direction::Foreign && self.own_read.elapsed() > Duration::from_secs(1) {
            self.own_read = Instant::now();
            if let Ok(all) = interfaces::list() {
                self.own = OwnAddresses::of(&all);
                return self.own.direction(source, destination);
            }
        }
        direction
    }

    fn flush(&mut self) {
        self.sink.flush();
        if let Some(error) = self.sink.take_error() {
            self.counters.note(format!("packets were lost because their file could not be written: {error}"));
        }
    }

    /// Shows the counts of this thread to the others.
    fn publish(&mut self) {
        let unwritten = self.sink.unwritten();
        add(&self.counters.unwritten, unwritten - self.unwritten);
        self.unwritten = unwritten;
        add(&self.counters.packets, self.counts[0]);
        add(&self.counters.other, self.counts[1]);
        add(&self.counters.unparsed, self.counts[2]);
        self.counts = [0; 3];
    }
}
