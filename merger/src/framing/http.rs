//! HTTP/1: requests and responses, and in the responses of the shuffle handler the outputs of maps.

use std::collections::BTreeMap;

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::conversation::{Conversation, Fetches};
use super::draft::{COUNTED, Draft, FRAMING, HEADERS, JVM};
use super::turns::Turns;
use super::writable::ShuffleHeader;
use crate::capture::sense::MAX_COUNT;
use crate::join::Direction;

const METHODS: [&str; 8] = ["GET ", "PUT ", "POST ", "HEAD ", "DELETE ", "OPTIONS ", "PATCH ", "TRACE "];

/// Path of the shuffle handler.
pub(super) const MAP_OUTPUT: &str = "/mapOutput";

struct Request {
    at: u64,
    end: u64,
    path: String,
    query: String,
    evidence: &'static str,
}

/// Whether a connection speaks HTTP: requests in it, or its JVMs, say so.
pub(super) fn is_http(conversation: &Conversation<'_>) -> bool {
    let recorded = conversation.records.iter().any(|(record, _)| matches!(record, JvmRecord::ShuffleServed { .. }));
    let client = conversation.client;
    let mut starts = client.stream.segments.iter().take(64).map(|segment| segment.offset);
    recorded || starts.any(|at| begins_request(client.content.at(at)))
}

/// Reads a connection: its protocol, "shuffle" or "http", and its messages.
pub(super) fn read(conversation: &Conversation<'_>) -> (&'static str, Vec<Draft>) {
    let requests = requests(conversation.client);
    let served: Vec<(&str, u32, u64)> = conversation
        .records
        .iter()
        .filter_map(|(record, _)| match record {
            JvmRecord::ShuffleServed { map, reduce, bytes, .. } => Some((map.as_str(), *reduce, *bytes)),
            _ => None,
        })
        .collect();
    let shuffle = !served.is_empty() || requests.iter().any(|request| request.path == MAP_OUTPUT);
    let mut drafts = Vec::new();
    let ends: Vec<u64> = requests.iter().map(|request| request.end).collect();
    let turns = Turns::new(conversation.client, conversation.server, &ends);
    let mut maps = Maps::new(conversation, &served);
    for (number, request) in requests.iter().enumerate() {
        let kind = if request.path == MAP_OUTPUT { MessageKind::ShuffleRequest } else { MessageKind::HttpRequest };
        let mut draft = Draft::new(true, kind, request.at, request.end - request.at);
        (draft.name, draft.call, draft.evidence) = (request.path.clone(), number as i64, request.evidence);
        draft.reduce = parameter(&request.query, "reduce").and_then(|reduce| reduce.parse().ok());
        drafts.push(draft);
        let (from, to) = turns.answer(number);
        answer(conversation.server, number, request, (from, to), &mut maps, &mut drafts);
    }
    if requests.is_empty() && conversation.server.end > 0 {
        // The requests were not captured, or go beyond what was kept: the answers still tell themselves.
        let path = if shuffle { MAP_OUTPUT } else { "" };
        let request = Request { at: 0, end: 0, path: path.into(), query: String::new(), evidence: HEADERS };
        answer(conversation.server, 0, &request, (0, conversation.server.end), &mut maps, &mut drafts);
        let kind = if shuffle { MessageKind::ShuffleRequest } else { MessageKind::HttpRequest };
        let mut asked = Draft::new(true, kind, 0, conversation.client.end);
        (asked.name, asked.evidence) = (path.into(), HEADERS);
        drafts.push(asked);
    }
    (if shuffle { "shuffle" } else { "http" }, drafts)
}

fn begins_request(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| bytes.starts_with(method.as_bytes()))
}

/// The head of a request or response, as far as it was kept.
struct Head<'a> {
    first_line: &'a str,
    fields: BTreeMap<String, &'a str>,
    /// Bytes up to and with the empty line, if it was kept.
    bytes: Option<u64>,
}

impl<'a> Head<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let text = &bytes[..end.unwrap_or(bytes.len())];
        // What is cut inside a character is not needed either.
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or(""),
        };
        let mut lines = text.split("\r\n");
        let first_line = lines.next().unwrap_or("");
        let mut fields = BTreeMap::new();
        for line in lines {
            if let Some((name, value)) = line.split_once(':') {
                fields.insert(name.trim().to_ascii_lowercase(), value.trim());
            }
        }
        Self { first_line, fields, bytes: end.map(|end| end as u64 + 4) }
    }

    fn content_length(&self) -> Option<u64> {
        self.fields.get("content-length")?.parse().ok().filter(|length| *length <= MAX_COUNT)
    }
}

fn requests(client: &Direction) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut at = 0;
    while at < client.end {
        let bytes = client.content.at(at);
        if !begins_request(bytes) {
            at = next_request(client, at);
            continue;
        }
        let head = Head::read(bytes);
        let target = head.first_line.split(' ').nth(1).unwrap_or("");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let chunked = head.fields.contains_key("transfer-encoding");
        let (end, evidence) = match head.bytes {
            Some(head_bytes) if !chunked => (at + head_bytes + head.content_length().unwrap_or(0), FRAMING),
            // Its end lies beyond what was kept: it goes on until the next one begins.
            _ => (next_request(client, at), COUNTED),
        };
        let end = end.min(client.end);
        requests.push(Request { at, end, path: path.to_owned(), query: query.to_owned(), evidence });
        at = end;
    }
    requests
}

fn next_request(client: &Direction, at: u64) -> u64 {
    let segments = &client.stream.segments;
    let next = segments.partition_point(|segment| segment.offset <= at);
    segments[next..]
        .iter()
        .map(|segment| segment.offset)
        .find(|&offset| begins_request(client.content.at(offset)))
        .unwrap_or(client.end)
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Reads what was answered to one request.
fn answer(
    server: &Direction,
    number: usize,
    request: &Request,
    (from, to): (u64, u64),
    maps: &mut Maps<'_>,
    drafts: &mut Vec<Draft>,
) {
    if from >= to {
        return;
    }
    let bytes = server.content.at(from);
    let head = Head::read(bytes);
    let understood = head.first_line.starts_with("HTTP/1.");
    let body = head.bytes.filter(|_| understood).map(|head_bytes| from + head_bytes);
    if request.path == MAP_OUTPUT
        && let Some(output) = MapOutput::read(&head, request, maps)
    {
        let mut draft = Draft::new(false, MessageKind::ShuffleResponse, from, to - from);
        (draft.name, draft.call) = (request.path.clone(), number as i64);
        draft.evidence = output.evidence;
        draft.app_bytes = output.bytes.min(to - from);
        (draft.map, draft.reduce) = (Some(output.map), output.reduce);
        drafts.push(draft);
        return;
    }
    if request.path == MAP_OUTPUT {
        let length = body.zip(head.content_length()).map(|(body, length)| (body + length).min(to));
        maps.split(server, number, request, (from, body.unwrap_or(from), length.unwrap_or(to)), drafts);
        if let Some(end) = length.filter(|end| *end < to) {
            drafts.push(Draft { evidence: HEADERS, ..Draft::new(false, MessageKind::ShuffleResponse, end, to - end) });
        }
        return;
    }
    let mut draft = Draft::new(false, MessageKind::HttpResponse, from, to - from);
    (draft.name, draft.call) = (request.path.clone(), number as i64);
    let whole = body.zip(head.content_length()).is_some_and(|(body, length)| body + length == to);
    draft.evidence = if whole {
        FRAMING
    } else if understood {
        COUNTED
    } else {
        HEADERS
    };
    draft.app_bytes = body.map_or(0, |body| to.saturating_sub(body));
    drafts.push(draft);
}

/// What a TaskTracker of Hadoop 1.x says of the one map output in its answer: in the answer's head, not in its body.
struct MapOutput {
    map: String,
    reduce: Option<u32>,
    bytes: u64,
    evidence: &'static str,
}

impl MapOutput {
    /// As the head says, or else as the JVMs know it. A reduce of 1.x names the map before itself, later ones after.
    fn read(head: &Head<'_>, request: &Request, maps: &Maps<'_>) -> Option<Self> {
        let field = |name: &str| head.fields.get(name).copied();
        let asked = |name: &str| parameter(&request.query, name);
        let map = field("from-map-task").or_else(|| asked("map"))?.to_owned();
        let reduce = field("for-reduce-task").or_else(|| asked("reduce")).and_then(|reduce| reduce.parse().ok());
        if let Some(bytes) = field("map-output-length") {
            return Some(Self { map, reduce, bytes: bytes.parse().ok()?, evidence: FRAMING });
        }
        let names_map_first = request.query.find("map=")? < request.query.find("reduce=")?;
        let bytes = maps.known(&map, reduce?).filter(|_| names_map_first)?;
        Some(Self { map, reduce, bytes, evidence: JVM })
    }
}

/// The outputs of maps in answers of the shuffle handler.
struct Maps<'a> {
    served: Vec<(&'a str, u32, u64)>,
    next_served: usize,
    fetches: &'a Fetches,
}

impl<'a> Maps<'a> {
    fn new(conversation: &Conversation<'a>, served: &[(&'a str, u32, u64)]) -> Self {
        Self { served: served.to_vec(), next_served: 0, fetches: conversation.fetches }
    }

    /// Bytes of an output as a JVM knows them.
    fn known(&self, map: &str, reduce: u32) -> Option<u64> {
        let served = self.served.iter().find(|(of, to, _)| *of == map && *to == reduce).map(|(_, _, bytes)| *bytes);
        served.or_else(|| self.fetches.get(map, reduce).map(|size| size.bytes))
    }

    /// Splits an answer that begins at `from` and whose body goes from `body` to `end`.
    fn split(
        &mut self,
        server: &Direction,
        number: usize,
        request: &Request,
        (from, body, end): (u64, u64, u64),
        drafts: &mut Vec<Draft>,
    ) {
        let reduce = parameter(&request.query, "reduce").and_then(|reduce| reduce.parse::<u32>().ok());
        let listed: Vec<&str> =
            parameter(&request.query, "map").map(|maps| maps.split(',').collect()).unwrap_or_default();
        let (mut start, mut at, mut count) = (from, body, 0usize);
        while at < end {
            let Some((header, evidence)) = self.header(server, at, reduce, listed.get(count).copied()) else { break };
            let stop = (at + header.length + header.bytes).min(end);
            let mut draft = Draft::new(false, MessageKind::ShuffleResponse, start, stop - start);
            (draft.name, draft.call, draft.evidence) = (request.path.clone(), number as i64, evidence);
            draft.app_bytes = stop.saturating_sub(at + header.length).min(header.bytes);
            (draft.map, draft.reduce) = (Some(header.map), Some(header.reduce));
            drafts.push(draft);
            (start, at) = (stop, stop);
            count += 1;
        }
        if start < end {
            // What is left was not told apart: one message, its headers unknown.
            let mut draft = Draft::new(false, MessageKind::ShuffleResponse, start, end - start);
            (draft.name, draft.call, draft.reduce, draft.evidence) =
                (request.path.clone(), number as i64, reduce, HEADERS);
            draft.app_bytes = end.saturating_sub(at);
            drafts.push(draft);
        }
    }

    /// The header at an offset: as it stands there, or else as the JVMs know it.
    fn header(
        &mut self,
        server: &Direction,
        at: u64,
        reduce: Option<u32>,
        listed: Option<&str>,
    ) -> Option<(ShuffleHeader, &'static str)> {
        let seen = ShuffleHeader::read(server.content.at(at));
        let recorded = self.served.get(self.next_served).copied();
        if let Some(seen) = seen {
            if let Some(place) = self.served[self.next_served..].iter().position(|(map, _, _)| *map == seen.map) {
                self.next_served += place + 1;
            }
            return Some((seen, FRAMING));
        }
        let (map, reduce, bytes) = match (recorded, listed, reduce) {
            (Some(recorded), ..) => {
                self.next_served += 1;
                recorded
            }
            (None, Some(map), Some(reduce)) => (map, reduce, self.fetches.get(map, reduce)?.bytes),
            _ => return None,
        };
        let raw = self.fetches.get(map, reduce).map_or(bytes, |size| size.raw);
        let length = ShuffleHeader::length_of(map, bytes, raw, reduce);
        Some((ShuffleHeader { map: map.to_owned(), bytes, reduce, length }, JVM))
    }
}
