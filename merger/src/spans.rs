//! Processing spans: what JVMs say about when they worked on which message.

use std::hash::BuildHasher as _;
use std::io;

use foldhash::quality::FixedState;
use trace::ids::{ConnectionId, MessageId};
use trace::jvm::JvmRecord;
use trace::rows::{MessageKind, SpanRow};

use crate::compact::{Message, Messages};
use crate::joined::JvmEvent;
use crate::spilled::{Record, SharedList, Sorter};

/// Memory that each list of a [`Finder`] takes at most, and what is sorted at once for it, bytes.
const MAX_LIST_BYTES: usize = 1 << 20;

/// A message of a connection and call. Of those of one call the last one counts.
type OfCall = ((u32, u32), (u64, u32));
/// A message of a connection about a block, or of a connection and the hash of what it carries.
type OfBlock = (u32, (u64, u32));
/// A map's output: the hash of its name, the number of the reduce, the message.
type OfMap = (u64, (u32, u32));

/// Which of a connection's messages, in an [`OfCall`].
#[derive(Clone, Copy)]
enum Way {
    Response,
    Request,
    ShuffleRequest,
}

/// Messages by what records name them.
pub(crate) struct Finder<'a> {
    messages: &'a Messages,
    calls: SharedList<OfCall>,
    blocks: SharedList<OfBlock>,
    maps: SharedList<OfMap>,
}

impl<'a> Finder<'a> {
    /// Of all messages.
    ///
    /// # Errors
    /// If a temporary file fails.
    pub(crate) fn new(messages: &'a Messages) -> io::Result<Self> {
        let mut calls: Sorter<OfCall> = Sorter::within(MAX_LIST_BYTES);
        let mut blocks: Sorter<OfBlock> = Sorter::within(MAX_LIST_BYTES);
        let mut maps: Sorter<OfMap> = Sorter::within(MAX_LIST_BYTES);
        for row in messages.iter() {
            let (connection, message) = (row.connection.0, row.message.0);
            let mut of_call = |way: Way| calls.push(((connection, way as u32), (row.call as u64, message)));
            match row.kind {
                MessageKind::RpcRequest | MessageKind::RpcResponse => of_call(rpc(row.from_client))?,
                MessageKind::ShuffleResponse => {
                    if let (Some(map), Some(reduce)) = (row.map, row.reduce) {
                        maps.push((hash(map), (reduce, message)))?;
                    }
                }
                MessageKind::ShuffleRequest => of_call(Way::ShuffleRequest)?,
                _ => {
                    if let Some(block) = row.block {
                        blocks.push((connection, (block, message)))?;
                    }
                }
            }
        }
        Ok(Self { messages, calls: list(calls)?, blocks: list(blocks)?, maps: list(maps)? })
    }

    /// Whether all that was asked for could be read.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.calls.check().and(self.blocks.check()).and(self.maps.check())
    }

    fn call(&self, connection: ConnectionId, way: Way, call: i64) -> Option<MessageId> {
        let wanted = ((connection.0, way as u32), call as u64);
        let last = self.calls.last_before(|(of, (call, _))| (*of, *call) <= wanted)?;
        let (of, (call, message)) = last;
        ((of, call) == wanted).then_some(MessageId(message))
    }

    /// The messages of a connection about a block.
    fn of_block(&self, connection: ConnectionId, block: u64) -> impl Iterator<Item = Message<'a>> {
        let wanted = (connection.0, block);
        let of_block = self.blocks.between(
            |(connection, (block, _))| (*connection, *block) < wanted,
            |(connection, (block, _))| (*connection, *block) <= wanted,
        );
        of_block.into_iter().map(|(_, (_, message))| self.messages.get(MessageId(message)))
    }

    /// The request of a block operation that was sent nearest to its begin, and the message of it that ended last.
    fn block(&self, connection: Option<ConnectionId>, block: u64, t0: u64) -> (Option<MessageId>, Option<MessageId>) {
        let Some(connection) = connection else { return (None, None) };
        let all: Vec<Message<'_>> = self.of_block(connection, block).collect();
        let requests = all.iter().filter(|row| row.kind == MessageKind::BlockRequest);
        let Some(request) = requests.min_by_key(|row| row.delivered_ns.abs_diff(t0)) else { return (None, None) };
        let answers = all.iter().filter(|row| row.call == request.call && !row.from_client);
        (Some(request.message), answers.max_by_key(|row| row.delivered_ns).map(|row| row.message))
    }

    /// The data of a block that was on its way during `time`, or nearest to it.
    pub(crate) fn data(
        &self,
        connection: ConnectionId,
        block: u64,
        from_client: bool,
        time: (u64, u64),
    ) -> Option<Message<'a>> {
        let apart = |row: &Message<'_>| row.sent_ns.saturating_sub(time.1).max(time.0.saturating_sub(row.delivered_ns));
        self.of_block(connection, block)
            .filter(|row| row.kind == MessageKind::BlockData && row.from_client == from_client)
            .min_by_key(|row| apart(row))
    }

    /// The message with a map's output that was delivered nearest to a time.
    pub(crate) fn map(&self, connection: Option<ConnectionId>, map: &str, reduce: u32, t: u64) -> Option<Message<'a>> {
        let wanted = (hash(map), reduce);
        let of_map = self
            .maps
            .between(|(map, (reduce, _))| (*map, *reduce) < wanted, |(map, (reduce, _))| (*map, *reduce) <= wanted);
        of_map
            .into_iter()
            .map(|(_, (_, message))| self.messages.get(MessageId(message)))
            .filter(|row| row.map == Some(map) && connection.is_none_or(|connection| row.connection == connection))
            .min_by_key(|row| row.delivered_ns.abs_diff(t))
    }

    fn request_before(&self, response: &Message<'_>) -> Option<MessageId> {
        self.call(response.connection, Way::ShuffleRequest, response.call)
    }

    /// Request and response of a call.
    fn both(&self, connection: Option<ConnectionId>, call: i64) -> (Option<MessageId>, Option<MessageId>) {
        let of = |way: Way| connection.and_then(|connection| self.call(connection, way, call));
        (of(Way::Request), of(Way::Response))
    }
}

fn rpc(from_client: bool) -> Way {
    if from_client { Way::Request } else { Way::Response }
}

fn hash(map: &str) -> u64 {
    FixedState::default().hash_one(map)
}

fn list<T: Record + Ord + Send>(records: Sorter<T>) -> io::Result<SharedList<T>> {
    Ok(records.sorted()?.into_list(MAX_LIST_BYTES)?.into())
}

/// What a record says of a process's work, joined with messages; its connection where it is known.
pub(crate) fn of(event: &JvmEvent, connection: Option<ConnectionId>, finder: &Finder<'_>) -> Option<SpanRow> {
    use JvmRecord as R;
    let fill =
        |kind: &str, name: &str, thread: u64, times: [u64; 3], messages: (Option<MessageId>, Option<MessageId>)| {
            SpanRow {
                process: event.process,
                thread,
                kind: kind.to_owned(),
                name: name.to_owned(),
                connection,
                request: messages.0,
                response: messages.1,
                received_ns: times[0],
                begin_ns: times[1],
                end_ns: times[2],
            }
        };
    Some(match &event.record {
        R::Rpc { received, begin, end, th, call, method, .. } => {
            fill("rpc", method, *th, [*received, *begin, *end], finder.both(connection, *call))
        }
        R::Call { t, sent, received, th, call, method, .. } => {
            let sent = if *sent == 0 { *t } else { *sent };
            fill("call", method, *th, [*t, sent, (*received).max(sent)], finder.both(connection, *call))
        }
        R::Block { t0, t1, th, op, block, .. } => {
            fill("block", op, *th, [*t0, *t0, *t1], finder.block(connection, *block, *t0))
        }
        R::BlockRead { t0, t1, th, block, .. } => {
            fill("block-read", "read", *th, [*t0, *t0, *t1], finder.block(connection, *block, *t0))
        }
        R::BlockWrite { t0, t1, th, block, .. } => {
            fill("block-write", "write", *th, [*t0, *t0, *t1], finder.block(connection, *block, *t0))
        }
        R::ShuffleServed { t0, t1, map, reduce, .. } => {
            let response = finder.map(connection, map, *reduce, *t1);
            let request = response.and_then(|row| finder.request_before(&row));
            fill("shuffle", map, 0, [*t0, *t0, *t1], (request, response.map(|row| row.message)))
        }
        R::Fetch { t0, t1, th, map, reduce, .. } => {
            let response = finder.map(None, map, *reduce, *t1);
            let request = response.and_then(|row| finder.request_before(&row));
            let connection = response.map(|row| row.connection);
            let span = fill("fetch", map, *th, [*t0, *t0, *t1], (request, response.map(|row| row.message)));
            SpanRow { connection, ..span }
        }
        _ => return None,
    })
}
