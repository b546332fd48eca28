//! The processes of this network namespace: which are Hadoop's, what the others are called.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use procfs::process::Process;
use trace::role::role_of_main_class;
use trace::socket::Owner;

use crate::main_class;
use crate::stat::Stat;

/// Role of processes that are not Hadoop's.
pub const OTHER_ROLE: &str = "other";
/// Of a command line so much is read: a class path may take 128 KiB of it, and the rest is arguments.
const MAX_COMMAND_LINE_BYTES: u64 = 1 << 20;
/// /proc/PID/status has some 1,500 bytes, more with many groups.
const MAX_STATUS_BYTES: u64 = 64 << 10;

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
    /// Its pid as it sees itself, where that is another one.
    pub ns_pid: Option<u32>,
}

impl ProcessInfo {
    /// Whether it is one of Hadoop's.
    #[must_use]
    pub fn is_hadoop(&self) -> bool {
        self.role != OTHER_ROLE
    }
}

/// Another number in each network namespace: the inode of a file of its /proc/net.
fn net_of(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/net/dev")).map(|about| about.ino()).ok()
}

/// Whether a process is there and is not ending.
#[must_use]
pub fn still_runs(owner: Owner) -> bool {
    Stat::read(owner.pid).is_ok_and(|stat| stat.start_ticks == owner.start_ticks && stat.still_runs())
}

/// The arguments of a process. What is no text shows as such.
///
/// # Errors
/// If it has ended.
pub fn command_line(pid: u32) -> io::Result<Vec<String>> {
    let mut bytes = Vec::new();
    File::open(format!("/proc/{pid}/cmdline"))?.take(MAX_COMMAND_LINE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect())
}

/// Its pid in the innermost pid namespace that it is in, where that is another one than here. Linux 4.1 and later tell.
fn pid_inside(pid: u32) -> Option<u32> {
    let mut text = String::new();
    File::open(format!("/proc/{pid}/status")).ok()?.take(MAX_STATUS_BYTES).read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok().filter(|inside| *inside != pid)
}

/// What was found out about a pid; right as long as the process neither ends nor becomes another program.
struct Known {
    start_ticks: u64,
    command: String,
    what: ProcessLocation,
    seen: bool,
}

enum ProcessLocation {
    Here(ProcessInfo),
    Elsewhere,
    /// /proc did not let us look.
    Hidden,
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
    pub fn refresh(&mut self) -> io::Result<()> {
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

    /// Looks at those that are known only, of a kind: they may have ended.
    pub fn refresh_known(&mut self, of: impl Fn(&ProcessInfo) -> bool) {
        let wanted: Vec<u32> = self.here().filter(|process| of(process)).map(|process| process.owner.pid).collect();
        for pid in wanted {
            if self.look_at(pid).is_err() {
                self.known.remove(&pid);
            }
        }
    }

    /// The processes of this network namespace.
    pub fn here(&self) -> impl Iterator<Item = &ProcessInfo> {
        self.known.values().filter_map(|known| match &known.what {
            ProcessLocation::Here(process) => Some(process),
            _ => None,
        })
    }

    /// A process of this namespace, looked up now unless it is known.
    pub fn find(&mut self, owner: Owner) -> Option<&ProcessInfo> {
        let _ = self.look_at(owner.pid);
        match &self.known.get(&owner.pid)?.what {
            ProcessLocation::Here(process) if process.owner == owner => Some(process),
            _ => None,
        }
    }

    /// Processes of which nothing could be found out for want of rights.
    #[must_use]
    pub fn hidden(&self) -> u64 {
        self.known.values().filter(|known| matches!(known.what, ProcessLocation::Hidden)).count() as u64
    }

    fn look_at(&mut self, pid: u32) -> procfs::ProcResult<()> {
        let stat = Stat::read(pid)?;
        if let Some(known) = self.known.get_mut(&pid)
            && known.start_ticks == stat.start_ticks
            && known.command == stat.command
            && !matches!(known.what, ProcessLocation::Hidden)
        {
            known.seen = true;
            return Ok(());
        }
        let what = match fs::metadata(format!("/proc/{pid}/ns/net")).map(|namespace| namespace.ino()) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // The kernel also denies a look into a process that is just ending: that one has nothing any more.
                if !still_runs(Owner { pid, start_ticks: stat.start_ticks }) {
                    return Ok(());
                }
                if self.is_elsewhere(pid) { ProcessLocation::Elsewhere } else { ProcessLocation::Hidden }
            }
            Err(_) => return Ok(()),
            Ok(netns) if netns != self.netns => ProcessLocation::Elsewhere,
            Ok(_) => match self.describe(pid, &stat)? {
                Some(info) => ProcessLocation::Here(info),
                None => return Ok(()),
            },
        };
        self.known.insert(pid, Known { start_ticks: stat.start_ticks, command: stat.command, what, seen: true });
        Ok(())
    }

    /// Whether a process that does not let us look into it is in another network namespace: then no socket here is its.
    /// Each namespace has a /proc/net of its own, which anybody may see.
    fn is_elsewhere(&self, pid: u32) -> bool {
        let is_ours = fs::metadata("/proc/self/ns/net").is_ok_and(|namespace| namespace.ino() == self.netns);
        let one_here = if is_ours {
            net_of("self")
        } else {
            self.here().find_map(|process| net_of(&process.owner.pid.to_string()))
        };
        matches!((one_here, net_of(&pid.to_string())), (Some(here), Some(there)) if here != there)
    }

    fn describe(&self, pid: u32, stat: &Stat) -> procfs::ProcResult<Option<ProcessInfo>> {
        let process = Process::new(i32::try_from(pid).unwrap_or(0))?;
        let owner = Owner { pid, start_ticks: stat.start_ticks };
        let uid = process.uid()?;
        let executable = process
            .exe()
            .ok()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .map_or_else(|| stat.command.clone(), |name| name.trim_end_matches(" (deleted)").to_owned());
        let is_jvm =
            [&executable, &stat.command].iter().any(|name| name.starts_with("java") || name.starts_with("jsvc"));
        let ns_pid = pid_inside(pid);
        let main = if is_jvm { main_class::of_command_line(&command_line(pid)?) } else { None };
        let Some(main) = main else {
            return Ok(Some(ProcessInfo { owner, main: executable, role: OTHER_ROLE, uid, ns_pid }));
        };
        if self.is_being_spawned(stat, &main) {
            return Ok(None);
        }
        let role = role_of_main_class(&main).unwrap_or(OTHER_ROLE);
        Ok(Some(ProcessInfo { owner, main, role, uid, ns_pid }))
    }

    /// Between fork and exec a JVM's child looks like its parent. It is looked at again the next time.
    fn is_being_spawned(&self, stat: &Stat, main: &str) -> bool {
        let parent = self.known.get(&stat.parent);
        matches!(parent, Some(Known { what: ProcessLocation::Here(parent), .. }) if parent.is_hadoop() && parent.main == main)
    }
}
