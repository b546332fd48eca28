//! How steps, calls and messages are added.

use netsim::units::Rate;
use trace::ids::{ConnectionId, ProcessId, TaskId};
use trace::rows::{Evidence, MessageKind, On};

use super::state::{Continuation, Model};
use crate::cluster::CoreScope;
use crate::kernel::{Action, Cause, DraftId, NewStep, StepId, Work};
use crate::sizes::Call;
use crate::world::{MessageNote, NodeId};

/// Who does a step, and for which task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Actor {
    pub(super) process: ProcessId,
    pub(super) task: Option<TaskId>,
}

impl Actor {
    pub(super) const fn daemon(process: ProcessId) -> Self {
        Self { process, task: None }
    }
}

/// A call and its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    pub(super) request: StepId,
    pub(super) response: StepId,
}

impl Model {
    /// Something happens in a process.
    pub(super) fn mark(
        &mut self,
        name: &'static str,
        actor: Actor,
        work: Work,
        hook: Option<Continuation>,
        causes: &[Cause],
    ) -> StepId {
        let hook = hook.map(|then| (On::Sent, then));
        self.kernel
            .add(NewStep { action: Action::Mark(name), process: actor.process, task: actor.task, work, hook }, causes)
    }

    /// A message that will be sent in one piece or several.
    pub(super) fn message(&mut self, note: MessageNote) -> DraftId {
        let message = self.kernel.plan_message();
        self.world.note(message, note);
        message
    }

    /// Bytes of a message are handed over. `hook` fires when they have arrived.
    #[expect(clippy::too_many_arguments, reason = "what a send is, each once")]
    pub(super) fn send(
        &mut self,
        actor: Actor,
        (connection, from_client): (ConnectionId, bool),
        message: DraftId,
        bytes: u64,
        work: Work,
        hook: Option<Continuation>,
        causes: &[Cause],
    ) -> StepId {
        let hook = hook.map(|then| (On::Delivered, then));
        let action = Action::Send { connection, from_client, bytes, message };
        self.kernel.add(NewStep { action, process: actor.process, task: actor.task, work, hook }, causes)
    }

    /// A call over the connection that two processes keep open. The server's step belongs to no task.
    pub(super) fn call(
        &mut self,
        (client, server): (Actor, ProcessId),
        call: Call,
        delay_ps: u64,
        then: Option<Continuation>,
        causes: &[Cause],
    ) -> Called {
        self.call_after((client, server), call, Work::Delay(delay_ps), then, causes)
    }

    /// The same, sent when some work is done.
    pub(super) fn call_after(
        &mut self,
        (client, server): (Actor, ProcessId),
        call: Call,
        work: Work,
        then: Option<Continuation>,
        causes: &[Cause],
    ) -> Called {
        let call = self.call_sizes.of(call);
        let connection = self.world.rpc(client.process, server);
        let number = self.next_call();
        let note =
            |kind, bytes| MessageNote { call: number, task: client.task, ..MessageNote::new(kind, call.name, bytes) };
        let request = self.message(note(MessageKind::RpcRequest, call.request));
        let response = self.message(note(MessageKind::RpcResponse, call.response));
        let request = self.send(client, (connection, true), request, call.request, work, None, causes);
        let response = self.send(
            Actor::daemon(server),
            (connection, false),
            response,
            call.response,
            Work::Delay(call.service_ps),
            then,
            &[Cause::delivered(request, Evidence::CallId)],
        );
        Called { request, response }
    }

    /// A node's disk reads so many bytes.
    pub(super) fn reads(&self, node: NodeId, bytes: u64) -> Work {
        self.disk_work(node, &[(self.file.cluster.disk_read, bytes)])
    }

    /// A node's disk writes so many bytes.
    pub(super) fn writes(&self, node: NodeId, bytes: u64) -> Work {
        self.disk_work(node, &[(self.file.cluster.disk_write, bytes)])
    }

    /// A node's disk reads some bytes, and writes some.
    pub(super) fn reads_and_writes(&self, node: NodeId, read: u64, written: u64) -> Work {
        self.disk_work(node, &[(self.file.cluster.disk_read, read), (self.file.cluster.disk_write, written)])
    }

    fn disk_work(&self, node: NodeId, parts: &[(Rate, u64)]) -> Work {
        let seek_ps = self.file.cluster.disk_seek.ps();
        let limited = parts.iter().filter(|(rate, bytes)| rate.bps().is_some() && *bytes > 0);
        let ps =
            limited.fold(0u64, |sum, (rate, bytes)| sum.saturating_add(seek_ps).saturating_add(rate.time_ps(*bytes)));
        if ps == 0 { Work::Delay(0) } else { Work::Of(self.disk(node), ps) }
    }

    /// A core of a node computes on so many bytes, `factor` times as long as `rate` says, and longer on a slow node.
    pub(super) fn computes(&self, node: NodeId, bytes: u64, rate: Rate, factor: f64) -> Work {
        let slowness = self.nodes[node.index()].slowness;
        let ps = (rate.time_ps(bytes) as f64 * factor * slowness).round() as u64;
        if ps == 0 { Work::Delay(0) } else { Work::Of(self.cpu(node), ps) }
    }

    /// A task starts on a node: it computes where tasks take turns, and else takes so long.
    pub(super) fn starts(&self, node: NodeId, ps: u64) -> Work {
        if self.file.cluster.core_sharing == CoreScope::None || ps == 0 {
            Work::Delay(ps)
        } else {
            Work::Of(self.cpu(node), ps)
        }
    }

    /// Bytes cut into the pieces that are handled at a time; at least one, of 0 bytes if there are none.
    pub(super) fn pieces(&self, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let piece = self.file.cluster.piece.0;
        let count = bytes.div_ceil(piece).max(1);
        (0..count).map(move |number| piece.min(bytes - number * piece))
    }
}
