//! A real cluster that encrypts what Hadoop can encrypt without Kerberos: messages begin where the records of TLS and the
//! tokens of SASL begin, although nobody can read what is in them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use hadoptic_tests::{golden, run, run_json};
use trace::packet::{Direction, PacketReader, flag};
use trace::rows::{MessageKind, Trace};
use trace_tables::read_trace;

/// Least share of the bytes that the JVMs' records have to tell.
const WANTED: f64 = 0.95;

fn build(capture: &Path, out: &Path) -> Trace {
    let built = run("merger", &["build", capture.to_str().unwrap(), "--out", out.to_str().unwrap()]).unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    read_trace(out).unwrap()
}

/// What was kept of the payload, by sender and receiver, and by offset in what the one says to the other.
type Kept = HashMap<(String, String), BTreeMap<u64, Vec<u8>>>;

fn kept(capture: &Path) -> Kept {
    let mut kept = Kept::new();
    let hosts = fs::read_dir(capture).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = hosts.flat_map(|host| fs::read_dir(host).unwrap()).map(|entry| entry.unwrap().path());
    for file in files.filter(|path| path.file_name().unwrap().to_string_lossy().contains(".hpk")) {
        let mut packets = PacketReader::new(trace::files::open(&file).unwrap()).unwrap();
        let mut first = HashMap::new();
        while let Some(packet) = packets.next_packet().unwrap() {
            let side = (packet.source.to_string(), packet.destination.to_string());
            if packet.direction == Direction::In {
                continue;
            }
            if packet.has(flag::SYN) {
                first.insert(side, packet.sequence.wrapping_add(1));
            } else if let Some(first) = first.get(&side) {
                let offset = packet.sequence.wrapping_sub(*first);
                kept.entry(side).or_default().insert(u64::from(offset), packet.payload);
            }
        }
    }
    kept
}

/// The five bytes at an offset, if they were kept.
fn bytes_at(kept: &BTreeMap<u64, Vec<u8>>, offset: u64) -> Option<[u8; 5]> {
    let (from, payload) = kept.range(..=offset).next_back()?;
    payload.get(usize::try_from(offset - from).unwrap()..)?.first_chunk().copied()
}

/// How many messages of each kind begin in bytes that were kept. They have to begin with a record or token.
fn begins(trace: &Trace, kept: &Kept) -> BTreeMap<&'static str, usize> {
    let mut seen = BTreeMap::new();
    for message in &trace.messages {
        let row = &trace.connections[message.connection.index()];
        let (client, server) = (row.client.clone(), row.server.clone());
        let side = if message.from_client { (client, server) } else { (server, client) };
        let Some(bytes) = kept.get(&side).and_then(|side| bytes_at(side, message.offset)) else { continue };
        let good = match (row.protocol.as_str(), message.kind) {
            (_, MessageKind::Sasl) => continue,
            ("shuffle", _) => bytes[..3] == [23, 3, 3],
            // Tokens of 3DES: 6 bytes, and blocks of 8.
            ("data-transfer", _) => {
                let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                length % 8 == 6 && length < 1 << 17
            }
            _ => continue,
        };
        assert!(good, "{message:?} begins with {bytes:02x?}");
        *seen.entry(message.kind.as_str()).or_default() += 1;
    }
    seen
}

#[test]
fn messages_begin_where_records_and_tokens_do() {
    let capture = golden("encrypted");
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("stripped");
    let done = run("merger", &["strip", capture.to_str().unwrap(), "--out", bare.to_str().unwrap()]).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let kept = kept(&capture);
    for (capture, name) in [(&capture, "whole"), (&bare, "bare")] {
        let out = folder.path().join(name);
        let trace = build(capture, &out);
        let seen = begins(&trace, &kept);
        println!("{name}: {seen:?}");
        for kind in
            ["shuffle-request", "shuffle-response", "block-request", "block-response", "block-data", "block-ack"]
        {
            assert!(seen.get(kind).is_some_and(|seen| *seen > 2), "{name}, {kind}: {seen:?}");
        }
        let report = run_json("merger", &["check", out.to_str().unwrap()]).unwrap();
        assert!(report["missed"].as_array().unwrap().is_empty(), "{:#}", report["missed"]);
        let known_by = &report["detail"]["known_by"];
        assert!(known_by["jvm"]["byte_share"].as_f64().unwrap() >= WANTED, "{known_by:#}");
        assert!(known_by["nothing"].is_null(), "{known_by:#}");
        let negotiated = &report["detail"]["negotiated"];
        let protocols: BTreeSet<&str> = negotiated.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(protocols, ["data-transfer", "rpc", "shuffle"].into_iter().collect());
        // Everything but RPC and the web is encrypted.
        for protocol in ["data-transfer", "shuffle"] {
            assert_eq!(
                negotiated[protocol]["bytes"], report["detail"]["bytes_by_protocol"][protocol],
                "{negotiated:#}"
            );
        }
    }
}

fn replayed(trace: &Path, results: &Path) -> (Option<i32>, serde_json::Value) {
    let experiment = hadoptic_tests::experiment_file("ideal.toml");
    let arguments = ["run", experiment.to_str().unwrap(), "--trace", trace.to_str().unwrap(), "--json", "--out"];
    let ran = run("replay", &[&arguments[..], &[results.to_str().unwrap()]].concat()).unwrap();
    (ran.status.code(), serde_json::from_slice(&ran.stdout).unwrap())
}

#[test]
fn a_replay_goes_back_through_negotiations_to_the_jobs_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    build(&golden("encrypted"), &trace);
    let (code, summary) = replayed(&trace, &folder.path().join("results"));
    assert_eq!((code, summary["doubts"].as_array().map(Vec::len)), (Some(0), Some(0)), "{summary:#}");
}

#[test]
fn without_the_agent_a_replay_and_a_check_say_that_they_cannot_tell_and_fail() {
    let folder = tempfile::tempdir().unwrap();
    let (capture, trace) = (folder.path().join("capture"), folder.path().join("trace"));
    hadoptic_tests::copy_without_jvms(&golden("encrypted"), &capture).unwrap();
    build(&capture, &trace);
    let (code, summary) = replayed(&trace, &folder.path().join("results"));
    let doubts = summary["doubts"].as_array().unwrap();
    assert!(doubts.len() == 1 && doubts[0].as_str().unwrap().contains("any network"), "{doubts:?}");
    assert_eq!(code, Some(1));
    let checked = run_json("merger", &["check", trace.to_str().unwrap()]).unwrap();
    let missed = checked["missed"].as_array().unwrap();
    assert!(missed.iter().any(|missed| missed.as_str().unwrap().contains("as recorded on any network")), "{missed:?}");
}
