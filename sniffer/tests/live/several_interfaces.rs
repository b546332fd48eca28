//! A host with bridges, bonds and VLAN devices, IPv4 and IPv6: each packet is recorded, and once.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;

use crate::support::{Agent, Pair, exchange, request, serve, sh};
use crate::traffic::read_with_notes;
use trace::packet::{Packet, flag};

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

/// All packets of all interfaces.
fn recorded(folder: &Path) -> Vec<Packet> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "hpk"));
    files.flat_map(|path| read_with_notes(&path).0).collect()
}

/// Segments with SYN that an end sent.
fn beginnings(packets: &[Packet], of: SocketAddr) -> usize {
    packets.iter().filter(|packet| packet.source == of && packet.has(flag::SYN)).count()
}

/// Puts `eth0` of the left below a device, which takes over its address. False: this kernel has no such device.
fn put_below(pair: &Pair, device: &str, kind: &str) -> bool {
    let l = &pair.left;
    let made = Command::new("ip").args(["-n", l, "link", "add", device, "type"]).args(kind.split(' ')).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("this kernel has no {kind}");
        return false;
    }
    sh(&format!(
        "ip -n {l} addr flush dev eth0; ip -n {l} link set eth0 down; ip -n {l} link set eth0 master {device}
         ip -n {l} link set {device} up; ip -n {l} link set eth0 up; ip -n {l} addr add {}/24 dev {device}",
        Pair::LEFT
    ));
    true
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn packets_of_a_bridge_or_bond_are_recorded_once() {
    for (device, kind) in [("br0", "bridge"), ("bond0", "bond mode active-backup miimon 50")] {
        let pair = Pair::new();
        if !put_below(&pair, device, kind) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", "8MiB"]);
        let ends = exchange(&pair, 10, 1_000, 100);
        let (code, manifest) = agent.stop();
        assert_eq!(code, 0, "{manifest}");
        let packets = recorded(folder.path());
        assert_eq!((beginnings(&packets, ends.client), beginnings(&packets, ends.server)), (1, 1), "{kind}");
        assert!(folder.path().join(format!("packets-{device}.hpk")).exists());
        assert!(!folder.path().join("packets-eth0.hpk").exists());
    }
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn packets_between_ipv6_addresses_are_recorded() {
    let pair = Pair::new();
    for (namespace, address) in [(&pair.left, "fd98::1"), (&pair.right, "fd98::2")] {
        sh(&format!("ip -n {namespace} addr add {address}/64 dev eth0 nodad"));
    }
    for follow in [&[][..], &["--follow", "--port", "9866"]] {
        let folder = tempfile::tempdir().unwrap();
        let options = [&["--ring", "8MiB"], follow].concat();
        let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &options);
        let (tell, stated) = std::sync::mpsc::channel();
        let server = Pair::within(&pair.right, move || {
            let listener = TcpListener::bind("[fd98::2]:9866").unwrap();
            tell.send(()).unwrap();
            serve(&listener, 100)
        });
        stated.recv().unwrap();
        let client = Pair::within(&pair.left, || request("[fd98::2]:9866".parse().unwrap(), 10, 1_000).0);
        let ends = client.join().unwrap();
        assert_eq!(server.join().unwrap(), 10_000);
        let (code, manifest) = agent.stop();
        assert_eq!(code, 0, "{manifest}");
        let packets = recorded(folder.path());
        let sent: u64 = packets.iter().filter(|p| p.source == ends.client).map(|p| u64::from(p.payload_length)).sum();
        assert_eq!((beginnings(&packets, ends.client), sent), (1, 10_000), "{follow:?}");
    }
}
