//! The same packets as pcapng (draft-ietf-opsawg-pcapng), for Wireshark: headers and as much payload as is kept, with the
//! host and the process of a connection as a comment at its first packet.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use trace::agent::AppendFile;
use trace::packet::{Direction, Packet, PacketFileHeader};

use crate::disk_quota::DiskQuota;
use crate::frame::LinkLayer;
use crate::rolling::Rolling;
use crate::sink::BATCH_BYTES;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Blocks are no longer than this: longer ones in a file mean that it is damaged.
const MAX_BLOCK: u32 = 1 << 20;
/// Connections whose comment has been written, remembered at most.
const REMEMBERED: usize = 65_536;

/// Options of blocks.
mod option {
    pub const COMMENT: u16 = 1;
    pub const SECTION_OS: u16 = 3;
    pub const SECTION_PROGRAM: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const INTERFACE_TIME_RESOLUTION: u16 = 9;
    pub const PACKET_FLAGS: u16 = 2;
}

/// Appends blocks to a pcapng file.
#[derive(Debug)]
pub struct PcapngSink {
    host: String,
    file: Rolling,
    batch: Vec<u8>,
    batched: u64,
    commented: HashMap<(SocketAddr, SocketAddr), bool>,
    unwritten: u64,
    last_error: Option<io::Error>,
}

impl PcapngSink {
    /// Opens the file; behind what an earlier run left, and cut of its last block if that is not whole, begins another
    /// section.
    ///
    /// # Errors
    /// If it cannot be opened or written, is locked, or is something else than a pcapng file.
    pub fn open(path: &Path, header: &PacketFileHeader, link: LinkLayer) -> io::Result<Self> {
        let mut file = AppendFile::open(path)?;
        let whole = whole_until(&mut file)?;
        file.truncate(whole)?;
        let begin = section(header, link);
        file.append(&begin)?;
        Ok(Self {
            host: header.host.clone(),
            file: Rolling::new(path, file, begin),
            batch: Vec::with_capacity(BATCH_BYTES + 4096),
            batched: 0,
            commented: HashMap::new(),
            unwritten: 0,
            last_error: None,
        })
    }

    /// Keeps to the limits of `quota` from now on.
    pub fn keep_within(&mut self, quota: &Arc<DiskQuota>) {
        self.file.keep_within(quota);
    }

    /// Adds a packet, as it is recorded, with the beginning of its frame. `owner` is the process of this side, "" = not
    /// known (yet).
    pub fn write(&mut self, packet: &Packet, frame: &[u8], owner: &str) {
        let comment = self.comment(packet, owner);
        let begin = self.batch.len();
        let word = |batch: &mut Vec<u8>, value: u32| batch.extend_from_slice(&value.to_le_bytes());
        word(&mut self.batch, PACKET);
        word(&mut self.batch, 0);
        word(&mut self.batch, 0);
        let [high, low] = [packet.time_ns >> 32, packet.time_ns & u64::from(u32::MAX)];
        word(&mut self.batch, u32::try_from(high).unwrap_or(0));
        word(&mut self.batch, u32::try_from(low).unwrap_or(0));
        word(&mut self.batch, u32::try_from(frame.len()).unwrap_or(0));
        word(&mut self.batch, packet.raw_length.max(u32::try_from(frame.len()).unwrap_or(0)));
        self.batch.extend_from_slice(frame);
        pad(&mut self.batch);
        let direction: u32 = match packet.direction {
            Direction::In => 1,
            Direction::Out => 2,
            Direction::Loopback | Direction::Foreign => 0,
        };
        add_option(&mut self.batch, option::PACKET_FLAGS, &direction.to_le_bytes());
        if let Some(comment) = comment {
            add_option(&mut self.batch, option::COMMENT, comment.as_bytes());
        }
        end_block(&mut self.batch, begin);
        self.batched += 1;
        if self.batch.len() >= BATCH_BYTES {
            self.flush();
        }
    }

    /// At a connection's first packet who has it, and once more when that has become known later.
    fn comment(&mut self, packet: &Packet, owner: &str) -> Option<String> {
        let key = (packet.local(), packet.remote());
        match self.commented.get(&key) {
            Some(true) => return None,
            Some(false) if owner.is_empty() => return None,
            _ => {}
        }
        if self.commented.len() >= REMEMBERED {
            self.commented.clear();
        }
        self.commented.insert(key, !owner.is_empty());
        let who = if owner.is_empty() { "process not known yet" } else { owner };
        Some(format!("{}: {who}, {} with {}", self.host, key.0, key.1))
    }

    /// Hands all blocks to the operating system; what it cannot take is dropped and counted.
    pub fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if let Err(error) = self.file.append(&self.batch, self.batched) {
            self.unwritten += self.batched;
            self.last_error = Some(io::Error::other(error));
        }
        self.batch.clear();
        self.batched = 0;
    }

    /// Packets that could not be written so far; the record proper has them, or counts them itself.
    #[must_use]
    pub fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Why, if that happened since the last call.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.last_error.take()
    }
}

fn section(header: &PacketFileHeader, link: LinkLayer) -> Vec<u8> {
    let mut bytes = Vec::new();
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend_from_slice(&value.to_le_bytes());
    word(&mut bytes, SECTION);
    word(&mut bytes, 0);
    word(&mut bytes, BYTE_ORDER);
    bytes.extend_from_slice(&[1, 0, 0, 0]);
    bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    add_option(&mut bytes, option::SECTION_OS, b"Linux");
    add_option(&mut bytes, option::SECTION_PROGRAM, concat!("sniffer ", env!("CARGO_PKG_VERSION")).as_bytes());
    add_option(&mut bytes, option::COMMENT, format!("host {}", header.host).as_bytes());
    end_block(&mut bytes, 0);
    let begin = bytes.len();
    word(&mut bytes, INTERFACE);
    word(&mut bytes, 0);
    bytes.extend_from_slice(&link.linktype().to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    word(&mut bytes, header.snap_length);
    add_option(&mut bytes, option::INTERFACE_NAME, header.interface.as_bytes());
    add_option(&mut bytes, option::INTERFACE_TIME_RESOLUTION, &[9]);
    end_block(&mut bytes, begin);
    bytes
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn add_option(bytes: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(1024)];
    bytes.extend_from_slice(&code.to_le_bytes());
    bytes.extend_from_slice(&u16::try_from(value.len()).unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(value);
    pad(bytes);
}

/// Ends the options and the block that begins at `begin`, whose length stands in its second and last word.
fn end_block(bytes: &mut Vec<u8>, begin: usize) {
    bytes.extend_from_slice(&[0; 4]);
    let length = u32::try_from(bytes.len() + 4 - begin).unwrap_or(0).to_le_bytes();
    bytes.extend_from_slice(&length);
    bytes[begin + 4..begin + 8].copy_from_slice(&length);
}

/// How far an existing file consists of whole blocks.
fn whole_until(file: &mut AppendFile) -> io::Result<u64> {
    let length = file.length();
    let mut reader = io::BufReader::with_capacity(1 << 18, file.reader()?);
    let mut at = 0u64;
    let mut head = [0u8; 8];
    while at + 12 <= length {
        reader.read_exact(&mut head)?;
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let block = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if at == 0 && kind != SECTION {
            return Err(io::Error::other("is no pcapng file of ours: move it away"));
        }
        if block < 12 || block % 4 != 0 || block > MAX_BLOCK || at + u64::from(block) > length {
            break;
        }
        io::copy(&mut reader.by_ref().take(u64::from(block) - 8), &mut io::sink())?;
        at += u64::from(block);
    }
    Ok(at)
}
