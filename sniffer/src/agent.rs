//! A run of the sniffer: opens files and interfaces, says when it is ready, and ends in order.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use trace::agent::{host_name, make_folder, network_namespace, now_ns, write_atomically};
use trace::manifest::{InterfaceManifest, SnifferManifest};

use crate::capture::{self, CaptureSettings, OpenError, OpenInterface, Recording};
use crate::counters::{Counters, value};
use crate::interfaces::{self, ChoiceError, Interface, OwnAddresses};
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
    /// When to end by itself; `None` = at a signal.
    pub duration: Option<Duration>,
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
                 {} unparsed, {} no TCP -> {}",
                i.name, i.packets, i.kernel_drops, i.interface_drops, i.unwritten, i.unparsed, i.other, i.file
            )
        })
        .collect();
    lines.extend(manifest.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.join("\n")
}

/// Whether a run lost nothing and met no problem.
#[must_use]
pub fn is_clean(manifest: &SnifferManifest) -> bool {
    let lost = |i: &InterfaceManifest| i.kernel_drops + i.unwritten;
    manifest.problems.is_empty() && manifest.interfaces.iter().all(|i| lost(i) == 0)
}

struct Prepared {
    interface: Interface,
    open: OpenInterface,
    sink: PacketSink,
}

struct Run {
    manifest: SnifferManifest,
    path: PathBuf,
    prepared: Vec<Prepared>,
    counters: Vec<Arc<Counters>>,
    problems: Vec<String>,
    own: OwnAddresses,
}

/// Everything that can fail, in this order: interfaces (for want of the right nothing is written), then files, which
/// are locked.
fn prepare(settings: &RunSettings) -> Result<Run, RunError> {
    let started_ns = now_ns();
    let host = host_name().map_err(|source| RunError::System { what: "the host's name", source })?;
    let netns = network_namespace().map_err(|source| RunError::System { what: "the network namespace", source })?;
    let all = interfaces::list().map_err(|source| RunError::System { what: "the interfaces", source })?;
    let chosen = interfaces::choose(&all, &settings.interfaces)?;

    let (opened, mut problems) = open_all(&chosen, settings)?;
    make_folder(&settings.out).map_err(|source| RunError::File { path: settings.out.clone(), source })?;
    let mut prepared = Vec::new();
    for (interface, open) in opened {
        let sink =
            capture::open_sink(&settings.out, &host, &interface, settings.capture.snap_length, started_ns).map_err(
                |source| RunError::File { path: settings.out.join(capture::file_name(&interface.name)), source },
            )?;
        prepared.push(Prepared { interface, open, sink });
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
        filter: settings.capture.filter.clone(),
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
    Ok(Run { manifest, path, prepared, counters: Vec::new(), problems, own: OwnAddresses::of(&all) })
}

type Opened = Vec<(Interface, OpenInterface)>;

/// A named interface has to open; of all that are up, one that cannot be opened is a problem to tell, unless all fail.
fn open_all(chosen: &[Interface], settings: &RunSettings) -> Result<(Opened, Vec<String>), RunError> {
    let mut opened = Vec::new();
    let mut failures = Vec::new();
    for interface in chosen {
        match capture::open(interface, &settings.capture) {
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
        let keep = settings.capture.keep;
        std::mem::take(&mut self.prepared)
            .into_iter()
            .map(|Prepared { interface, open, sink }| {
                let counters = Arc::new(Counters::default());
                self.counters.push(Arc::clone(&counters));
                let own = self.own.clone();
                let stop = Arc::clone(&signals.stop);
                thread::spawn(move || {
                    capture::record(open, Recording { interface, own, sink, counters, stop }, keep);
                })
            })
            .collect()
    }

    /// Brings the manifest's counters up to date.
    fn count(&mut self) {
        let mut problems = self.problems.clone();
        for (entry, counters) in self.manifest.interfaces.iter_mut().zip(&self.counters) {
            entry.packets = value(&counters.packets);
            entry.other = value(&counters.other);
            entry.unparsed = value(&counters.unparsed);
            entry.kernel_drops = value(&counters.kernel_drops);
            entry.interface_drops = value(&counters.interface_drops);
            entry.unwritten = value(&counters.unwritten);
            if let Ok(noted) = counters.problems.lock() {
                problems.extend(noted.iter().cloned());
            }
        }
        self.manifest.problems = problems;
    }

    fn save(&mut self) -> Result<(), RunError> {
        self.count();
        serde_json::to_vec_pretty(&self.manifest)
            .map_err(io::Error::from)
            .and_then(|text| write_atomically(&self.path, &text))
            .map_err(|source| RunError::File { path: self.path.clone(), source })
    }
}
