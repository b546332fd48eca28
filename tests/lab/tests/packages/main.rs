//! What users install: programs with their manual pages and completions, as `make dist` packages them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bare_debian;
mod installed_in_a_bare_debian;
mod manual_pages_and_completions;
mod static_agents;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// All programs that users install.
const PROGRAMS: [&str; 5] = ["sniffer", "dumpingd", "hadoptic", "merger", "replay"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the programs of this profile lie.
fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_lab")).parent().unwrap()
}

/// The first program that is not built.
fn not_built() -> Option<String> {
    let missing = PROGRAMS.iter().find(|name| !built().join(name).is_file())?;
    Some(format!("{missing} is not built: `make agents tables`"))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command, which has to succeed; what it printed on stdout.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn is_there(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
}
