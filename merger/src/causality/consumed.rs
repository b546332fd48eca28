//! When readers had dealt with what they read.

use std::io;

use super::draft::{Draft, number};
use super::event::{NONE, some};
use super::pieces::Pieces;
use crate::spilled::RecordList;

/// Marks of computing what was read, by piece.
#[derive(Debug)]
pub struct Consumed(RecordList<u32>);

/// Memory that they take at most, bytes.
const MAX_BYTES: usize = 1 << 20;

impl Consumed {
    /// None yet of all pieces.
    pub fn of(pieces: &Pieces) -> Self {
        let mut marks = RecordList::within(MAX_BYTES);
        (0..pieces.count()).for_each(|_| marks.push(NONE));
        Self(marks)
    }

    /// Notes the mark of a piece.
    pub fn insert(&mut self, piece: Draft, mark: Draft) {
        self.0.change(piece, |known| *known = number(mark));
    }

    /// The mark of a piece.
    pub fn get(&self, piece: Draft) -> Option<Draft> {
        some(self.0.get(piece)).map(|mark| mark as usize)
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}
