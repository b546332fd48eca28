//! `sockets.jsonl`: begun, or continued where an earlier run left it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use trace::agent::AppendFile;
use trace::socket::SocketRecord;

/// Appends records; a batch is in the file entirely or not at all.
#[derive(Debug)]
pub struct SocketLog {
    file: AppendFile,
    batch: Vec<u8>,
    batched: u64,
    unwritten: u64,
    written_last: Option<SystemTime>,
}

impl SocketLog {
    /// Opens the file and cuts what a killed run left of its last line.
    ///
    /// # Errors
    /// If it cannot be opened, or is locked.
    pub fn open(path: &Path) -> io::Result<Self> {
        let written_last = fs::metadata(path).and_then(|about| about.modified()).ok();
        let mut file = AppendFile::open(path)?;
        let whole = behind_last_line(&mut file)?;
        file.truncate(whole)?;
        Ok(Self { file, batch: Vec::new(), batched: 0, unwritten: 0, written_last })
    }

    /// How long ago an earlier run wrote its last record; `None` = there was none.
    #[must_use]
    pub fn silent_for(&self) -> Option<Duration> {
        self.written_last.map(|last| last.elapsed().unwrap_or(Duration::ZERO))
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If it cannot be put into JSON.
    pub fn write(&mut self, record: &SocketRecord) -> io::Result<()> {
        serde_json::to_writer(&mut self.batch, record)?;
        self.batch.push(b'\n');
        self.batched += 1;
        Ok(())
    }

    /// Hands all records to the operating system. When it cannot take them (a full disk) they are dropped and counted.
    ///
    /// # Errors
    /// Why they could not be written; later ones may be.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let written = self.file.append(&self.batch);
        if written.is_err() {
            self.unwritten += self.batched;
        }
        self.batch.clear();
        self.batched = 0;
        written
    }

    /// Records that could not be written, since the last call.
    pub fn take_unwritten(&mut self) -> u64 {
        std::mem::take(&mut self.unwritten)
    }
}

fn behind_last_line(file: &mut AppendFile) -> io::Result<u64> {
    let mut reader = file.reader()?;
    let mut chunk = vec![0u8; 1 << 16];
    let (mut at, mut whole) = (0u64, 0u64);
    loop {
        let got = reader.read(&mut chunk)?;
        if got == 0 {
            return Ok(whole);
        }
        if let Some(end) = chunk[..got].iter().rposition(|&byte| byte == b'\n') {
            whole = at + end as u64 + 1;
        }
        at += got as u64;
    }
}
