//! A packet file for people: one line a packet, or a summary.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use serde::Serialize;
use trace::packet::{Direction, Packet, PacketFileError, PacketFileHeader, PacketFileLosses, PacketReader, flag};

/// What a packet file holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Header of the last run in it.
    pub header: PacketFileHeader,
    /// Whole records.
    pub packets: u64,
    /// Payload of all segments, bytes, retransmissions counted again.
    pub payload_bytes: u64,
    /// Kept payload, bytes.
    pub kept_bytes: u64,
    /// First packet, nanoseconds since the epoch.
    pub first_ns: u64,
    /// Last packet.
    pub last_ns: u64,
    /// Notes between the packets: gaps, steps of the clock, ends.
    pub notes: Vec<String>,
    /// Bytes of a last record that was cut off.
    pub truncated_bytes: u64,
    /// Records whose fields make no sense.
    pub malformed_records: u64,
}

/// Reads a packet file, and writes a line for each packet to `lines` if that is wanted.
///
/// # Errors
/// If the file is no packet file, or cannot be read, or the lines not be written.
pub fn show(path: &Path, mut lines: Option<&mut dyn Write>) -> Result<Summary, PacketFileError> {
    let mut reader = PacketReader::new(BufReader::with_capacity(1 << 18, File::open(path)?))?;
    let mut summary = Summary::default();
    while let Some(packet) = reader.next_packet()? {
        if summary.packets == 0 {
            summary.first_ns = packet.time_ns;
        }
        summary.last_ns = summary.last_ns.max(packet.time_ns);
        summary.packets += 1;
        summary.payload_bytes += u64::from(packet.payload_length);
        summary.kept_bytes += packet.payload.len() as u64;
        if let Some(out) = lines.as_mut() {
            write_line(out, &packet)?;
        }
    }
    summary.notes = reader.notes().iter().map(|note| format!("{} .. {}: {note}", note.from_ns, note.to_ns)).collect();
    let PacketFileLosses { truncated_bytes, malformed_records, .. } = reader.losses();
    summary.header = reader.header().clone();
    summary.truncated_bytes = truncated_bytes;
    summary.malformed_records = malformed_records;
    Ok(summary)
}

fn write_line(out: &mut dyn Write, packet: &Packet) -> io::Result<()> {
    let direction = match packet.direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::Loopback => "lo",
        Direction::Foreign => "foreign",
    };
    let flags: String = [(flag::SYN, 'S'), (flag::FIN, 'F'), (flag::RST, 'R'), (flag::PSH, 'P'), (flag::ACK, '.')]
        .iter()
        .filter(|(bit, _)| packet.has(*bit))
        .map(|(_, letter)| letter)
        .collect();
    let sack: String = packet.sack.blocks().iter().map(|(left, right)| format!(" sack {left}-{right}")).collect();
    writeln!(
        out,
        "{}.{:09} {direction} {} > {} [{flags}] seq {} ack {} win {}{sack} payload {} raw {} kept {}",
        packet.time_ns / 1_000_000_000,
        packet.time_ns % 1_000_000_000,
        packet.source,
        packet.destination,
        packet.sequence,
        packet.acknowledgement,
        packet.window,
        packet.payload_length,
        packet.raw_length,
        packet.payload.len()
    )
}
