//! The payload of one direction of a connection, in time.

/// One direction of a connection: its payload in order, each byte once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Segments, ordered by offset, without overlap; a gap = bytes that the capture lost.
    pub segments: Vec<Segment>,
}

impl Stream {
    /// The segments that hold bytes of `offset..offset + bytes`.
    #[must_use]
    pub fn range(&self, offset: u64, bytes: u64) -> &[Segment] {
        let end = offset.saturating_add(bytes);
        let first = self.segments.partition_point(|segment| segment.offset + u64::from(segment.bytes) <= offset);
        let last = self.segments.partition_point(|segment| segment.offset < end);
        &self.segments[first.min(last)..last]
    }
}

/// Payload that was seen for the first time in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Offset of its first byte in this direction (0 = the byte after SYN, or the first one seen).
    pub offset: u64,
    /// Payload bytes.
    pub bytes: u32,
    /// When it left first, as the sender's host saw it (or, if only the receiver was captured, when it arrived).
    pub sent_ns: u64,
    /// When it had arrived, and all before it, at the receiver's host: never before `sent_ns`.
    pub delivered_ns: u64,
    /// Bytes in flight when it left: sent before and not yet acknowledged, as the sender's host saw it.
    pub in_flight_bytes: u64,
    /// The receiver's window as last heard by the sender then, scaled; 0 = unknown.
    pub window_bytes: u64,
    /// Whether it was sent again later.
    pub retransmitted: bool,
}
