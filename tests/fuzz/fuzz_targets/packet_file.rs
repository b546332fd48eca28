//! The sniffer's packet files: whatever is read can be written and read again.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use trace::packet::{PacketReader, PacketWriter};

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = PacketReader::new(Cursor::new(data)) else { return };
    let header = reader.header().clone();
    let mut writer = PacketWriter::create(Vec::new(), &header).unwrap();
    let mut packets = Vec::new();
    while let Ok(Some(packet)) = reader.next_packet() {
        writer.write(&packet).unwrap();
        packets.push(packet);
    }
    for mark in reader.marks() {
        writer.mark(mark).unwrap();
    }
    assert!(reader.whole_until() <= data.len() as u64);
    let bytes = std::mem::take(writer.get_mut());
    let mut again = PacketReader::new(Cursor::new(bytes)).unwrap();
    for packet in packets {
        assert_eq!(again.next_packet().unwrap(), Some(packet));
    }
    assert_eq!(again.next_packet().unwrap(), None);
    assert_eq!(again.marks(), reader.marks());
});
