//! Moves the times in what agents wrote.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::Value;
use trace::files;
use trace::packet::{PacketReader, PacketWriter};

/// Of a packet file, packed or not; it is plain afterwards.
pub fn packets(path: &Path, to: impl Fn(u64) -> u64) {
    let mut reader = PacketReader::new(files::open(path).unwrap()).unwrap();
    let header = reader.header().clone();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet);
    }
    std::fs::remove_file(path).unwrap();
    let plain = path.to_string_lossy().trim_end_matches(".zst").to_owned();
    let mut writer = PacketWriter::create(BufWriter::new(File::create(plain).unwrap()), &header).unwrap();
    for mut packet in packets {
        packet.time_ns = to(packet.time_ns);
        writer.write(&packet).unwrap();
    }
    writer.flush().unwrap();
}

/// Of a file of JSON lines.
pub fn lines(path: &Path, to: impl Fn(u64) -> u64) {
    const TIMES: [&str; 9] = ["t", "received", "begin", "end", "responded", "sent", "t0", "t1", "wall"];
    let (records, _) = files::read_json_lines::<Value>(path).unwrap();
    std::fs::remove_file(path).unwrap();
    let plain = path.to_string_lossy().trim_end_matches(".zst").to_owned();
    let mut out = BufWriter::new(File::create(plain).unwrap());
    for mut record in records {
        for time in TIMES {
            if let Some(value) = record.get_mut(time)
                && let Some(t) = value.as_u64().filter(|t| *t > 0)
            {
                *value = to(t).into();
            }
        }
        serde_json::to_writer(&mut out, &record).unwrap();
        out.write_all(b"\n").unwrap();
    }
}
