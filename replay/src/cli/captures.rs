//! Traces, and captures that `merger` makes traces of.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Error, bail, ensure};
use replay::experiment::Experiment;
use replay::run::read_trace;
use tempfile::TempDir;
use trace::rows::Trace;

use super::progress::Bars;

/// A recorded job, and what is known of its network.
pub(super) struct Recording {
    pub(super) trace: Trace,
    /// The network as its packets tell of it; `None` if they do not, or nobody asked.
    pub(super) network: Option<Experiment>,
}

/// Recordings in the order of the paths; a capture is merged into a folder that is removed again.
pub(super) fn read_recordings(paths: &[PathBuf], with_network: bool, bars: &Bars) -> Result<Vec<Recording>, Error> {
    paths.iter().map(|path| read(path, with_network, bars)).collect()
}

fn read(path: &Path, with_network: bool, bars: &Bars) -> Result<Recording, Error> {
    ensure!(path.is_dir(), "{}: is no folder; give traces of `merger build`, or captures", path.display());
    let is_trace = path.join("manifest.json").is_file() && path.join("hosts.parquet").is_file();
    let spinner = bars.spinner(&format!("{} {}", if is_trace { "reading" } else { "merging" }, path.display()));
    let merged = if is_trace { None } else { Some(merge(path)?) };
    let folder = merged.as_ref().map_or_else(|| path.to_path_buf(), |merged| merged.path().join("trace"));
    let trace = read_trace(&folder).with_context(|| path.display().to_string())?;
    let network = if with_network { network_of(&folder)? } else { None };
    spinner.finish_and_clear();
    Ok(Recording { trace, network })
}

/// The network of a trace as its packets tell of it; `None` where they do not, or no link was ever full.
fn network_of(trace: &Path) -> Result<Option<Experiment>, Error> {
    let Ok(merger) = beside_this_program("merger") else { return Ok(None) };
    let folder = tempfile::tempdir().context("a folder for the network cannot be made")?;
    let file = folder.path().join("network.toml");
    let ran = Command::new(&merger)
        .arg("network")
        .arg(std::path::absolute(trace)?)
        .arg("--out")
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} cannot be started", merger.display()))?;
    Ok(if ran.status.success() { Some(Experiment::read(&file, &[])?) } else { None })
}

/// A folder with the trace of a capture.
fn merge(capture: &Path) -> Result<TempDir, Error> {
    let merger = beside_this_program("merger")?;
    let folder = tempfile::tempdir().context("a folder for the trace cannot be made")?;
    let merged = Command::new(&merger)
        .arg("build")
        .arg(std::path::absolute(capture)?)
        .arg("--out")
        .arg(folder.path().join("trace"))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} cannot be started", merger.display()))?;
    if !merged.status.success() {
        let why = String::from_utf8_lossy(&merged.stderr);
        bail!("{}: is no trace, and cannot be merged: {}", capture.display(), why.trim());
    }
    Ok(folder)
}

/// The program of this name that lies beside this one.
fn beside_this_program(name: &str) -> Result<PathBuf, Error> {
    let own = std::env::current_exe().context("the place of this program is not known")?;
    let program = own.with_file_name(name);
    ensure!(
        program.is_file(),
        "{} is not there, and makes traces of captures: make them with `{name} build CAPTURE --out TRACE`, and give these",
        program.display()
    );
    Ok(program)
}
