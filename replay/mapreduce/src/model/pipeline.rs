//! Writing to HDFS: block after block, each through a pipeline of DataNodes.

use trace::ids::{ConnectionId, ProcessId};
use trace::rows::{Evidence, MessageKind};

use super::plan::Actor;
use super::running::Running;
use super::state::{Block, Model};
use crate::kernel::{Cause, DraftId, StepId, Work};
use crate::sizes::{
    ADD_BLOCK, COMPLETE, PACKET_BYTES, WRITE_REQUEST_BYTES, WRITE_RESPONSE_BYTES, block_ack_bytes, block_wire_bytes,
};
use crate::world::{MessageNote, NAME_NODE, NodeId, Protocol, data_node};

const WRITE: &str = "write";

/// One hop of a pipeline: from the writer to the first DataNode, from that to the second, ...
#[derive(Clone, Copy, Debug)]
struct Hop {
    connection: ConnectionId,
    sender: Actor,
    receiver: Actor,
    node: NodeId,
    data: DraftId,
    acks: DraftId,
    /// The last data that it sent.
    before: StepId,
}

impl Model {
    /// Writes so many bytes of a task's output as its input is computed on. Returns what its end waits for.
    pub(super) fn write_output(&mut self, running: Running, bytes: u64, computed: &[StepId]) -> Vec<Cause> {
        let copies = self.file.replication_of(&self.file.jobs[running.app as usize]);
        let last = computed[computed.len() - 1];
        let mut ends = vec![Cause::sent(last, Evidence::Thread)];
        let block_bytes = self.file.hadoop.block_bytes;
        for start in (0..bytes).step_by(usize::try_from(block_bytes).unwrap_or(usize::MAX)) {
            let size = block_bytes.min(bytes - start);
            let replicas = self.choose_replicas(running.node, copies);
            let block = self.block(size, replicas);
            // The share of the input that must have been computed on for so much of the output.
            let ready = |until: u64| {
                let share = until as f64 / bytes as f64 * computed.len() as f64;
                computed[(share.ceil() as usize).clamp(1, computed.len()) - 1]
            };
            let acknowledged = self.write_block(running, &block, &|written| ready(start + written), &ends);
            ends = vec![Cause::delivered(acknowledged, Evidence::Exchange), Cause::sent(last, Evidence::Thread)];
            if let Some(task) = running.actor.task {
                self.apps[running.app as usize].output.push((task, block));
            }
            if start + size < bytes {
                ends.truncate(1);
            }
        }
        let done = self.call((running.actor, NAME_NODE), COMPLETE, 0, None, &ends);
        vec![Cause::delivered(done.response, Evidence::Thread)]
    }

    /// Writes a block; `ready` gives the step by which so many of its bytes are there. Returns the last acknowledgement.
    fn write_block(
        &mut self,
        running: Running,
        block: &Block,
        ready: &dyn Fn(u64) -> StepId,
        after: &[Cause],
    ) -> StepId {
        let first = ready(1);
        let mut causes: Vec<Cause> =
            after.iter().filter(|cause| cause.moment == trace::rows::On::Delivered).copied().collect();
        causes.push(Cause::sent(first, Evidence::Thread));
        let added = self.call((running.actor, NAME_NODE), ADD_BLOCK, 0, None, &causes);
        let mut hops = self.open_pipeline(running, block, Cause::delivered(added.response, Evidence::Thread));
        let window =
            (self.file.hadoop.packets_in_flight * PACKET_BYTES).div_ceil(self.file.cluster.piece.0).max(1) as usize;
        let mut acknowledged: Vec<StepId> = Vec::new();
        let mut written = 0;
        for piece in self.pieces(block.bytes) {
            written += piece;
            let mut causes = vec![Cause::sent(ready(written), Evidence::Thread)];
            let ahead = acknowledged.len().checked_sub(window).map(|first| acknowledged[first]);
            causes.extend(ahead.map(|ack| Cause::delivered(ack, Evidence::Exchange)));
            acknowledged.push(self.write_piece(&mut hops, piece, causes));
        }
        acknowledged[acknowledged.len() - 1]
    }

    /// The request goes from DataNode to DataNode, and the answer back. The hops' `before` are then what the first data waits for.
    fn open_pipeline(&mut self, running: Running, block: &Block, added: Cause) -> Vec<Hop> {
        let wire: u64 = self.pieces(block.bytes).map(block_wire_bytes).sum();
        let acks: u64 = self.pieces(block.bytes).map(block_ack_bytes).sum();
        let call = self.next_call();
        let mut hops = Vec::new();
        let mut requests: Vec<StepId> = Vec::new();
        let mut sender = running.actor;
        for (hop, node) in (1u32..).zip(&block.replicas) {
            let process: ProcessId = data_node(*node);
            let receiver = Actor { process, task: running.actor.task };
            let connection = self.world.connect(sender.process, process, Protocol::DataTransfer);
            let note = |kind, bytes, app_bytes| MessageNote {
                app_bytes,
                call,
                block: Some(block.id),
                task: running.actor.task,
                hop: Some(hop),
                ..MessageNote::new(kind, WRITE, bytes)
            };
            let request = self.message(note(MessageKind::BlockRequest, WRITE_REQUEST_BYTES, 0));
            let cause = requests.last().map_or(added, |before| Cause::delivered(*before, Evidence::Pipeline));
            let there = (connection, true);
            let before = self.send(sender, there, request, WRITE_REQUEST_BYTES, Work::Delay(0), None, &[cause]);
            requests.push(before);
            let data = self.message(note(MessageKind::BlockData, wire, block.bytes));
            let acks = self.message(note(MessageKind::BlockAck, acks, 0));
            hops.push(Hop { connection, sender, receiver, node: *node, data, acks, before });
            sender = receiver;
        }
        let mut answer: Option<StepId> = None;
        for (hop, request) in hops.iter_mut().zip(requests).rev() {
            let note = MessageNote {
                call,
                block: Some(block.id),
                task: running.actor.task,
                ..MessageNote::new(MessageKind::BlockResponse, WRITE, WRITE_RESPONSE_BYTES)
            };
            let response = self.message(note);
            let mut causes = vec![Cause::delivered(request, Evidence::Exchange)];
            causes.extend(answer.map(|answer| Cause::delivered(answer, Evidence::Pipeline)));
            let back = (hop.connection, false);
            let step = self.send(hop.receiver, back, response, WRITE_RESPONSE_BYTES, Work::Delay(0), None, &causes);
            hop.before = step;
            answer = Some(step);
        }
        hops
    }

    /// A piece goes from hop to hop, each DataNode writes it, and acknowledgements come back. Returns the last of these.
    fn write_piece(&mut self, hops: &mut [Hop], bytes: u64, mut causes: Vec<Cause>) -> StepId {
        let mut stored: Vec<StepId> = Vec::new();
        for hop in hops.iter_mut() {
            let answered = self.is_answer(hop);
            causes.push(if answered {
                Cause::delivered(hop.before, Evidence::Exchange)
            } else {
                Cause::sent(hop.before, Evidence::Stream)
            });
            let wire = block_wire_bytes(bytes);
            let there = (hop.connection, true);
            let sent = self.send(hop.sender, there, hop.data, wire, Work::Delay(0), None, &causes);
            hop.before = sent;
            let arrived = Cause::delivered(sent, Evidence::Exchange);
            let work = self.writes(hop.node, bytes);
            stored.push(self.mark("block.stored", hop.receiver, work, None, &[arrived]));
            causes = vec![Cause::delivered(sent, Evidence::Pipeline)];
        }
        let mut ack: Option<StepId> = None;
        for (hop, stored) in hops.iter().zip(stored).rev() {
            let mut causes = vec![Cause::sent(stored, Evidence::Span)];
            causes.extend(ack.map(|ack| Cause::delivered(ack, Evidence::Pipeline)));
            let back = (hop.connection, false);
            ack = Some(self.send(hop.receiver, back, hop.acks, block_ack_bytes(bytes), Work::Delay(0), None, &causes));
        }
        ack.unwrap_or(hops[0].before)
    }

    /// Whether a hop has sent no data yet: what it waits for is the answer that came over it.
    fn is_answer(&self, hop: &Hop) -> bool {
        let crate::kernel::Action::Send { from_client, .. } = self.kernel.step(hop.before).action else { return false };
        !from_client
    }
}
