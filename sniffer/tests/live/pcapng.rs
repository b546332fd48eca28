//! What is written beside the record for Wireshark is read by parsers of others, also after a kill.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Agent, Pair, exchange};
use pcap_parser::pcapng::{Block, OptionCode};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{PcapBlockOwned, PcapError, PcapNGReader};
use sniffer::frame::LinkLayer;
use sniffer::pcapng::PcapngSink;
use test_support::skipped;
use trace::agent::write_atomically;
use trace::packet::{Direction, Packet, PacketFileHeader, Sack};
use trace::ports::HadoopPorts;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

/// Captured bytes, bytes on the wire, data.
type Frame = (u32, u32, Vec<u8>);

/// Sections, frames, comments on packets.
fn read(path: &Path) -> (usize, Vec<Frame>, Vec<String>) {
    let bytes = fs::read(path).unwrap();
    let mut reader = PcapNGReader::new(1 << 20, bytes.as_slice()).unwrap();
    let (mut sections, mut frames, mut comments) = (0, Vec::new(), Vec::new());
    loop {
        match reader.next() {
            Ok((used, block)) => {
                match block {
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => sections += 1,
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        frames.push((
                            packet.caplen,
                            packet.origlen,
                            packet.packet_data()[..packet.caplen as usize].to_vec(),
                        ));
                        comments.extend(packet.options.iter().filter(|option| option.code == OptionCode::Comment).map(
                            |option| String::from_utf8(option.value[..usize::from(option.len)].to_vec()).unwrap(),
                        ));
                    }
                    _ => {}
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return (sections, frames, comments),
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn packet(number: u32) -> Packet {
    Packet {
        time_ns: 1_700_000_000_123_456_789 + u64::from(number),
        direction: Direction::Out,
        source: "10.1.0.1:40000".parse().unwrap(),
        destination: "10.1.0.2:9866".parse().unwrap(),
        raw_length: 1514,
        payload_length: 1448,
        sequence: number,
        acknowledgement: 0,
        flags: 0x10,
        window: 1,
        sack: Sack::default(),
        payload: Vec::new(),
    }
}

#[test]
fn a_file_cut_at_any_byte_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.pcapng");
    let header = PacketFileHeader { host: "w1".into(), interface: "eth0".into(), ..Default::default() };
    let write = |numbers: std::ops::Range<u32>| {
        let mut sink = PcapngSink::open(&path, &header, LinkLayer::Ethernet).unwrap();
        for number in numbers {
            sink.write(&packet(number), &[number as u8; 67], if number < 2 { "" } else { "YarnChild 7" });
        }
        sink.flush();
        assert_eq!(sink.unwritten(), 0);
    };
    write(0..4);
    let (sections, frames, comments) = read(&path);
    assert_eq!((sections, frames.len()), (1, 4));
    assert_eq!(frames[3], (67, 1514, vec![3; 67]));
    assert_eq!(
        comments,
        [
            "w1: process not known yet, 10.1.0.1:40000 with 10.1.0.2:9866",
            "w1: YarnChild 7, 10.1.0.1:40000 with 10.1.0.2:9866"
        ]
    );
    let whole = fs::read(&path).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..cut]).unwrap();
        write(9..10);
        let (_, frames, _) = read(&path);
        assert_eq!(frames.last().unwrap().2, vec![9; 67], "cut at {cut}");
    }
    fs::write(&path, "a letter to my grandmother").unwrap();
    assert!(PcapngSink::open(&path, &header, LinkLayer::Ethernet).unwrap_err().to_string().contains("move it away"));
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_recording_is_read_by_tcpdump_with_processes_as_comments() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(
        SNIFFER,
        &pair.left,
        "sniffer.json",
        folder.path(),
        &["--ring", "8MiB", "--pcapng", "--follow", "--hold", "60s", "--interface", "eth0"],
    );
    let ends = exchange(&pair, 20, 1000, 10);
    let stated = HadoopPorts {
        version: 1,
        t: 1,
        listen: [(ends.server.port(), "AppMaster 9".to_owned()), (ends.client.port(), "Fetcher 8".to_owned())].into(),
        connections: Default::default(),
        left_out: 0,
    };
    write_atomically(&folder.path().join("ports.json"), &serde_json::to_vec(&stated).unwrap()).unwrap();
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    let path = folder.path().join("packets-eth0.pcapng");
    let (_, frames, comments) = read(&path);
    let recorded = manifest["interfaces"][0]["packets"].as_u64().unwrap();
    assert_eq!(frames.len() as u64, recorded);
    assert!(frames.iter().all(|(captured, wire, data)| captured <= wire && data.len() >= 54));
    assert!(comments.iter().all(|comment| comment.contains(&ends.client.to_string())), "{comments:?}");
    match Command::new("tcpdump").args(["-nn", "-r"]).arg(&path).output() {
        Ok(output) => {
            let lines = String::from_utf8_lossy(&output.stdout);
            assert_eq!(lines.lines().count() as u64, recorded, "{}", String::from_utf8_lossy(&output.stderr));
            assert!(lines.contains(&format!("10.98.0.2.{}", ends.server.port())));
        }
        Err(error) => skipped(format_args!("tcpdump: {error}")),
    }
}
