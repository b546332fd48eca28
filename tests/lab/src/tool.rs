//! Running the system's tools (`ip`, `tc`, `ethtool`, `mvn`) with errors that say what was run and what it answered.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Context, LabError, Result};

/// Runs a tool to its end and returns what it printed.
///
/// # Errors
/// If it is not there, or ends with another code than 0; the message carries its own.
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let shown = show(program, arguments);
    let output = command.output().with_context(|| {
        format!("cannot run `{shown}`: is {program} installed? (`lab setup` installs what is missing)")
    })?;
    if !output.status.success() {
        // Maven complains on stdout.
        let said = [output.stderr, output.stdout].concat();
        let said = beginning(&String::from_utf8_lossy(&said));
        return Err(LabError::Command { command: format!("`{shown}`"), status: output.status, said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As much of a tool's complaint as helps.
fn beginning(said: &str) -> String {
    said.trim().lines().take(12).collect::<Vec<_>>().join("\n")
}

/// Runs a tool whose arguments are words without blanks.
///
/// # Errors
/// As [`run`].
pub fn run_words(line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    run(program, &words.collect::<Vec<_>>())
}

/// Finds a program on the path.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn show<A: AsRef<OsStr>>(program: &str, arguments: &[A]) -> String {
    let mut shown = program.to_owned();
    for argument in arguments {
        shown.push(' ');
        shown.push_str(&argument.as_ref().to_string_lossy());
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_failure_carries_the_tools_own_words() {
        let error = run("sh", &["-c", "echo no such thing >&2; exit 3"]).unwrap_err().to_string();
        assert!(error.contains("no such thing") && error.contains('3'), "{error}");
    }

    #[test]
    fn a_missing_tool_is_named() {
        let error = run_words("no-such-tool-at-all").unwrap_err().to_string();
        assert!(error.contains("no-such-tool-at-all") && error.contains("lab setup"), "{error}");
    }
}
