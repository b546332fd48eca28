//! A mount namespace of the process's own in which all but some folders is read-only.

use std::fs;
use std::io;
use std::path::PathBuf;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

const NOTHING: Option<&str> = None;

/// A mount, as /proc/self/mountinfo tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mounted {
    at: PathBuf,
    flags: MsFlags,
}

/// Makes everything read-only for this thread and those that it starts, but what lies below `folders`. Files that are open
/// stay as they are. Whoever has CAP_SYS_ADMIN later on could undo it. Answer: a remark where something stayed writable.
///
/// What is mounted and unmounted outside later on is seen here as well: nothing is held.
///
/// # Errors
/// If the kernel refuses (without CAP_SYS_ADMIN it does); the thread may be in a namespace of its own then, which is the same
/// as before.
pub fn read_only_view(folders: &[PathBuf]) -> io::Result<Option<String>> {
    let folders = folders.iter().map(|folder| folder.canonicalize()).collect::<io::Result<Vec<_>>>()?;
    let here = std::env::current_dir();
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let mounts = parse(&fs::read(MOUNTS)?);
    for folder in &folders {
        mount(Some(folder), folder, NOTHING, MsFlags::MS_BIND, NOTHING)?;
    }
    // A folder that was come into before lies below the new mount now.
    if let Ok(here) = here {
        let _ = std::env::set_current_dir(here);
    }
    let mut writable = Vec::new();
    for mounted in mounts.iter().filter(|mounted| !mounted.flags.contains(MsFlags::MS_RDONLY)) {
        // A mount in the agent's own folders is the agent's.
        if folders.iter().any(|folder| mounted.at.starts_with(folder)) {
            continue;
        }
        let flags = mounted.flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        if mount(NOTHING, &mounted.at, NOTHING, flags, NOTHING).is_err() && mounted.at.exists() {
            writable.push(mounted.at.display().to_string());
        }
    }
    if mounts.is_empty() || writable.iter().any(|at| at == "/") {
        return Err(io::Error::other("the root could not be made read-only"));
    }
    Ok((!writable.is_empty())
        .then(|| format!("sandbox: {} mounts stay writable, first {}", writable.len(), writable[0])))
}

const MOUNTS: &str = "/proc/self/mountinfo";

/// The mounts of proc_pid_mountinfo(5): the fifth field is the place, the sixth its options.
fn parse(text: &[u8]) -> Vec<Mounted> {
    let mounted = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let at = unescape(fields.next()?);
        let options = str::from_utf8(fields.next()?).ok()?;
        let flags = options.split(',').filter_map(flag).collect();
        Some(Mounted { at, flags })
    };
    text.split(|byte| *byte == b'\n').filter_map(mounted).collect()
}

/// Options of a mount that a remount without them would take away.
fn flag(option: &str) -> Option<MsFlags> {
    Some(match option {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => return None,
    })
}

/// Blanks, tabs, line ends and backslashes stand as a backslash and three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;

    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn mounts_with_blanks_in_their_names_and_fields_of_their_own_are_read() {
        let text = b"22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw\n\
            31 28 8:1 /x /mnt/a\\040b\\134c ro,noatime - ext4 /dev/sda1 rw\n\ngarbage\n";
        let mounts = parse(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[0].at, Path::new("/proc"));
        let kept = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME;
        assert_eq!(mounts[0].flags, kept);
        assert_eq!(mounts[1].at, Path::new("/mnt/a b\\c"));
        assert_eq!(mounts[1].flags, MsFlags::MS_RDONLY | MsFlags::MS_NOATIME);
    }
}
