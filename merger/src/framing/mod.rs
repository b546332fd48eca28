//! From bytes in order to messages, protocol by protocol.

mod conversation;
mod draft;
mod http;
pub(crate) mod opaque;
mod packets;
pub mod proto;
mod rpc;
mod rpc4;
mod rpc_constants;
mod transfer;
mod transfer17;
mod turns;
mod writable;

use trace::rows::MessageKind;

pub(crate) use conversation::FetchSorter;
pub use conversation::{Conversation, FetchedSize, Fetches, Framed};
pub use draft::{COUNTED, Draft, FRAMING, HEADERS, JVM, SHARED, source_of};

/// Reads a connection: by its payload, or where that cannot be understood by what its JVMs say.
#[must_use]
pub fn read(conversation: &Conversation<'_>) -> Framed {
    let is_opaque = opaque::is_opaque(conversation);
    let mut framed = if is_opaque { Framed::default() } else { by_payload(conversation) };
    if 2 * known(&framed) < conversation.client.end + conversation.server.end {
        let opaque = opaque::read(conversation, is_opaque);
        if known(&opaque) > known(&framed) {
            framed = opaque;
        }
    }
    for from_client in [true, false] {
        let end = conversation.direction(from_client).end;
        complete(&mut framed.drafts, from_client, end);
    }
    framed
}

/// Bytes of messages whose kind is known.
fn known(framed: &Framed) -> u64 {
    framed.drafts.iter().filter(|draft| draft.kind != MessageKind::Unknown).map(|draft| draft.bytes).sum()
}

fn by_payload(conversation: &Conversation<'_>) -> Framed {
    if http::is_http(conversation) {
        let (protocol, drafts) = http::read(conversation);
        Framed { protocol, drafts }
    } else if transfer17::is_transfer(conversation) {
        Framed { protocol: "data-transfer", drafts: transfer17::read(conversation) }
    } else if transfer::is_transfer(conversation) {
        Framed { protocol: "data-transfer", drafts: transfer::read(conversation) }
    } else if rpc4::is_rpc(conversation) {
        Framed { protocol: "rpc", drafts: rpc4::read(conversation) }
    } else if rpc::is_rpc(conversation) {
        Framed { protocol: "rpc", drafts: rpc::read(conversation) }
    } else {
        Framed::default()
    }
}

/// Makes the messages of one direction cover `0..end` exactly: cuts what overlaps or goes beyond, and fills what is
/// left with messages of unknown kind.
fn complete(drafts: &mut Vec<Draft>, from_client: bool, end: u64) {
    let (mut these, others): (Vec<Draft>, Vec<Draft>) =
        std::mem::take(drafts).into_iter().partition(|draft| draft.from_client == from_client);
    these.sort_by_key(|draft| draft.offset);
    let mut whole = others;
    let mut at = 0;
    for mut draft in these {
        let start = draft.offset.max(at);
        let stop = draft.end().min(end);
        if start >= stop {
            continue;
        }
        if start > at {
            whole.push(unknown(from_client, at, start - at));
        }
        draft.offset = start;
        draft.bytes = stop - start;
        draft.app_bytes = draft.app_bytes.min(draft.bytes);
        at = stop;
        whole.push(draft);
    }
    if at < end {
        whole.push(unknown(from_client, at, end - at));
    }
    *drafts = whole;
}

fn unknown(from_client: bool, offset: u64, bytes: u64) -> Draft {
    Draft { evidence: HEADERS, ..Draft::new(from_client, MessageKind::Unknown, offset, bytes) }
}
