//! A history's bytes, unpacked, of which an end that is cut off is an end.

use std::io::{self, BufRead};

#[derive(Debug)]
pub struct Input<R> {
    inner: R,
    broken_off: Option<String>,
}

impl<R: BufRead> Input<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, broken_off: None }
    }

    /// Why there are no more bytes, if that is not the file's end.
    pub fn broken_off(&self) -> Option<String> {
        self.broken_off.clone()
    }

    /// What comes next; nothing at the end, also where packed data was cut off.
    pub fn next_bytes(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.inner.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.broken_off = Some(error.to_string());
                    return Ok(&[]);
                }
                Err(error) => return Err(error),
            }
        }
        // Asked twice: what is returned counts as lent in every branch.
        self.inner.fill_buf()
    }

    pub fn consume(&mut self, bytes: usize) {
        self.inner.consume(bytes);
    }
}
