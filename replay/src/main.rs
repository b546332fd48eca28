//! `replay`: how long would this job have taken on that network, and why?

mod cli;

use std::process::ExitCode;

/// Asks the system for huge pages: a simulation of many hosts looks at more memory than small ones can be found of quickly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
