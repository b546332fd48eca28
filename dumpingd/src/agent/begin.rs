//! The beginning of a run: everything that can fail and that needs rights.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use procfs::{CurrentSI, KernelStats};
use trace::agent::{host_name, network_namespace, now_ns, private_folder};
use trace::agent_error::AgentError;
use trace::budget::Budget;
use trace::capabilities::Capability;
use trace::manifest::{DumpingdManifest, earlier_runs};
use trace::ports::{FILE, HadoopPorts};
use trace::privileges::{KeptCapabilities, RunAs, give_up, is_reached_by_ownership};
use trace::sandbox::{Needs, Walls, confine_around};
use trace::signals::Signals;
use trace::socket::SocketRecord;

use super::header::Header;
use super::{Run, RunSettings, SOCKETS, milliseconds};
use crate::cadence::Cadence;
use crate::log::{Counts, SocketLog};
use crate::network_namespace::{Finder, MAX_NAMESPACES, NetworkNamespace, SourceKind};
use crate::ports_file::PortsFile;
use crate::quota::{Limits, RECORDS, number_of};
use crate::threads::Threads;
use crate::tracepoint::Tracepoint;

/// Open files that a run needs beside those of network namespaces: listings of /proc, the tracepoint (one a processor).
const OTHER_FILES: u64 = 1024;

impl Run {
    pub(super) fn begin(settings: &RunSettings, signals: &Signals) -> Result<Self, AgentError> {
        let started_ns = now_ns();
        let host = host_name().map_err(AgentError::system("the host's name"))?;
        let netns = network_namespace().map_err(AgentError::system("the network namespace"))?;
        let boot = KernelStats::current()
            .map_err(|error| AgentError::system("when the host booted")(io::Error::other(error)))?;
        let (own, mut problems) = NetworkNamespace::own(netns, settings.source).map_err(AgentError::system(SOCKETS))?;
        let mut notes = Vec::new();

        let folder = host_folder(settings)?;
        let max_namespaces = if settings.other_namespaces { allow_files() } else { 0 };
        let tracepoint = if settings.tracepoint { open_tracepoint(&mut notes) } else { None };
        let (capabilities, walls) = shut_in(settings, &folder, tracepoint.as_ref())?;
        notes.extend(walls.notes);

        let limits = limits(settings, &folder, &mut notes);
        let records = folder.join(RECORDS);
        let file_error = AgentError::file(&records);
        let mut log = SocketLog::open(&folder, limits).map_err(&file_error)?;
        let path = folder.join(DumpingdManifest::FILE);
        let earlier_runs: Vec<DumpingdManifest> = earlier_runs(&path, &mut problems);
        // Processes that move into other namespaces are found by scans only.
        let has_events = tracepoint.is_some() && own.destroy_events.is_some() && !settings.other_namespaces;
        let cadence = Cadence::begin(settings.interval, has_events);
        let interval_ms = milliseconds(cadence.interval());
        let header = Header {
            host: host.clone(),
            interval_ms,
            ticks_per_second: procfs::ticks_per_second(),
            boot_ns: boot.btime * 1_000_000_000,
        };
        log.write(&header.at(started_ns)).map_err(&file_error)?;
        if let (Some(silent), Some(false)) = (log.silent_for(), earlier_runs.last().map(|last| last.ended)) {
            let what = "milliseconds without dumpingd, as the run before was broken off".to_owned();
            let count = milliseconds(silent);
            log.write(&SocketRecord::Lost { t: started_ns, what, count }).map_err(&file_error)?;
        }
        let manifest = DumpingdManifest {
            version: 1,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            netns,
            started_ns,
            interval_ms,
            interval_reason: cadence.reason().to_owned(),
            hears_dying: own.destroy_events.is_some(),
            source: settings.source.name().to_owned(),
            tracepoint: tracepoint.is_some(),
            capabilities,
            sandbox: walls.standing,
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
            header,
            marked: Counts::default(),
            begins_next: Instant::now(),
            namespaces: vec![own],
            finder: settings.other_namespaces.then(|| Finder::new(max_namespaces)),
            looked_for_namespaces: Instant::now(),
            source: settings.source,
            tracepoint,
            threads: Threads::default(),
            ports_file: PortsFile::new(&folder),
            hadoop_ports: HadoopPorts::default(),
            is_news: false,
            tells_next: Instant::now(),
            many_end: false,
            unreadable: 0,
        };
        run.look_for_namespaces();
        // Whoever waits for this run must not take the manifest of an earlier one for it.
        run.save()?;
        Ok(run)
    }
}

/// The host's folder, by its path without links.
fn host_folder(settings: &RunSettings) -> Result<PathBuf, AgentError> {
    private_folder(&settings.out, settings.run_as.uid()?).map_err(AgentError::file(&settings.out))
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

/// Gives up what is not needed once everything is open.
fn shut_in(
    settings: &RunSettings,
    folder: &Path,
    tracepoint: Option<&Tracepoint>,
) -> Result<(Vec<String>, Walls), AgentError> {
    let needs = Needs {
        writes: [folder].into_iter().chain(tracepoint.and_then(Tracepoint::folder)).map(Path::to_owned).collect(),
        reads: Vec::new(),
        looks_into_processes: true,
        enters_namespaces: settings.other_namespaces,
        starts_programs: settings.source == SourceKind::Lsof,
    };
    let kept = kept(settings, folder);
    let keeps_capabilities = settings.run_as == RunAs::Keep;
    Ok(confine_around(&needs, keeps_capabilities, || give_up(&settings.run_as, folder, is_own, &kept))?)
}

/// Looking into the processes of others, reading what they made, entering the namespaces of containers.
fn kept(settings: &RunSettings, folder: &Path) -> KeptCapabilities {
    let mut in_effect = vec![Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH];
    if settings.other_namespaces {
        in_effect.extend([Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN]);
    }
    if settings.run_as == RunAs::FewCapabilities && !is_reached_by_ownership(folder) {
        in_effect.push(Capability::CAP_DAC_OVERRIDE);
    }
    KeptCapabilities { in_effect, reserve: Vec::new(), passes_on: settings.source == SourceKind::Lsof }
}

/// Whether a file has a name that dumpingd gives.
fn is_own(name: &str) -> bool {
    [DumpingdManifest::FILE, RECORDS, FILE].contains(&name) || number_of(name).is_some()
}

/// As they were told, else dumpingd's share of the host's budget.
fn limits(settings: &RunSettings, folder: &Path, notes: &mut Vec<String>) -> Limits {
    let default = Budget::default_for(folder).unwrap_or_else(|error| {
        notes.push(format!("there is no limit for the disk, as its size is not known: {error}"));
        Budget { total_bytes: 0, keep_free_bytes: 0 }
    });
    Limits {
        disk_bytes: settings.disk_limit.unwrap_or_else(|| default.sockets()),
        keep_free_bytes: settings.keep_free.unwrap_or(default.keep_free_bytes),
    }
}

/// Raises the limit of open files as far as it goes, and answers for how many namespaces that does.
fn allow_files() -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 0 };
    let wanted = (MAX_NAMESPACES as u64 * NetworkNamespace::OPEN_FILES + OTHER_FILES).min(hard).max(soft);
    let allowed = if setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok() { wanted } else { soft };
    // Of few files most are for what has to work in any case.
    let for_namespaces = allowed.saturating_sub(OTHER_FILES).max(allowed / 4) / NetworkNamespace::OPEN_FILES;
    usize::try_from(for_namespaces).unwrap_or(MAX_NAMESPACES).min(MAX_NAMESPACES)
}
