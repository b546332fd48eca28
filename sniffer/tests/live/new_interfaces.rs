//! An interface that comes up during a run is recorded from then on, if that was asked for, and only then.

use std::net::{SocketAddr, TcpListener};

use crate::support::{Agent, Pair, exchange, request, serve, sh, wait_until};
use crate::traffic::read_with_notes;
use serde_json::Value;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");
/// The left and the right end of what is added.
const LEFT: &str = "10.99.0.1";
const RIGHT: &str = "10.99.0.2";

/// Makes a second veth pair between both namespaces, not up yet.
fn add_interface(pair: &Pair) {
    let (l, r) = (&pair.left, &pair.right);
    sh(&format!(
        "ip link add eth1 netns {l} type veth peer name eth1 netns {r}
         ip -n {l} addr add {LEFT}/24 dev eth1; ip -n {r} addr add {RIGHT}/24 dev eth1"
    ));
}

fn put_up(pair: &Pair) {
    for namespace in [&pair.left, &pair.right] {
        sh(&format!("ip -n {namespace} link set eth1 up"));
    }
}

/// A client on the left sends over the new interface; its address.
fn talk(pair: &Pair) -> SocketAddr {
    let (tell, stated) = std::sync::mpsc::channel();
    let server = Pair::within(&pair.right, move || {
        let listener = TcpListener::bind((RIGHT, 0)).unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        serve(&listener, 100)
    });
    let address = stated.recv().unwrap();
    let client = Pair::within(&pair.left, move || request(address, 20, 1_000).0).join().unwrap().client;
    assert_eq!(server.join().unwrap(), 20_000);
    client
}

fn interface(manifest: &Value, name: &str) -> Option<Value> {
    manifest["interfaces"].as_array()?.iter().find(|i| i["name"] == name).cloned()
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn an_interface_that_comes_up_is_recorded_from_then_on_and_accounted_for() {
    for more in [&[][..], &["--follow", "--user", "nobody"]] {
        let pair = Pair::new();
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let out = folder.path().join("w1");
        let options = [&["--ring", "8MiB", "--new-interfaces"], more].concat();
        let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", &out, &options);
        exchange(&pair, 10, 1_000, 100);
        add_interface(&pair);
        assert_eq!(interface(&agent.manifest(), "eth1"), None, "it is not up yet");
        let before_ns = trace::agent::now_ns();
        put_up(&pair);
        let file = out.join("packets-eth1.hpk");
        wait_until("the file of the new interface", || file.exists());
        // The file is there before the thread is; the ring collects since before the file.
        let client = talk(&pair);
        let (code, manifest) = agent.stop();
        assert_eq!(code, 0, "{manifest}");
        let (packets, _) = read_with_notes(&file);
        let sent: u64 = packets.iter().filter(|p| p.source == client).map(|p| u64::from(p.payload_length)).sum();
        assert_eq!(sent, 20_000, "{manifest}");
        let (eth0, eth1) = (interface(&manifest, "eth0").unwrap(), interface(&manifest, "eth1").unwrap());
        assert!(eth1["since_ns"].as_u64().unwrap() >= before_ns, "{manifest}");
        assert_eq!(eth0.get("since_ns"), None, "{manifest}");
        assert_eq!(eth1["packets"], packets.len());
        let stated: u64 = ["packets", "other", "unparsed", "unfollowed", "undecided", "kernel_drops", "filtered"]
            .iter()
            .map(|key| eth1[*key].as_u64().unwrap())
            .sum();
        assert_eq!(eth1["interface_packets"], stated, "{manifest}");
        assert!(manifest["capabilities"].to_string().contains("CAP_NET_RAW"), "the price has to show");
    }
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_new_interface_that_goes_and_comes_again_is_recorded_on() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent =
        Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", "8MiB", "--new-interfaces"]);
    let file = folder.path().join("packets-eth1.hpk");
    for round in 1..=2 {
        add_interface(&pair);
        put_up(&pair);
        wait_until("packets of this round", || {
            let client = talk(&pair);
            std::thread::sleep(std::time::Duration::from_millis(300));
            file.exists() && read_with_notes(&file).0.iter().any(|packet| packet.source == client)
        });
        sh(&format!("ip -n {} link del eth1", pair.left));
        wait_until("the loss being told", || {
            // Each time it is noted once more where it happened.
            read_with_notes(&file).1.iter().filter(|m| m.kind == trace::capture_note::CaptureNoteKind::Vanished).count()
                >= 2 * round - 1
        });
    }
    let (code, manifest) = agent.stop();
    assert_eq!(code, 1, "that packets may be missing has to show: {manifest}");
    let all = manifest["interfaces"].as_array().unwrap();
    assert_eq!(all.iter().filter(|i| i["name"] == "eth1").count(), 1, "{manifest}");
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn without_the_option_it_is_left_out() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &["--ring", "8MiB"]);
    add_interface(&pair);
    put_up(&pair);
    talk(&pair);
    let (code, manifest) = agent.stop();
    assert_eq!(code, 0, "{manifest}");
    assert_eq!(interface(&manifest, "eth1"), None);
    assert!(!folder.path().join("packets-eth1.hpk").exists());
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn interfaces_that_are_gone_keep_neither_thread_nor_file() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let options = ["--ring", "256KiB", "--new-interfaces"];
    let agent = Agent::start(SNIFFER, &pair.left, "sniffer.json", folder.path(), &options);
    let count = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", agent.pid())).unwrap().count();
    let before = (count("task"), count("fd"));
    let l = &pair.left;
    // More than are listed each by itself; the first name comes twice.
    let names = (0..70).map(|number| format!("t{number}"));
    for name in names.chain(["t0".to_owned()]) {
        sh(&format!(
            "ip -n {l} link add {name} type veth peer name p{name}; ip -n {l} link set {name} up; ip -n {l} link set p{name} up"
        ));
        let file = folder.path().join(format!("packets-{name}.hpk"));
        wait_until("its file", || file.exists());
        sh(&format!("ip -n {l} link del {name}"));
    }
    wait_until("their threads' and files' end", || (count("task"), count("fd")) == before);
    let (_, manifest) = agent.stop();
    let listed = manifest["interfaces"].as_array().unwrap().len();
    assert!(interface(&manifest, "others").is_some() && listed <= 67, "{listed} are listed");
    assert!(interface(&manifest, "t69").is_some() && interface(&manifest, "eth0").is_some());
}
