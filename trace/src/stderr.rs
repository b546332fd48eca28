//! What the programs say on stderr: errors in one line, each thing once.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

/// Says a line on stderr. That nobody listens any more (a closed pipe) is no failure: `eprintln!` would panic, and an
/// agent or a lab would end because of it.
pub fn print(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// An error and its causes, joined by ": ". A cause that the text already ends with is left out: many errors name
/// theirs themselves.
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// How a program ends that could not do its work: says why, and exits with 2. That whoever reads its output has enough of it (a
/// closed pipe) is no failure.
#[must_use]
pub fn exit_code(program: &str, error: &(dyn Error + 'static)) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    print(format_args!("{program}: {}", error_chain(error)));
    ExitCode::from(2)
}

/// Whether an error, or what caused it, is that whoever reads has closed the pipe.
#[must_use]
pub fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let is_one = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.downcast_ref().is_some_and(is_one) || error.source().is_some_and(is_broken_pipe)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::{error_chain, is_broken_pipe};

    #[derive(Debug, thiserror::Error)]
    #[error("{path}: {source}")]
    struct Names {
        path: &'static str,
        source: std::io::Error,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the trace cannot be read")]
    struct Leaves(#[source] Names);

    #[test]
    fn a_cause_is_told_once_whether_or_not_the_error_names_it() {
        let names = Names { path: "a.parquet", source: std::io::Error::other("cut off") };
        assert_eq!(error_chain(&names), "a.parquet: cut off");
        assert_eq!(error_chain(&Leaves(names)), "the trace cannot be read: a.parquet: cut off");
    }

    #[test]
    fn a_closed_pipe_is_found_among_the_causes() {
        let closed = |kind: std::io::ErrorKind| Leaves(Names { path: "-", source: kind.into() });
        assert!(is_broken_pipe(&closed(std::io::ErrorKind::BrokenPipe)));
        assert!(!is_broken_pipe(&closed(std::io::ErrorKind::NotFound)));
    }
}
