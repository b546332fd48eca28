//! A run of dumpingd: scans at intervals, hears of dying sockets between them, and ends with a last scan.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use procfs::{CurrentSI, KernelStats};
use trace::agent::{host_name, make_folder, network_namespace, now_ns, write_atomically};
use trace::manifest::{DumpingdManifest, earlier_runs};
use trace::ports::HadoopPorts;
use trace::rights::{Capability, keep_only};
use trace::signals::Signals;
use trace::socket::SocketRecord;

use crate::cadence::Cadence;
use crate::log::SocketLog;
use crate::space::{Finder, SourceKind, Space};
use crate::tell::Teller;
use crate::threads::Threads;
use crate::tracepoint::Tracepoint;

mod news;

/// The manifest's name in the host's folder.
pub const MANIFEST: &str = "dumpingd.json";
/// The records' name in the host's folder.
pub const RECORDS: &str = "sockets.jsonl";

/// The manifest is brought up to date so often.
const MANIFEST_EVERY: Duration = Duration::from_secs(5);
/// News of dying sockets is not urgent: it is taken so often, and whenever there is other news.
const DYING_EVERY: Duration = Duration::from_secs(1);
/// `ports.json` is not written more often because of connections (the sniffer holds what is not decided for seconds), and
/// rests so many times as long as writing it took. What begins to listen is told at once.
const TELL_EVERY: Duration = Duration::from_millis(250);
const TELL_REST: u32 = 50;
/// How often processes are looked for in other network namespaces.
const LOOK_FOR_SPACES_EVERY: Duration = Duration::from_secs(2);

const SOCKETS: &str = "the sockets (sock_diag, /proc or lsof), and whose they are";

/// What is to be recorded, and where to.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The host's folder.
    pub out: PathBuf,
    /// Between the beginnings of two scans; `None` = as seldom as the kernel's news allows.
    pub interval: Option<Duration>,
    /// Where sockets are read from.
    pub source: SourceKind,
    /// Whether the other network namespaces of Hadoop's processes are scanned as well.
    pub other_namespaces: bool,
    /// Whether the kernel's tracepoint is read, where there is one.
    pub tracepoint: bool,
    /// Whether rights are kept that are no longer needed.
    pub keep_rights: bool,
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

/// Records until it is asked to end or the duration is over, and returns the last manifest, which is also on disk.
///
/// # Errors
/// If the run cannot begin, or the kernel stops listing sockets.
pub fn run(settings: &RunSettings, signals: &Signals) -> Result<DumpingdManifest, RunError> {
    let mut run = Run::begin(settings, signals)?;
    run.scan_when_due(true)?;
    run.flush();
    run.manifest.ready = true;
    run.save()?;
    let end = settings.duration.map(|duration| Instant::now() + duration);
    let mut saved = Instant::now();
    while !signals.is_stop() && end.is_none_or(|end| Instant::now() < end) {
        let due = run.due().min(saved + MANIFEST_EVERY);
        let due = end.map_or(due, |end| due.min(end));
        run.listen(due.saturating_duration_since(Instant::now()))?;
        if Instant::now() >= run.cadence.next() {
            run.scan_when_due(false)?;
        }
        run.tell_news(false);
        run.flush();
        if signals.take_report() {
            run.manifest.cpu_us = microseconds(cpu_time());
            trace::told::say(describe(&run.manifest));
        }
        if saved.elapsed() >= MANIFEST_EVERY {
            // A full disk is no reason to stop: the next time it may fit.
            let _ = run.save();
            saved = Instant::now();
        }
    }
    run.scan(true)?;
    run.listen(Duration::ZERO)?;
    run.tell_news(true);
    run.flush();
    run.manifest.ended = true;
    run.manifest.ended_ns = now_ns();
    if let Err(error) = run.save() {
        run.manifest.problems.push(error.to_string());
    }
    Ok(run.manifest)
}

/// The counters in one line.
#[must_use]
pub fn describe(manifest: &DumpingdManifest) -> String {
    format!(
        "{} scans ({} late) at {} ms, {} connections told of when they opened, {} deaths heard of, {} problems, {} ms of \
         CPU time",
        manifest.scans,
        manifest.late_scans,
        manifest.interval_ms,
        manifest.traced,
        manifest.died,
        manifest.problems.len(),
        manifest.cpu_us / 1000
    )
}

struct Run {
    signals: Signals,
    cadence: Cadence,
    manifest: DumpingdManifest,
    path: PathBuf,
    log: SocketLog,
    /// The first one is our own.
    spaces: Vec<Space>,
    finder: Option<Finder>,
    looked_for_spaces: Instant,
    source: SourceKind,
    tracepoint: Option<Tracepoint>,
    threads: Threads,
    teller: Teller,
    told: HadoopPorts,
    /// Whether there is something to tell, and when it may be told.
    is_news: bool,
    tells_next: Instant,
    /// Whether so many sockets die that the news of it is waited for.
    many_die: bool,
    unreadable: u64,
    unwritten: u64,
}

impl Run {
    fn begin(settings: &RunSettings, signals: &Signals) -> Result<Self, RunError> {
        let started_ns = now_ns();
        let host = host_name().map_err(system("the host's name"))?;
        let netns = network_namespace().map_err(system("the network namespace"))?;
        let boot = KernelStats::current().map_err(|error| system("when the host booted")(io::Error::other(error)))?;
        let (own, mut problems) = Space::own(netns, settings.source).map_err(system(SOCKETS))?;
        let mut notes = Vec::new();

        let file_error = |path: PathBuf| move |source| RunError::File { path, source };
        make_folder(&settings.out).map_err(file_error(settings.out.clone()))?;
        let tracepoint = if settings.tracepoint { open_tracepoint(&mut notes) } else { None };
        if !settings.keep_rights {
            let rights = rights(settings);
            keep_only(&rights).map_err(system("how to give up rights (--keep-rights goes on with all)"))?;
        }
        let records = settings.out.join(RECORDS);
        let mut log = SocketLog::open(&records).map_err(file_error(records.clone()))?;
        let path = settings.out.join(MANIFEST);
        let earlier_runs: Vec<DumpingdManifest> = earlier_runs(&path, &mut problems);
        // Processes that move into other namespaces are found by scans only.
        let has_events = tracepoint.is_some() && own.obituaries.is_some() && !settings.other_namespaces;
        let cadence = Cadence::begin(settings.interval, has_events);
        let interval_ms = milliseconds(cadence.interval());
        log.write(&SocketRecord::Header {
            t: started_ns,
            version: 1,
            host: host.clone(),
            interval_ms,
            ticks_per_second: procfs::ticks_per_second(),
            boot_ns: boot.btime * 1_000_000_000,
        })
        .map_err(file_error(records))?;
        if let (Some(silent), Some(false)) = (log.silent_for(), earlier_runs.last().map(|last| last.ended)) {
            let what = "milliseconds without dumpingd, as the run before was broken off".to_owned();
            let count = milliseconds(silent);
            log.write(&SocketRecord::Lost { t: started_ns, what, count })
                .map_err(file_error(settings.out.join(RECORDS)))?;
        }
        let manifest = DumpingdManifest {
            version: 1,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            netns,
            started_ns,
            interval_ms,
            interval_reason: cadence.reason().to_owned(),
            hears_dying: own.obituaries.is_some(),
            source: settings.source.name().to_owned(),
            tracepoint: tracepoint.is_some(),
            problems,
            notes,
            earlier_runs,
            ..DumpingdManifest::default()
        };
        let mut run = Self {
            signals: signals.clone(),
            cadence,
            manifest,
            path,
            log,
            spaces: vec![own],
            finder: settings.other_namespaces.then(Finder::default),
            looked_for_spaces: Instant::now(),
            source: settings.source,
            tracepoint,
            threads: Threads::default(),
            teller: Teller::new(&settings.out),
            told: HadoopPorts::default(),
            is_news: false,
            tells_next: Instant::now(),
            many_die: false,
            unreadable: 0,
            unwritten: 0,
        };
        run.look_for_spaces();
        // Whoever waits for this run must not take the manifest of an earlier one for it.
        run.save()?;
        Ok(run)
    }

    /// Finds the namespaces into which Hadoop's processes have moved, and leaves those that they have left.
    fn look_for_spaces(&mut self) {
        let Some(finder) = &mut self.finder else { return };
        self.looked_for_spaces = Instant::now();
        let found = match finder.look(self.manifest.netns) {
            Ok(found) => found,
            Err(error) => return self.problem(format!("network namespaces cannot be found: {error}")),
        };
        let own = self.manifest.netns;
        self.spaces.retain(|space| space.netns == own || found.contains_key(&space.netns));
        for (netns, pid) in found {
            if self.spaces.iter().any(|space| space.netns == netns) {
                continue;
            }
            match Space::of_process(netns, pid, self.source) {
                Ok((space, remarks)) => {
                    self.spaces.push(space);
                    self.manifest.other_netns.push(netns);
                    remarks.into_iter().for_each(|remark| self.problem(remark));
                }
                Err(error) => self.problem(format!(
                    "the network namespace of process {pid} cannot be entered (it needs CAP_SYS_ADMIN): {error}"
                )),
            }
        }
    }

    /// Scans, and finds out when the next scan is due.
    fn scan_when_due(&mut self, thorough: bool) -> Result<(), RunError> {
        let began = Instant::now();
        let cpu = self.scan(thorough)?;
        self.manifest.late_scans += u64::from(self.cadence.scanned(began, cpu));
        Ok(())
    }

    /// When there is something to do without news.
    fn due(&self) -> Instant {
        let mut due = self.cadence.next();
        if self.spaces.iter().any(|space| space.obituaries.is_some()) {
            due = due.min(Instant::now() + DYING_EVERY);
        }
        if self.is_news { due.min(self.tells_next) } else { due }
    }

    /// Lists all sockets, finds their owners, records what changed. Returns the CPU time that it took.
    fn scan(&mut self, thorough: bool) -> Result<Duration, RunError> {
        let began = cpu_time();
        if self.looked_for_spaces.elapsed() >= LOOK_FOR_SPACES_EVERY {
            self.look_for_spaces();
        }
        let mut hadoops = HadoopPorts::default();
        let mut blind = 0;
        let now = now_ns();
        for number in 0..self.spaces.len() {
            let before = cpu_time();
            let t = now_ns();
            let netns = self.spaces[number].netns;
            let scan = match self.spaces[number].scan(t, thorough) {
                Ok(scan) => scan,
                Err(error) if number == 0 => return Err(system(SOCKETS)(error)),
                // The last process of a namespace may have ended: the next look finds out.
                Err(_) => continue,
            };
            for record in &scan.records {
                self.record(record);
            }
            if scan.lacks_bytes_sent {
                self.problem("this kernel counts no sent bytes in tcp_info (Linux 4.19 and later do)".to_owned());
            }
            self.lost(t, "messages about sockets that could not be understood", scan.malformed);
            hadoops.listen.extend(scan.hadoops.listen);
            hadoops.connections.extend(scan.hadoops.connections);
            blind += scan.blind;
            let took = cpu_time().saturating_sub(before);
            self.record(&SocketRecord::Scan { t, netns, sockets: scan.sockets, cpu_us: microseconds(took) });
        }
        self.told = hadoops;
        self.tell(now);
        self.tell_of_blindness(now, blind);
        self.manifest.scans += 1;
        Ok(cpu_time().saturating_sub(began))
    }

    fn tell(&mut self, t: u64) {
        let began = Instant::now();
        if let Err(error) = self.teller.tell(t, &self.told) {
            self.problem(format!("{} could not be written: {error}", trace::ports::FILE));
        }
        self.is_news = false;
        self.tells_next = began + TELL_EVERY.max(began.elapsed() * TELL_REST);
    }

    /// Tells what events have told, if there is something and it is time.
    fn tell_news(&mut self, at_once: bool) {
        if self.is_news && (at_once || Instant::now() >= self.tells_next) {
            self.tell(now_ns());
        }
    }

    fn tell_of_blindness(&mut self, t: u64, unreadable: u64) {
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
        self.manifest.cpu_us = microseconds(cpu_time());
        serde_json::to_vec_pretty(&self.manifest)
            .map_err(io::Error::from)
            .and_then(|text| write_atomically(&self.path, &text))
            .map_err(|source| RunError::File { path: self.path.clone(), source })
    }
}

/// The tracepoint; a machine without is no fault, but the reader should know.
fn open_tracepoint(notes: &mut Vec<String>) -> Option<Tracepoint> {
    match Tracepoint::open() {
        Ok(tracepoint) => Some(tracepoint),
        Err(error) => {
            notes.push(format!(
                "the kernel's tracepoint of TCP states cannot be read ({error}): connections that end between two scans \
                 have an owner only where one end listens or a JVM tells of them"
            ));
            None
        }
    }
}

/// What is needed once everything is open: looking into the processes of others, reading what they made, entering the
/// namespaces of containers.
fn rights(settings: &RunSettings) -> Vec<Capability> {
    let mut rights = vec![Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH];
    if settings.other_namespaces {
        rights.extend([Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN]);
    }
    let me = nix::unistd::geteuid().as_raw();
    if !fs::metadata(&settings.out).is_ok_and(|about| about.uid() == me) {
        rights.push(Capability::CAP_DAC_OVERRIDE);
    }
    rights
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// CPU time of this process so far, user and system.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
