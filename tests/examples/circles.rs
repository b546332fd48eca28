//! Prints the circles between the files of crates: `cargo run --release -p hadoptic-tests --example circles -- replay/src/lib.rs`.

use std::io::{Write as _, stdout};
use std::path::Path;

use hadoptic_tests::structure::{Crate, circles};

fn main() -> anyhow::Result<()> {
    for root in std::env::args().skip(1) {
        for circle in circles(&Crate::read(Path::new(&root))?, &|file| file.display().to_string()) {
            writeln!(stdout(), "{root}: {} files\n  {}", circle.files.len(), circle.ties.join("\n  "))?;
        }
    }
    Ok(())
}
