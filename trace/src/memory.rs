//! How much memory there is, and how much of it this process takes.

use std::fs;
use std::io;
use std::path::Path;
use std::process;
use std::thread;
use std::time::Duration;

use crate::quantity::show_bytes;
use crate::stderr;

/// How often a process that is watched is looked at.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(50);

/// How programs end that could not do their work.
const COULD_NOT_RUN: i32 = 2;

/// The machine's memory, bytes; `None` = it does not tell.
#[must_use]
pub fn machine_bytes() -> Option<u64> {
    from_table("/proc/meminfo", &["MemTotal:"])
}

/// The machine's memory, or what this process's control group allows of it, bytes. `None` = the machine does not tell.
#[must_use]
pub fn allowed_bytes() -> Option<u64> {
    [machine_bytes(), group_limit()].into_iter().flatten().min()
}

/// Nine tenths of what is available now without swapping, within what this process's control group allows, bytes. `None` = the machine does not tell.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    let available = from_table("/proc/meminfo", &["MemAvailable:"]);
    [available, group_limit()].into_iter().flatten().min().map(|bytes| bytes / 10 * 9)
}

/// What this process holds of its own, in memory and swapped out, bytes; 0 = the machine does not tell.
#[must_use]
pub fn held_bytes() -> u64 {
    from_table("/proc/self/status", &["RssAnon:", "RssShmem:", "VmSwap:"]).unwrap_or(0)
}

/// The most memory that this process has had in use, bytes; 0 = the machine does not tell.
#[must_use]
pub fn peak_bytes() -> u64 {
    from_table("/proc/self/status", &["VmHWM:"]).unwrap_or(0)
}

/// Ends this process with an error, and `advice` in it, as soon as it holds more than `limit_bytes`: before the kernel ends it, or another one. `None` = it
/// is not watched.
///
/// # Errors
/// If no thread can be started.
pub fn watch(program: &'static str, limit_bytes: Option<u64>, advice: &'static str) -> io::Result<()> {
    let Some(limit_bytes) = limit_bytes else { return Ok(()) };
    end_if(program, move || {
        let held_bytes = held_bytes();
        let (held, limit) = (show_bytes(held_bytes), show_bytes(limit_bytes));
        (held_bytes > limit_bytes).then(|| format!("out of memory: it holds {held}, and may hold {limit}: {advice}"))
    })
}

/// Ends this process with an error as soon as `reason` is one; it is asked now and every 50 ms.
///
/// # Errors
/// If no thread can be started.
pub fn end_if(program: &'static str, reason: impl Fn() -> Option<String> + Send + 'static) -> io::Result<()> {
    let end_if_so = move || {
        if let Some(reason) = reason() {
            stderr::print(format_args!("{program}: {reason}"));
            process::exit(COULD_NOT_RUN);
        }
    };
    end_if_so();
    let look = move || loop {
        thread::sleep(LOOKED_AT_EVERY);
        end_if_so();
    };
    thread::Builder::new().name("memory".to_owned()).spawn(look).map(|_| ())
}

/// The sum of lines of a file of the kernel's that begin with these names, bytes; `None` if there is none of them.
fn from_table(file: &str, names: &[&str]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let kibibytes = |line: &str| -> Option<u64> {
        let value = names.iter().find_map(|name| line.strip_prefix(name))?;
        value.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    text.lines().filter_map(kibibytes).map(|kibibytes| kibibytes.saturating_mul(1024)).reduce(u64::saturating_add)
}

fn group_limit() -> Option<u64> {
    group_bytes(Path::new("/sys/fs/cgroup"), Path::new("/proc/self/cgroup"))
}

/// The least limit of the control groups in which this process is, of version 2 or 1.
fn group_bytes(mounted: &Path, of_process: &Path) -> Option<u64> {
    let text = fs::read_to_string(of_process).ok()?;
    let limits = text.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let (root, name) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // A group has at most what those above it have.
        let groups = root.join(path);
        let limit = |group: &Path| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        groups.ancestors().take_while(|group| group.starts_with(&root)).filter_map(limit).min()
    });
    limits.min()
}
