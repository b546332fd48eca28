//! Takes secrets out of payload before it is written, byte for byte, so that lengths and framing stay.
//!
//! What is read is what is kept of each segment: the beginning of a connection's messages ([`crate::keep`]). A protocol is
//! told by how a message begins (`http`, `rpc`, `transfer`); from then on a connection is known, and of each of its
//! directions where the next message begins. What is inside of a message whose beginning was not kept is blanked whole, up
//! to the next segment that begins with one: rather too much is blanked than too little.
//!
//! Not recognised, and so left as it is: what is encrypted, RPC and block transfers of Hadoop 1.x, other protocols, and
//! what a connection that is older than the recording says before it begins a message.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use trace::packet::flag;

use crate::keep::FlowDirection;

mod blank;
mod http;
mod position;
mod proto;
mod rpc;
mod transfer;

pub use blank::BLANK;
use blank::blanks;
use position::Position;
pub use position::Segment;

/// Connections that are remembered, of an interface.
const MAX_CONNECTIONS: usize = 16_384;

/// Whether secrets stay in what is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Secrets {
    /// They are blanked.
    #[default]
    Blank,
    /// They are recorded.
    Keep,
}

impl Secrets {
    /// As it is written on the command line and in the manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::Keep => "keep",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http,
    Rpc,
    Transfer,
    /// One of which nothing is blanked.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    protocol: Protocol,
    positions: [Position; 2],
    /// Messages of a negotiation that each side has still to say.
    negotiates: [u8; 2],
    is_shuffle: bool,
    has_ended: bool,
    used: u64,
}

impl Connection {
    fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            positions: [Position::Unknown; 2],
            negotiates: [0; 2],
            is_shuffle: false,
            has_ended: false,
            used: 0,
        }
    }

    fn redact(&mut self, sender: usize, segment: Segment, kept: &mut [u8]) {
        let from = self.positions[sender];
        let next = match self.protocol {
            Protocol::Http => http::segment(kept, segment, from, &mut self.is_shuffle),
            Protocol::Rpc => rpc::segment(kept, segment, from),
            Protocol::Transfer => {
                if kept.starts_with(&transfer::NEGOTIATES) {
                    self.negotiates[1 - sender] = transfer::MESSAGES;
                }
                transfer::segment(kept, segment, from, &mut self.negotiates[sender])
            }
            Protocol::Other => Position::Unknown,
        };
        self.positions[sender] = next;
    }
}

/// Takes secrets out of the segments of an interface.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    connections: HashMap<u64, Connection, BuildHasherDefault<Mixed>>,
    segments: u64,
    forgotten: u64,
    copy: Vec<u8>,
}

impl Redactor {
    /// Blanks what is secret in what is kept of a segment, and returns how many bytes. To be asked for each segment, in the
    /// order of capture.
    #[inline]
    pub fn redact(&mut self, flow: impl FnOnce() -> FlowDirection, segment: Segment, kept: &mut [u8]) -> u64 {
        if self.is_plain(segment, kept) { 0 } else { self.look(flow(), segment, kept) }
    }

    /// The same for bytes that cannot be changed: they are copied if anything is blanked.
    #[inline]
    pub fn redacted<'a>(
        &'a mut self,
        flow: impl FnOnce() -> FlowDirection,
        segment: Segment,
        kept: &'a [u8],
    ) -> (&'a [u8], u64) {
        if self.is_plain(segment, kept) {
            return (kept, 0);
        }
        let mut copy = std::mem::take(&mut self.copy);
        copy.clear();
        copy.extend_from_slice(kept);
        let blanked = self.look(flow(), segment, &mut copy);
        self.copy = copy;
        (&self.copy, blanked)
    }

    /// Connections that had to be forgotten for newer ones while they were open, since the last call.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }

    /// What nearly every segment is: nothing of it is kept, or no connection is known and none begins here.
    #[inline]
    fn is_plain(&self, segment: Segment, kept: &[u8]) -> bool {
        if kept.is_empty() {
            segment.flags & (flag::SYN | flag::FIN | flag::RST) == 0 || self.connections.is_empty()
        } else {
            self.connections.is_empty() && !may_begin(kept)
        }
    }

    fn look(&mut self, flow: FlowDirection, segment: Segment, kept: &mut [u8]) -> u64 {
        self.segments += 1;
        if segment.flags & flag::SYN != 0 {
            self.connections.remove(&flow.connection);
        }
        let is_known = self.connections.contains_key(&flow.connection);
        if !is_known {
            let Some(protocol) = recognise(kept) else { return 0 };
            self.make_room();
            self.connections.insert(flow.connection, Connection::new(protocol));
        }
        let Some(connection) = self.connections.get_mut(&flow.connection) else { return 0 };
        connection.used = self.segments;
        connection.has_ended |= segment.flags & (flag::FIN | flag::RST) != 0;
        let before = blanks(kept);
        if !kept.is_empty() {
            connection.redact(flow.sender, segment, kept);
        }
        blanks(kept).saturating_sub(before)
    }

    /// Forgets connections that have ended, or else those that were silent longest.
    fn make_room(&mut self) {
        if self.connections.len() < MAX_CONNECTIONS {
            return;
        }
        self.connections.retain(|_, connection| !connection.has_ended);
        if self.connections.len() < MAX_CONNECTIONS / 2 {
            return;
        }
        let mut used: Vec<u64> = self.connections.values().map(|connection| connection.used).collect();
        let middle = used.len() / 2;
        let (_, middle, _) = used.select_nth_unstable(middle);
        let middle = *middle;
        let before = self.connections.len();
        self.connections.retain(|_, connection| connection.used >= middle);
        self.forgotten += (before - self.connections.len()) as u64;
    }
}

/// Which protocol a connection speaks that is not known, if a message of it begins here.
fn recognise(kept: &[u8]) -> Option<Protocol> {
    if !may_begin(kept) {
        None
    } else if http::begins(kept) {
        Some(Protocol::Http)
    } else if transfer::request_at(kept).is_some() || kept.starts_with(&transfer::NEGOTIATES) {
        Some(Protocol::Transfer)
    } else {
        rpc::begins(kept).map(|is_known| if is_known { Protocol::Rpc } else { Protocol::Other })
    }
}

/// Bytes with which a message may begin: methods and versions of HTTP, "hrpc", the number before a negotiation, operations
/// on blocks or a reader's final word before one. Other frames of RPC begin with a length.
const BEGINNINGS: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = *b"GPHDOTCh\xde\x02";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Whether a segment may begin with a message of a protocol that is read: asked of nearly all, so it has to cost nothing.
#[inline]
fn may_begin(kept: &[u8]) -> bool {
    let Some(&[first, second, _, _, header, field, next, _]) = kept.first_chunk() else { return true };
    // A frame: its length, the length of its header in one or two bytes, the header's first field.
    let is_frame = (first <= 8) & (header != 0) & ((field == 8) | (next == 8));
    BEGINNINGS[usize::from(first)] | ((first == 0) & (second == 28)) | is_frame
}

/// The keys are well mixed already.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
