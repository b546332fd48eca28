//! A run of the sniffer: opens files and interfaces, says when it is ready, and ends in order.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use trace::agent::{now_ns, write_atomically};
use trace::capabilities::{Capability, with_reserve};
use trace::manifest::{InterfaceManifest, MAX_PROBLEMS, OTHER_INTERFACES, PacketCounts, SnifferManifest};
use trace::signals::Signals;
use trace::waker::Waker;

use crate::arrivals::Arrivals;

use crate::capture::{self, CaptureSettings, OpenError};
use crate::counters::{Counters, Intervals};
use crate::disk_quota::{DiskQuota, Limits, NoRoom};
use crate::follow::Follower;
use crate::interfaces::{self, ChoiceError, Interface, OwnAddresses};
use crate::privileges::{self, RunAs};
use crate::recording::{self, Recording};

mod prepare;

use prepare::{Prepared, about, prepare};

/// The manifest's name in the host's folder.
pub const MANIFEST: &str = "sniffer.json";
/// The manifest is brought up to date so often: what a killed run has counted is at most so old.
const MANIFEST_EVERY: Duration = Duration::from_secs(5);
/// How often the counts are taken for the intervals of the manifest.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Interfaces that are recorded at once: of those that come during a run there may be many, and each has a ring.
const MAX_INTERFACES: usize = 256;
/// Interfaces that have ended and are listed each by itself; of those before them a sum is.
const MAX_ENDED: usize = 64;
/// Intervals of all interfaces that a manifest lists.
const MAX_INTERVALS: usize = 3840;

/// What is to be recorded, and where to.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The host's folder.
    pub out: PathBuf,
    /// The folder of the JVMs' records.
    pub jvm_records: PathBuf,
    /// Interfaces; none = all that are up.
    pub interfaces: Vec<String>,
    /// Whether interfaces that come up during the run are recorded as well, if none are named.
    pub new_interfaces: bool,
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
    let mut run = prepare(settings, signals)?;
    // Whoever waits for this run must not take the manifest of an earlier one for it.
    run.save()?;
    for prepared in std::mem::take(&mut run.prepared) {
        run.record(prepared, 0).map_err(|source| RunError::System { what: "how to wake a thread", source })?;
    }
    run.manifest.ready = true;
    run.save()?;
    let end = settings.duration.map(|duration| Instant::now() + duration);
    let mut saved = Instant::now();
    while !signals.is_stop() && run.is_recording() {
        let due = run.looks_next().min(saved + MANIFEST_EVERY);
        run.wait(end.map_or(due, |end| due.min(end)));
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
        if Instant::now() >= run.looks_next() {
            run.look();
        }
        if signals.take_report() {
            run.count();
            trace::stderr::print(describe(&run.manifest));
        }
        if saved.elapsed() >= MANIFEST_EVERY {
            // A full disk is no reason to stop: the next time it may fit.
            let _ = run.save();
            saved = Instant::now();
        }
    }
    run.stop();
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
                 {} given up undecided, {} unparsed, {} cut short, {} no TCP, {} not Hadoop's, {} filtered, {} bytes blanked -> {}",
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
                i.counts.blanked_bytes,
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

/// An interface that is being recorded.
struct Recorded {
    about: InterfaceManifest,
    /// Until it is waited for.
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    intervals: Intervals,
    waker: Waker,
}

struct Run {
    settings: RunSettings,
    signals: Signals,
    manifest: SnifferManifest,
    path: PathBuf,
    prepared: Vec<Prepared>,
    recorded: Vec<Recorded>,
    /// Interfaces that are recorded no longer, those that ended last.
    ended: Vec<InterfaceManifest>,
    /// What those before them counted, if there are any.
    others: Option<PacketCounts>,
    problems: Vec<String>,
    own: OwnAddresses,
    follower: Option<Follower>,
    followed_version: u64,
    looked: Instant,
    arrivals: Option<Arrivals>,
    quota: Arc<DiskQuota>,
}

/// CPU time of this process so far, microseconds; 0 where the kernel does not tell it.
fn cpu_us() -> u64 {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    u64::try_from(used.as_micros()).unwrap_or(u64::MAX)
}

impl Run {
    /// Begins to record an interface.
    fn record(&mut self, prepared: Prepared, since_ns: u64) -> io::Result<()> {
        let Prepared { interface, open, sink, pcapng } = prepared;
        let about = InterfaceManifest { since_ns, ..about(&interface) };
        let counters = Arc::new(Counters::default());
        let waker = Waker::new()?;
        let names = self.follower.as_ref().map(Follower::shared);
        let recording = Recording {
            interface,
            own: self.own.clone(),
            sink,
            pcapng,
            following: names.clone().filter(|_| self.settings.follow.is_some()),
            names,
            counters: Arc::clone(&counters),
            signals: self.signals.clone(),
            waker: waker.clone(),
        };
        let settings = self.settings.capture.clone();
        let thread = thread::spawn(move || recording::record(open, recording, &settings));
        let intervals = Intervals::begin(now_ns());
        self.recorded.push(Recorded { about, thread: Some(thread), counters, intervals, waker });
        Ok(())
    }

    fn is_recording(&self) -> bool {
        // Where more may come, there need not be any now.
        self.settings.new_interfaces
            || self
                .recorded
                .iter()
                .any(|one| !one.counters.has_ended() && one.thread.as_ref().is_some_and(|thread| !thread.is_finished()))
    }

    /// When to look the next time.
    fn looks_next(&self) -> Instant {
        let every = self.follower.as_ref().map_or(LOOK_EVERY, |follower| follower.waits_for().1);
        self.looked + every
    }

    /// Waits for news, but not beyond `due`.
    fn wait(&mut self, due: Instant) {
        let told = self.follower.iter().filter_map(|follower| follower.waits_for().0);
        let arrivals = self.arrivals.iter().map(Arrivals::as_fd);
        let limit = due.saturating_duration_since(Instant::now());
        match self.signals.waker.wait(told.chain(arrivals), limit) {
            Ok(false) => {}
            Ok(true) => {
                if let Some(follower) = &mut self.follower {
                    follower.look_at_told();
                    self.tell_what_is_followed();
                }
                if self.arrivals.as_ref().is_some_and(Arrivals::heard) {
                    self.look_for_new_interfaces();
                }
            }
            Err(error) => {
                self.problem(format!("waiting failed: {error}"));
                thread::sleep(LOOK_EVERY.min(limit));
            }
        }
    }

    /// Ends all recordings.
    fn stop(&mut self) {
        self.signals.stop();
        self.recorded.iter().for_each(|one| one.waker.wake());
        let mut recorded = std::mem::take(&mut self.recorded);
        recorded.iter_mut().for_each(|one| self.join(one));
        self.recorded = recorded;
    }

    /// Takes the counts, and looks whether what is followed has changed.
    fn look(&mut self) {
        self.looked = Instant::now();
        let now = now_ns();
        let most = MAX_INTERVALS / self.recorded.len().max(1);
        for one in &mut self.recorded {
            one.intervals.update(now, one.counters.counts(), most);
        }
        if self.settings.new_interfaces && self.forget_ended() {
            // One of them may have come back meanwhile.
            self.look_for_new_interfaces();
        }
        if let Some(follower) = &mut self.follower {
            follower.look();
            self.tell_what_is_followed();
        }
    }

    /// Tells the threads of the interfaces and the manifest, if something else is followed.
    fn tell_what_is_followed(&mut self) {
        let Some(shared) = self.follower.as_ref().map(Follower::shared) else { return };
        if self.manifest.follows && shared.version() != self.followed_version {
            self.followed_version = shared.version();
            self.recorded.iter().for_each(|one| one.waker.wake());
            self.manifest.followed_ports = shared.followed().ports.names();
            self.manifest.filter_changes += 1;
        }
    }

    /// Lets go of interfaces that are recorded no longer: their files, threads and all but what they counted. Whether there
    /// were any.
    fn forget_ended(&mut self) -> bool {
        let is_over = |one: &Recorded| one.thread.as_ref().is_none_or(JoinHandle::is_finished);
        let (over, recorded) = std::mem::take(&mut self.recorded).into_iter().partition(is_over);
        self.recorded = recorded;
        let over: Vec<Recorded> = over;
        let is_any = !over.is_empty();
        for mut one in over {
            self.join(&mut one);
            one.counters.problems().into_iter().for_each(|problem| self.problem(problem));
            self.ended.push(InterfaceManifest { counts: one.counters.counts(), ..one.about });
        }
        let excess = self.ended.len().saturating_sub(MAX_ENDED);
        for interface in self.ended.drain(..excess) {
            self.others = Some(self.others.unwrap_or_default().plus(&interface.counts));
        }
        is_any
    }

    fn join(&mut self, one: &mut Recorded) {
        if one.thread.take().is_some_and(|thread| thread.join().is_err()) {
            self.problem(format!("the thread of interface {} ended in a panic", one.about.name));
        }
    }

    /// Begins to record interfaces that have come up since the last look.
    fn look_for_new_interfaces(&mut self) {
        let Ok(all) = interfaces::list() else { return };
        self.forget_ended();
        // Without any that is up there is none to choose.
        for interface in interfaces::choose(&all, &[]).unwrap_or_default() {
            if self.recorded.iter().any(|known| known.about.name == interface.name) {
                continue;
            }
            self.own = OwnAddresses::of(&all);
            let name = interface.name.clone();
            match self.open_new(interface) {
                Ok(()) | Err(NotNow::Later) => {}
                Err(NotNow::Never(reason)) => {
                    self.problem(format!("{name} came up during the run and is not recorded: {reason}"));
                }
            }
        }
    }

    /// Opens an interface that has come up, and begins to record it.
    fn open_new(&mut self, interface: Interface) -> Result<(), NotNow> {
        if self.recorded.len() >= MAX_INTERFACES {
            return Err(NotNow::Never(format!("{MAX_INTERFACES} interfaces are recorded already")));
        }
        let shared = self.follower.as_ref().filter(|_| self.settings.follow.is_some()).map(Follower::shared);
        let never = |error: &dyn std::fmt::Display| NotNow::Never(error.to_string());
        let opened = with_reserve(Capability::CAP_NET_RAW, || {
            capture::open(&interface, &self.settings.capture, shared.as_deref())
        });
        let open = match opened.map_err(|error| never(&error))? {
            Ok(open) => open,
            // It has gone again, or is about to: if it comes back, that is told.
            Err(OpenError::Open { .. }) => return Err(NotNow::Later),
            Err(error) => return Err(never(&error)),
        };
        let since_ns = now_ns();
        let host = self.manifest.host.clone();
        let prepared = Prepared::new(interface, open, &self.settings, &host, since_ns);
        let mut prepared = prepared.map_err(|error| never(&error))?;
        prepared.keep_within(&self.quota);
        self.record(prepared, since_ns).map_err(|error| never(&error))
    }

    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) && self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Brings the manifest's counters up to date.
    fn count(&mut self) {
        let mut problems = self.problems.clone();
        let now = now_ns();
        self.manifest.interfaces.clone_from(&self.ended);
        if let Some(counts) = self.others {
            let name = OTHER_INTERFACES.to_owned();
            let others = InterfaceManifest { name, counts, ..InterfaceManifest::default() };
            self.manifest.interfaces.push(others);
        }
        for one in &self.recorded {
            let counts = one.counters.counts();
            let intervals = one.intervals.all(now, counts);
            self.manifest.interfaces.push(InterfaceManifest { counts, intervals, ..one.about.clone() });
            problems.extend(one.counters.problems());
        }
        problems.extend(self.follower.iter().flat_map(Follower::problems));
        problems.truncate(MAX_PROBLEMS);
        self.manifest.problems = problems;
        let (used, removed) = self.quota.used();
        (self.manifest.disk_bytes, self.manifest.removed_files) = (used, removed.files);
        self.manifest.cpu_us = cpu_us();
    }

    fn save(&mut self) -> Result<(), RunError> {
        self.count();
        let write = |manifest: &SnifferManifest| {
            let text = serde_json::to_vec_pretty(manifest)?;
            write_atomically(&self.path, &text)
        };
        let written = write(&self.manifest).or_else(|error| {
            if !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                return Err(error);
            }
            // The sums and the problems matter most where there is no room for more.
            let mut short = self.manifest.clone();
            short.interfaces.iter_mut().for_each(|interface| interface.intervals.clear());
            write(&short)
        });
        written.map_err(|source| RunError::File { path: self.path.clone(), source })
    }
}

/// Why a new interface is not recorded.
enum NotNow {
    /// It may be when there is more news of it.
    Later,
    /// It makes no sense to try again.
    Never(String),
}
