//! Times and addresses inside the agents' records.

use std::net::SocketAddr;

use trace::jvm::JvmRecord;
use trace::socket::SocketRecord;

use crate::capture::flows::canonical;

/// Moves all times of a record; 0 stays "not seen".
pub(crate) fn move_jvm(record: &mut JvmRecord, mut to: impl FnMut(u64) -> u64) {
    use JvmRecord as R;
    let times: Vec<&mut u64> = match record {
        R::Header { t, .. }
        | R::Clock { t, .. }
        | R::Attempt { t, .. }
        | R::Open { t, .. }
        | R::Accept { t, .. }
        | R::Listen { t, .. }
        | R::Use { t, .. }
        | R::Phase { t, .. }
        | R::Thread { t, .. }
        | R::Drift { t, .. }
        | R::End { t, .. } => vec![t],
        R::Rpc { received, begin, end, responded, queued, .. } => vec![received, begin, end, responded, queued],
        R::Call { t, sent, received, .. } => vec![t, sent, received],
        R::Block { t0, t1, .. }
        | R::BlockRead { t0, t1, .. }
        | R::BlockWrite { t0, t1, .. }
        | R::ShuffleServed { t0, t1, .. }
        | R::Fetch { t0, t1, .. }
        | R::Step { t0, t1, .. }
        | R::Wait { t0, t1, .. }
        | R::Work { t0, t1, .. } => vec![t0, t1],
    };
    for time in times {
        *time = to(*time);
    }
}

/// Whether a record tells of a connection, or of what a task or a thread did there; the others are of the JVM and its clock.
pub(crate) fn is_of_work(record: &JvmRecord) -> bool {
    use JvmRecord as R;
    !matches!(
        record,
        R::Header { .. }
            | R::Clock { .. }
            | R::Attempt { .. }
            | R::Listen { .. }
            | R::Use { .. }
            | R::Wait { .. }
            | R::Thread { .. }
            | R::Drift { .. }
            | R::End { .. }
    )
}

/// When what a record tells began.
#[must_use]
pub(crate) fn begin_of(record: &JvmRecord) -> u64 {
    use JvmRecord as R;
    match record {
        R::Header { t, .. }
        | R::Clock { t, .. }
        | R::Attempt { t, .. }
        | R::Open { t, .. }
        | R::Accept { t, .. }
        | R::Listen { t, .. }
        | R::Use { t, .. }
        | R::Phase { t, .. }
        | R::Thread { t, .. }
        | R::Drift { t, .. }
        | R::End { t, .. }
        | R::Call { t, .. } => *t,
        R::Rpc { received, .. } => *received,
        R::Block { t0, .. }
        | R::BlockRead { t0, .. }
        | R::BlockWrite { t0, .. }
        | R::ShuffleServed { t0, .. }
        | R::Fetch { t0, .. }
        | R::Step { t0, .. }
        | R::Wait { t0, .. }
        | R::Work { t0, .. } => *t0,
    }
}

/// When what a record tells ended.
#[must_use]
pub(crate) fn end_of(record: &JvmRecord) -> u64 {
    use JvmRecord as R;
    match record {
        R::Rpc { end, responded, .. } => *end.max(responded),
        R::Call { t, sent, received, .. } => *t.max(sent).max(received),
        R::Block { t1, .. }
        | R::BlockRead { t1, .. }
        | R::BlockWrite { t1, .. }
        | R::ShuffleServed { t1, .. }
        | R::Fetch { t1, .. }
        | R::Step { t1, .. }
        | R::Wait { t1, .. }
        | R::Work { t1, .. } => *t1,
        other => begin_of(other),
    }
}

/// The connection that a record names: this side and the other one. This side is missing where the JVM did not know it.
#[must_use]
pub(crate) fn ends_of(record: &JvmRecord) -> Option<(Option<SocketAddr>, SocketAddr)> {
    use JvmRecord as R;
    match record {
        R::Open { local, remote, .. }
        | R::Accept { local, remote, .. }
        | R::Rpc { local, remote, .. }
        | R::Call { local, remote, .. }
        | R::Block { local, remote, .. }
        | R::BlockRead { local, remote, .. }
        | R::BlockWrite { local, remote, .. }
        | R::Step { local, remote, .. }
        | R::ShuffleServed { local, remote, .. } => Some((address(local), address(remote)?)),
        _ => None,
    }
}

/// An address as Java writes it: `10.0.0.1:80`, `/10.0.0.1:80`, `host/10.0.0.1:80`, `[::1]:80`, `0:0:0:0:0:0:0:1:80`.
#[must_use]
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    let text = text.rsplit('/').next().unwrap_or(text);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(canonical(address));
    }
    let (ip, port) = text.rsplit_once(':')?;
    let ip = ip.trim_start_matches('[').trim_end_matches(']');
    let ip = ip.split('%').next().unwrap_or(ip);
    Some(canonical(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?)))
}

/// When a socket record was made.
pub(crate) fn socket_time(record: &mut SocketRecord) -> &mut u64 {
    use SocketRecord as R;
    match record {
        R::Header { t, .. }
        | R::Scan { t, .. }
        | R::Process { t, .. }
        | R::Listen { t, .. }
        | R::Socket { t, .. }
        | R::Died { t, .. }
        | R::Lost { t, .. } => t,
    }
}
