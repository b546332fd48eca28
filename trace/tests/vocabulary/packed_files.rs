//! Packed captures: read like plain ones, and where they were cut off, up to there.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use trace::files::{Packing, open, read_json_lines};
use trace::packet::{PacketFileHeader, PacketReader, PacketWriter};
use trace::socket::SocketRecord;

/// Lines that do not pack to nothing, so that a cut falls between them.
fn lines() -> Vec<u8> {
    let mut number = 1u64;
    let mut bytes = Vec::new();
    for _ in 0..400 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let record = SocketRecord::Scan { t: number, netns: number >> 7, sockets: number >> 13, cpu_us: number >> 29 };
        serde_json::to_writer(&mut bytes, &record).unwrap();
        bytes.push(b'\n');
    }
    bytes
}

fn pack(bytes: &[u8], packing: Packing) -> Vec<u8> {
    match packing {
        Packing::Plain => bytes.to_vec(),
        Packing::Zstd => zstd::encode_all(bytes, 3).unwrap(),
        Packing::Gzip => {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(bytes).unwrap();
            packer.finish().unwrap()
        }
        Packing::Xz => {
            let mut packer = liblzma::write::XzEncoder::new(Vec::new(), 1);
            packer.write_all(bytes).unwrap();
            packer.finish().unwrap()
        }
    }
}

const ALL: [Packing; 4] = [Packing::Plain, Packing::Zstd, Packing::Gzip, Packing::Xz];

fn read(path: &Path) -> Vec<SocketRecord> {
    let (records, losses) = read_json_lines::<SocketRecord>(path).unwrap();
    assert_eq!(losses.malformed_lines, 0);
    records
}

#[test]
fn packed_lines_are_read_like_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sockets.jsonl");
    for packing in ALL {
        let packed = pack(&lines(), packing);
        assert_eq!(Packing::of(&packed), packing);
        fs::write(&path, packed).unwrap();
        assert_eq!(read(&path).len(), 400, "{packing:?}");
    }
}

#[test]
fn a_packed_file_that_was_cut_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sockets.jsonl");
    let plain = lines();
    fs::write(&path, &plain).unwrap();
    let whole = read(&path);
    for packing in ALL {
        let packed = pack(&plain, packing);
        let mut most = 0;
        for cut in (0..packed.len()).step_by(97) {
            fs::write(&path, &packed[..cut]).unwrap();
            // Cut before anything could be unpacked is an error, never a panic.
            if let Ok((records, _)) = read_json_lines::<SocketRecord>(&path) {
                assert_eq!(records, whole[..records.len()], "{packing:?} cut at {cut}");
                most = most.max(records.len());
            }
        }
        // zstd and xz put so little into one block, which is lost as a whole.
        if matches!(packing, Packing::Plain | Packing::Gzip) {
            assert!(most > 300, "{packing:?}: no more than {most} of 400 records survived a cut near the end");
        }
    }
}

#[test]
fn packed_packet_files_are_read() {
    let mut writer = PacketWriter::create(Vec::new(), &PacketFileHeader::default()).unwrap();
    let bytes = std::mem::take(writer.get_mut());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.hpk.zst");
    fs::write(&path, pack(&bytes, Packing::Zstd)).unwrap();
    let mut reader = PacketReader::new(open(&path).unwrap()).unwrap();
    assert!(reader.next_packet().unwrap().is_none());
    let mut all = Vec::new();
    open(&path).unwrap().read_to_end(&mut all).unwrap();
    assert_eq!(all, bytes);
}
