//! `replay`: how long would this job have taken on that network, and why?

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
