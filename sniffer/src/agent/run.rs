//! A run while it goes on: the interfaces that are recorded, those that come and go, and what the manifest says of them.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use trace::agent::{now_ns, write_atomically};
use trace::agent_error::AgentError;
use trace::capabilities::{Capability, with_reserve};
use trace::manifest::{InterfaceManifest, MAX_PROBLEMS, OTHER_INTERFACES, PacketCounts, SnifferManifest};
use trace::signals::Signals;
use trace::waker::Waker;

use super::prepared::{Prepared, about};
use super::settings::RunSettings;
use crate::arrivals::Arrivals;
use crate::capture::{self, OpenError};
use crate::counters::{Counters, Intervals};
use crate::disk_quota::DiskQuota;
use crate::follow::Follower;
use crate::interfaces::{self, Interface, OwnAddresses};
use crate::recording::Recording;
use crate::session;

/// How often the counts are taken for the intervals of the manifest.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interfaces that are recorded at once: of those that come during a run there may be many, and each has a ring.
const MAX_INTERFACES: usize = 256;
/// Interfaces that have ended and are listed each by itself; of those before them a sum is.
const MAX_ENDED: usize = 64;
/// Intervals of all interfaces that a manifest lists.
const MAX_INTERVALS: usize = 3840;

/// An interface that is being recorded.
pub(super) struct Recorded {
    about: InterfaceManifest,
    /// Until it is waited for.
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    intervals: Intervals,
    waker: Waker,
}

pub(super) struct Run {
    pub(super) settings: RunSettings,
    pub(super) signals: Signals,
    pub(super) manifest: SnifferManifest,
    pub(super) path: PathBuf,
    pub(super) prepared: Vec<Prepared>,
    pub(super) recorded: Vec<Recorded>,
    /// Interfaces that are recorded no longer, those that ended last.
    pub(super) ended: Vec<InterfaceManifest>,
    /// What those before them counted, if there are any.
    pub(super) others: Option<PacketCounts>,
    pub(super) problems: Vec<String>,
    pub(super) own: OwnAddresses,
    pub(super) follower: Option<Follower>,
    pub(super) followed_version: u64,
    pub(super) looked: Instant,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) quota: Arc<DiskQuota>,
}

/// CPU time of this process so far, microseconds; 0 where the kernel does not tell it.
fn cpu_us() -> u64 {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    u64::try_from(used.as_micros()).unwrap_or(u64::MAX)
}

impl Run {
    /// Begins to record an interface.
    pub(super) fn record(&mut self, prepared: Prepared, since_ns: u64) -> io::Result<()> {
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
        let thread = thread::spawn(move || session::record(open, recording, &settings));
        let intervals = Intervals::begin(now_ns());
        self.recorded.push(Recorded { about, thread: Some(thread), counters, intervals, waker });
        Ok(())
    }

    pub(super) fn is_recording(&self) -> bool {
        // Where more may come, there need not be any now.
        self.settings.new_interfaces
            || self
                .recorded
                .iter()
                .any(|one| !one.counters.has_ended() && one.thread.as_ref().is_some_and(|thread| !thread.is_finished()))
    }

    /// When to look the next time.
    pub(super) fn looks_next(&self) -> Instant {
        let every = self.follower.as_ref().map_or(LOOK_EVERY, |follower| follower.waits_for().1);
        self.looked + every
    }

    /// Waits for news, but not beyond `due`.
    pub(super) fn wait(&mut self, due: Instant) {
        let descriptors = self.follower.iter().filter_map(|follower| follower.waits_for().0);
        let arrivals = self.arrivals.iter().map(Arrivals::as_fd);
        let limit = due.saturating_duration_since(Instant::now());
        match self.signals.waker.wait(descriptors.chain(arrivals), limit) {
            Ok(false) => {}
            Ok(true) => {
                if let Some(follower) = &mut self.follower {
                    follower.look_at_ports_file();
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
    pub(super) fn stop(&mut self) {
        self.signals.stop();
        self.recorded.iter().for_each(|one| one.waker.wake());
        let mut recorded = std::mem::take(&mut self.recorded);
        recorded.iter_mut().for_each(|one| self.join(one));
        self.recorded = recorded;
    }

    /// Takes the counts, and looks whether what is followed has changed.
    pub(super) fn look(&mut self) {
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
                Ok(()) | Err(SkipReason::Later) => {}
                Err(SkipReason::Never(reason)) => {
                    self.problem(format!("{name} came up during the run and is not recorded: {reason}"));
                }
            }
        }
    }

    /// Opens an interface that has come up, and begins to record it.
    fn open_new(&mut self, interface: Interface) -> Result<(), SkipReason> {
        if self.recorded.len() >= MAX_INTERFACES {
            return Err(SkipReason::Never(format!("{MAX_INTERFACES} interfaces are recorded already")));
        }
        let shared = self.follower.as_ref().filter(|_| self.settings.follow.is_some()).map(Follower::shared);
        let never = |error: &dyn std::fmt::Display| SkipReason::Never(error.to_string());
        let opened = with_reserve(Capability::CAP_NET_RAW, || {
            capture::open(&interface, &self.settings.capture, shared.as_deref())
        });
        let open = match opened.map_err(|error| never(&error))? {
            Ok(open) => open,
            // It has gone again, or is about to: if it comes back, that is told.
            Err(OpenError::Open { .. }) => return Err(SkipReason::Later),
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
    pub(super) fn count(&mut self) {
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

    pub(super) fn save(&mut self) -> Result<(), AgentError> {
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
        written.map_err(AgentError::file(&self.path))
    }
}

/// Why a new interface is not recorded.
enum SkipReason {
    /// It may be when there is more news of it.
    Later,
    /// It makes no sense to try again.
    Never(String),
}
