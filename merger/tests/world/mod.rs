//! A little world in which hosts talk, for tests: what each host's agents would have recorded of it.
#![allow(dead_code, clippy::too_many_arguments, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod avro;
pub mod rewrite;
pub mod wire;

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use merger::build::{Silent, merge};
use merger::compact::Message;
use merger::merged::Merged;
use trace::jvm::JvmRecord;
use trace::manifest::SnifferManifest;
use trace::packet::{Direction, Packet, PacketFileHeader, PacketWriter, flag};
use trace::rows::ConnectionRow;
use trace::socket::SocketRecord;

/// When the world begins, nanoseconds since the epoch.
pub const T0: u64 = 1_700_000_000_000_000_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
/// One way between two hosts.
pub const DELAY_NS: u64 = 50_000;
/// Payload of a full segment.
pub const FULL: usize = 1448;

#[derive(Clone, Default)]
pub struct Host {
    pub name: String,
    pub address: Option<Ipv4Addr>,
    pub eth0: Vec<Packet>,
    pub lo: Vec<Packet>,
    pub sockets: Vec<SocketRecord>,
    /// (pid, start ticks), records.
    pub jvms: Vec<((u32, u64), Vec<JvmRecord>)>,
    /// From when to when the sniffer says that it recorded; `None` = it left no manifest.
    pub recorded_ns: Option<(u64, u64)>,
}

/// A connection as the world knows it.
#[derive(Clone)]
pub struct Talk {
    pub client: SocketAddr,
    pub server: SocketAddr,
    hosts: [usize; 2],
    next: [u32; 2],
    /// All payload so far, of the client and of the server.
    pub said: [Vec<u8>; 2],
}

pub struct World {
    pub hosts: Vec<Host>,
    pub delay_ns: u64,
    /// Kept payload bytes of segments that are not full, and of full ones.
    pub keep: (usize, usize),
    /// Payload bytes of a segment at most.
    pub segment: usize,
}

pub fn at(ms: u64) -> u64 {
    T0 + ms * MS
}

impl World {
    /// Hosts by name; the n-th has the address 10.0.0.n.
    pub fn new(names: &[&str]) -> Self {
        let hosts = names
            .iter()
            .enumerate()
            .map(|(number, name)| Host {
                name: (*name).to_owned(),
                address: Some(Ipv4Addr::new(10, 0, 0, number as u8 + 1)),
                ..Host::default()
            })
            .collect();
        Self { hosts, delay_ns: DELAY_NS, keep: (256, 0), segment: FULL }
    }

    pub fn address(&self, host: usize, port: u16) -> SocketAddr {
        SocketAddr::new(self.hosts[host].address.unwrap().into(), port)
    }

    /// A connection that was there before the world began.
    pub fn talk(&self, client: (usize, u16), server: (usize, u16), isn: [u32; 2]) -> Talk {
        Talk {
            client: self.address(client.0, client.1),
            server: self.address(server.0, server.1),
            hosts: [client.0, server.0],
            next: [isn[0].wrapping_add(1), isn[1].wrapping_add(1)],
            said: [Vec::new(), Vec::new()],
        }
    }

    /// Opens a connection at `t`: SYN, SYN-ACK, ACK.
    pub fn connect(&mut self, client: (usize, u16), server: (usize, u16), isn: [u32; 2], t: u64) -> Talk {
        let talk = self.talk(client, server, isn);
        self.packet(&talk, true, t, isn[0], flag::SYN, &[], 64_240);
        let answered = t + self.way(&talk);
        self.packet(&talk, false, answered, isn[1], flag::SYN | flag::ACK, &[], 65_160);
        let done = answered + self.way(&talk);
        self.packet(&talk, true, done, talk.next[0], flag::ACK, &[], 64_240 >> 7);
        talk
    }

    fn way(&self, talk: &Talk) -> u64 {
        if talk.hosts[0] == talk.hosts[1] { 0 } else { self.delay_ns }
    }

    /// Says `payload` at `t`, in segments 12 µs apart, each acknowledged at once. Returns when it has arrived.
    pub fn say(&mut self, talk: &mut Talk, from_client: bool, t: u64, payload: &[u8]) -> u64 {
        let side = usize::from(!from_client);
        let mut left = t;
        for chunk in payload.chunks(self.segment) {
            let sequence = talk.next[side];
            let last = chunk.len() < self.segment;
            self.packet(talk, from_client, left, sequence, flag::ACK | if last { flag::PSH } else { 0 }, chunk, 502);
            talk.next[side] = sequence.wrapping_add(chunk.len() as u32);
            let arrived = left + self.way(talk);
            self.packet(talk, !from_client, arrived, talk.next[1 - side], flag::ACK, &[], 502);
            left += 12_000;
        }
        talk.said[side].extend_from_slice(payload);
        left - 12_000 + self.way(talk)
    }

    /// Says FIN both ways.
    pub fn close(&mut self, talk: &mut Talk, t: u64) {
        self.packet(talk, true, t, talk.next[0], flag::FIN | flag::ACK, &[], 502);
        talk.next[0] = talk.next[0].wrapping_add(1);
        let arrived = t + self.way(talk);
        self.packet(talk, false, arrived, talk.next[1], flag::FIN | flag::ACK, &[], 502);
        talk.next[1] = talk.next[1].wrapping_add(1);
        let back = arrived + self.way(talk);
        self.packet(talk, true, back, talk.next[0], flag::ACK, &[], 502);
    }

    /// A packet that leaves at `t` and is seen at both ends; with any sequence number.
    pub fn packet(
        &mut self,
        talk: &Talk,
        from_client: bool,
        t: u64,
        sequence: u32,
        flags: u8,
        payload: &[u8],
        window: u16,
    ) {
        let side = usize::from(!from_client);
        let kept = if payload.len() >= 1400 { self.keep.1 } else { self.keep.0 };
        let (source, destination) = if from_client { (talk.client, talk.server) } else { (talk.server, talk.client) };
        let packet = Packet {
            time_ns: t,
            direction: Direction::Out,
            source,
            destination,
            raw_length: payload.len() as u32 + 66,
            payload_length: payload.len() as u32,
            sequence,
            acknowledgement: if flags & flag::ACK == 0 { 0 } else { talk.next[1 - side] },
            flags,
            window,
            sack: Default::default(),
            payload: payload[..payload.len().min(kept)].to_vec(),
        };
        let (from, to) = (talk.hosts[side], talk.hosts[1 - side]);
        if from == to {
            self.hosts[from].lo.push(Packet { direction: Direction::Loopback, ..packet });
        } else {
            let arrived = Packet { time_ns: t + self.delay_ns, direction: Direction::In, ..packet.clone() };
            self.hosts[from].eth0.push(packet);
            self.hosts[to].eth0.push(arrived);
        }
    }

    /// Adds a JVM with its header, and what it says.
    pub fn jvm(&mut self, host: usize, pid: u32, role: &str, records: Vec<JvmRecord>) {
        let name = self.hosts[host].name.clone();
        let header = JvmRecord::Header {
            t: T0,
            version: 1,
            pid,
            ns_pid: Vec::new(),
            start_ticks: u64::from(pid) * 10,
            netns: 0,
            host: name,
            addresses: vec![self.hosts[host].address.unwrap().to_string()],
            main: format!("org.apache.hadoop.{role}"),
            role: role.to_owned(),
            hadoop: "3.4.2".into(),
            java: "17".into(),
            container: None,
        };
        let records = std::iter::once(header).chain(records).collect();
        self.hosts[host].jvms.push(((pid, u64::from(pid) * 10), records));
    }

    /// Both ends of a connection say that it is theirs.
    pub fn own(&mut self, talk: &Talk, t: u64, client_pid: (u32, &str), server_pid: (u32, &str)) {
        let (client, server) = (talk.client.to_string(), talk.server.to_string());
        let open = JvmRecord::Open { t, th: 1, local: client.clone(), remote: server.clone() };
        let accept = JvmRecord::Accept { t, th: 2, local: server, remote: client };
        for (host, (pid, role), record) in [(talk.hosts[0], client_pid, open), (talk.hosts[1], server_pid, accept)] {
            match self.hosts[host].jvms.iter_mut().find(|jvm| jvm.0.0 == pid) {
                Some(jvm) => jvm.1.push(record),
                None => self.jvm(host, pid, role, vec![record]),
            }
        }
    }

    /// Writes what the agents of all hosts would have left.
    pub fn write(&self, folder: &Path) {
        for host in &self.hosts {
            host.write(&folder.join(&host.name));
        }
    }

    /// Writes everything and merges it.
    pub fn merged(&self) -> Merged {
        let folder = tempfile::tempdir().unwrap();
        self.write(folder.path());
        merge(&[folder.path().to_owned()], &Silent).unwrap()
    }
}

impl Host {
    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for (interface, packets) in [("eth0", &self.eth0), ("lo", &self.lo)] {
            let mut packets = packets.clone();
            packets.sort_by_key(|packet| packet.time_ns);
            let header = PacketFileHeader {
                host: self.name.clone(),
                interface: interface.into(),
                loopback: interface == "lo",
                snap_length: 384,
                started_ns: T0,
            };
            let file = File::create(folder.join(format!("packets-{interface}.hpk"))).unwrap();
            let mut writer = PacketWriter::create(file, &header).unwrap();
            packets.iter().for_each(|packet| writer.write(packet).unwrap());
        }
        if let Some((started_ns, ended_ns)) = self.recorded_ns {
            let manifest = SnifferManifest { ended: true, started_ns, ended_ns, ..SnifferManifest::default() };
            fs::write(folder.join("sniffer.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
        }
        write_lines(&folder.join("sockets.jsonl"), &self.sockets);
        for ((pid, ticks), records) in &self.jvms {
            write_lines(&folder.join(format!("jvm-{pid}-{ticks}.jsonl")), records);
        }
    }
}

pub fn write_lines<T: serde::Serialize>(path: &Path, records: &[T]) {
    let mut file = File::create(path).unwrap();
    for record in records {
        serde_json::to_writer(&mut file, record).unwrap();
        file.write_all(b"\n").unwrap();
    }
}

/// All connections.
pub fn connections(merged: &Merged) -> Vec<ConnectionRow> {
    merged.joined.connections.rows().collect()
}

/// The messages of one direction of the only connection.
pub fn messages(merged: &Merged, from_client: bool) -> Vec<Message<'_>> {
    let mut rows: Vec<Message<'_>> =
        merged.joined.messages.iter().filter(|row| row.from_client == from_client && row.connection.0 == 0).collect();
    rows.sort_by_key(|row| row.offset);
    rows
}

/// Every byte of every stream lies in exactly one message.
pub fn assert_bytes_are_conserved(merged: &Merged) {
    for connection in connections(merged) {
        for (from_client, bytes, missing) in [
            (true, connection.client_bytes, connection.client_missing_bytes),
            (false, connection.server_bytes, connection.server_missing_bytes),
        ] {
            let mut rows: Vec<Message<'_>> = merged
                .joined
                .messages
                .iter()
                .filter(|row| row.connection == connection.connection && row.from_client == from_client)
                .collect();
            rows.sort_by_key(|row| row.offset);
            let mut end = 0;
            for row in rows {
                assert_eq!(row.offset, end, "{row:?}");
                assert!(row.app_bytes <= row.bytes, "{row:?}");
                assert!(row.sent_ns <= row.sent_end_ns && row.sent_end_ns <= row.delivered_ns, "{row:?}");
                end += row.bytes;
            }
            assert_eq!(end, bytes + missing, "connection {connection:?}");
            let stream = merged.joined.streams.stream(connection.connection, from_client).unwrap();
            let seen: u64 = stream.segments.iter().map(|segment| u64::from(segment.bytes)).sum();
            assert_eq!(seen, bytes);
            for pair in stream.segments.windows(2) {
                assert!(pair[0].offset + u64::from(pair[0].bytes) <= pair[1].offset);
            }
            for segment in &stream.segments {
                assert!(segment.delivered_ns >= segment.sent_ns, "{segment:?}");
            }
        }
    }
}

/// The golden captures, or those in the folder that HADOPTIC_CAPTURES names.
pub fn golden_captures() -> Vec<PathBuf> {
    let golden = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let folder = std::env::var_os("HADOPTIC_CAPTURES").map_or_else(golden, PathBuf::from);
    let entries = fs::read_dir(&folder).unwrap();
    let mut captures: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.join("m1").is_dir()).collect();
    captures.sort();
    assert!(!captures.is_empty(), "there are no captures in {}", folder.display());
    captures
}
