//! The server: clients one after the other, and that none of them, whatever it does, keeps it from serving the next one.

use crate::common::lab;
use netsim::fabric::FabricConfig;
use proptest::prelude::*;
use replay::dimemas::mapping::{self, TaskMapping};
use replay::dimemas::{Ended, MAX_OPEN_MESSAGES, Server, ServerConfig};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Duration;

const RECORDED: &str = include_str!("../data/dimemas-5.5.0.exchange");
/// Long enough that no client who means well ever meets it.
const PATIENT: Duration = Duration::from_secs(60);
const IMPATIENT: Duration = Duration::from_secs(1);

fn server(timeout: Duration) -> Server {
    let fabric: FabricConfig = toml::from_str("kind = \"ideal\"\nlatency = \"1000ns\"\nrate = \"10Gbps\"\n").unwrap();
    let config =
        ServerConfig { fabric, hosts: lab(1, 4), mapping: TaskMapping::default(), timeout, answers_stops: false };
    Server::bind("127.0.0.1:0".parse().unwrap(), config).unwrap()
}

/// Serves one client, who does as `client` says on a thread of its own. How it ended, and what was logged.
fn serve(server: &Server, client: impl FnOnce(TcpStream) + Send) -> (Ended, Vec<String>) {
    let address = server.address().unwrap();
    let log = RefCell::new(Vec::new());
    let ended = thread::scope(|scope| {
        let client = scope.spawn(move || client(TcpStream::connect(address).unwrap()));
        let ended = server.serve_one(|line| log.borrow_mut().push(line.to_owned())).unwrap();
        client.join().unwrap();
        ended
    });
    (ended, log.into_inner())
}

/// The client of the recorded exchange: the completion times that it was told.
fn well_behaved(mut stream: TcpStream) -> Vec<String> {
    stream.set_read_timeout(Some(PATIENT)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut times = Vec::new();
    for line in RECORDED.lines().filter_map(|line| line.strip_prefix("> ")) {
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        if line != "END" {
            continue;
        }
        loop {
            let mut answer = String::new();
            assert!(answers.read_line(&mut answer).unwrap() > 0, "an answer to END");
            match answer.trim_end().split(' ').collect::<Vec<_>>()[..] {
                ["END"] => break,
                ["COMPLETED", "SEND", time, ..] => times.push(time.to_owned()),
                _ => panic!("{answer}"),
            }
        }
    }
    let mut rest = Vec::new();
    assert_eq!(stream.read_to_end(&mut rest).unwrap(), 0, "closed behind FINISH");
    times
}

fn serves_the_next_one(server: &Server) {
    let (ended, log) = serve(server, |stream| {
        assert_eq!(well_behaved(stream), ["1054428.8", "2341860.8", "3059705.6", "4522430.4"]);
    });
    let Ended::Finished { figures, malformed } = ended else { panic!("{log:?}") };
    assert_eq!((figures.messages, figures.completed, malformed), (4, 4, 0));
}

#[test]
fn clients_are_served_one_after_the_other_each_from_time_0() {
    let server = server(PATIENT);
    for _ in 0..3 {
        serves_the_next_one(&server);
    }
}

#[test]
fn a_malformed_line_is_logged_with_its_number_and_the_connection_kept() {
    let server = server(PATIENT);
    let long = "x".repeat(100_000);
    let lines = format!("STOP 0\nFROBNICATE\nSEND 1 2\n{long}\nEND\nFINISH\n");
    let (ended, log) = serve(&server, |mut stream| {
        stream.write_all(lines.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "END\n");
    });
    assert!(matches!(ended, Ended::Finished { malformed: 3, .. }), "{ended:?}");
    for named in ["line 2: \"FROBNICATE\"", "line 3: SEND has 2 words", "line 4: \"xxx"] {
        assert!(log.iter().any(|line| line.contains(named)), "{named}: {log:?}");
    }
    serves_the_next_one(&server);
}

#[test]
fn a_stalling_client_is_given_up_and_what_was_awaited_is_named() {
    let server = server(IMPATIENT);
    let cases: [(&str, &str); 3] = [
        ("", "waited 1s for its first line"),
        ("STOP 5\nEND\n", "waited 1s for its next turn or FINISH"),
        ("STOP 5\nEND\nSEND 5 0 1 7 1 a b 0 1 0 0\nSTOP 9\nEN", "waited 1s for END of the turn that began with line 3"),
    ];
    for (lines, named) in cases {
        let (ended, _) = serve(&server, |mut stream| {
            stream.write_all(lines.as_bytes()).unwrap();
            // Until the server gives up.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let Ended::Broken(reason) = ended else { panic!("{lines}") };
        assert!(reason.contains(named), "{reason}");
    }
}

/// `replay dimemas` on a free port, ended when it is dropped; and its log behind the line that says where it listens.
struct Program {
    child: Child,
    address: String,
    log: BufReader<ChildStderr>,
}

impl Program {
    fn start(options: &[&str]) -> Self {
        let fabric = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/ideal.toml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
        command.args(["dimemas", fabric, "--listen", "127.0.0.1:0", "--nodes", "4"]).args(options);
        command.args(["--set", "fabric.latency=1000ns", "--set", "fabric.rate=10Gbps"]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let (_, address) = line.trim_end().split_once("listening on ").unwrap();
        Self { child, address: address.to_owned(), log }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// The log's next line that has `part`.
    fn logged(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.log.read_line(&mut line).unwrap() > 0, "the log ends without {part}");
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_silent_client_does_not_keep_others_waiting() {
    let mut program = Program::start(&["--timeout", "60min"]);
    let silent = program.connect();
    program.logged("connected");
    assert_eq!(well_behaved(program.connect()), ["1054428.8", "2341860.8", "3059705.6", "4522430.4"]);
    drop(silent);
}

#[test]
fn a_client_beyond_those_that_are_served_at_once_is_turned_away() {
    let mut program = Program::start(&["--clients", "1", "--timeout", "60min"]);
    let silent = program.connect();
    program.logged("connected");
    let mut second = program.connect();
    assert_eq!(second.read_to_end(&mut Vec::new()).unwrap(), 0);
    program.logged("turned away: as many as --clients allows (1) are being served");
    drop(silent);
    program.logged("closed by the client");
    // Its place is free soon after.
    let answered = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(100));
        let mut stream = program.connect();
        let asked = stream.write_all(b"STOP 5\nEND\n");
        let mut answer = [0; 4];
        asked.is_ok() && stream.read_exact(&mut answer).is_ok() && answer == *b"END\n"
    });
    assert!(answered);
}

#[test]
fn a_client_that_announces_messages_without_end_is_ended() {
    let server = server(PATIENT);
    let (ended, _) = serve(&server, |mut stream| {
        let lines = "SEND 5 0 1 7 1 a b 0 1 0 0\n".repeat(4_096);
        for _ in 0..=MAX_OPEN_MESSAGES / 4_096 {
            if stream.write_all(lines.as_bytes()).is_err() {
                return;
            }
        }
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let Ended::Broken(reason) = ended else { panic!("{ended:?}") };
    assert!(reason.contains("1048576 messages are announced and not completed"), "{reason}");
    serves_the_next_one(&server);
}

#[test]
fn a_message_to_nowhere_ends_the_connection() {
    let server = server(PATIENT);
    let (ended, _) = serve(&server, |mut stream| {
        stream.write_all(b"SEND 0 0 9 7 1 a b 0 9 0 0\nSTOP 5\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let Ended::Broken(reason) = ended else { panic!() };
    assert!(reason.contains("node 9 is not there") && reason.contains("--nodes"), "{reason}");
    serves_the_next_one(&server);
}

#[test]
fn hosts_are_what_the_fabric_has_or_what_is_asked_for() {
    let hosts = |text: &str, nodes, racks| {
        let hosts = mapping::hosts(&toml::from_str(text).unwrap(), nodes, racks).map_err(|error| error.to_string())?;
        let racks: std::collections::BTreeSet<_> = hosts.iter().map(|host| host.rack.clone()).collect();
        Ok::<_, String>((hosts.len(), racks.len()))
    };
    let tree = "kind = \"ethernet\"\ntopology = { shape = \"fat-tree\", nodes = 12, racks = 3 }\n";
    assert_eq!(hosts(tree, None, None), Ok((12, 3)));
    assert_eq!(hosts("kind = \"ideal\"\n", None, None), Ok((256, 1)));
    assert_eq!(hosts("kind = \"lightness\"\n", Some(16), None), Ok((16, 16)));
    assert_eq!(hosts("kind = \"lightness\"\nnumFibers = 4\n", Some(16), None), Ok((16, 4)));
    assert_eq!(hosts("kind = \"lightness\"\ndecision = \"direct\"\n", Some(16), None), Ok((16, 2)));
    assert!(hosts("kind = \"ideal\"\n", Some(10), Some(4)).unwrap_err().contains("10 nodes"));
    assert!(hosts("kind = \"ideal\"\n", Some(0), None).is_err());
}

/// What a client sends in all.
fn whole() -> Vec<u8> {
    RECORDED
        .lines()
        .filter_map(|line| line.strip_prefix("> "))
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_client_that_dies_at_any_point_leaves_the_server_serving(cut in 0..2_000usize, rubbish in prop::collection::vec(any::<u8>(), 0..300), reads in any::<bool>()) {
        let server = server(PATIENT);
        let mut bytes = whole();
        bytes.truncate(cut);
        bytes.extend_from_slice(&rubbish);
        let (ended, _) = serve(&server, |mut stream| {
            // The server may have closed before all is written.
            let _ = stream.write_all(&bytes);
            if reads {
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        let finished = bytes.windows(7).any(|window| window == b"FINISH\n");
        prop_assert!(finished || matches!(ended, Ended::Broken(_)), "{:?}", ended);
        serves_the_next_one(&server);
    }

    #[test]
    fn rubbish_in_the_midst_of_an_exchange_is_survived(
        edits in prop::collection::vec((0..2_000usize, any::<u8>()), 1..40)
    ) {
        let server = server(PATIENT);
        let mut bytes = whole();
        for (at, byte) in edits {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        serve(&server, |mut stream| {
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        serves_the_next_one(&server);
    }
}
