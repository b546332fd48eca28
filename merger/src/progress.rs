//! What is told while captures are merged.

use std::fs::File;
use std::io::Seek as _;

/// What the parts of a step are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of files, as they lie on the disk.
    Bytes,
    /// Packets.
    Packets,
    /// The step is one part.
    Nothing,
}

/// What is told while merging.
pub trait Progress: Sync {
    /// A step begins that has so many parts.
    fn step(&self, what: &str, parts: u64, unit: Unit);
    /// So many more of them are done, by this thread; none where it only tells that it goes on.
    fn done(&self, parts: u64);
}

/// Tells nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str, _: u64, _: Unit) {}
    fn done(&self, _: u64) {}
}

/// Tells how far a file was read, packed or not.
pub(crate) struct Meter<'a> {
    /// The same open file that is being read: its position is that of the reader.
    file: Option<File>,
    reported: u64,
    until: u64,
    packets: u32,
    done: &'a (dyn Fn(u64) + Sync),
}

/// Packets between two looks at the position.
const LOOK_AFTER: u32 = 1 << 14;

impl<'a> Meter<'a> {
    pub fn of(file: &File, done: &'a (dyn Fn(u64) + Sync)) -> Self {
        let until = file.metadata().map_or(0, |about| about.len());
        Self { file: file.try_clone().ok(), reported: 0, until, packets: 0, done }
    }

    /// Counts a packet.
    #[inline]
    pub fn packet(&mut self) {
        self.packets += 1;
        if self.packets == LOOK_AFTER {
            self.packets = 0;
            let at = self.file.as_mut().and_then(|file| file.stream_position().ok()).unwrap_or(0);
            self.tell(at);
        }
    }

    fn tell(&mut self, at: u64) {
        let at = at.min(self.until).max(self.reported);
        (self.done)(at - self.reported);
        self.reported = at;
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.tell(self.until);
    }
}
