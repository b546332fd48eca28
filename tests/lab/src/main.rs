//! The lab's program; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    lab::cli::main()
}
