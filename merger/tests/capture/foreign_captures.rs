//! Captures of tcpdump, ss and lsof are read like our own.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::world::wire::{read_block, rpc_preamble, rpc_request, rpc_response, umbilical_request};
use crate::world::{T0, World, assert_bytes_are_conserved, at, connections};
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
    QinQ,
    Cooked,
    Cooked2,
    Raw,
    Null,
    /// Ethernet's frames under the link types of cooked ones.
    MislabelledCooked,
    MislabelledCooked2,
    /// A user's own.
    Unknown,
}

impl Link {
    fn number(self) -> u32 {
        match self {
            Self::Ethernet | Self::Vlan | Self::QinQ => 1,
            Self::Cooked | Self::MislabelledCooked => 113,
            Self::Cooked2 | Self::MislabelledCooked2 => 276,
            Self::Unknown => 147,
            Self::Raw => 101,
            Self::Null => 0,
        }
    }

    fn header(self) -> Vec<u8> {
        match self {
            Self::Ethernet | Self::MislabelledCooked | Self::MislabelledCooked2 => [&[2; 12][..], &[8, 0]].concat(),
            Self::QinQ => [&[2; 12][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]].concat(),
            Self::Vlan => [&[2; 12][..], &[0x81, 0, 0, 7, 8, 0]].concat(),
            Self::Cooked => [&[0, 4, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &[8, 0]].concat(),
            Self::Cooked2 => [&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 4, 6][..], &[2; 8]].concat(),
            Self::Raw | Self::Unknown => Vec::new(),
            Self::Null => vec![2, 0, 0, 0],
        }
    }
}

fn frame(link: Link, packet: &Packet) -> Vec<u8> {
    frame_with(link, packet, &[])
}

/// The same with these options of TCP.
fn frame_with(link: Link, packet: &Packet, options: &[u8]) -> Vec<u8> {
    let segment = 20 + options.len() as u16 + packet.payload.len() as u16;
    let mut out = link.header();
    match (packet.source.ip(), packet.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            out.extend([0x45, 0]);
            out.extend((20 + segment).to_be_bytes());
            out.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
            out.extend(source.octets());
            out.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ether_type = out.len().saturating_sub(2)..;
            if link == Link::Ethernet {
                out[ether_type].copy_from_slice(&[0x86, 0xdd]);
            }
            out.extend([0x60, 0, 0, 0]);
            out.extend(segment.to_be_bytes());
            out.extend([6, 64]);
            out.extend(source.octets());
            out.extend(destination.octets());
        }
        _ => panic!(),
    }
    out.extend(packet.source.port().to_be_bytes());
    out.extend(packet.destination.port().to_be_bytes());
    out.extend(packet.sequence.to_be_bytes());
    out.extend(packet.acknowledgement.to_be_bytes());
    out.extend([0x50 + options.len() as u8 * 4, packet.flags]);
    out.extend(packet.window.to_be_bytes());
    out.extend([0, 0, 0, 0]);
    out.extend(options);
    out.extend(&packet.payload);
    out
}

fn pcap(packets: &[Packet], link: Link, nanoseconds: bool, snap: usize) -> Vec<u8> {
    pcap_of(packets, link, nanoseconds, snap, |packet| frame(link, packet))
}

fn pcap_of(
    packets: &[Packet],
    link: Link,
    nanoseconds: bool,
    snap: usize,
    frame: impl Fn(&Packet) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = if nanoseconds { 0xa1b2_3c4du32 } else { 0xa1b2_c3d4 }.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend((snap as u32).to_le_bytes());
    out.extend(link.number().to_le_bytes());
    for packet in packets {
        let frame = frame(packet);
        let kept = frame.len().min(snap);
        let fraction = packet.time_ns % 1_000_000_000 / if nanoseconds { 1 } else { 1000 };
        for number in [(packet.time_ns / 1_000_000_000) as u32, fraction as u32, kept as u32, frame.len() as u32] {
            out.extend(number.to_le_bytes());
        }
        out.extend(&frame[..kept]);
    }
    out
}

fn block(kind: u32, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().div_ceil(4) * 4, 0);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn pcapng(packets: &[Packet], link: Link, snap: usize) -> Vec<u8> {
    pcapng_of(packets, &[(link, 9)], snap)
}

/// The packets turn by turn on two interfaces, the second with stamps in microseconds, as `any` has them.
fn two_interfaces(packets: &[Packet], first: Link, second: Link) -> Vec<u8> {
    pcapng_of(packets, &[(first, 9), (second, 6)], 65_535)
}

/// Interfaces are link types with the digits of a second in their stamps (if_tsresol).
fn pcapng_of(packets: &[Packet], interfaces: &[(Link, u8)], snap: usize) -> Vec<u8> {
    let mut out = block(0x0a0d_0d0a, [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    for (link, digits) in interfaces {
        let options = [9, 0, 1, 0, *digits, 0, 0, 0, 0, 0, 0, 0];
        out.extend(block(1, [&link.number().to_le_bytes()[..], &(snap as u32).to_le_bytes(), &options].concat()));
    }
    for (number, packet) in packets.iter().enumerate() {
        let interface = number % interfaces.len();
        let (link, digits) = interfaces[interface];
        let frame = frame(link, packet);
        let kept = frame.len().min(snap);
        let stamp = packet.time_ns / 10u64.pow(u32::from(9 - digits));
        let mut body = (interface as u32).to_le_bytes().to_vec();
        body.extend(((stamp >> 32) as u32).to_le_bytes());
        body.extend((stamp as u32).to_le_bytes());
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

/// A capture of tcpdump and `ss`.
pub fn write_tcpdump_capture(folder: &Path) {
    write(folder, &talk(), "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 256));
    let listing = "# 1700000000\nESTAB 0 0 10.0.0.1:40000 10.0.0.2:8020 users:((\"java\",pid=50,fd=3))\nno socket\n";
    fs::write(folder.join("w1/ss.txt"), listing).unwrap();
    let rest = r#", "sockets": [{"file": "ss.txt", "format": "ss"}], "processes": [{"pid": 50, "role": "DataNode"}]"#;
    fs::write(folder.join("w1/manifest.json"), manifest("w1", "10.0.0.1", "eth0.pcap", rest)).unwrap();
}

fn merged(folder: &Path) -> Merged {
    merge(&[folder.to_owned()], &Silent).unwrap()
}

fn facts(merged: &Merged) -> Vec<(String, i64, u64, u64, u64)> {
    let rows = merged.joined.messages.iter();
    rows.map(|m| (m.name.to_string(), m.call, m.bytes, m.sent_ns, m.delivered_ns)).collect()
}

#[test]
fn every_kind_of_pcap_tells_the_same() {
    let world = talk();
    let own = world.merged();
    for link in [Link::Ethernet, Link::Vlan, Link::QinQ, Link::Cooked, Link::Cooked2, Link::Raw, Link::Null] {
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
fn frames_of_ethernet_under_the_link_type_of_cooked_ones_are_read_and_said() {
    let world = talk();
    let own = world.merged();
    for (link, number) in [(Link::MislabelledCooked, 113), (Link::MislabelledCooked2, 276)] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &world, "eth0.pcap", |packets| pcap(packets, link, true, 65_535));
        let foreign = merged(folder.path());
        assert_eq!(facts(&foreign), facts(&own), "{link:?}");
        assert_eq!(foreign.losses(), [], "{link:?}");
        let said = format!(
            "w1/eth0.pcap: {} frames have the link type {number} and are Ethernet's",
            world.hosts[0].eth0.len()
        );
        assert!(foreign.notes().iter().any(|note| note.starts_with(&said)), "{:?}", foreign.notes());
    }
}

/// One file of two interfaces of different kinds, as `dumpcap -i eth0 -i any` leaves it.
#[test]
fn interfaces_of_one_file_have_link_types_and_units_of_their_own() {
    let world = talk();
    let own = world.merged();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &world, "all.pcapng", |packets| {
        let half = packets.len() / 2;
        let first = pcapng(&packets[..half], Link::Ethernet, 65_535);
        // The second section begins anew with its interfaces.
        [first, pcapng(&packets[half..], Link::Cooked2, 65_535)].concat()
    });
    let sections = merged(folder.path());
    assert_eq!((facts(&sections), sections.losses()), (facts(&own), Vec::new()));
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &world, "all.pcapng", |packets| two_interfaces(packets, Link::Ethernet, Link::Cooked));
    let interfaces = merged(folder.path());
    assert_eq!((facts(&interfaces), interfaces.losses()), (facts(&own), Vec::new()));
}

#[test]
fn ipv6_is_read_like_ipv4() {
    let world = talk();
    let own = world.merged();
    let in_ipv6 = |address: SocketAddr| match address {
        SocketAddr::V4(address) => {
            SocketAddr::new(format!("fd00::{}", address.ip().octets()[3]).parse().unwrap(), address.port())
        }
        SocketAddr::V6(_) => panic!("{address}"),
    };
    let moved = |packet: &Packet| {
        let (source, destination) = (in_ipv6(packet.source), in_ipv6(packet.destination));
        Packet { source, destination, ..packet.clone() }
    };
    for link in [Link::Ethernet, Link::Raw] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &world, "eth0.pcap", |packets| {
            pcap(&packets.iter().map(moved).collect::<Vec<_>>(), link, true, 65_535)
        });
        for (host, address) in [("w1", "fd00::1"), ("m1", "fd00::2")] {
            fs::write(folder.path().join(host).join("manifest.json"), manifest(host, address, "eth0.pcap", ""))
                .unwrap();
        }
        let foreign = merged(folder.path());
        assert!(connections(&foreign)[0].client.starts_with("[fd00::1]"), "{:?}", connections(&foreign));
        assert_eq!((facts(&foreign), foreign.losses()), (facts(&own), Vec::new()), "{link:?}");
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
        let row = &connections(&merged)[0];
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

/// Connections of some milliseconds, on one port one after the other: what a listing once a second misses.
#[test]
fn tcplife_names_the_owners_of_short_connections() {
    let mut world = World::new(&["w1", "m1"]);
    for (number, ms) in [500, 600, 700].into_iter().enumerate() {
        let mut talk = world.connect((0, 40_000), (1, 8020), [77 + number as u32, 88], at(ms));
        world.say(&mut talk, true, at(ms + 1), &[1; 100]);
        world.close(&mut talk, at(ms + 10));
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &world, "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
    let header = "PID   COMM       LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS\n";
    let line = |pid: u32, (local, remote): (&str, &str), ended_ms: u64| {
        format!("# {}\n{pid} IPC Client (1) {local} {remote} 0 0 10.10\n", at(ended_ms) + 100_000)
    };
    let client = ("10.0.0.1 40000", "10.0.0.2 8020");
    let w1 =
        format!("{header}{}{}{}lost 3 events\n", line(11, client, 510), line(12, client, 610), line(13, client, 710));
    let m1 = format!("{header}{}", line(99, (client.1, client.0), 510));
    for (host, address, listing) in [("w1", "10.0.0.1", w1), ("m1", "10.0.0.2", m1)] {
        let at = folder.path().join(host);
        fs::write(at.join("tcplife.txt"), listing).unwrap();
        let rest = r#", "sockets": [{"file": "tcplife.txt", "format": "tcplife"}]"#;
        fs::write(at.join("manifest.json"), manifest(host, address, "eth0.pcap", rest)).unwrap();
    }
    let merged = merged(folder.path());
    let pid =
        |process: Option<trace::ids::ProcessId>| process.map(|process| merged.joined.processes[process.index()].pid);
    let clients: Vec<Option<u32>> = connections(&merged).into_iter().map(|row| pid(row.client_process)).collect();
    assert_eq!(clients, [Some(11), Some(12), Some(13)]);
    assert!(connections(&merged).into_iter().all(|row| row.client_evidence == OwnerEvidence::Scan));
    assert_eq!(pid(connections(&merged)[0].server_process), Some(99));
    let ignored: Vec<u64> = merged.losses().iter().map(|loss| loss.count).collect();
    assert_eq!(ignored, [1], "{:?}", merged.losses());
}

#[test]
fn a_wrong_manifest_is_refused_with_its_path_and_reason() {
    for (text, reason) in [
        ("{", "EOF"),
        ("7", "expected a manifest like {"),
        (
            r#"{"host": "w1", "addresses": ["10.0.0.1"], "packets": ["x.pcap"]}"#,
            r#"string "x.pcap", expected a file like { "file": "eth0.pcap", "interface": "eth0" }"#,
        ),
        (
            r#"{"host": "w1", "addresses": ["10.0.0.1"], "packets": [], "sockets": ["ss.txt"]}"#,
            r#"expected a listing like { "file": "ss.txt", "format": "ss" }"#,
        ),
        (
            r#"{"host": "w1", "addresses": ["10.0.0.1"], "packets": [], "processes": [4711]}"#,
            r#"expected a process like { "pid": 4711, "role": "DataNode" }"#,
        ),
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
        assert_eq!(connections(&merged)[0].client_evidence, OwnerEvidence::Manifest, "{stamp}");
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
    assert!(connections(&merged)[0].loopback);
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
fn segments_cut_inside_their_options_or_names_are_taken_with_their_lengths_and_said() {
    let world = talk();
    let own = world.merged();
    let packets: usize = world.hosts.iter().map(|host| host.eth0.len()).sum();
    // Time stamps, as Linux sends them with every segment.
    let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1];
    for snap in [54, 64, 65, 66, 96, 128, 65_535] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &world, "eth0.pcap", |packets| {
            pcap_of(packets, Link::Ethernet, true, snap, |packet| frame_with(Link::Ethernet, packet, &options))
        });
        let merged = merged(folder.path());
        let row = &connections(&merged)[0];
        assert_eq!(
            (row.client_bytes, row.server_bytes),
            (connections(&own)[0].client_bytes, connections(&own)[0].server_bytes),
            "{snap}"
        );
        assert_eq!(merged.packets, packets as u64);
        let cut: u64 = merged
            .joined
            .losses
            .iter()
            .filter(|loss| loss.what().contains("tcpdump -s 256"))
            .map(|loss| {
                assert!(loss.what().contains(&format!("cut at {snap} bytes")), "{loss:?}");
                loss.count
            })
            .sum();
        assert_eq!(cut > 0, snap <= 128, "{snap}: {:?}", merged.joined.losses);
        assert!(cut < packets as u64, "segments without payload lack nothing");
    }
}

#[test]
fn where_all_is_left_out_the_reasons_are_said() {
    let world = talk();
    for (snap, link, reason) in
        [(40, Link::Ethernet, "cut inside their headers, at 40 bytes"), (65_535, Link::Unknown, "link type 147")]
    {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &world, "eth0.pcap", |packets| pcap(packets, link, true, snap));
        let error = merge(&[folder.path().to_owned()], &Silent).unwrap_err().to_string();
        assert!(error.starts_with("no TCP packets in ") && error.contains(reason), "{error}");
        assert!(error.contains("w1/eth0.pcap") && error.contains("m1/eth0.pcap"), "{error}");
    }
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
    assert!(once.joined.messages.iter().eq(twice.joined.messages.iter()));
    assert_eq!(connections(&once), connections(&twice));
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
    let stated = |file_of: &str| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &star(), "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
        fs::copy(folder.path().join(file_of).join("eth0.pcap"), folder.path().join("w1/given.pcap")).unwrap();
        fs::rename(folder.path().join("w1/given.pcap"), folder.path().join("w1/eth0.pcap")).unwrap();
        let notes = merged(folder.path()).notes();
        notes.into_iter().filter(|note| note.contains("another host")).collect::<Vec<_>>()
    };
    assert_eq!(stated("w1"), Vec::<String>::new());
    for (file_of, address) in [("w2", "10.0.0.2"), ("m1", "10.0.0.3")] {
        let notes = stated(file_of);
        assert!(notes.len() == 1 && notes[0].contains("w1/eth0.pcap") && notes[0].contains(address), "{notes:?}");
    }
}

#[test]
fn roles_are_told_by_calls_of_tasks_by_attempts_and_by_what_asks_and_is_not_asked() {
    let attempt = "attempt_1700000000000_0001_m_000000_0";
    let mut world = World::new(&["w1", "m1"]);
    world.keep = (usize::MAX, usize::MAX);
    // 100 calls as tasks do, 200 reads for an attempt, 300 asks for a file, 400 does so and listens, 700 fetches files itself.
    let mut umbilical = world.connect((0, 40_000), (1, 50_000), [100, 200], at(0));
    world.say(&mut umbilical, true, at(1), &rpc_preamble());
    world.say(&mut umbilical, true, at(2), &umbilical_request(0, "statusUpdate"));
    world.say(&mut umbilical, false, at(3), &rpc_response(0, 40));
    let mut read = world.connect((0, 40_001), (1, 9866), [100, 200], at(0));
    world.say(&mut read, true, at(2), &read_block(7, &format!("DFSClient_{attempt}_-12_1"), 0, 100));
    for port in [40_002, 40_003] {
        let mut ask = world.connect((0, port), (1, 8020), [100, 200], at(0));
        world.say(&mut ask, true, at(1), &rpc_preamble());
        world.say(&mut ask, true, at(2), &rpc_request(0, "getBlockLocations", 40));
        world.say(&mut ask, false, at(3), &rpc_response(0, 40));
    }
    let mut beat = world.connect((0, 40_004), (1, 8031), [100, 200], at(0));
    world.say(&mut beat, true, at(1), &rpc_preamble());
    for (call, method) in (0..).zip(["nodeHeartbeat", "heartbeat"]) {
        world.say(&mut beat, true, at(2 + call), &rpc_request(call as i64, method, 40));
    }
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &world, "eth0.pcap", |packets| pcap(packets, Link::Ethernet, true, 65_535));
    let user = |pid: u32| format!("users:((\"java\",pid={pid},fd=3))");
    let mut w1 = format!("# {T0}\nLISTEN 0 9 *:10020 *:* {}\n", user(400));
    for (number, (port, pid)) in
        [(50_000, 100), (9866, 200), (8020, 300), (8020, 400), (8031, 700)].into_iter().enumerate()
    {
        let owner = user(pid);
        w1 += &format!("ESTAB 0 0 10.0.0.1:{} 10.0.0.2:{port} {owner}\n", 40_000 + number);
    }
    let m1 = format!("# {T0}\nLISTEN 0 9 *:50000 *:* {}\nLISTEN 0 9 *:8020 *:* {}\n", user(500), user(600));
    for (host, address, listing) in [("w1", "10.0.0.1", w1), ("m1", "10.0.0.2", m1)] {
        fs::write(folder.path().join(host).join("ss.txt"), listing).unwrap();
        let rest = r#", "sockets": [{"file": "ss.txt", "format": "ss"}]"#;
        fs::write(folder.path().join(host).join("manifest.json"), manifest(host, address, "eth0.pcap", rest)).unwrap();
    }
    let merged = merged(folder.path());
    let calls: Vec<_> = merged.joined.messages.iter().map(|message| message.name).collect();
    assert!(calls.contains(&"statusUpdate"), "{calls:?}");
    let roles: Vec<(u32, &str)> =
        merged.joined.processes.iter().map(|process| (process.pid, process.role.as_str())).collect();
    for stated in [(100, "YarnChild"), (200, "YarnChild"), (300, "Client"), (400, "unknown"), (700, "NodeManager")] {
        assert!(roles.contains(&stated), "{stated:?} in {roles:?}");
    }
    for stated in [(500, "MRAppMaster"), (600, "NameNode")] {
        assert!(roles.contains(&stated), "{stated:?} in {roles:?}");
    }
}
