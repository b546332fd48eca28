//! The claim of a running lab on its prefix, and the removal of all that a lab leaves on the machine.
//!
//! A lab's traces outside of its work folder are namespaces, processes in them, folders in `/etc/netns` and a claim in
//! `/run/hadoptic-lab`. All of them are found by the prefix, never by a program's name, so that nothing of others and
//! nothing of another lab is touched, and so that a lab that was killed can be removed afterwards.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::plan::check_prefix;
use crate::tool;

/// Where running labs are known.
const CLAIMS: &str = "/run/hadoptic-lab";
/// Where `ip netns` keeps the names of namespaces.
const NAMESPACES: &str = "/run/netns";
/// Where `ip netns exec` looks for files to put over those in `/etc`.
const ETC_NETNS: &str = "/etc/netns";
/// How long processes may take to end after SIGTERM, and again after SIGKILL.
const END_WAIT: Duration = Duration::from_secs(5);

/// What is known of a lab while it runs: `/run/hadoptic-lab/PREFIX.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    pid: u32,
    work: PathBuf,
    keep_work: bool,
}

/// A running lab's claim on its prefix. Dropping it removes all that the lab left on the machine.
#[derive(Debug)]
pub struct Lease {
    prefix: String,
    work: PathBuf,
    keep_work: bool,
    released: bool,
    _lock: File,
}

impl Lease {
    /// Claims the prefix and makes the work folder. What an earlier, killed lab of this prefix left is removed.
    ///
    /// # Errors
    /// If a lab with this prefix runs, if namespaces of that name belong to somebody else, or if files cannot be made.
    pub fn take(prefix: &str, work: Option<&Path>, keep_work: bool) -> Result<Self> {
        check_prefix(prefix)?;
        let lock = lock(prefix)?;
        match claim(prefix, work, keep_work) {
            Ok(work) => Ok(Self { prefix: prefix.to_owned(), work, keep_work, released: false, _lock: lock }),
            Err(error) => {
                // What could not be removed is still claimed, so that `lab down` finds it.
                if !claim_path(prefix).exists() {
                    forget(prefix)?;
                }
                Err(error)
            }
        }
    }

    /// The folder of all files of the lab.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Removes all that the lab left.
    ///
    /// # Errors
    /// If something could not be removed; the rest is.
    pub fn release(mut self) -> Result<()> {
        self.released = true;
        sweep(&self.prefix)
    }

    /// Whether the work folder stays.
    #[must_use]
    pub fn keeps_work(&self) -> bool {
        self.keep_work
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.released
            && let Err(error) = sweep(&self.prefix)
        {
            trace::stderr::print(format!("lab: {error}"));
        }
    }
}

/// Checks that the lab may do what it has to.
///
/// # Errors
/// If this is not root.
pub fn check_root() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return Err(LabError::Config(
            "the lab makes network namespaces and needs root: run it as root or with sudo".to_owned(),
        ));
    }
    Ok(())
}

/// Keeps other labs from changing settings of the machine until it is dropped.
///
/// # Errors
/// If the folder of claims cannot be locked.
pub fn lock_machine() -> Result<File> {
    let folder = File::open(CLAIMS).with_context(|| format!("cannot open {CLAIMS}"))?;
    folder.lock().with_context(|| format!("cannot lock {CLAIMS}"))?;
    Ok(folder)
}

/// Removes what a killed lab left. Returns whether there was anything. Namespaces of such names that no lab has claimed
/// belong to somebody else and stay.
///
/// # Errors
/// If a lab of this prefix runs, or something cannot be removed.
pub fn remove_remains(prefix: &str) -> Result<bool> {
    check_prefix(prefix)?;
    check_root()?;
    let _lock = lock(prefix)?;
    let claimed = claim_path(prefix).exists();
    if claimed {
        sweep(prefix)?;
    } else {
        forget(prefix)?;
    }
    Ok(claimed)
}

/// Namespaces of a lab that are there now.
///
/// # Errors
/// If their folder cannot be read.
pub fn namespaces(prefix: &str) -> Result<Vec<String>> {
    named(Path::new(NAMESPACES), &format!("{prefix}-"))
}

/// Processes in a namespace, of whatever program.
///
/// # Errors
/// If `ip` fails.
pub fn processes_in(namespace: &str) -> Result<Vec<Pid>> {
    let listed = tool::run("ip", &["netns", "pids", namespace])?;
    Ok(listed.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect())
}

/// Processes in a namespace with the program that each runs.
///
/// # Errors
/// If `ip` fails.
pub(crate) fn programs_in(namespace: &str) -> Result<Vec<(Pid, PathBuf)>> {
    let pids = processes_in(namespace)?.into_iter();
    Ok(pids.filter_map(|pid| Some((pid, fs::read_link(format!("/proc/{pid}/exe")).ok()?))).collect())
}

/// Removes what a killed lab of this prefix left and writes the claim of this process. Returns the work folder.
fn claim(prefix: &str, work: Option<&Path>, keep_work: bool) -> Result<PathBuf> {
    let path = claim_path(prefix);
    if path.exists() {
        remove_all(prefix)?;
        fs::remove_file(&path).at("cannot remove", &path)?;
    }
    let strangers = namespaces(prefix)?;
    if !strangers.is_empty() {
        return Err(LabError::Config(format!(
            "there are namespaces named {} that no lab claims: remove them (`ip netns del NAME`) or choose another --prefix",
            strangers.join(", ")
        )));
    }
    let (work, is_new) = make_work(prefix, work)?;
    let claim = Claim { pid: std::process::id(), work: work.clone(), keep_work };
    let written = serde_json::to_vec(&claim)
        .at("cannot write", &path)
        .and_then(|claim| fs::write(&path, claim).at("cannot write", &path));
    if written.is_err() && is_new {
        // Nobody would know of it.
        let _ = fs::remove_dir(&work);
    }
    written.map(|()| work)
}

/// Takes the lock of a prefix. Its file is removed at the end, so the one that was locked must still be the one there.
fn lock(prefix: &str) -> Result<File> {
    fs::create_dir_all(CLAIMS).with_context(|| format!("cannot make {CLAIMS}"))?;
    let path = Path::new(CLAIMS).join(format!("{prefix}.lock"));
    loop {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).at("cannot open", &path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let owner = read_claim(prefix).map_or_else(|| "unknown".to_owned(), |claim| claim.pid.to_string());
                return Err(LabError::Config(format!(
                    "a lab with the prefix {prefix} runs (process {owner}): stop it with Ctrl-C or `kill -TERM {owner}`, or choose another --prefix"
                )));
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(error).at("cannot lock", &path);
            }
        }
        let there = fs::metadata(&path).map(|there| there.ino()).ok();
        if there == Some(file.metadata().at("cannot look at", &path)?.ino()) {
            return Ok(file);
        }
    }
}

/// The work folder, and whether it was made for this lab alone.
fn make_work(prefix: &str, work: Option<&Path>) -> Result<(PathBuf, bool)> {
    let path = match work {
        Some(path) => {
            fs::create_dir_all(path).at("cannot make", path)?;
            let path = path.canonicalize().at("cannot find", path)?;
            if fs::read_dir(&path).at("cannot read", &path)?.next().is_some() {
                return Err(LabError::Config(format!(
                    "the work folder {} is not empty: choose another --work",
                    path.display()
                )));
            }
            path
        }
        None => {
            let made = tempfile::Builder::new()
                .prefix(&format!("hadoptic-lab-{prefix}-"))
                .tempdir()
                .context("cannot make a work folder")?;
            made.keep()
        }
    };
    check_plain(&path)?;
    Ok((path, work.is_none()))
}

/// Checks that a path can stand in Java options and shell scripts as it is.
///
/// # Errors
/// If it has blanks, commas, quotes or the like.
pub fn check_plain(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    if !plain {
        return Err(LabError::Config(format!(
            "the path {text} has other characters than letters, digits and /._-+ and cannot be handed through Hadoop: choose another"
        )));
    }
    Ok(())
}

/// Removes all that a lab left, then its claim and lock.
fn sweep(prefix: &str) -> Result<()> {
    remove_all(prefix)?;
    forget(prefix)
}

/// Ends the processes of a prefix, then removes namespaces and files. The claim and the lock stay.
fn remove_all(prefix: &str) -> Result<()> {
    let mut failed = Vec::new();
    let namespaces = namespaces(prefix)?;
    end_processes(&namespaces, &mut failed);
    for namespace in &namespaces {
        if let Err(error) = tool::run("ip", &["netns", "del", namespace]) {
            failed.push(format!("{error}"));
        }
    }
    for folder in named(Path::new(ETC_NETNS), &format!("{prefix}-"))? {
        remove(&Path::new(ETC_NETNS).join(folder), &mut failed);
    }
    if let Some(claim) = read_claim(prefix)
        && !claim.keep_work
    {
        match mounts_below(&claim.work) {
            Ok(mounts) if mounts.is_empty() => remove(&claim.work, &mut failed),
            // Whatever is mounted there is somebody's, and not the lab's: hosts mount in namespaces of their own.
            Ok(mounts) => {
                failed.push(format!("{} is not removed: mounted there: {}", claim.work.display(), mounts.join(", ")));
            }
            Err(error) => failed.push(format!("{error}")),
        }
    }
    if !failed.is_empty() {
        return Err(LabError::Failed(format!("could not remove all of lab {prefix}: {}", failed.join("; "))));
    }
    Ok(())
}

/// What this process sees mounted in a folder.
fn mounts_below(folder: &Path) -> Result<Vec<String>> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")?;
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    Ok(points.filter(|point| Path::new(point).starts_with(folder)).map(str::to_owned).collect())
}

/// Removes the claim itself.
fn forget(prefix: &str) -> Result<()> {
    let mut failed = Vec::new();
    remove(&claim_path(prefix), &mut failed);
    remove(&Path::new(CLAIMS).join(format!("{prefix}.lock")), &mut failed);
    for folder in [ETC_NETNS, CLAIMS] {
        // Refused while another lab has something in it, which is right.
        let _ = fs::remove_dir(folder);
    }
    if !failed.is_empty() {
        return Err(LabError::Failed(format!("could not remove the claim of lab {prefix}: {}", failed.join("; "))));
    }
    Ok(())
}

/// Asks all processes in the namespaces to end, then makes them.
fn end_processes(namespaces: &[String], failed: &mut Vec<String>) {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let end = Instant::now() + END_WAIT;
        let mut stated = Vec::new();
        loop {
            let alive: Vec<Pid> = namespaces.iter().flat_map(|name| processes_in(name).unwrap_or_default()).collect();
            if alive.is_empty() {
                return;
            }
            for pid in alive {
                if !stated.contains(&pid) {
                    // A process that is gone meanwhile needs no signal.
                    let _ = kill(pid, signal);
                    stated.push(pid);
                }
            }
            if Instant::now() > end {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    failed.push("processes that do not end".to_owned());
}

fn claim_path(prefix: &str) -> PathBuf {
    Path::new(CLAIMS).join(format!("{prefix}.json"))
}

fn read_claim(prefix: &str) -> Option<Claim> {
    serde_json::from_slice(&fs::read(claim_path(prefix)).ok()?).ok()
}

/// Entries of a folder whose names begin so; none when there is no such folder.
fn named(folder: &Path, beginning: &str) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.at("cannot read", folder)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.at("cannot read", folder)?.file_name().to_string_lossy().into_owned();
        if name.starts_with(beginning) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Removes a file or folder; that it is not there is no failure.
fn remove(path: &Path, failed: &mut Vec<String>) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = removed
        && error.kind() != ErrorKind::NotFound
    {
        failed.push(format!("{}: {error}", path.display()));
    }
}

/// Writes a file below `/etc/netns/NAMESPACE`, which `ip netns exec` puts over the one in `/etc`.
///
/// # Errors
/// If it cannot be written.
pub fn write_etc(namespace: &str, file: &str, contents: &str) -> Result<()> {
    let folder = Path::new(ETC_NETNS).join(namespace);
    fs::create_dir_all(&folder).at("cannot make", &folder)?;
    let path = folder.join(file);
    let mut out = File::create(&path).at("cannot write", &path)?;
    out.write_all(contents.as_bytes()).at("cannot write", &path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn paths_that_would_break_java_options_are_refused() {
        assert!(check_plain(Path::new("/tmp/lab-1/x_y.z+")).is_ok());
        for bad in ["/tmp/a b", "/tmp/a,b", "/tmp/a'b", "/tmp/$HOME"] {
            assert!(check_plain(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
