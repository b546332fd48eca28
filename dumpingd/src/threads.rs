//! Which process a thread belongs to, and in which network namespace it is.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use trace::socket::Owner;

use crate::stat::Stat;

/// What was found out is right for so long without looking again: a number is not given to another thread so soon.
const FRESH: Duration = Duration::from_secs(5);
/// A thread that has ended is still known for what it was so long ago.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);
/// Threads that are remembered at most.
const REMEMBERED: usize = 16_384;

/// Looks threads up.
#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Known>,
    looked_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    netns: u64,
    /// `None`: it did not matter, as its namespace is not one of ours.
    owner: Option<Owner>,
    seen: Instant,
}

/// Whose a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadOwner {
    /// It belongs to this process, and is in this network namespace.
    Process(Owner, u64),
    /// It is in a network namespace that does not matter.
    OtherNamespace,
    /// It has ended, and was never seen.
    Ended,
}

impl Threads {
    /// The process of a thread that is in one of the network namespaces that matter. On a machine with containers most
    /// threads are in others: of these nothing else is read.
    pub fn owner_of(&mut self, thread: u32, matters: impl Fn(u64) -> bool) -> ThreadOwner {
        let answer = |known: &Known| match known.owner {
            _ if !matters(known.netns) => Some(ThreadOwner::OtherNamespace),
            Some(owner) => Some(ThreadOwner::Process(owner, known.netns)),
            None => None,
        };
        let known = self.known.get(&thread);
        if let Some(answer) = known.filter(|known| known.seen.elapsed() < FRESH).and_then(answer) {
            return answer;
        }
        self.looked_up = true;
        if let Some(found) = look_up(thread, &matters) {
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.known.insert(thread, found);
            return answer(&found).unwrap_or(ThreadOwner::Ended);
        }
        let last = self.known.remove(&thread).filter(|known| known.seen.elapsed() < REMEMBERED_FOR);
        last.as_ref().and_then(answer).unwrap_or(ThreadOwner::Ended)
    }

    /// Whether a thread had to be looked up since the last call.
    pub fn looked_up(&mut self) -> bool {
        std::mem::take(&mut self.looked_up)
    }
}

fn look_up(thread: u32, matters: impl Fn(u64) -> bool) -> Option<Known> {
    // A thread may be in another one than the rest of its process.
    let netns = fs::metadata(format!("/proc/{thread}/ns/net")).ok()?.ino();
    let mut owner = None;
    if matters(netns) {
        let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
        let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()?;
        owner = Some(Owner { pid, start_ticks: Stat::read(pid).ok()?.start_ticks });
    }
    Some(Known { netns, owner, seen: Instant::now() })
}
