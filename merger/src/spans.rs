//! Processing spans: what JVMs say about when they worked on which message.

use trace::ids::{ConnectionId, MessageId};
use trace::jvm::JvmRecord;
use trace::rows::{MessageKind, SpanRow};

use crate::compact::{Message, Messages};
use crate::joined::JvmEvent;
use crate::maps::HashMap;

/// Messages by what records name them.
pub(crate) struct Finder<'a> {
    messages: &'a Messages,
    /// Requests and responses by connection, direction and call; of those of one call the last one counts.
    calls: Vec<(ConnectionId, bool, i64, MessageId)>,
    blocks: HashMap<(ConnectionId, u64), Vec<MessageId>>,
    maps: HashMap<(&'a str, u32), Vec<MessageId>>,
    requests: HashMap<ConnectionId, Vec<MessageId>>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(messages: &'a Messages) -> Self {
        let mut finder = Self {
            messages,
            calls: Vec::new(),
            blocks: HashMap::default(),
            maps: HashMap::default(),
            requests: HashMap::default(),
        };
        for row in messages.iter() {
            match row.kind {
                MessageKind::RpcRequest | MessageKind::RpcResponse => {
                    finder.calls.push((row.connection, row.from_client, row.call, row.message));
                }
                MessageKind::ShuffleResponse => {
                    if let (Some(map), Some(reduce)) = (row.map, row.reduce) {
                        finder.maps.entry((map, reduce)).or_default().push(row.message);
                    }
                }
                MessageKind::ShuffleRequest => finder.requests.entry(row.connection).or_default().push(row.message),
                _ => {
                    if let Some(block) = row.block {
                        finder.blocks.entry((row.connection, block)).or_default().push(row.message);
                    }
                }
            }
        }
        finder.calls.sort_unstable();
        finder
    }

    fn call(&self, connection: Option<ConnectionId>, from_client: bool, call: i64) -> Option<MessageId> {
        let wanted = (connection?, from_client, call);
        let behind = self
            .calls
            .partition_point(|(connection, from_client, call, _)| (*connection, *from_client, *call) <= wanted);
        let (connection, from_client, call, message) = self.calls[behind.checked_sub(1)?];
        ((connection, from_client, call) == wanted).then_some(message)
    }

    /// The request of a block operation that was sent nearest to its begin, and the message of it that ended last.
    fn block(&self, connection: Option<ConnectionId>, block: u64, t0: u64) -> (Option<MessageId>, Option<MessageId>) {
        let Some(all) = connection.and_then(|connection| self.blocks.get(&(connection, block))) else {
            return (None, None);
        };
        let request = all
            .iter()
            .map(|&message| self.messages.get(message))
            .filter(|row| row.kind == MessageKind::BlockRequest)
            .min_by_key(|row| row.delivered_ns.abs_diff(t0));
        let Some(request) = request else { return (None, None) };
        let answer = all
            .iter()
            .map(|&message| self.messages.get(message))
            .filter(|row| row.call == request.call && !row.from_client)
            .max_by_key(|row| row.delivered_ns);
        (Some(request.message), answer.map(|row| row.message))
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
        self.blocks
            .get(&(connection, block))?
            .iter()
            .map(|&message| self.messages.get(message))
            .filter(|row| row.kind == MessageKind::BlockData && row.from_client == from_client)
            .min_by_key(|row| apart(row))
    }

    /// The message with a map's output that was delivered nearest to a time.
    pub(crate) fn map(&self, connection: Option<ConnectionId>, map: &str, reduce: u32, t: u64) -> Option<Message<'a>> {
        self.maps
            .get(&(map, reduce))?
            .iter()
            .map(|&message| self.messages.get(message))
            .filter(|row| connection.is_none_or(|connection| row.connection == connection))
            .min_by_key(|row| row.delivered_ns.abs_diff(t))
    }

    fn request_before(&self, response: &Message<'_>) -> Option<MessageId> {
        let requests = self.requests.get(&response.connection)?;
        requests.iter().rev().copied().find(|&message| self.messages.get(message).call == response.call)
    }
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
            let messages = (finder.call(connection, true, *call), finder.call(connection, false, *call));
            fill("rpc", method, *th, [*received, *begin, *end], messages)
        }
        R::Call { t, sent, received, th, call, method, .. } => {
            let messages = (finder.call(connection, true, *call), finder.call(connection, false, *call));
            let sent = if *sent == 0 { *t } else { *sent };
            fill("call", method, *th, [*t, sent, (*received).max(sent)], messages)
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
