//! The program of a hostile user; see `lab::hostile`. Copied under another name it is a witness: it writes down who ran it.

use std::process::ExitCode;

fn main() -> ExitCode {
    match lab::hostile::witness::Witness::of_this_program() {
        Some(witness) => witness.testify(),
        None => lab::hostile::user::main(),
    }
}
