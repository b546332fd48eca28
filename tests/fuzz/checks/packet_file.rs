//! Any bytes are read as a file of packets up to where they stop making sense; what was read can be written and read
//! again; never a panic.
use trace::packet::{PacketReader, PacketWriter};

/// What must hold for any input.
pub fn check(bytes: &[u8]) {
    let Ok(mut reader) = PacketReader::new(bytes) else { return };
    let mut packets = Vec::new();
    while let Ok(Some(packet)) = reader.next_packet() {
        packets.push(packet);
    }
    assert!(reader.whole_until() <= bytes.len() as u64);
    let mut again = Vec::new();
    let mut writer = PacketWriter::create(&mut again, reader.header()).expect("a header that was read can be written");
    for packet in &packets {
        writer.write(packet).expect("what was read can be written");
    }
    writer.flush().expect("memory takes everything");
    let mut reader = PacketReader::new(&again[..]).expect("what was written can be read");
    for packet in &packets {
        assert_eq!(reader.next_packet().expect("it is whole").as_ref(), Some(packet));
    }
    assert!(reader.next_packet().expect("it is whole").is_none());
}
