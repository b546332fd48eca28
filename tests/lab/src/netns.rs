//! Doing something in a network namespace: in a thread of our own, or as a process.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use crate::error::{Context, LabError, Result};
use nix::sched::{CloneFlags, setns};

/// The file by which a named namespace is entered.
#[must_use]
pub fn path(namespace: &str) -> PathBuf {
    Path::new("/run/netns").join(namespace)
}

/// The inode of a namespace, by which the kernel tells it from others.
///
/// # Errors
/// If there is no such namespace.
pub fn inode(namespace: &str) -> Result<u64> {
    let path = path(namespace);
    Ok(fs::metadata(&path).at("no namespace", &path)?.ino())
}

/// Starts a thread in a namespace. Sockets that it opens and network settings that it reads are the namespace's.
///
/// # Errors
/// If the namespace is not there or the thread cannot be started; that it could not be entered is in its result.
pub fn spawn<T, F>(namespace: &str, work: F) -> Result<JoinHandle<Result<T>>>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    let path = path(namespace);
    let file = File::open(&path).at("no namespace", &path)?;
    let name = namespace.to_owned();
    let handle = thread::Builder::new().name(name.clone()).spawn(move || {
        setns(&file, CloneFlags::CLONE_NEWNET).with_context(|| format!("cannot enter the namespace {name}"))?;
        work()
    });
    handle.context("cannot start a thread")
}

/// Waits for a thread's result.
///
/// # Errors
/// Its own, or that it broke.
pub fn join<T>(handle: JoinHandle<Result<T>>) -> Result<T> {
    handle.join().map_err(|_| LabError::Failed("a thread of the lab broke: this is an error in the lab".to_owned()))?
}

/// Does something in a namespace and waits for it.
///
/// # Errors
/// As [`spawn`] and [`join`].
pub fn within<T, F>(namespace: &str, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    join(spawn(namespace, work)?)
}

/// A command that runs in a host's namespace under its own host name. The process that is started is the program
/// itself: `ip`, `unshare` and `sh` hand over to the next.
#[must_use]
pub fn command(namespace: &str, host: &str, program: &Path) -> Command {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace, "unshare", "--uts", "sh", "-c"])
        .arg("hostname \"$1\"; shift; exec \"$@\"")
        .args(["sh", host])
        .arg(program);
    command
}
