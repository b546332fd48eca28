//! Connections that are encrypted from their first byte on.

use super::super::conversation::Conversation;
use crate::join::Direction;

/// Before a block operation whose two sides negotiate (`SASL_TRANSFER_MAGIC_NUMBER`).
const SASL_TRANSFER: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];
/// Bytes of a TLS record at most, with what encryption adds (RFC 5246, 6.2.3).
const MAX_RECORD: u16 = (1 << 14) + 2048;
/// Types of TLS records (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Whether a connection begins with a TLS handshake or with the negotiation of an encrypted block transfer, or whether
/// both its sides speak TLS in its middle.
pub(super) fn is_covered(conversation: &Conversation<'_>) -> bool {
    let first = conversation.client.content.at(0);
    let speaks = |direction: &Direction| {
        let mut starts = direction.stream.segments.iter().take(16).map(|segment| segment.offset);
        starts.any(|offset| record(direction.content.at(offset)) == Some(APPLICATION_DATA))
    };
    first.starts_with(&SASL_TRANSFER)
        || record(first) == Some(HANDSHAKE)
        || (speaks(conversation.client) && speaks(conversation.server))
}

/// The type of the TLS record that begins here: type, version 3.x, length.
fn record(bytes: &[u8]) -> Option<u8> {
    let [kind, 3, minor, high, low] = *bytes.first_chunk()? else { return None };
    let length = u16::from_be_bytes([high, low]);
    ((20..=23).contains(&kind) && minor <= 4 && (1..=MAX_RECORD).contains(&length)).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_tls_are_told_from_what_only_looks_like_them() {
        assert_eq!(record(&[22, 3, 1, 0x02, 0x00, 1]), Some(HANDSHAKE));
        assert_eq!(record(&[23, 3, 3, 0x40, 0x18]), Some(APPLICATION_DATA));
        assert_eq!(record(&[23, 3, 3, 0xff, 0xff]), None, "no record is so long");
        assert_eq!(record(&[22, 4, 1, 0, 5]), None);
        assert_eq!(record(&[22, 3, 1]), None);
        assert_eq!(record(b"hrpc\x09\x00\x00"), None);
    }
}
