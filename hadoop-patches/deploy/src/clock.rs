//! How far a host's clock is from this machine's.

use std::io::{BufRead as _, BufReader, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::banner;
use crate::ssh::{Session, SshError};

const ROUNDS: usize = 8;

/// The offset of a host's clock, nanoseconds: host - here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Offset {
    /// Best guess: the host's time came about in the middle of the round trip.
    pub offset_ns: i64,
    /// It is at most so far from that: half of the round trip.
    pub uncertainty_ns: i64,
}

/// Asks for the time some rounds over an open connection; the shortest round tells most.
///
/// # Errors
/// If the host does not answer with a time.
pub fn offset(session: &Session) -> Result<Offset, SshError> {
    let what = "ask for the time";
    let failed = |message: &str| SshError::Failed { what: what.to_owned(), message: message.to_owned() };
    let io = |source| SshError::Local { what: what.to_owned(), source };
    let mut child = session.clock().spawn().map_err(io)?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("no pipes"));
    };
    banner::skip(&mut stdout).map_err(|_| failed("the login shell did not run it"))?;
    let mut lines = BufReader::new(stdout);
    let mut best: Option<Offset> = None;
    for _ in 0..ROUNDS {
        let before = now();
        stdin.write_all(b"\n").map_err(io)?;
        let mut line = String::new();
        lines.read_line(&mut line).map_err(io)?;
        let after = now();
        let digits = line.trim();
        // A date without nanoseconds prints "N" or nothing for %N.
        let (host, coarse) = match (digits.parse::<i64>(), digits.trim_end_matches(['N', '%']).parse::<i64>()) {
            (Ok(ns), _) if ns > 1_000_000_000_000_000_000 => (ns, 0),
            (_, Ok(seconds)) => (seconds * 1_000_000_000 + 500_000_000, 500_000_000),
            _ => return Err(failed("the host's date +%s%N printed no time")),
        };
        let round = Offset { offset_ns: host - (before + after) / 2, uncertainty_ns: (after - before) / 2 + coarse };
        if best.is_none_or(|best| round.uncertainty_ns < best.uncertainty_ns) {
            best = Some(round);
        }
    }
    drop(stdin);
    let _ = child.wait();
    best.ok_or_else(|| failed("no answer"))
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}
