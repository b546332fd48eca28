//! The packet file of one interface: begun, or continued where an earlier run left it.

use std::io::{self, BufReader};
use std::path::Path;

use trace::agent::AppendFile;
use trace::packet::{MAGIC, Packet, PacketFileError, PacketFileHeader, PacketReader, PacketWriter};

/// Records wait until there are so many bytes of them, or until [`PacketSink::flush`].
const BATCH_BYTES: usize = 256 << 10;

/// Appends packet records; a batch is in the file entirely or not at all.
#[derive(Debug)]
pub struct PacketSink {
    file: AppendFile,
    batch: PacketWriter<Vec<u8>>,
    batched: u64,
    unwritten: u64,
    last_error: Option<io::Error>,
}

impl PacketSink {
    /// Opens the file, cuts what a killed run left of its last record, and writes the header.
    ///
    /// # Errors
    /// If it cannot be opened or written, is locked, or is something else than a packet file.
    pub fn open(path: &Path, header: &PacketFileHeader) -> io::Result<Self> {
        let mut file = AppendFile::open(path)?;
        let whole = whole_until(&mut file)?;
        file.truncate(whole)?;
        let batch = Vec::with_capacity(BATCH_BYTES + 4096);
        let batch = if whole == 0 { PacketWriter::create(batch, header) } else { PacketWriter::resume(batch, header) };
        let mut sink = Self { file, batch: batch?, batched: 0, unwritten: 0, last_error: None };
        sink.file.append(sink.batch.get_mut())?;
        sink.batch.get_mut().clear();
        Ok(sink)
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Never because of the disk: what could not be written is counted by [`PacketSink::unwritten`].
    pub fn write(&mut self, packet: &Packet) -> io::Result<()> {
        self.batch.write(packet)?;
        self.batched += 1;
        if self.batch.get_mut().len() >= BATCH_BYTES {
            self.flush();
        }
        Ok(())
    }

    /// Hands all records to the operating system. When it cannot take them they are dropped and counted: the memory
    /// is needed for those that follow, and the file stays readable.
    pub fn flush(&mut self) {
        if self.batched > 0 {
            if let Err(error) = self.file.append(self.batch.get_mut()) {
                self.unwritten += self.batched;
                self.last_error = Some(error);
            }
            self.batch.get_mut().clear();
            self.batched = 0;
        }
    }

    /// Records that could not be written so far.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Why records could not be written, if that happened since the last call.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.last_error.take()
    }
}

/// How far an existing file can be used; 0 for one that is empty or was cut inside its first header.
fn whole_until(file: &mut AppendFile) -> io::Result<u64> {
    let length = file.length();
    if length == 0 {
        return Ok(0);
    }
    let refuse = |error: PacketFileError| io::Error::other(format!("{error}: move the file away"));
    let mut reader = match PacketReader::new(BufReader::with_capacity(1 << 18, file.reader()?)) {
        Ok(reader) => reader,
        Err(PacketFileError::NotAPacketFile { found }) if MAGIC.starts_with(&found) => return Ok(0),
        Err(PacketFileError::Header { reason, .. }) if length < 1 << 16 && reason.contains("cut off") => return Ok(0),
        Err(error) => return Err(refuse(error)),
    };
    while reader.next_packet().map_err(refuse)?.is_some() {}
    Ok(reader.whole_until())
}
