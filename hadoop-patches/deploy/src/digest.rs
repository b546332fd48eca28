//! SHA-256, as the hosts' `sha256sum` prints it.

use std::fmt::Write as _;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// Of bytes.
#[must_use]
pub fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Of what a reader holds.
///
/// # Errors
/// If it cannot be read.
pub fn of_reader(mut reader: impl Read) -> io::Result<String> {
    let mut running = Running::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(running.end()),
            n => running.add(&buffer[..n]),
        }
    }
}

/// A checksum that grows with what comes in.
#[derive(Default)]
pub struct Running(Sha256);

impl Running {
    /// Takes more bytes in.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all.
    #[must_use]
    pub fn end(self) -> String {
        hex(&self.0.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
