//! Which process a thread belongs to, and in which network namespace it is.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use procfs::process::Process;
use trace::socket::Owner;

/// What was found out is right for so long without looking again: a number is not given to another thread so soon.
const FRESH: Duration = Duration::from_secs(1);
/// Threads that are remembered at most.
const REMEMBERED: usize = 16_384;

/// Looks threads up.
#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, (Owner, u64, Instant)>,
}

impl Threads {
    /// The process of a thread, and its network namespace. A thread that has ended is still known for what it was a
    /// moment ago; one that was never seen is not.
    pub fn owner(&mut self, thread: u32) -> Option<(Owner, u64)> {
        if let Some((owner, netns, seen)) = self.known.get(&thread)
            && seen.elapsed() < FRESH
        {
            return Some((*owner, *netns));
        }
        if let Some((owner, netns)) = look_up(thread) {
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.known.insert(thread, (owner, netns, Instant::now()));
            return Some((owner, netns));
        }
        self.known
            .remove(&thread)
            .filter(|(.., seen)| seen.elapsed() < FRESH * 10)
            .map(|(owner, netns, _)| (owner, netns))
    }
}

fn look_up(thread: u32) -> Option<(Owner, u64)> {
    let status = Process::new(i32::try_from(thread).ok()?).ok()?.status().ok()?;
    let process = Process::new(status.tgid).ok()?;
    let start_ticks = process.stat().ok()?.starttime;
    let pid = u32::try_from(status.tgid).ok()?;
    // A thread may be in another one than the rest of its process.
    let netns = fs::metadata(format!("/proc/{thread}/ns/net")).ok()?.ino();
    Some((Owner { pid, start_ticks }, netns))
}
