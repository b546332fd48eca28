//! A cluster that encrypts whatever Hadoop encrypts without Kerberos really does, and its capture is known by what the JVMs
//! said: by far most of the bytes, all of the data.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use trace::packet::{Direction, PacketReader};
use trace::truth::Truth;

use crate::common::recording::{answer, built};

const PREFIX: &str = "tcrypt";
/// Least share of the bytes that the JVMs' records have to tell.
const WANTED: f64 = 0.95;

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn all_is_encrypted_and_yet_known() {
    let _turn = crate::common::turn();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let output = crate::common::run(&format!(
        "run --encrypted=3des --prefix {PREFIX} --workers 2 --job wordcount --size 4MB --maps 2 --reduces 1 --links unshaped \
         --uplink unshaped --json --capture {} --agent-jar {} --sniffer {} --dumpingd {}",
        path("capture"),
        built("hadoptic-agent.jar").display(),
        built("sniffer").display(),
        built("dumpingd").display(),
    ));
    assert_eq!(output.status.code(), Some(0), "{}", crate::common::stderr(&output));
    let truth: Truth = serde_json::from_slice(&fs::read(path("capture/truth.json")).unwrap()).unwrap();

    is_encrypted(&sides(Path::new(&path("capture"))));

    let built = answer("merger", &["build", &path("capture"), "--out", &path("trace")]);
    assert_eq!(built, Value::Null);
    let check = answer("merger", &["check", &path("trace"), "--json"]);
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {check:#}"));
    assert!(number(&check, "owned_both_ends_share") >= 0.999, "{check:#}");
    assert!(number(&check, "in_known_message_share") >= 0.999, "{check:#}");
    assert!(number(&check, "captured_vs_kernel_error").abs() <= 0.001, "{check:#}");
    for counter in ["shuffle_bytes_error", "hdfs_read_bytes_error", "hdfs_write_bytes_error"] {
        assert!(number(&check, counter).abs() <= 0.005, "{counter}: {check:#}");
    }
    let stated =
        ["jvm", "jvm, shared segment"].map(|source| check["detail"]["known_by"][source]["byte_share"].as_f64());
    assert!(stated.iter().flatten().sum::<f64>() >= WANTED, "{check:#}");

    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../replay/experiments/lab-100mbit.toml");
    let arguments =
        ["run", experiment.to_str().unwrap(), "--trace", &path("trace"), "--out", &path("results"), "--json"];
    assert!(number(&answer("replay", &arguments), "job_time_s") > 0.0);
    let inodes = truth.hosts.iter().map(|host| host.netns).collect();
    assert_eq!(crate::common::traces(PREFIX, &inodes, None), crate::common::Traces::default());
}

/// What was kept of the payload of one side of each connection: source, destination, and segment by segment.
type Sides = BTreeMap<(SocketAddr, SocketAddr), Vec<Vec<u8>>>;

fn sides(capture: &Path) -> Sides {
    let mut sides = Sides::new();
    for host in fs::read_dir(capture).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for file in fs::read_dir(host).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|extension| extension != "hpk") {
                continue;
            }
            let mut packets = PacketReader::new(fs::File::open(file).unwrap()).unwrap();
            while let Some(packet) = packets.next_packet().unwrap() {
                if packet.direction != Direction::In && !packet.payload.is_empty() {
                    sides.entry((packet.source, packet.destination)).or_default().push(packet.payload);
                }
            }
        }
    }
    sides
}

/// Looks at the bytes: each of the three is encrypted from where Hadoop begins with it, and says nothing any more that it
/// says in clear elsewhere.
fn is_encrypted(sides: &Sides) {
    let says = |segments: &[Vec<u8>], words: &str| {
        segments.iter().any(|segment| segment.windows(words.len()).any(|window| window == words.as_bytes()))
    };
    let to_port = |port: u16| -> Vec<_> { sides.iter().filter(|((_, to), _)| to.port() == port).collect() };
    let back = |(from, to): &(SocketAddr, SocketAddr)| sides.get(&(*to, *from)).map_or(&[][..], Vec::as_slice);

    let shuffles = to_port(13_562);
    assert!(!shuffles.is_empty());
    for (ends, asked) in shuffles {
        let answered = back(ends);
        for segments in [asked, answered] {
            assert!(segments[0].starts_with(&[22, 3]), "{ends:?} begins with no TLS handshake: {:02x?}", segments[0]);
            for words in ["/mapOutput", "attempt_", "HTTP/1.1", "UrlHash"] {
                assert!(!says(segments, words), "{ends:?} says {words}");
            }
        }
    }

    let transfers = to_port(9866);
    assert!(transfers.len() > 3);
    for (ends, said) in transfers {
        assert_eq!(said[0][..4], [0xde, 0xad, 0xbe, 0xef], "{ends:?}");
        assert!(says(back(ends), "qop=\"auth-conf\""), "{ends:?} does not ask for privacy");
        assert!(!says(said, "DFSClient_") && !says(back(ends), "DFSClient_"), "{ends:?} names its client");
    }

    // Behind the version and the class of service: authentication, 0 = none, -33 = SASL.
    let calls = |by: u8| sides.iter().filter(move |(_, said)| said[0].starts_with(b"hrpc") && said[0][6] == by);
    let plain: Vec<_> = calls(0).collect();
    // Arguments are blanked by the sniffer, names of methods are not: what is missing elsewhere is missing on the wire.
    assert!(plain.iter().any(|(_, said)| says(said, "addBlock") && says(said, "protocol.ClientProtocol")));
    assert!(plain.iter().all(|(_, said)| !says(said, "TaskUmbilicalProtocol")), "a task speaks in clear");
    // Who has a token, but none for the NameNode, negotiates as well and goes on without.
    let by_token: Vec<_> = calls(0xdf).filter(|(_, said)| !says(said, "protocol.ClientProtocol")).collect();
    // Two maps, a reduce; the ResourceManager to a NodeManager; the application master to it, and to a NodeManager.
    assert!(by_token.len() >= 6, "{} connections by token", by_token.len());
    for (ends, said) in by_token {
        assert!(says(back(ends), "qop=\"auth-conf\""), "{ends:?} does not ask for privacy");
        for words in
            ["TaskUmbilicalProtocol", "statusUpdate", "ApplicationMasterProtocol", "ContainerManagementProtocol"]
        {
            assert!(!says(said, words) && !says(back(ends), words), "{ends:?} says {words}");
        }
    }
}
