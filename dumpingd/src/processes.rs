//! The processes of this network namespace: which are Hadoop's, what the others are called.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use procfs::process::{Process, Stat};
use trace::role::role_of_main_class;
use trace::socket::Owner;

use crate::main_class;

/// Role of processes that are not Hadoop's.
pub const OTHER_ROLE: &str = "other";

/// What is known of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Which process.
    pub owner: Owner,
    /// Main class, or the name of the executable where it is no JVM.
    pub main: String,
    /// Role; [`OTHER_ROLE`] = not Hadoop's.
    pub role: &'static str,
    /// User id.
    pub uid: u32,
}

impl ProcessInfo {
    /// Whether it is one of Hadoop's.
    #[must_use]
    pub fn is_hadoop(&self) -> bool {
        self.role != OTHER_ROLE
    }
}

/// What was found out about a pid; right as long as the process neither ends nor becomes another program.
struct Known {
    start_ticks: u64,
    command: String,
    what: What,
    seen: bool,
}

enum What {
    Here(ProcessInfo),
    Elsewhere,
    /// /proc did not let us look, for the first time: so it answers for a process that is just ending, too.
    Denied,
    /// /proc does not let us look.
    Hidden,
}

/// A flag of the kernel's tasks (include/linux/sched.h): it is shutting down, and lets nobody look any more.
const PF_EXITING: u32 = 0x4;

/// Whether a process is about to end, or has ended and is only waited for.
#[must_use]
pub fn is_ending(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X' | 'x') || stat.flags & PF_EXITING != 0
}

/// Remembers what was found out, so that a pass over /proc reads one small file a process.
pub struct ProcessTable {
    netns: u64,
    known: HashMap<u32, Known>,
}

impl ProcessTable {
    /// Of processes in this network namespace.
    #[must_use]
    pub fn new(netns: u64) -> Self {
        Self { netns, known: HashMap::new() }
    }

    /// Looks at all processes.
    ///
    /// # Errors
    /// If /proc cannot be listed.
    pub fn refresh(&mut self) -> std::io::Result<()> {
        for known in self.known.values_mut() {
            known.seen = false;
        }
        for entry in fs::read_dir("/proc")?.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            if let Some(pid) = pid {
                // A process may end while it is being looked at: then it was none.
                let _ = self.look_at(pid);
            }
        }
        self.known.retain(|_, known| known.seen);
        Ok(())
    }

    /// The processes of this network namespace.
    pub fn here(&self) -> impl Iterator<Item = &ProcessInfo> {
        self.known.values().filter_map(|known| match &known.what {
            What::Here(process) => Some(process),
            _ => None,
        })
    }

    /// A process of this namespace, looked up now unless it is known.
    pub fn find(&mut self, owner: Owner) -> Option<&ProcessInfo> {
        let _ = self.look_at(owner.pid);
        match &self.known.get(&owner.pid)?.what {
            What::Here(process) if process.owner == owner => Some(process),
            _ => None,
        }
    }

    /// Processes of which nothing could be found out for want of rights.
    #[must_use]
    pub fn hidden(&self) -> u64 {
        self.known.values().filter(|known| matches!(known.what, What::Hidden)).count() as u64
    }

    fn look_at(&mut self, pid: u32) -> procfs::ProcResult<()> {
        let process = Process::new(i32::try_from(pid).unwrap_or(0))?;
        let stat = process.stat()?;
        let known = self.known.get_mut(&pid);
        let known = known.filter(|known| known.start_ticks == stat.starttime && known.command == stat.comm);
        let denied = matches!(known, Some(Known { what: What::Denied, .. }));
        if let (Some(known), false) = (known, denied) {
            known.seen = true;
            return Ok(());
        }
        let what = match fs::metadata(format!("/proc/{pid}/ns/net")).map(|namespace| namespace.ino()) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                // It may have begun to end only now.
                if process.stat().map_or(true, |now| is_ending(&now)) {
                    return Ok(());
                }
                if denied { What::Hidden } else { What::Denied }
            }
            Err(_) => return Ok(()),
            Ok(netns) if netns != self.netns => What::Elsewhere,
            Ok(_) => match self.describe(pid, &process, &stat)? {
                Some(info) => What::Here(info),
                None => return Ok(()),
            },
        };
        self.known.insert(pid, Known { start_ticks: stat.starttime, command: stat.comm, what, seen: true });
        Ok(())
    }

    fn describe(&self, pid: u32, process: &Process, stat: &Stat) -> procfs::ProcResult<Option<ProcessInfo>> {
        let owner = Owner { pid, start_ticks: stat.starttime };
        let uid = process.uid()?;
        let executable = process
            .exe()
            .ok()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .map_or_else(|| stat.comm.clone(), |name| name.trim_end_matches(" (deleted)").to_owned());
        let is_jvm = [&executable, &stat.comm].iter().any(|name| name.starts_with("java") || name.starts_with("jsvc"));
        let main = if is_jvm { main_class::of_command_line(&process.cmdline()?) } else { None };
        let Some(main) = main else {
            return Ok(Some(ProcessInfo { owner, main: executable, role: OTHER_ROLE, uid }));
        };
        if self.is_being_spawned(stat, &main) {
            return Ok(None);
        }
        let role = role_of_main_class(&main).unwrap_or(OTHER_ROLE);
        Ok(Some(ProcessInfo { owner, main, role, uid }))
    }

    /// Between fork and exec a JVM's child looks like its parent. It is looked at again the next time.
    fn is_being_spawned(&self, stat: &Stat, main: &str) -> bool {
        let parent = u32::try_from(stat.ppid).ok().and_then(|parent| self.known.get(&parent));
        matches!(parent, Some(Known { what: What::Here(parent), .. }) if parent.is_hadoop() && parent.main == main)
    }
}
