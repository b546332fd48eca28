//! Captures of tcpdump, ss and lsof are read like our own.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{T0, World, assert_bytes_are_conserved, at};
use merger::build::{Merged, Silent, merge};
use trace::packet::Packet;
use trace::rows::OwnerEvidence;

fn talk() -> World {
    let mut world = World::new(&["w1", "m1"]);
    world.keep = (usize::MAX, usize::MAX);
    let mut talk = world.connect((0, 40_000), (1, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    for call in 0..5 {
        world.say(&mut talk, true, at(10 + call * 1000), &rpc_request(call as i64, "sendHeartbeat", 2000));
        world.say(&mut talk, false, at(20 + call * 1000), &rpc_response(call as i64, 40));
    }
    world
}

/// How frames begin.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    Ethernet,
    Vlan,
    Cooked,
    Cooked2,
    Raw,
    Null,
}

impl Link {
    fn number(self) -> u32 {
        match self {
            Self::Ethernet | Self::Vlan => 1,
            Self::Cooked => 113,
            Self::Cooked2 => 276,
            Self::Raw => 101,
            Self::Null => 0,
        }
    }

    fn header(self) -> Vec<u8> {
        match self {
            Self::Ethernet => [&[2; 12][..], &[8, 0]].concat(),
            Self::Vlan => [&[2; 12][..], &[0x81, 0, 0, 7, 8, 0]].concat(),
            Self::Cooked => [&[0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &[8, 0]].concat(),
            Self::Cooked2 => [&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 6][..], &[2; 8]].concat(),
            Self::Raw => Vec::new(),
            Self::Null => vec![2, 0, 0, 0],
        }
    }
}

fn frame(link: Link, packet: &Packet) -> Vec<u8> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (packet.source.ip(), packet.destination.ip()) else { panic!() };
    let total = 40 + packet.payload.len() as u16;
    let mut out = link.header();
    out.extend([0x45, 0]);
    out.extend(total.to_be_bytes());
    out.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
    out.extend(source.octets());
    out.extend(destination.octets());
    out.extend(packet.source.port().to_be_bytes());
    out.extend(packet.destination.port().to_be_bytes());
    out.extend(packet.sequence.to_be_bytes());
    out.extend(packet.acknowledgement.to_be_bytes());
    out.extend([0x50, packet.flags]);
    out.extend(packet.window.to_be_bytes());
    out.extend([0, 0, 0, 0]);
    out.extend(&packet.payload);
    out
}

fn pcap(packets: &[Packet], link: Link, nanoseconds: bool, snap: usize) -> Vec<u8> {
    let mut out = if nanoseconds { 0xa1b2_3c4du32 } else { 0xa1b2_c3d4 }.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend((snap as u32).to_le_bytes());
    out.extend(link.number().to_le_bytes());
    for packet in packets {
        let frame = frame(link, packet);
        let kept = frame.len().min(snap);
        let fraction = packet.time_ns % 1_000_000_000 / if nanoseconds { 1 } else { 1000 };
        for number in [(packet.time_ns / 1_000_000_000) as u32, fraction as u32, kept as u32, frame.len() as u32] {
            out.extend(number.to_le_bytes());
        }
        out.extend(&frame[..kept]);
    }
    out
}

fn pcapng(packets: &[Packet], link: Link, snap: usize) -> Vec<u8> {
    let block = |kind: u32, mut body: Vec<u8>| {
        body.resize(body.len().div_ceil(4) * 4, 0);
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    };
    let mut out = block(0x0a0d_0d0a, [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    // if_tsresol = 9: nanoseconds.
    let options = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    out.extend(block(1, [&link.number().to_le_bytes()[..], &(snap as u32).to_le_bytes(), &options].concat()));
    for packet in packets {
        let frame = frame(link, packet);
        let kept = frame.len().min(snap);
        let mut body = 0u32.to_le_bytes().to_vec();
        body.extend(((packet.time_ns >> 32) as u32).to_le_bytes());
        body.extend((packet.time_ns as u32).to_le_bytes());
        body.extend((kept as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(&frame[..kept]);
        out.extend(block(6, body));
    }
    out
}

fn manifest(host: &str, address: &str, packets: &str, rest: &str) -> String {
    format!(
        r#"{{"host": "{host}", "addresses": ["{address}"], "packets": [{{"file": "{packets}", "interface": "eth0"}}]{rest}}}"#
    )
}

fn write(folder: &Path, world: &World, file: &str, bytes: impl Fn(&[Packet]) -> Vec<u8>) {
    for host in &world.hosts {
        let at = folder.join(&host.name);
        fs::create_dir_all(&at).unwrap();
        let mut packets = host.eth0.clone();
        packets.sort_by_key(|packet| packet.time_ns);
        fs::write(at.join(file), bytes(&packets)).unwrap();
        let address = host.address.unwrap().to_string();
        fs::write(at.join("manifest.json"), manifest(&host.name, &address, file, "")).unwrap();
    }
}

fn merged(folder: &Path) -> Merged {
    merge(&[folder.to_owned()], &Silent).unwrap()
}

fn facts(merged: &Merged) -> Vec<(String, i64, u64, u64, u64)> {
    let rows = merged.joined.messages.iter();
    rows.map(|m| (m.name.clone(), m.call, m.bytes, m.sent_ns, m.delivered_ns)).collect()
}

#[test]
fn every_kind_of_pcap_tells_the_same() {
    let world = talk();
    let own = world.merged();
    for link in [Link::Ethernet, Link::Vlan, Link::Cooked, Link::Cooked2, Link::Raw, Link::Null] {
        for kind in ["pcap", "pcap in µs", "pcapng"] {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), &world, "eth0.pcap", |packets| match kind {
                "pcap" => pcap(packets, link, true, 65_535),
                "pcap in µs" => pcap(packets, link, false, 65_535),
                _ => pcapng(packets, link, 65_535),
            });
            let foreign = merged(folder.path());
            assert_bytes_are_conserved(&foreign);
            assert_eq!(facts(&foreign), facts(&own), "{link:?} {kind}");
            assert_eq!(foreign.joined.losses, [], "{link:?} {kind}");
        }
    }
}

#[test]
fn packed_and_short_frames_are_understood() {
    let world = talk();
    let own = world.merged();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &world, "eth0.pcap.zst", |packets| {
        zstd::encode_all(&pcap(packets, Link::Ethernet, true, 300)[..], 3).unwrap()
    });
    let foreign = merged(folder.path());
    assert_bytes_are_conserved(&foreign);
    assert_eq!(facts(&foreign), facts(&own));
}

#[test]
fn a_pcap_cut_anywhere_is_read_as_far_as_it_goes() {
    let world = talk();
    for (kind, file) in [("pcap", "a.pcap"), ("pcapng", "a.pcapng")] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &world, file, |packets| match kind {
            "pcap" => pcap(packets, Link::Ethernet, true, 300),
            _ => pcapng(packets, Link::Ethernet, 300),
        });
        let path = folder.path().join("w1").join(file);
        let whole = fs::read(&path).unwrap();
        for cut in (0..100).map(|number| whole.len() * number / 100) {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_bytes_are_conserved(&merged(folder.path()));
        }
    }
}

#[test]
fn ss_and_lsof_name_owners() {
    let world = talk();
    for format in ["ss", "lsof"] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &world, "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
        let w1 = match format {
            "ss" => format!(
                "# {}\nState Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n\
                 ESTAB 0 0 10.0.0.1:40000 10.0.0.2:8020 users:((\"java\",pid=4711,fd=300)) ino:7 sk:1 cubic wscale:7,7 rtt:0.1/0.05 bytes_sent:10 bytes_acked:11\n",
                T0 + 500_000_000
            ),
            _ => format!(
                "# {}\np4711\ncjava\nf300\nn10.0.0.1:40000->10.0.0.2:8020\nTST=ESTABLISHED\nTQR=0\n",
                T0 + 500_000_000
            ),
        };
        let m1 = match format {
            "ss" => format!("# {T0}\nLISTEN 0 256 *:8020 *:* users:((\"java\",pid=99,fd=200)) ino:8 sk:2\n"),
            _ => format!("# {T0}\np99\ncjava\nf200\nn*:8020\nTST=LISTEN\n"),
        };
        for (host, address, listing, pid, role) in
            [("w1", "10.0.0.1", w1, 4711, "DataNode"), ("m1", "10.0.0.2", m1, 99, "NameNode")]
        {
            let at = folder.path().join(host);
            fs::write(at.join("sockets.txt"), listing).unwrap();
            let rest = format!(
                r#", "sockets": [{{"file": "sockets.txt", "format": "{format}"}}], "processes": [{{"pid": {pid}, "role": "{role}"}}]"#
            );
            fs::write(at.join("manifest.json"), manifest(host, address, "eth0.pcap", &rest)).unwrap();
        }
        let merged = merged(folder.path());
        let row = &merged.joined.connections[0];
        let role =
            |process: Option<trace::ids::ProcessId>| merged.joined.processes[process.unwrap().index()].role.clone();
        assert_eq!(
            (role(row.client_process), role(row.server_process)),
            ("DataNode".into(), "NameNode".into()),
            "{format}"
        );
        assert_eq!((row.client_evidence, row.server_evidence), (OwnerEvidence::Manifest, OwnerEvidence::Manifest));
        assert_eq!(merged.joined.losses, [], "{format}");
    }
}

#[test]
fn a_wrong_manifest_is_refused_with_its_path_and_reason() {
    for (text, reason) in [
        ("{", "EOF"),
        (r#"{"host": "w1", "addresses": ["10.0.0.1"], "packets": [], "colour": 1}"#, "colour"),
        (r#"{"host": "w1", "addresses": ["ten"], "packets": []}"#, "\"ten\" is no IP address"),
        (r#"{"host": "w1", "addresses": [], "packets": []}"#, "addresses"),
        (
            r#"{"host": "w1", "addresses": ["10.0.0.1"], "packets": [{"file": "x.pcap", "interface": "eth0"}]}"#,
            "x.pcap",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("w1")).unwrap();
        fs::write(folder.path().join("w1/manifest.json"), text).unwrap();
        let error = merge(&[folder.path().to_owned()], &Silent).unwrap_err().to_string();
        assert!(error.contains("w1/manifest.json") && error.contains(reason), "{error}");
    }
}
