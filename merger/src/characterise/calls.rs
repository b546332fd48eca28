//! Requests and responses: how large, how often, how fast.

use std::collections::{BTreeMap, HashMap};

use trace::ids::{ConnectionId, ProcessId};
use trace::rows::{MessageKind, MessageRow};

use super::quantiles::Sorted;
use super::tables::CallRow;
use super::view::{View, protocol};

/// Who calls: a process, or a connection whose owner is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Caller {
    Process(ProcessId),
    Connection(ConnectionId),
}

/// Calls of one name.
#[derive(Default)]
struct Calls {
    requests: Vec<u64>,
    responses: Vec<u64>,
    service_ns: Vec<u64>,
    gaps_ns: Vec<u64>,
    last_sent_ns: HashMap<Caller, u64>,
}

/// A request that has no response yet.
struct Open<'a> {
    key: (&'a str, &'a str),
    delivered_ns: u64,
    is_answered: bool,
}

fn is_request(message: &MessageRow) -> bool {
    matches!(
        message.kind,
        MessageKind::RpcRequest | MessageKind::BlockRequest | MessageKind::ShuffleRequest | MessageKind::HttpRequest
    )
}

fn is_response(message: &MessageRow) -> bool {
    matches!(
        message.kind,
        MessageKind::RpcResponse
            | MessageKind::BlockResponse
            | MessageKind::ShuffleResponse
            | MessageKind::HttpResponse
    )
}

/// Calls by protocol and name. A response counts for the request with its call id on its connection; where the trace has none
/// (the connection was open before), for its own name.
#[must_use]
pub fn calls(view: &View<'_>) -> Vec<CallRow> {
    let mut all: BTreeMap<(&str, &str), Calls> = BTreeMap::new();
    let mut open: HashMap<(ConnectionId, i64), Open<'_>> = HashMap::new();
    for (message, row) in view.messages() {
        let key = (protocol(row), message.name.as_str());
        if is_request(message) {
            let calls = all.entry(key).or_default();
            calls.requests.push(message.bytes);
            let caller = row.client_process.map_or(Caller::Connection(row.connection), Caller::Process);
            if let Some(before_ns) = calls.last_sent_ns.insert(caller, message.sent_ns) {
                calls.gaps_ns.push(message.sent_ns.saturating_sub(before_ns));
            }
            let request = Open { key, delivered_ns: message.delivered_ns, is_answered: false };
            open.insert((row.connection, message.call), request);
        } else if is_response(message) {
            let request = open.get_mut(&(row.connection, message.call));
            let calls = all.entry(request.as_ref().map_or(key, |request| request.key)).or_default();
            calls.responses.push(message.bytes);
            if let Some(request) = request.filter(|request| !request.is_answered) {
                request.is_answered = true;
                calls.service_ns.push(message.sent_ns.saturating_sub(request.delivered_ns));
            }
        }
    }
    let mut rows: Vec<CallRow> = all.into_iter().map(|((protocol, name), calls)| row(protocol, name, calls)).collect();
    rows.sort_by(|one, other| {
        let bytes = |row: &CallRow| row.request_bytes.saturating_add(row.response_bytes);
        bytes(other).cmp(&bytes(one)).then_with(|| (&one.protocol, &one.name).cmp(&(&other.protocol, &other.name)))
    });
    rows
}

fn row(protocol: &str, name: &str, calls: Calls) -> CallRow {
    let (requests, responses) = (Sorted::new(calls.requests), Sorted::new(calls.responses));
    let (service_ns, gaps_ns) = (Sorted::new(calls.service_ns), Sorted::new(calls.gaps_ns));
    CallRow {
        protocol: protocol.to_owned(),
        name: name.to_owned(),
        requests: requests.len(),
        request_bytes: requests.sum(),
        request_p50_bytes: requests.percentile(50).unwrap_or(0),
        request_p99_bytes: requests.percentile(99).unwrap_or(0),
        responses: responses.len(),
        response_bytes: responses.sum(),
        response_p50_bytes: responses.percentile(50).unwrap_or(0),
        response_p99_bytes: responses.percentile(99).unwrap_or(0),
        service_p50_ns: service_ns.percentile(50),
        service_p99_ns: service_ns.percentile(99),
        gap_p50_ns: gaps_ns.percentile(50),
        gap_p99_ns: gaps_ns.percentile(99),
    }
}
