//! Holds all results of merger and replay against their recorded digests.
//!
//!     digests [--quick] [--write]
//!
//! Prints what differs from `tests/golden/results.sha256` and ends with 1 if anything does. `--write` records what is found;
//! `--quick` runs the cases that the tests run. Merger and replay must be built.

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use hadoptic_tests::digests;

fn main() -> Result<ExitCode> {
    let (mut quick, mut write) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => quick = true,
            "--write" => write = true,
            _ => bail!("{argument} is not known; there are --quick and --write"),
        }
    }
    ensure!(!(quick && write), "--write records all cases: leave out --quick");
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
