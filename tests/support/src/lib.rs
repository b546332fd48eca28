//! For tests of all crates: what a test says that cannot be run here, or only in part.
//!
//! What is known beforehand stands at the test (`#[ignore = "needs root: ..."]`), and Cargo counts it. What only shows while it
//! runs (no tracepoint, no JDK) is said by [`skip!`], [`skip_if!`] or [`skipped`]; `tests/run.sh` counts that.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// Names the file to which each test appends a line that could not be run, or not wholly: "PACKAGE TEST: REASON".
pub const VARIABLE: &str = "HADOPTIC_SKIPPED";

/// Says that the test of this thread cannot be run here, or not wholly, and why. Does not end it: see [`skip!`].
///
/// # Panics
/// If the file that [`VARIABLE`] names cannot be written: the test would count as passed.
#[allow(clippy::panic)]
pub fn skipped(reason: impl Display) {
    let thread = thread::current();
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let line = format!("{package} {}: {reason}\n", thread.name().unwrap_or("?")).trim_start().to_owned();
    print!("skipped: {line}");
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let written =
        OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("cannot write {}: {error}", path.display());
    }
}

/// Ends the test as one that cannot be run here, for a reason that is given as to `format!`.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        $crate::skipped(format_args!($($reason)*));
        return;
    }};
}

/// Ends the test as one that cannot be run here if there is a reason: an `Option` of it.
#[macro_export]
macro_rules! skip_if {
    ($reason:expr) => {
        if let Some(reason) = $reason {
            $crate::skip!("{reason}");
        }
    };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::env;
    use std::fs;
    use std::process::Command;

    use super::VARIABLE;

    /// The test is run again as a process of its own, which is skipped.
    #[test]
    fn a_skipped_test_is_told_with_its_name_and_the_reason() {
        const INNER: &str = "HADOPTIC_TEST_INNER";
        skip_if!(env::var_os(INNER).map(|_| "no moon"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        fs::write(&file, "one before\n").unwrap();
        let name = std::thread::current().name().unwrap().to_owned();
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", &name])
            .env(INNER, "1")
            .env("CARGO_PKG_NAME", "moon")
            .env(VARIABLE, &file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(fs::read_to_string(file).unwrap(), format!("one before\nmoon {name}: no moon\n"));
    }
}
