//! Connections whose payload was not kept, or is encrypted: messages from what the JVMs said and from when and how
//! segments went.
//!
//! A JVM stamps an RPC just before it writes it, and its peer just after it has read it whole: the segments of a message
//! left after the one stamp and had arrived by the other ([`place`]). Block operations and map outputs have stamps of
//! that kind as well, and sizes. What no JVM speaks of (handshakes, connection contexts, final statuses) stands between,
//! and is told by the turns that both sides take.
//!
//! Sizes are always those of the wire: where a connection is encrypted, records and tokens of TLS and SASL count with
//! the messages that they carry, as a network carries them too. Application data is what the JVMs say.

mod context;
mod cover;
mod place;
pub(super) mod rpc;
mod shuffle;
mod transfer;
mod turns;

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::{Conversation, Framed};

/// Which of the protocols a record of a JVM is about.
#[must_use]
pub(crate) fn protocol_of(record: &JvmRecord) -> Option<&'static str> {
    match record {
        JvmRecord::Rpc { .. } | JvmRecord::Call { .. } => Some("rpc"),
        JvmRecord::Block { .. } | JvmRecord::BlockRead { .. } | JvmRecord::BlockWrite { .. } => Some("data-transfer"),
        JvmRecord::ShuffleServed { .. } => Some("shuffle"),
        _ => None,
    }
}

/// Whether nothing can be read of a connection: its payload was not kept, or is encrypted from the first byte on.
pub(super) fn is_blind(conversation: &Conversation<'_>) -> bool {
    let kept = !conversation.client.content.is_empty() || !conversation.server.content.is_empty();
    !kept || cover::is_covered(conversation)
}

/// Reads a connection by what was said of it. Of one that is blind, other connections and the silence of its JVMs tell
/// too; payload that was seen and not understood is something else.
pub(super) fn read(conversation: &Conversation<'_>, blind: bool) -> Framed {
    let told = conversation.records.iter().find_map(|(record, _)| protocol_of(record));
    // Whoever listens speaks one protocol with everybody.
    let neighbours = conversation.neighbours.filter(|_| blind);
    match (told, neighbours) {
        (Some("rpc"), _) => Framed { protocol: "rpc", drafts: rpc::read(conversation) },
        (Some("data-transfer"), _) => Framed { protocol: "data-transfer", drafts: transfer::read(conversation) },
        (Some(_), _) => Framed { protocol: "shuffle", drafts: shuffle::read(conversation) },
        (None, Some("rpc")) => turns::read(conversation, "rpc", (MessageKind::RpcRequest, MessageKind::RpcResponse)),
        (None, Some("shuffle")) => {
            turns::read(conversation, "shuffle", (MessageKind::ShuffleRequest, MessageKind::ShuffleResponse))
        }
        (None, Some(protocol)) => Framed { protocol, drafts: Vec::new() },
        // Both JVMs would have spoken of anything else.
        (None, None) if blind && conversation.agents => {
            turns::read(conversation, "http", (MessageKind::HttpRequest, MessageKind::HttpResponse))
        }
        (None, None) => Framed::default(),
    }
}
