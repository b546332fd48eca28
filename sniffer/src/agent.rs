//! A run of the sniffer: opens files and interfaces, says when it is ready, and ends in order.

use std::time::{Duration, Instant};

use trace::agent::now_ns;
use trace::agent_error::AgentError;
use trace::manifest::SnifferManifest;
use trace::signals::Signals;

mod error;
mod prepare;
mod prepared;
mod run;
mod settings;

pub use error::StartError;
use prepare::prepare;
pub use settings::{FollowSettings, RunSettings};

/// The manifest is brought up to date so often: what a killed run has counted is at most so old.
const MANIFEST_EVERY: Duration = Duration::from_secs(5);

/// Records until a signal or the end of the duration, and returns the last manifest, which is also on disk.
///
/// # Errors
/// If the run cannot begin. What goes wrong later stands in the manifest's `problems`.
pub fn run(settings: &RunSettings, signals: &Signals) -> Result<SnifferManifest, StartError> {
    let mut run = prepare(settings, signals)?;
    // Whoever waits for this run must not take the manifest of an earlier one for it.
    run.save()?;
    for prepared in std::mem::take(&mut run.prepared) {
        run.record(prepared, 0).map_err(AgentError::system("how to wake a thread"))?;
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
