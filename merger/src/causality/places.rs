//! A place in a list by message, if it has one.

use std::io;

use trace::ids::MessageId;

use super::event::Place;
use crate::spilled::RecordList;

/// By message.
#[derive(Debug, Default)]
pub(super) struct Places(RecordList<Place>);

/// Memory that one of them takes at most, bytes.
pub(super) const PLACES_BYTES: usize = 256 << 10;

impl Places {
    pub fn of(messages: usize) -> Self {
        Self(RecordList::blank(messages, PLACES_BYTES))
    }

    pub fn set(&mut self, message: MessageId, place: u32) {
        if message.index() < self.0.len() {
            self.0.change(message.index(), |known| *known = Place::of(place));
        }
    }

    pub fn get(&self, message: MessageId) -> Option<usize> {
        let known = message.index() < self.0.len();
        if known { self.0.get(message.index()).get() } else { None }
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}
