//! Holds all results of merger and replay against their recorded digests.

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use hadoptic_tests::digests;

/// Holds all results of merger and replay against their recorded digests.
///
/// Prints what differs from tests/golden/results.sha256. Merger and replay must be built: those of target/release are run.
#[derive(Debug, Parser)]
#[command(after_help = "Exit codes: 0 nothing differs; 1 something does, or could not be run.")]
struct Options {
    /// Run the cases that the tests run.
    #[arg(long)]
    quick: bool,
    /// Record what is found, of all cases.
    #[arg(long, conflicts_with = "quick")]
    write: bool,
}

fn main() -> Result<ExitCode> {
    let Options { quick, write } = Options::parse();
    let found = digests::compute(quick, &mut |case| {
        let _ = writeln!(stderr(), "{case}");
    })?;
    if write {
        digests::write(&digests::file(), &found)?;
        writeln!(stdout(), "{} digests written to {}", found.len(), digests::file().display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let differences = digests::differences(&digests::read(&digests::file())?, &found, quick);
    for line in &differences {
        writeln!(stdout(), "{line}")?;
    }
    writeln!(stdout(), "{} results, {} differences", found.len(), differences.len())?;
    Ok(ExitCode::from(u8::from(!differences.is_empty())))
}
