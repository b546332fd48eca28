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
mod tls;
mod transfer;
mod turns;

use trace::jvm::JvmRecord;
use trace::rows::MessageKind;

use super::conversation::{Conversation, Framed};

/// Which of the protocols a record of a JVM is about.
#[must_use]
pub(crate) fn protocol_of(record: &JvmRecord) -> Option<&'static str> {
    match record {
        JvmRecord::Rpc { .. } | JvmRecord::Call { .. } => Some("rpc"),
        JvmRecord::Block { .. } | JvmRecord::BlockRead { .. } | JvmRecord::BlockWrite { .. } => Some("data-transfer"),
        JvmRecord::ShuffleServed { .. } | JvmRecord::Fetch { .. } => Some("shuffle"),
        _ => None,
    }
}

/// Whether nothing can be read of a connection: its payload was not kept, or is encrypted from the first byte on.
pub(super) fn is_opaque(conversation: &Conversation<'_>) -> bool {
    let kept = !conversation.client.content.is_empty() || !conversation.server.content.is_empty();
    !kept || cover::is_covered(conversation)
}

/// Reads a connection by what was said of it. Of one that is blind, other connections and the silence of its JVMs tell
/// too; payload that was seen and not understood is something else.
pub(super) fn read(conversation: &Conversation<'_>, is_opaque: bool) -> Framed {
    let recorded = conversation.records.iter().find_map(|(record, _)| protocol_of(record));
    let (protocol, drafts) = match recorded {
        Some(protocol @ "rpc") => (protocol, rpc::read(conversation)),
        Some(protocol @ "data-transfer") => (protocol, transfer::read(conversation)),
        Some(protocol) => (protocol, shuffle::read(conversation)),
        None if !is_opaque => ("", Vec::new()),
        // Whoever listens speaks one protocol with everybody. Any but HTTP the server's JVM would have told.
        None => match conversation.neighbours {
            Some(protocol @ "rpc") => {
                (protocol, turns::read(conversation, (MessageKind::RpcRequest, MessageKind::RpcResponse)))
            }
            Some(protocol @ "data-transfer") => (protocol, transfer::by_turns(conversation)),
            Some(protocol) => {
                (protocol, turns::read(conversation, (MessageKind::ShuffleRequest, MessageKind::ShuffleResponse)))
            }
            None if conversation.agents => {
                ("http", turns::read(conversation, (MessageKind::HttpRequest, MessageKind::HttpResponse)))
            }
            None => ("", Vec::new()),
        },
    };
    Framed { protocol, drafts }
}
