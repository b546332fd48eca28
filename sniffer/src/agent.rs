//! A run of the sniffer: opens files and interfaces, says when it is ready, and ends in order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use trace::agent::{host_name, make_folder, network_namespace, now_ns, write_atomically};
use trace::manifest::{InterfaceManifest, SnifferManifest};
use trace::packet::PacketFileHeader;

use crate::capture::{self, CaptureSettings, OpenError, OpenInterface};
use crate::counters::{Counters, Intervals};
use crate::follow::{self, Follower, Shared};
use crate::hadoop_ports;
use crate::interfaces::{self, ChoiceError, Interface, OwnAddresses};
use crate::pcapng::PcapngSink;
use crate::ports::PortSet;
use crate::privileges::{self, Needs, RunAs};
use crate::recording::{self, Recording};
use crate::room::{Limits, NoRoom, Room};
use crate::sink::PacketSink;

/// The manifest's name in the host's folder.
pub const MANIFEST: &str = "sniffer.json";
/// The manifest is brought up to date so often: what a killed run has counted is at most so old.
const MANIFEST_EVERY: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is to be recorded, and where to.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The host's folder.
    pub out: PathBuf,
    /// Interfaces; none = all that are up.
    pub interfaces: Vec<String>,
    /// How.
    pub capture: CaptureSettings,
    /// Whether only Hadoop's ports are recorded, and where they are told.
    pub follow: Option<FollowSettings>,
    /// Whether the packets are written as pcapng too.
    pub pcapng: bool,
    /// What packet files may take of the disk.
    pub limits: Limits,
    /// What becomes of the rights after the start.
    pub run_as: RunAs,
    /// When to end by itself; `None` = at a signal.
    pub duration: Option<Duration>,
}

/// Where Hadoop's ports are told, beside the folder of the host.
#[derive(Clone, Debug, Default)]
pub struct FollowSettings {
    /// Folders with Hadoop's `*-site.xml`.
    pub configurations: Vec<PathBuf>,
    /// More ports.
    pub ports: Vec<u16>,
}

/// What a run listens to.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The run is to end.
    pub stop: Arc<AtomicBool>,
    /// The counters are to be printed.
    pub report: Arc<AtomicBool>,
}

/// Why a run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is nothing to record.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// An interface cannot be recorded.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A configuration of Hadoop cannot be read.
    #[error("{path} is no folder with Hadoop's configuration: {source}", path = path.display())]
    Configuration {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The packet files of earlier runs take all that there may be.
    #[error("{0}: remove or collect what is in the folder, or raise the limit")]
    NoRoom(NoRoom),
    /// The rights cannot be given up.
    #[error(transparent)]
    Privileges(#[from] privileges::PrivilegeError),
    /// A file cannot be written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system does not tell what has to be known.
    #[error("cannot find out {what}: {source}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Records until a signal or the end of the duration, and returns the last manifest, which is also on disk.
///
/// # Errors
/// If the run cannot begin. What goes wrong later stands in the manifest's `problems`.
pub fn run(settings: &RunSettings, signals: &Signals) -> Result<SnifferManifest, RunError> {
    let mut run = prepare(settings)?;
    // Whoever waits for this run must not take the manifest of an earlier one for it.
    run.save()?;
    let threads = run.start(settings, signals);
    run.manifest.ready = true;
    run.save()?;
    let began = Instant::now();
    let mut saved = Instant::now();
    while !signals.stop.load(Ordering::Relaxed) && threads.iter().any(|thread| !thread.is_finished()) {
        thread::sleep(LOOK_EVERY);
        if settings.duration.is_some_and(|duration| began.elapsed() >= duration) {
            break;
        }
        if run.looked.elapsed() >= follow::LOOK_EVERY {
            run.look();
        }
        if signals.report.swap(false, Ordering::Relaxed) {
            run.count();
            trace::told::say(describe(&run.manifest));
        }
        if saved.elapsed() >= MANIFEST_EVERY {
            // A full disk is no reason to stop: the next time it may fit.
            let _ = run.save();
            saved = Instant::now();
        }
    }
    signals.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        if thread.join().is_err() {
            run.manifest.problems.push("the thread of an interface ended in a panic".to_owned());
        }
    }
    run.manifest.ended = true;
    run.manifest.ended_ns = now_ns();
    if let Err(error) = run.save() {
        run.manifest.problems.push(error.to_string());
    }
    Ok(run.manifest)
}

/// The counters in one line an interface.
#[must_use]
pub fn describe(manifest: &SnifferManifest) -> String {
    let mut lines: Vec<String> = manifest
        .interfaces
        .iter()
        .map(|i| {
            format!(
                "{}: {} packets recorded, {} lost in the kernel's ring, {} in the interface, {} not written, \
                 {} given up undecided, {} unparsed, {} cut short, {} no TCP, {} not Hadoop's, {} filtered -> {}",
                i.name,
                i.counts.packets,
                i.counts.kernel_drops,
                i.counts.interface_drops,
                i.counts.unwritten,
                i.counts.undecided,
                i.counts.unparsed,
                i.counts.truncated,
                i.counts.other,
                i.counts.unfollowed,
                i.counts.filtered,
                i.file
            )
        })
        .collect();
    lines.extend(manifest.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.join("\n")
}

/// Whether a run lost nothing and met no problem.
#[must_use]
pub fn is_clean(manifest: &SnifferManifest) -> bool {
    manifest.problems.is_empty() && manifest.interfaces.iter().all(|i| i.counts.lost() == 0)
}

struct Prepared {
    interface: Interface,
    open: OpenInterface,
    sink: PacketSink,
    pcapng: Option<PcapngSink>,
}

struct Run {
    manifest: SnifferManifest,
    path: PathBuf,
    prepared: Vec<Prepared>,
    counters: Vec<Arc<Counters>>,
    intervals: Vec<Intervals>,
    problems: Vec<String>,
    own: OwnAddresses,
    follower: Option<Follower>,
    followed_version: u64,
    looked: Instant,
    room: Arc<Room>,
}

/// Everything that can fail, in this order: interfaces (for want of the right nothing is written), then files, which
/// are locked.
fn prepare(settings: &RunSettings) -> Result<Run, RunError> {
    let started_ns = now_ns();
    let host = host_name().map_err(|source| RunError::System { what: "the host's name", source })?;
    let netns = network_namespace().map_err(|source| RunError::System { what: "the network namespace", source })?;
    let all = interfaces::list().map_err(|source| RunError::System { what: "the interfaces", source })?;
    let chosen = interfaces::choose(&all, &settings.interfaces)?;

    let (follower, mut problems) = match &settings.follow {
        Some(follow) => begin_to_follow(follow, &settings.out)?,
        // Names for pcapng's comments.
        None if settings.pcapng => (Some(Follower::new(&settings.out, PortSet::default(), 0)), Vec::new()),
        None => (None, Vec::new()),
    };
    let shared = follower.as_ref().filter(|_| settings.follow.is_some()).map(Follower::shared);
    let (opened, failures) = open_all(&chosen, settings, shared.as_deref())?;
    problems.extend(failures);
    let file_error = |source| RunError::File { path: settings.out.clone(), source };
    make_folder(&settings.out).map_err(file_error)?;
    // From here on with no more rights than needed: files belong to whoever goes on writing them.
    let capabilities = privileges::give_up(
        &settings.run_as,
        &settings.out,
        Needs { reads_others: follower.is_some(), opens_again: settings.capture.reopen },
    )?;
    let mut prepared = Vec::new();
    for (interface, open) in opened {
        let header = PacketFileHeader {
            host: host.clone(),
            interface: interface.name.clone(),
            loopback: interface.loopback,
            snap_length: settings.capture.snap_length,
            started_ns,
        };
        let path = settings.out.join(capture::file_name(&interface.name));
        let sink = PacketSink::open(&path, &header).map_err(|source| RunError::File { path: path.clone(), source })?;
        let beside = path.with_extension("pcapng");
        let pcapng = settings.pcapng.then(|| PcapngSink::open(&beside, &header, open.link())).transpose();
        let pcapng = pcapng.map_err(|source| RunError::File { path: beside, source })?;
        prepared.push(Prepared { interface, open, sink, pcapng });
    }
    let room = Arc::new(Room::new(&settings.out, settings.limits).map_err(file_error)?);
    room.reserve(0).map_err(RunError::NoRoom)?;
    for prepared in &mut prepared {
        prepared.sink.keep_within(&room);
        if let Some(pcapng) = &mut prepared.pcapng {
            pcapng.keep_within(&room);
        }
    }
    let path = settings.out.join(MANIFEST);
    let earlier_runs = earlier_runs(&path, &mut problems);
    let keep = settings.capture.keep;
    let manifest = SnifferManifest {
        version: 1,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        netns,
        started_ns,
        filter: if settings.follow.is_some() { String::new() } else { settings.capture.filter.clone() },
        follows: settings.follow.is_some(),
        capabilities,
        snap_length: settings.capture.snap_length,
        ring_bytes: u64::from(settings.capture.ring_bytes),
        payload_bytes: keep.payload_bytes,
        full_segment_bytes: keep.full_segment_bytes,
        full_payload_bytes: keep.full_payload_bytes,
        full_payload_of: keep.full_of.name().to_owned(),
        interfaces: prepared
            .iter()
            .map(|prepared| InterfaceManifest {
                name: prepared.interface.name.clone(),
                file: capture::file_name(&prepared.interface.name),
                addresses: prepared.interface.addresses.iter().map(ToString::to_string).collect(),
                ..InterfaceManifest::default()
            })
            .collect(),
        earlier_runs,
        ..SnifferManifest::default()
    };
    Ok(Run {
        manifest,
        path,
        prepared,
        counters: Vec::new(),
        intervals: Vec::new(),
        problems,
        own: OwnAddresses::of(&all),
        follower,
        followed_version: 0,
        looked: Instant::now(),
        room,
    })
}

/// The ports of the configurations and defaults, and a look at what is told already. Second value: what could not be used.
fn begin_to_follow(settings: &FollowSettings, out: &Path) -> Result<(Option<Follower>, Vec<String>), RunError> {
    let mut base: PortSet = settings.ports.iter().copied().collect();
    base.extend(&hadoop_ports::defaults());
    let mut problems = Vec::new();
    for path in &settings.configurations {
        let read =
            hadoop_ports::read_folder(path).map_err(|source| RunError::Configuration { path: path.clone(), source })?;
        base.extend(&read.ports);
        problems.extend(read.problems);
    }
    Ok((Some(Follower::new(out, base, follow::ephemeral_from())), problems))
}

type Opened = Vec<(Interface, OpenInterface)>;

/// A named interface has to open; of all that are up, one that cannot be opened is a problem to tell, unless all fail.
fn open_all(
    chosen: &[Interface],
    settings: &RunSettings,
    following: Option<&Shared>,
) -> Result<(Opened, Vec<String>), RunError> {
    let mut opened = Vec::new();
    let mut failures = Vec::new();
    for interface in chosen {
        match capture::open(interface, &settings.capture, following) {
            Ok(open) => opened.push((interface.clone(), open)),
            Err(error @ (OpenError::Permission { .. } | OpenError::Filter { .. })) => return Err(error.into()),
            Err(error) if !settings.interfaces.is_empty() => return Err(error.into()),
            Err(error) => failures.push(error),
        }
    }
    if opened.is_empty()
        && let Some(error) = failures.pop()
    {
        return Err(error.into());
    }
    Ok((opened, failures.iter().map(ToString::to_string).collect()))
}

/// CPU time of this process so far, microseconds; 0 where the kernel does not tell it.
fn cpu_us() -> u64 {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    u64::try_from(used.as_micros()).unwrap_or(u64::MAX)
}

/// What runs before this one left in the manifest.
fn earlier_runs(path: &Path, problems: &mut Vec<String>) -> Vec<SnifferManifest> {
    let Ok(text) = fs::read(path) else { return Vec::new() };
    match serde_json::from_slice::<SnifferManifest>(&text) {
        Ok(mut last) => {
            let mut runs = std::mem::take(&mut last.earlier_runs);
            runs.push(last);
            runs
        }
        Err(error) => {
            problems.push(format!("the manifest of an earlier run could not be read: {error}"));
            Vec::new()
        }
    }
}

impl Run {
    fn start(&mut self, settings: &RunSettings, signals: &Signals) -> Vec<thread::JoinHandle<()>> {
        std::mem::take(&mut self.prepared)
            .into_iter()
            .map(|Prepared { interface, open, sink, pcapng }| {
                let counters = Arc::new(Counters::default());
                self.counters.push(Arc::clone(&counters));
                self.intervals.push(Intervals::begin(now_ns()));
                let own = self.own.clone();
                let stop = Arc::clone(&signals.stop);
                let names = self.follower.as_ref().map(Follower::shared);
                let following = names.clone().filter(|_| settings.follow.is_some());
                let settings = settings.capture.clone();
                thread::spawn(move || {
                    let recording = Recording { interface, own, sink, pcapng, names, counters, following, stop };
                    recording::record(open, recording, &settings);
                })
            })
            .collect()
    }

    /// Looks whether what is followed has changed.
    fn look(&mut self) {
        self.looked = Instant::now();
        let now = now_ns();
        for (intervals, counters) in self.intervals.iter_mut().zip(&self.counters) {
            intervals.update(now, counters.counts());
        }
        let Some(follower) = &mut self.follower else { return };
        follower.look();
        let shared = follower.shared();
        if self.manifest.follows && shared.version() != self.followed_version {
            self.followed_version = shared.version();
            self.manifest.followed_ports = shared.followed().ports.names();
            self.manifest.filter_changes += 1;
        }
    }

    /// Brings the manifest's counters up to date.
    fn count(&mut self) {
        let mut problems = self.problems.clone();
        let now = now_ns();
        for ((entry, counters), intervals) in
            self.manifest.interfaces.iter_mut().zip(&self.counters).zip(&self.intervals)
        {
            entry.counts = counters.counts();
            entry.intervals = intervals.all(now, entry.counts);
            problems.extend(counters.problems());
        }
        problems.extend(self.follower.iter().flat_map(|follower| follower.problems().iter().cloned()));
        self.manifest.problems = problems;
        let (used, removed) = self.room.used();
        (self.manifest.disk_bytes, self.manifest.removed_files) = (used, removed.files);
        self.manifest.cpu_us = cpu_us();
    }

    fn save(&mut self) -> Result<(), RunError> {
        self.count();
        serde_json::to_vec_pretty(&self.manifest)
            .map_err(io::Error::from)
            .and_then(|text| write_atomically(&self.path, &text))
            .map_err(|source| RunError::File { path: self.path.clone(), source })
    }
}
