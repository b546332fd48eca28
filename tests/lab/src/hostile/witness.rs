//! A program with a name that others look for (`java`, `sniffer`). It does nothing but write down who ran it.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use crate::error::{Context, Result};
use nix::unistd::{geteuid, getppid};

/// What the program is called while it is no witness.
pub const PROGRAM: &str = "hostile";
/// The argument with which a witness stays instead of ending at once.
pub const STAY: &str = "-Dstay=true";
/// How often it looks whether who started it is still there.
const LOOK: Duration = Duration::from_secs(1);

/// A copy of the program under another name.
#[derive(Debug)]
pub struct Witness {
    program: PathBuf,
}

impl Witness {
    /// This program as a witness; `None` if it has its own name.
    #[must_use]
    pub fn of_this_program() -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        (program.file_name()? != PROGRAM).then_some(Self { program })
    }

    /// Writes down by whom it was run; as `java`, it becomes the real one then. It stays as long as that one does, where it is told to.
    #[must_use]
    pub fn testify(&self) -> ExitCode {
        let arguments: Vec<String> =
            std::env::args().skip(1).map(|argument| argument.chars().take(200).collect()).collect();
        let line = format!("{} {}\n", geteuid(), arguments.join(" "));
        let log = testimony(&self.program);
        let opened =
            OpenOptions::new().create(true).append(true).mode(0o666).custom_flags(nix::libc::O_NOFOLLOW).open(log);
        // Nobody is there to be told.
        let _ = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        if arguments.iter().any(|argument| argument == STAY) {
            let _open = jars_beside(&self.program);
            let parent = getppid();
            while getppid() == parent {
                thread::sleep(LOOK);
            }
        }
        // Whoever takes it for Java gets what he asked for, and notices nothing.
        if self.program.file_name().is_some_and(|name| name == "java") {
            let _failed = Command::new("/usr/bin/java").args(std::env::args_os().skip(1)).exec();
        }
        ExitCode::SUCCESS
    }
}

/// Where a witness writes: beside itself.
fn testimony(program: &Path) -> PathBuf {
    program.with_file_name("ran.log")
}

/// Jars in its folder, held open as a JVM holds its class path.
fn jars_beside(program: &Path) -> Vec<std::fs::File> {
    let entries = program.parent().and_then(|folder| folder.read_dir().ok());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "jar"))
        .filter_map(|path| std::fs::File::open(path).ok())
        .collect()
}

/// Runs of witnesses below a folder by others than `uid`: "NAME by UID: ARGUMENTS".
///
/// # Errors
/// If the folder or a log cannot be read.
pub fn runs_by_others(folder: &Path, uid: u32) -> Result<Vec<String>> {
    let mut runs = Vec::new();
    for entry in folder.read_dir().at("cannot read", folder)? {
        let path = entry.at("cannot read", folder)?.path();
        if path.is_dir() && !path.is_symlink() {
            runs.extend(runs_by_others(&path, uid)?);
        } else if path.file_name().is_some_and(|name| name == "ran.log") {
            let text = std::fs::read_to_string(&path).at("cannot read", &path)?;
            let others = text.lines().filter(|line| line.split(' ').next() != Some(&uid.to_string()));
            runs.extend(others.map(|line| format!("{}: {line}", folder.display())));
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn runs_by_others_are_told_and_own_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/ran.log"), "7 -Dstay=true\n0 -version\n").unwrap();
        let runs = runs_by_others(folder.path(), 7).unwrap();
        assert_eq!(runs.len(), 1);
        assert!(runs[0].ends_with("bin: 0 -version"), "{runs:?}");
    }
}
