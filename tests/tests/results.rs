//! Results stay as they are, to the bit; `cargo run --release -p hadoptic-tests --bin digests` asks the same of all of them.

use anyhow::{Result, ensure};
use hadoptic_tests::digests;

#[test]
fn results_are_those_that_were_recorded() -> Result<()> {
    let recorded = digests::read(&digests::file())?;
    let differences = digests::differences(&recorded, &digests::compute(true, &mut |_| ())?, true);
    ensure!(
        differences.is_empty(),
        "if this is meant, record them anew (cargo run --release -p hadoptic-tests --bin digests -- --write):\n{}",
        differences.join("\n")
    );
    Ok(())
}
