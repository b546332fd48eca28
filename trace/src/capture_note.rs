//! What a recorder notes between its packets: that and where some are missing, and that its clock was set.
//!
//! ```text
//! body = u64 noticed (ns since the epoch), u8 0, u8 kind, u64 from, u64 count, i64 step
//! ```

use std::fmt;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaptureNoteKind {
    /// Recording ended in order: nothing before this is missing because of the end.
    End,
    /// Recording goes on behind what a run left that did not end in order; whatever passed since is missing.
    Restart,
    /// The kernel's ring was full.
    KernelDrops,
    /// The interface or its driver lost packets.
    InterfaceDrops,
    /// The file could not be written.
    Unwritten,
    /// The interface went away.
    Vanished,
    /// The wall clock was set by `step_ns`.
    ClockStep,
    /// Packets of ports that might have turned out to be Hadoop's were given up, because too many had to be held.
    Undecided,
    /// Older files were removed to make room; `count` is what is known of their packets.
    Removed,
}

impl CaptureNoteKind {
    const ALL: [Self; 9] = [
        Self::End,
        Self::Restart,
        Self::KernelDrops,
        Self::InterfaceDrops,
        Self::Unwritten,
        Self::Vanished,
        Self::ClockStep,
        Self::Undecided,
        Self::Removed,
    ];

    fn number(self) -> u8 {
        Self::ALL.iter().position(|kind| *kind == self).and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
    }

    /// What happened, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::End => "recording ended",
            Self::Restart => "recording began again after it was broken off",
            Self::KernelDrops => "the kernel's ring was full",
            Self::InterfaceDrops => "the interface lost packets",
            Self::Unwritten => "the file could not be written",
            Self::Vanished => "the interface went away",
            Self::ClockStep => "the clock was set",
            Self::Undecided => "too many packets of unknown ports had to be held",
            Self::Removed => "older files were removed to make room",
        }
    }
}

/// A note between packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureNote {
    /// What happened.
    pub kind: CaptureNoteKind,
    /// It happened between this time (nanoseconds since the epoch; 0 = unknown) ...
    pub from_ns: u64,
    /// ... and this one, when it was noticed.
    pub to_ns: u64,
    /// Packets concerned; 0 = none, or not known.
    pub count: u64,
    /// Of a [`CaptureNoteKind::ClockStep`]: by how much the clock was put forward, nanoseconds.
    pub step_ns: i64,
}

impl CaptureNote {
    /// Whether packets are missing between the two times.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        !matches!(self.kind, CaptureNoteKind::End | CaptureNoteKind::ClockStep)
    }

    pub(crate) fn encode(&self, body: &mut Vec<u8>) {
        body.extend_from_slice(&self.to_ns.to_le_bytes());
        body.extend_from_slice(&[0, self.kind.number()]);
        body.extend_from_slice(&self.from_ns.to_le_bytes());
        body.extend_from_slice(&self.count.to_le_bytes());
        body.extend_from_slice(&self.step_ns.to_le_bytes());
    }

    /// The mark in the body of a record; `None` if it is none or of a kind that is not known.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let (to, rest) = body.split_first_chunk::<8>()?;
        let ([0, kind], rest) = rest.split_first_chunk::<2>()? else { return None };
        let (from, rest) = rest.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let (step, _) = rest.split_first_chunk::<8>()?;
        Some(Self {
            kind: *CaptureNoteKind::ALL.get(usize::from(*kind))?,
            from_ns: u64::from_le_bytes(*from),
            to_ns: u64::from_le_bytes(*to),
            count: u64::from_le_bytes(*count),
            step_ns: i64::from_le_bytes(*step),
        })
    }
}

impl fmt::Display for CaptureNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.words())?;
        if self.count > 0 {
            write!(f, ", {} packets", self.count)?;
        }
        if self.kind == CaptureNoteKind::ClockStep {
            write!(f, " by {} ns", self.step_ns)?;
        }
        Ok(())
    }
}
