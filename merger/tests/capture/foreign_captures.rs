//! Captures of tcpdump, ss and lsof are read like our own.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::world::wire::{rpc_preamble, rpc_request, rpc_response};
use crate::world::{T0, World, assert_bytes_are_conserved, at};
use merger::build::{Silent, merge};
use merger::merged::Merged;
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
            assert_eq!(foreign.losses(), [], "{link:?} {kind}");
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
    for (format, by_hand) in [("ss", true), ("lsof", true), ("ss", false), ("lsof", false)] {
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
            let mut rest = format!(r#", "sockets": [{{"file": "sockets.txt", "format": "{format}"}}]"#);
            if by_hand {
                rest += &format!(r#", "processes": [{{"pid": {pid}, "role": "{role}"}}]"#);
            }
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
        let evidence = if by_hand { OwnerEvidence::Manifest } else { OwnerEvidence::Scan };
        assert_eq!(row.client_evidence, evidence);
        let notes = merged.notes().join("\n");
        assert_eq!(notes.contains("inferred") && notes.contains("DataNode 4711 of w1"), !by_hand, "{notes}");
        assert_eq!(merged.losses(), [], "{format}");
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

#[test]
fn a_role_that_is_none_is_refused_with_those_that_are() {
    let processes = |role: &str, hadoop: bool| {
        format!(
            r#"{{"host": "w1", "addresses": ["10.0.0.1"], "packets": [], "processes": [{{"pid": 50, "role": "{role}", "hadoop": {hadoop}}}]}}"#
        )
    };
    for (text, refused) in
        [(processes("datanode", true), true), (processes("sshd", false), false), (processes("DataNode", true), false)]
    {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("w1")).unwrap();
        fs::write(folder.path().join("w1/manifest.json"), text).unwrap();
        let error = merge(&[folder.path().to_owned()], &Silent).unwrap_err().to_string();
        assert_eq!(error.contains("pid 50: \"datanode\" is no role"), refused, "{error}");
        assert_eq!(error.contains("NameNode, SecondaryNameNode, DataNode"), refused, "{error}");
    }
}

/// What `ss` says on w1 of its connection, below a line with a time.
fn with_ss(world: &World, stamp: &str) -> Merged {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), world, "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
    let listing = format!("{stamp}\nESTAB 0 0 10.0.0.1:40000 10.0.0.2:8020 users:((\"java\",pid=4711,fd=300))\n");
    let at = folder.path().join("w1");
    fs::write(at.join("ss.txt"), listing).unwrap();
    let rest = r#", "sockets": [{"file": "ss.txt", "format": "ss"}], "processes": [{"pid": 4711, "role": "DataNode"}]"#;
    fs::write(at.join("manifest.json"), manifest("w1", "10.0.0.1", "eth0.pcap", rest)).unwrap();
    merged(folder.path())
}

#[test]
fn times_of_listings_are_understood_as_date_prints_them() {
    let world = talk();
    // T0 is 2023-11-14T22:13:20Z; the listing was made a second later.
    for stamp in [
        "# 1700000001",
        "# 1700000001.250000000",
        "# 1700000001,25",
        "#1700000001250",
        "# 1700000001250000",
        "# 1700000001250000000",
        "# 2023-11-14T22:13:21+00:00",
        "# 2023-11-14T23:13:21,250000000+01:00",
        "# 2023-11-14 22:13:21.250000000+00:00",
        "# 2023-11-14T22:13:21Z",
    ] {
        let merged = with_ss(&world, stamp);
        assert_eq!(merged.losses(), [], "{stamp}");
        assert_eq!(merged.joined.connections[0].client_evidence, OwnerEvidence::Manifest, "{stamp}");
        let seen = merged.joined.processes.iter().find(|process| process.pid == 4711).unwrap().first_seen_ns;
        assert!(seen.abs_diff(T0) <= 2_000_000_000, "{stamp}: seen at {seen}");
    }
}

#[test]
fn what_stands_below_a_line_that_is_no_time_is_left_out_and_the_line_is_said() {
    let world = talk();
    for stamp in ["# yesterday", "# 2023-11-14T22:13:21", "# 12", "# 99999999999999999999", "#"] {
        let merged = with_ss(&world, stamp);
        let found = merged.joined.losses.iter().find(|loss| loss.what().contains("times that were not understood"));
        let loss = found.unwrap_or_else(|| panic!("{stamp}: {:?}", merged.joined.losses));
        assert!(loss.what().contains(&format!("line 1: \"{stamp}\"")) && loss.count == 2, "{loss:?}");
    }
}

#[test]
fn a_host_that_talks_to_itself_alone_needs_no_other_address() {
    let mut world = World::new(&["w1"]);
    world.keep = (usize::MAX, usize::MAX);
    world.hosts[0].address = Some("127.0.0.1".parse().unwrap());
    let mut talk = world.connect((0, 40_000), (0, 8020), [100, 200], at(0));
    world.say(&mut talk, true, at(1), &rpc_preamble());
    world.say(&mut talk, true, at(10), &rpc_request(1, "sendHeartbeat", 2000));
    for host in &mut world.hosts {
        let lo = std::mem::take(&mut host.lo);
        host.eth0.extend(lo);
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &world, "lo.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
    let merged = merged(folder.path());
    assert_eq!(merged.joined.connections.len(), 1);
    assert!(merged.joined.connections[0].loopback);
    assert_bytes_are_conserved(&merged);
}

#[test]
fn frames_cut_inside_their_headers_are_counted_with_the_length_that_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let world = talk();
    write(folder.path(), &world, "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
    let packets = &world.hosts[0].eth0;
    fs::write(folder.path().join("w1/eth0.pcap"), pcap(packets, Link::Ethernet, true, 50)).unwrap();
    let merged = merged(folder.path());
    let cut: Vec<_> =
        merged.joined.losses.iter().filter(|loss| loss.what().contains("cut inside their headers")).collect();
    assert!(cut.len() == 1 && cut[0].count == packets.len() as u64, "{:?}", merged.joined.losses);
    assert!(cut[0].what().contains("at 50 bytes") && cut[0].what().contains("-s 256"), "{cut:?}");
}

#[test]
fn vxlan_and_what_is_no_tcp_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let world = talk();
    let udp = |port: u16| {
        let mut frame = Link::Ethernet.header();
        frame.extend([0x45, 0, 0, 36, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39]);
        frame.extend(port.to_be_bytes());
        frame.extend([0, 16, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0]);
        frame
    };
    write(folder.path(), &world, "eth0.pcap", |packets| {
        let mut file = pcap(packets, Link::Ethernet, true, 65_535);
        for frame in [udp(4789), udp(4789), udp(53)] {
            for number in [1_700_000_001, 0, frame.len() as u32, frame.len() as u32] {
                file.extend(number.to_le_bytes());
            }
            file.extend(frame);
        }
        file
    });
    let merged = merged(folder.path());
    let vxlan: Vec<_> = merged.joined.losses.iter().filter(|loss| loss.what().contains("VXLAN")).collect();
    assert!(vxlan.len() == 2 && vxlan.iter().all(|loss| loss.count == 2), "{:?}", merged.joined.losses);
    let noted = merged.notes.iter().filter(|note| note.contains("1 frames are no TCP")).count();
    assert_eq!(noted, 2, "{:?}", merged.notes);
}

#[test]
fn packets_that_a_file_has_twice_count_once() {
    let world = talk();
    let once = tempfile::tempdir().unwrap();
    write(once.path(), &world, "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
    let twice = tempfile::tempdir().unwrap();
    // Seen on the bond, and 3 us later on its slave.
    let again = |packet: &Packet| [packet.clone(), Packet { time_ns: packet.time_ns + 3_000, ..packet.clone() }];
    write(twice.path(), &world, "eth0.pcap", |packets| {
        let all: Vec<Packet> = packets.iter().flat_map(again).collect();
        pcap(&all, Link::Ethernet, true, 65_535)
    });
    let (once, twice) = (merged(once.path()), merged(twice.path()));
    assert_eq!(once.joined.messages, twice.joined.messages);
    assert_eq!(once.joined.connections, twice.joined.connections);
    let counted: u64 =
        twice.joined.losses.iter().filter(|loss| loss.what().contains("twice")).map(|loss| loss.count).sum();
    let packets: usize = world.hosts.iter().map(|host| host.eth0.len()).sum();
    assert_eq!(counted, packets as u64, "{:?}", twice.joined.losses);
}

/// Three hosts of which the first two talk with the third only.
fn star() -> World {
    let mut world = World::new(&["w1", "w2", "m1"]);
    for worker in 0..2 {
        let mut talk = world.connect((worker, 40_000), (2, 8020), [100, 200], at(worker as u64));
        for call in 0..40 {
            world.say(&mut talk, true, at(10 + call * 100), &rpc_request(call as i64, "sendHeartbeat", 2000));
            world.say(&mut talk, false, at(20 + call * 100), &rpc_response(call as i64, 40));
        }
    }
    world
}

#[test]
fn the_file_of_another_host_is_told_by_its_addresses() {
    let told = |file_of: &str| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &star(), "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
        fs::copy(folder.path().join(file_of).join("eth0.pcap"), folder.path().join("w1/given.pcap")).unwrap();
        fs::rename(folder.path().join("w1/given.pcap"), folder.path().join("w1/eth0.pcap")).unwrap();
        let notes = merged(folder.path()).notes();
        notes.into_iter().filter(|note| note.contains("another host")).collect::<Vec<_>>()
    };
    assert_eq!(told("w1"), Vec::<String>::new());
    for (file_of, address) in [("w2", "10.0.0.2"), ("m1", "10.0.0.3")] {
        let notes = told(file_of);
        assert!(notes.len() == 1 && notes[0].contains("w1/eth0.pcap") && notes[0].contains(address), "{notes:?}");
    }
}
