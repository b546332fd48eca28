//! A run of dumpingd: scans at intervals, hears of dying sockets between them, and ends with a last scan.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use trace::agent::{now_ns, write_atomically};
use trace::agent_error::AgentError;
use trace::manifest::DumpingdManifest;
use trace::ports::HadoopPorts;
use trace::privileges::RunAs;
use trace::signals::Signals;
use trace::socket::SocketRecord;

use crate::cadence::Cadence;
use crate::log::{Counts, SocketLog};
use crate::network_namespace::{Finder, Found, NetworkNamespace, SourceKind};
use crate::ports_file::{self, PortsFile};
use crate::threads::Threads;
use crate::tracepoint::Tracepoint;

mod begin;
mod events;
mod header;
mod records;

use header::Header;

/// The manifest is brought up to date so often.
const MANIFEST_EVERY: Duration = Duration::from_secs(5);
/// News of dying sockets is not urgent: it is taken so often, and whenever there is other news.
const DYING_EVERY: Duration = Duration::from_secs(1);
/// `ports.json` is not written more often because of connections (the sniffer holds what is not decided for seconds), and
/// rests so many times as long as writing it took. What begins to listen is told at once.
const TELL_EVERY: Duration = Duration::from_millis(250);
const TELL_REST: u32 = 50;
/// How often processes are looked for in other network namespaces.
const LOOK_FOR_NAMESPACES_EVERY: Duration = Duration::from_secs(2);

/// Other network namespaces that the manifest names at most.
const MAX_TOLD_NETNS: usize = 4096;

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
    /// What becomes of the rights after the start.
    pub run_as: RunAs,
    /// What the records may take of the disk, bytes; 0 = no limit, `None` = the share of the host's budget.
    pub disk_limit: Option<u64>,
    /// What has to stay free on the file system, bytes; 0 = nothing, `None` = as the host's budget has it.
    pub keep_free: Option<u64>,
    /// When to end by itself; `None` = at a signal.
    pub duration: Option<Duration>,
}

/// Records until it is asked to end or the duration is over, and returns the last manifest, which is also on disk.
///
/// # Errors
/// If the run cannot begin, or the kernel stops listing sockets.
pub fn run(settings: &RunSettings, signals: &Signals) -> Result<DumpingdManifest, AgentError> {
    let mut run = Run::begin(settings, signals)?;
    run.scan_when_due(true)?;
    run.flush()?;
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
        run.flush()?;
        if signals.take_report() {
            run.manifest.cpu_us = microseconds(cpu_time());
            run.count_records();
            trace::stderr::print(describe(&run.manifest));
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
    run.flush()?;
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
        "{} scans ({} late) at {} ms, {} connections told of when they opened, {} after \
         their thread had ended, {} deaths heard of, {} records not written, \
         {} removed with old files, {} problems, {} ms of CPU time",
        manifest.scans,
        manifest.late_scans,
        manifest.interval_ms,
        manifest.traced,
        manifest.ended_openers,
        manifest.died,
        manifest.unwritten,
        manifest.removed_records,
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
    header: Header,
    /// What was marked in the record so far.
    marked: Counts,
    /// Not before then another file is begun.
    begins_next: Instant,
    /// The first one is our own.
    namespaces: Vec<NetworkNamespace>,
    finder: Option<Finder>,
    looked_for_namespaces: Instant,
    source: SourceKind,
    tracepoint: Option<Tracepoint>,
    threads: Threads,
    ports_file: PortsFile,
    hadoop_ports: HadoopPorts,
    /// Whether there is something to tell, and when it may be told.
    is_news: bool,
    tells_next: Instant,
    /// Whether so many sockets die that the news of it is waited for.
    many_end: bool,
    unreadable: u64,
}

impl Run {
    /// Finds the namespaces into which Hadoop's processes have moved, and leaves those that they have left.
    fn look_for_namespaces(&mut self) {
        let Some(finder) = &mut self.finder else { return };
        self.looked_for_namespaces = Instant::now();
        let own = self.manifest.netns;
        let open: Vec<u64> = self.namespaces.iter().map(|namespace| namespace.netns).collect();
        let Found { namespaces: found, left_out } = match finder.look(own, &open) {
            Ok(found) => found,
            Err(error) => return self.problem(format!("network namespaces cannot be found: {error}")),
        };
        if left_out > self.manifest.left_out_netns {
            self.manifest.left_out_netns = left_out;
            self.problem(
                "some network namespaces of Hadoop's processes were not scanned, as there are too many".to_owned(),
            );
        }
        self.namespaces.retain(|namespace| namespace.netns == own || found.contains_key(&namespace.netns));
        for (netns, pid) in found {
            if self.namespaces.iter().any(|namespace| namespace.netns == netns) {
                continue;
            }
            match NetworkNamespace::of_process(netns, pid, self.source) {
                Ok((namespace, remarks)) => {
                    self.namespaces.push(namespace);
                    if self.manifest.other_netns.len() < MAX_TOLD_NETNS && !self.manifest.other_netns.contains(&netns) {
                        self.manifest.other_netns.push(netns);
                    }
                    remarks.into_iter().for_each(|remark| self.problem(remark));
                }
                Err(error) => self.problem(format!(
                    "the network namespace of process {pid} cannot be entered (it needs CAP_SYS_ADMIN): {error}"
                )),
            }
        }
    }

    /// Scans, and finds out when the next scan is due.
    fn scan_when_due(&mut self, thorough: bool) -> Result<(), AgentError> {
        let began = Instant::now();
        let cpu = self.scan(thorough)?;
        self.manifest.late_scans += u64::from(self.cadence.scanned(began, cpu));
        Ok(())
    }

    /// When there is something to do without news.
    fn due(&self) -> Instant {
        let mut due = self.cadence.next();
        if self.namespaces.iter().any(|namespace| namespace.destroy_events.is_some()) {
            due = due.min(Instant::now() + DYING_EVERY);
        }
        if self.is_news { due.min(self.tells_next) } else { due }
    }

    /// Lists all sockets, finds their owners, records what changed. Returns the CPU time that it took.
    fn scan(&mut self, thorough: bool) -> Result<Duration, AgentError> {
        let began = cpu_time();
        if self.looked_for_namespaces.elapsed() >= LOOK_FOR_NAMESPACES_EVERY {
            self.look_for_namespaces();
        }
        let mut hadoops = HadoopPorts::default();
        let mut hidden_owners = 0;
        let now = now_ns();
        for number in 0..self.namespaces.len() {
            let before = cpu_time();
            let t = now_ns();
            let netns = self.namespaces[number].netns;
            let scan = match self.namespaces[number].scan(t, thorough) {
                Ok(scan) => scan,
                Err(error) if number == 0 => return Err(AgentError::system(SOCKETS)(error)),
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
            ports_file::add(&mut hadoops, scan.hadoops);
            hidden_owners += scan.hidden_owners;
            let took = cpu_time().saturating_sub(before);
            self.record(&SocketRecord::Scan { t, netns, sockets: scan.sockets, cpu_us: microseconds(took) });
        }
        if hadoops.left_out > 0 {
            self.note(ports_file::LEFT_OUT.to_owned());
        }
        self.hadoop_ports = hadoops;
        self.tell(now);
        self.note_hidden_owners(now, hidden_owners);
        self.manifest.scans += 1;
        Ok(cpu_time().saturating_sub(began))
    }

    fn tell(&mut self, t: u64) {
        let began = Instant::now();
        if let Err(error) = self.ports_file.write(t, &self.hadoop_ports) {
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

    fn note_hidden_owners(&mut self, t: u64, unreadable: u64) {
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

    fn save(&mut self) -> Result<(), AgentError> {
        self.manifest.cpu_us = microseconds(cpu_time());
        self.count_records();
        serde_json::to_vec_pretty(&self.manifest)
            .map_err(io::Error::from)
            .and_then(|text| write_atomically(&self.path, &text))
            .map_err(AgentError::file(&self.path))
    }
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
