//! Where a segment stands in what its direction says, and what is known of what comes next.

/// Where a segment stands in its direction's bytes.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Bytes on the wire; what is kept of them may be less.
    pub length: u32,
    /// TCP flags.
    pub flags: u8,
}

impl Segment {
    /// How far `sequence` lies behind the segment's first byte; `None` = in front of it.
    pub(super) fn reaches(self, sequence: u32) -> Option<usize> {
        usize::try_from(sequence.wrapping_sub(self.sequence).cast_signed()).ok()
    }

    /// Whether `sequence` lies in the segment: what begins there is in it.
    pub(super) fn is_behind(self, sequence: u32) -> bool {
        self.reaches(sequence).is_some_and(|inside| inside < self.length as usize)
    }

    /// What is known behind a segment of which `kept` bytes were read, up to a message that begins at `at`.
    pub(super) fn ends_at(self, at: usize, kept: usize) -> Position {
        if at < self.length as usize && at >= kept { Position::Lost } else { self.at(at) }
    }

    pub(super) fn at(self, at: usize) -> Position {
        // Nothing is longer than what sequence numbers can tell apart.
        u32::try_from(at).map_or(Position::Lost, |at| Position::At(self.sequence.wrapping_add(at)))
    }

    /// Where a message goes on beyond this segment.
    pub(super) fn unless_within(self, end: usize) -> Position {
        if end > self.length as usize { self.at(end) } else { Position::Unknown }
    }

    /// A head of HTTP of which `kept` bytes of this segment were read.
    pub(super) fn cut_in_head(self, kept: usize, is_in_line: bool, body: Body) -> Position {
        if kept < self.length as usize {
            return Position::Lost;
        }
        Position::Head { next: self.sequence.wrapping_add(self.length), is_in_line, body }
    }
}

/// What is known of the bytes that a direction says next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Nothing, and nothing is secret unless it says so.
    Unknown,
    /// A message begins at this sequence number; what lies before it belongs to another one.
    At(u32),
    /// A head of HTTP goes on at `next`.
    Head { next: u32, is_in_line: bool, body: Body },
    /// They are outputs of maps, until another answer begins.
    MapOutputs,
    /// They are inside of a message, of which nobody knows where it ends.
    Lost,
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Bytes(u32),
    /// Nobody said how many.
    Unknown,
    /// Outputs of maps.
    MapOutputs,
}
