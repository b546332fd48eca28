//! When the JVMs of tasks had ended.

use trace::ids::ProcessId;
use trace::rows::ProcessRow;

use crate::joined::Joined;
use crate::maps::HashMap;

/// When the last connection that each process had opened was closed. The kernel closes them as a process ends; who looks for its
/// sockets every few seconds learns of that later. `None`: not all were seen to be closed.
pub struct ProcessEnds(HashMap<ProcessId, Option<u64>>);

impl ProcessEnds {
    /// Of all processes that opened one.
    pub fn new(joined: &Joined) -> Self {
        let mut ends: HashMap<ProcessId, Option<u64>> = HashMap::default();
        for connection in joined.connections.iter() {
            let Some(process) = connection.ends.client_process else { continue };
            let closed = connection.figures.end_seen.then_some(connection.figures.last_ns);
            let end = ends.entry(process).or_insert(closed);
            *end = end.zip(closed).map(|(end, closed)| end.max(closed));
        }
        Self(ends)
    }

    /// When a task's JVM had ended, which had work to do until `finish_ns`. Its umbilical is closed last.
    pub fn of_task(&self, process: &ProcessRow, finish_ns: u64) -> u64 {
        ended(self.0.get(&process.process).copied().flatten(), process.last_seen_ns, finish_ns)
    }
}

/// Neither before it finished nor after it was last seen, unless that was before. A close that is sent again for want of an answer
/// says nothing of the process.
fn ended(closed: Option<u64>, last_seen_ns: u64, finish_ns: u64) -> u64 {
    let seen = Some(last_seen_ns).filter(|seen| *seen > finish_ns);
    match (closed, seen) {
        (Some(closed), seen) => closed.min(seen.unwrap_or(u64::MAX)).max(finish_ns),
        (None, seen) => seen.unwrap_or(finish_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::ended;

    #[test]
    fn a_jvm_ends_when_its_connections_are_closed() {
        // Seen for some seconds more, or not at all of late; its close sent again after it had gone; all closed before the end.
        for (closed, seen, expected) in [
            (Some(105), 300, 105),
            (Some(105), 80, 105),
            (Some(900), 300, 300),
            (Some(95), 300, 100),
            (None, 300, 300),
            (None, 80, 100),
        ] {
            assert_eq!(ended(closed, seen, 100), expected, "{closed:?} {seen}");
        }
    }
}
