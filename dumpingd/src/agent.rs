//! A run of dumpingd: scans at intervals, hears of dying sockets between them, and ends with a last scan.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use procfs::{CurrentSI, KernelStats};
use trace::agent::{host_name, make_folder, network_namespace, now_ns, write_atomically};
use trace::manifest::DumpingdManifest;
use trace::socket::SocketRecord;

use crate::changes::Changes;
use crate::diag::Lister;
use crate::dying::{News, Obituaries, RECEIVE_BUFFER_BYTES};
use crate::log::SocketLog;
use crate::owners::OwnerFinder;
use crate::tell::{self, Teller};

/// The manifest's name in the host's folder.
pub const MANIFEST: &str = "dumpingd.json";
/// The records' name in the host's folder.
pub const RECORDS: &str = "sockets.jsonl";

/// Longest wait before looking whether the run is to end; also how long records wait to be written.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The manifest is brought up to date so often.
const MANIFEST_EVERY: Duration = Duration::from_secs(2);
/// Scans take at most this share of a CPU: an interval lasts at least so many times as long as its scan took.
const REST: u32 = 10;
/// News of dying sockets taken at once.
const NEWS_AT_ONCE: usize = 4096;

/// What is to be recorded, and where to.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The host's folder.
    pub out: PathBuf,
    /// Between the beginnings of two scans.
    pub interval: Duration,
    /// When to end by itself; `None` = at a signal.
    pub duration: Option<Duration>,
}

/// Why a run could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
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

fn system(what: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::System { what, source }
}

/// Records until `stop` is set or the duration is over, and returns the last manifest, which is also on disk.
///
/// # Errors
/// If the run cannot begin, or the kernel stops listing sockets.
pub fn run(settings: &RunSettings, stop: &Arc<AtomicBool>) -> Result<DumpingdManifest, RunError> {
    let mut run = Run::begin(settings)?;
    run.scan(true)?;
    run.flush();
    run.manifest.ready = true;
    run.save()?;
    let began = Instant::now();
    let mut next_scan = began + settings.interval;
    let mut saved = began;
    let over = || stop.load(Ordering::Relaxed) || settings.duration.is_some_and(|d| began.elapsed() >= d);
    while !over() {
        run.listen(next_scan.saturating_duration_since(Instant::now()).min(LOOK_EVERY))?;
        if Instant::now() >= next_scan {
            let scan_began = Instant::now();
            let cpu = run.scan(false)?;
            next_scan = scan_began + settings.interval.max(cpu * REST);
        }
        run.flush();
        if saved.elapsed() >= MANIFEST_EVERY {
            // A full disk is no reason to stop: the next time it may fit.
            let _ = run.save();
            saved = Instant::now();
        }
    }
    run.scan(true)?;
    run.listen(Duration::ZERO)?;
    run.flush();
    run.manifest.ended = true;
    run.manifest.ended_ns = now_ns();
    if let Err(error) = run.save() {
        run.manifest.problems.push(error.to_string());
    }
    Ok(run.manifest)
}

struct Run {
    manifest: DumpingdManifest,
    path: PathBuf,
    log: SocketLog,
    lister: Lister,
    obituaries: Option<Obituaries>,
    owners: OwnerFinder,
    changes: Changes,
    teller: Teller,
    unreadable: u64,
    unwritten: u64,
}

impl Run {
    fn begin(settings: &RunSettings) -> Result<Self, RunError> {
        let started_ns = now_ns();
        let host = host_name().map_err(system("the host's name"))?;
        let netns = network_namespace().map_err(system("the network namespace"))?;
        let boot = KernelStats::current().map_err(|error| system("when the host booted")(io::Error::other(error)))?;
        let lister = Lister::open().map_err(system("the sockets (netlink, sock_diag)"))?;
        let mut problems = Vec::new();
        let obituaries = subscribe(&mut problems);

        let file_error = |path: PathBuf| move |source| RunError::File { path, source };
        make_folder(&settings.out).map_err(file_error(settings.out.clone()))?;
        let records = settings.out.join(RECORDS);
        let mut log = SocketLog::open(&records).map_err(file_error(records.clone()))?;
        let path = settings.out.join(MANIFEST);
        let earlier_runs = earlier_runs(&path, &mut problems);
        let interval_ms = u64::try_from(settings.interval.as_millis()).unwrap_or(u64::MAX);
        log.write(&SocketRecord::Header {
            t: started_ns,
            version: 1,
            host: host.clone(),
            interval_ms,
            ticks_per_second: procfs::ticks_per_second(),
            boot_ns: boot.btime * 1_000_000_000,
        })
        .map_err(file_error(records))?;
        let manifest = DumpingdManifest {
            version: 1,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            netns,
            started_ns,
            interval_ms,
            hears_dying: obituaries.is_some(),
            problems,
            earlier_runs,
            ..DumpingdManifest::default()
        };
        let (owners, changes) = (OwnerFinder::new(netns), Changes::new(netns));
        let teller = Teller::new(&settings.out);
        let mut run =
            Self { manifest, path, log, lister, obituaries, owners, changes, teller, unreadable: 0, unwritten: 0 };
        // Whoever waits for this run must not take the manifest of an earlier one for it.
        run.save()?;
        Ok(run)
    }

    /// Lists all sockets, finds their owners, records what changed. Returns the CPU time that it took.
    fn scan(&mut self, thorough: bool) -> Result<Duration, RunError> {
        let before = cpu_time();
        let t = now_ns();
        let listing = self.lister.list().map_err(system("the sockets (netlink, sock_diag)"))?;
        let inodes: HashSet<u64> = listing.sockets.iter().map(|s| s.inode).filter(|inode| *inode != 0).collect();
        self.owners.update(&inodes, thorough).map_err(system("the processes (/proc)"))?;
        let mut records = self.changes.processes(t, self.owners.processes());
        records.extend(self.changes.sockets(t, &listing.sockets, |inode| self.owners.owner(inode)));
        for record in &records {
            self.record(record);
        }
        let hadoops = tell::hadoops(&listing.sockets, |inode| self.owners.owner(inode), self.owners.processes());
        if let Err(error) = self.teller.tell(t, hadoops) {
            self.problem(format!("{} could not be written: {error}", trace::ports::FILE));
        }
        if listing.sockets.iter().any(|socket| socket.lacks_bytes_sent) {
            self.problem("this kernel counts no sent bytes in tcp_info (Linux 4.19 and later do)".to_owned());
        }
        self.lost(t, "messages about sockets that could not be understood", listing.malformed);
        self.tell_of_blindness(t);
        let took = cpu_time().saturating_sub(before);
        self.record(&SocketRecord::Scan {
            t,
            netns: self.manifest.netns,
            sockets: listing.sockets.len() as u64,
            cpu_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
        self.manifest.scans += 1;
        Ok(took)
    }

    /// Records the sockets that die within `limit`.
    fn listen(&mut self, limit: Duration) -> Result<(), RunError> {
        let Some(obituaries) = &mut self.obituaries else {
            thread::sleep(limit);
            return Ok(());
        };
        let what = system("which sockets die (netlink, sock_diag)");
        obituaries.wait(limit).map_err(&what)?;
        let News { died, overruns, malformed } = obituaries.take(NEWS_AT_ONCE).map_err(what)?;
        let t = now_ns();
        let netns = self.manifest.netns;
        for socket in died {
            self.record(&SocketRecord::Died { t, netns, local: socket.local, remote: socket.remote, tcp: socket.tcp });
        }
        self.lost(t, "news of dying sockets, because the buffer was full (times that it was)", overruns);
        self.lost(t, "news of dying sockets that could not be understood", malformed);
        Ok(())
    }

    fn tell_of_blindness(&mut self, t: u64) {
        let unreadable = self.owners.blind();
        if unreadable > self.unreadable {
            self.lost(t, "processes that could not be looked into", unreadable - self.unreadable);
            self.problem(
                "some processes could not be looked into: sockets of theirs have no owner. Run as root, or with \
                 CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
                    .to_owned(),
            );
        }
        self.unreadable = unreadable;
    }

    fn lost(&mut self, t: u64, what: &str, count: u64) {
        if count > 0 {
            self.record(&SocketRecord::Lost { t, what: what.to_owned(), count });
            self.problem(format!("lost: {what}"));
        }
    }

    fn record(&mut self, record: &SocketRecord) {
        if let Err(error) = self.log.write(record) {
            self.problem(format!("a record could not be made: {error}"));
        }
    }

    /// Hands records to the operating system; how many it could not take is told as soon as it can again.
    fn flush(&mut self) {
        if let Err(error) = self.log.flush() {
            self.unwritten += self.log.take_unwritten();
            self.problem(format!("records were lost because {RECORDS} could not be written: {error}"));
        } else if self.unwritten > 0 {
            let what = "records that could not be written".to_owned();
            self.record(&SocketRecord::Lost { t: now_ns(), what, count: self.unwritten });
            match self.log.flush() {
                Ok(()) => self.unwritten = 0,
                // The record of the loss is none of the records that were lost.
                Err(_) => {
                    self.log.take_unwritten();
                }
            }
        }
    }

    fn problem(&mut self, problem: String) {
        if !self.manifest.problems.contains(&problem) {
            self.manifest.problems.push(problem);
        }
    }

    fn save(&mut self) -> Result<(), RunError> {
        self.manifest.cpu_us = u64::try_from(cpu_time().as_micros()).unwrap_or(u64::MAX);
        serde_json::to_vec_pretty(&self.manifest)
            .map_err(io::Error::from)
            .and_then(|text| write_atomically(&self.path, &text))
            .map_err(|source| RunError::File { path: self.path.clone(), source })
    }
}

fn subscribe(problems: &mut Vec<String>) -> Option<Obituaries> {
    match Obituaries::subscribe(RECEIVE_BUFFER_BYTES) {
        Ok((obituaries, remark)) => {
            problems.extend(remark);
            Some(obituaries)
        }
        Err(error) => {
            problems.push(format!(
                "the kernel does not tell of dying sockets ({error}): counters of connections that end between two \
                 scans are missing"
            ));
            None
        }
    }
}

/// What runs before this one left in the manifest.
fn earlier_runs(path: &Path, problems: &mut Vec<String>) -> Vec<DumpingdManifest> {
    let Ok(text) = fs::read(path) else { return Vec::new() };
    match serde_json::from_slice::<DumpingdManifest>(&text) {
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

/// CPU time of this process so far, user and system.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
