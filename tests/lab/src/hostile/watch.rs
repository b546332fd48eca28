//! What the agents take while they are attacked: memory without the kernel's ring, and disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::UID;
use crate::layout::root;
use crate::lease::programs_in;
use crate::plan::{HostPlan, Plan};
use crate::stop::Stop;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// An agent that takes more is killed, bytes.
const DANGER: u64 = 2 << 30;

/// The largest values seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peaks {
    /// Memory of the agents by "HOST AGENT", bytes: resident, less the pages of the ring.
    pub memory: BTreeMap<String, u64>,
    /// What is recorded by "HOST KIND", bytes on the disk: packets, sockets, jvm (of Hadoop's users), user (all that is the
    /// hostile user's).
    pub disk: BTreeMap<String, u64>,
    /// Agents that were not run by the hostile user, "HOST AGENT as UID: ARGUMENTS", and how many of one name there were at a
    /// time.
    pub agents: BTreeMap<String, u64>,
}

/// Somebody who looks again and again.
#[derive(Debug)]
pub struct Watch {
    peaks: Arc<Mutex<Peaks>>,
    over: Stop,
    watching: Option<JoinHandle<Result<()>>>,
}

impl Watch {
    /// Looks from now on after what runs below `prefix` and lies below `capture` on the hosts. An agent that takes so much that
    /// the machine is in danger is killed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(plan: &Plan, run: &Path, capture: &'static str, prefix: &'static str) -> Result<Self> {
        let (peaks, over) = (Arc::new(Mutex::new(Peaks::default())), Stop::default());
        let (plan, run) = (plan.clone(), run.to_owned());
        let watching = {
            let (peaks, over) = (Arc::clone(&peaks), over.clone());
            thread::Builder::new()
                .spawn(move || {
                    while over.sleep(LOOK).is_ok() {
                        for host in &plan.hosts {
                            let taken = disk(&root(&run, host).join(capture.trim_start_matches('/')));
                            let mut peaks = peaks.lock().unwrap_or_else(PoisonError::into_inner);
                            peaks.note(host, memory(host, prefix)?, taken);
                        }
                    }
                    Ok(())
                })
                .context("cannot start a thread")?
        };
        Ok(Self { peaks, over, watching: Some(watching) })
    }

    /// Ends it; what it has seen.
    ///
    /// # Errors
    /// If processes could not be listed.
    pub fn end(mut self) -> Result<Peaks> {
        self.over.set();
        self.watching.take().map_or(Ok(()), crate::netns::join)?;
        Ok(self.peaks.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.set();
    }
}

impl Peaks {
    fn note(&mut self, host: &HostPlan, agents: Vec<Agent>, disk: BTreeMap<&'static str, u64>) {
        for Agent { pid, name, runs_as, bytes } in &agents {
            let (pid, bytes) = (*pid, *bytes);
            let at_a_time = agents.iter().filter(|other| other.name == *name).count() as u64;
            raise(&mut self.memory, format!("{} {name}", host.name), bytes);
            raise(&mut self.agents, format!("{} {name} {runs_as}", host.name), at_a_time);
            if bytes > DANGER {
                // Its end is seen in what it did not record.
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
        for (kind, bytes) in disk {
            raise(&mut self.disk, format!("{} {kind}", host.name), bytes);
        }
    }
}

/// An agent that runs.
#[derive(Debug)]
struct Agent {
    pid: Pid,
    name: String,
    /// "as UID: ARGUMENTS".
    runs_as: String,
    /// Resident, without the ring.
    bytes: u64,
}

fn raise(peaks: &mut BTreeMap<String, u64>, of: String, to: u64) {
    let peak = peaks.entry(of).or_default();
    *peak = (*peak).max(to);
}

/// The agents of a host.
fn memory(host: &HostPlan, prefix: &str) -> Result<Vec<Agent>> {
    let bin = Path::new(prefix).join("bin");
    let mut all = Vec::new();
    for (pid, program) in programs_in(&host.namespace)? {
        let Ok(name) = program.strip_prefix(&bin) else { continue };
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let status = read("status");
        // It has ended meanwhile, or is his.
        let Some(uid) = number(&status, "Uid:").filter(|uid| *uid != u64::from(UID)) else { continue };
        let arguments = read("cmdline").split('\0').skip(1).collect::<Vec<_>>().join(" ");
        if !arguments.starts_with("run") {
            continue;
        }
        // One whose file was replaced meanwhile goes on as the old one.
        let name = name.display().to_string().trim_end_matches(" (deleted)").to_owned();
        let bytes = resident_bytes(&read("smaps"));
        all.push(Agent { pid, name, runs_as: format!("as {uid}: {}", arguments.trim()), bytes });
    }
    Ok(all)
}

/// The first number of a line of /proc/PID/status.
fn number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Resident bytes, without the mapped sockets: the rings of packets, which are the kernel's.
fn resident_bytes(smaps: &str) -> u64 {
    let mut bytes = 0;
    let mut is_socket = false;
    for line in smaps.lines() {
        if let Some(resident) = line.strip_prefix("Rss:") {
            let kib = resident.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
            bytes += if is_socket { 0 } else { kib.unwrap_or(0) * 1024 };
        } else if line.split_whitespace().next().is_some_and(|word| !word.ends_with(':')) {
            is_socket = line.contains("socket:[");
        }
    }
    bytes
}

/// Bytes on the disk by kind.
fn disk(capture: &Path) -> BTreeMap<&'static str, u64> {
    let mut kinds = BTreeMap::new();
    add_below(capture, &mut kinds);
    kinds
}

fn add_below(folder: &Path, kinds: &mut BTreeMap<&'static str, u64>) {
    // What comes and goes is counted the next time.
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Ok(about) = path.symlink_metadata() else { continue };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let kind = if about.uid() == UID {
            "user"
        } else if name.contains("packets-") {
            "packets"
        } else if name.contains("sockets") {
            "sockets"
        } else if name.starts_with("jvm-") {
            "jvm"
        } else {
            "other"
        };
        if about.is_file() {
            *kinds.entry(kind).or_default() += about.blocks() * 512;
        } else if about.is_dir() {
            add_below(&path, kinds);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn the_ring_does_not_count() {
        let smaps = "7f0000-7f1000 rw-s 00000000 00:08 77 socket:[77]\nSize: 64 kB\nRss: 64 kB\n\
                     7f2000-7f3000 rw-p 00000000 00:00 0 [heap]\nRss: 12 kB\n";
        assert_eq!(resident_bytes(smaps), 12 * 1024);
    }

    #[test]
    fn numbers_of_a_status_are_read() {
        assert_eq!(number("Name:\tx\nUid:\t7\t8\t8\t8\n", "Uid:"), Some(7));
        assert_eq!(number("Name:\tx\n", "Uid:"), None);
    }

    #[test]
    fn what_is_on_the_disk_is_told_by_kind_and_sparse_files_take_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("packets-eth0.hpk"), vec![1; 8192]).unwrap();
        fs::File::create(folder.path().join("sockets.jsonl")).unwrap().set_len(1 << 30).unwrap();
        let kinds = disk(folder.path());
        assert!(kinds["packets"] >= 8192 && kinds["sockets"] < 8192, "{kinds:?}");
    }
}
