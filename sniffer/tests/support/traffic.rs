//! Frames in any number, and what is in a packet file.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use etherparse::PacketBuilder;
use trace::capture_note::CaptureNote;
use trace::packet::{Packet, PacketReader};

use crate::support::Pair;

/// Sends so many TCP segments of a connection that is none from the right to another host than the left: the left sees
/// them and does not answer. They are numbered by their sequence numbers.
pub fn send_frames(pair: &Pair, count: u32) {
    let sender = Pair::within(&pair.right, move || {
        let mut wire = pcap::Capture::from_device("eth0").unwrap().open().unwrap();
        for number in 0..count {
            let mut frame = Vec::new();
            let builder = PacketBuilder::ethernet2([2; 6], [6; 6]).ipv4([10, 98, 0, 9], [10, 98, 0, 8], 64);
            builder.tcp(40_000, 9866, number, 1).write(&mut frame, &[b'x'; 600]).unwrap();
            wire.sendpacket(frame).unwrap();
        }
    });
    sender.join().unwrap();
}

/// All packets of a file, and the notes between them; a record that was cut off at the end is left out.
pub fn read_with_notes(path: &Path) -> (Vec<Packet>, Vec<CaptureNote>) {
    let mut reader = PacketReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet);
    }
    (packets, reader.notes().to_vec())
}

/// The packets of a file alone.
pub fn packets_of(path: &Path) -> Vec<Packet> {
    read_with_notes(path).0
}

/// Moments that nobody chose, the same in each run: milliseconds below `limit`.
pub struct Moments(u64);

impl Moments {
    pub fn begin() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    pub fn below(&mut self, limit: u64) -> std::time::Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::time::Duration::from_millis((self.0 >> 33) % limit)
    }
}
