//! What the kernel tells between two scans: connections that open, listeners, sockets that die.

use std::time::Duration;

use trace::agent::now_ns;
use trace::agent_error::AgentError;
use trace::ports::OpenConnection;
use trace::socket::SocketRecord;

use super::{Run, milliseconds};
use crate::destroy_events::{DestroyBatch, SocketDestroyEvents};
use crate::diag::TcpState;
use crate::ports_file;
use crate::threads::ThreadOwner;
use crate::tracepoint::{Opened, Tracepoint};

/// DestroyBatch of dying sockets taken at once.
const NEWS_AT_ONCE: usize = 4096;
/// From so many at once on they are waited for, so that the kernel's buffer does not fill.
const MANY_DYING: usize = 256;
/// The first news after a silence is looked at at once: the thread that opened a connection may be about to end. What follows
/// gathers for so long, longer if all came from threads that were known: where new ones come, the next one may come, open its
/// connections and end meanwhile.
const GATHER: Duration = Duration::from_millis(2);
const GATHER_OF_KNOWN: Duration = Duration::from_millis(10);

const DYING: &str = "which sockets open and die";

impl Run {
    /// Records the sockets that are opened or die within `limit`.
    pub(super) fn listen(&mut self, limit: Duration) -> Result<(), AgentError> {
        let is_news = self.wait(limit)?;
        // What opened comes first: it may be dead already.
        self.take_opened();
        if is_news && !limit.is_zero() {
            let gather = if self.threads.looked_up() { GATHER } else { GATHER_OF_KNOWN };
            self.signals.waker.wait([], gather).map_err(AgentError::system(DYING))?;
            self.take_opened();
        }
        let mut most = 0;
        for number in 0..self.namespaces.len() {
            let netns = self.namespaces[number].netns;
            let Some(destroy_events) = &mut self.namespaces[number].destroy_events else { continue };
            let DestroyBatch { died, overruns, malformed } =
                destroy_events.take(NEWS_AT_ONCE).map_err(AgentError::system(DYING))?;
            let t = now_ns();
            most = most.max(died.len());
            self.manifest.died += died.len() as u64;
            for socket in died {
                let (local, remote, tcp) = (socket.local, socket.remote, socket.tcp);
                self.record(&SocketRecord::Died { t, netns, local, remote, tcp });
            }
            self.lost(t, "news of dying sockets, because the buffer was full (times that it was)", overruns);
            self.lost(t, "news of dying sockets that could not be understood", malformed);
            if overruns > 0 {
                self.cadence.scan_soon();
            }
        }
        self.many_end = most >= MANY_DYING;
        Ok(())
    }

    /// Waits for news, or until it is asked for something. Returns whether there is news.
    fn wait(&self, limit: Duration) -> Result<bool, AgentError> {
        let dying =
            self.namespaces.iter().filter(|_| self.many_end).filter_map(|namespace| namespace.destroy_events.as_ref());
        let opened = self.tracepoint.iter().flat_map(Tracepoint::waits_for);
        self.signals
            .waker
            .wait(opened.chain(dying.map(SocketDestroyEvents::waits_for)), limit)
            .map_err(AgentError::system(DYING))
    }

    /// Records whose the connections are that the tracepoint told of.
    fn take_opened(&mut self) {
        let Some(tracepoint) = &mut self.tracepoint else { return };
        let taken = match tracepoint.take() {
            Ok(taken) => taken,
            Err(error) => {
                self.tracepoint = None;
                self.cadence.lose_events();
                self.manifest.interval_ms = milliseconds(self.cadence.interval());
                self.manifest.interval_reason = self.cadence.reason().to_owned();
                return self.problem(format!("the kernel's tracepoint of TCP states failed: {error}"));
            }
        };
        for thread in taken.connecting {
            // It is remembered for when its connection is open.
            self.threads.owner_of(thread, |netns| self.namespaces.iter().any(|namespace| namespace.netns == netns));
        }
        for opened in &taken.opened {
            self.take_opened_one(opened);
        }
        if taken.missed > 0 {
            self.lost(now_ns(), "news of opened sockets, because the tracepoint's buffer was full", taken.missed);
            self.cadence.scan_soon();
        }
    }

    fn take_opened_one(&mut self, opened: &Opened) {
        let owner = self
            .threads
            .owner_of(opened.thread, |netns| self.namespaces.iter().any(|namespace| namespace.netns == netns));
        let (owner, netns) = match owner {
            ThreadOwner::Process(owner, netns) => (owner, netns),
            ThreadOwner::OtherNamespace => return,
            // It has ended within milliseconds; its socket may be that of a process that lives.
            ThreadOwner::Ended => {
                self.manifest.ended_openers += u64::from(opened.remote.is_some());
                return self.cadence.scan_soon();
            }
        };
        let Some(namespace) = self.namespaces.iter_mut().find(|namespace| namespace.netns == netns) else { return };
        let (process, role) = namespace.introduce(opened.t, owner);
        if let Some(process) = process {
            self.record(&process);
        }
        let who = role.map(|role| format!("{role} {}", owner.pid));
        let (t, local) = (opened.t, opened.local);
        match opened.remote {
            Some(remote) => {
                let state = if opened.connected { TcpState::ESTABLISHED } else { TcpState::CLOSE };
                let state = state.name().to_owned();
                let owner = Some(owner);
                self.record(&SocketRecord::Socket { t, netns, local, remote, state, inode: 0, owner, tcp: None });
                self.manifest.traced += 1;
                if let Some(owner) = who.filter(|_| opened.connected) {
                    self.is_news |=
                        ports_file::add_connection(&mut self.hadoop_ports, OpenConnection { local, remote, owner });
                }
            }
            // The scan tells of the listener itself, with its inode; its port is told at once.
            None => {
                self.cadence.scan_soon();
                if let Some(who) = who
                    && ports_file::add_listener(&mut self.hadoop_ports, local.port(), who)
                {
                    self.tell(now_ns());
                }
            }
        }
    }
}
