//! When readers had dealt with what they read.

use std::io;

use super::draft::{Draft, number};
use super::event::Place;
use super::pieces::Pieces;
use crate::spilled::RecordList;

/// Marks of computing what was read, by piece.
#[derive(Debug)]
pub struct Consumed(RecordList<Place>);

/// Memory that they take at most, bytes.
const MAX_BYTES: usize = 1 << 20;

impl Consumed {
    /// None yet of all pieces.
    pub fn of(pieces: &Pieces) -> Self {
        Self(RecordList::blank(pieces.count(), MAX_BYTES))
    }

    /// Notes the mark of a piece.
    pub fn insert(&mut self, piece: Draft, mark: Draft) {
        self.0.change(piece, |known| *known = Place::of(number(mark)));
    }

    /// The mark of a piece.
    pub fn get(&self, piece: Draft) -> Option<Draft> {
        self.0.get(piece).get()
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}
