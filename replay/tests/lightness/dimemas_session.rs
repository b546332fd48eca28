//! One client's simulation: the turns, and that times are those of the fabric.

use crate::common::{fabric, lab};
use netsim::fabric::Fabric;
use netsim::network::{HostIndex, Network, Simulation, Token};
use netsim::time::SimTime;
use proptest::prelude::*;
use replay::dimemas::mapping::TaskMapping;
use replay::dimemas::protocol::{format_time, parse_time};
use replay::dimemas::{Answer, Session, SessionError};
use std::collections::BTreeMap;

const IDEAL: &str = "kind = \"ideal\"\nlatency = \"1000ns\"\nrate = \"10Gbps\"\n";

fn session(text: &str, nodes: usize) -> Session<Fabric> {
    // Each node in a rack of its own.
    Session::new(fabric(text, &lab(nodes, 1)), TaskMapping::default())
}

/// Hands over lines and takes the turn: the completions of the answer.
fn turn(session: &mut Session<Fabric>, lines: &[&str]) -> Vec<String> {
    for line in lines {
        assert_eq!(session.line(line), Ok(Answer::Listen), "{line}");
    }
    let Ok(Answer::Say(answer)) = session.line("END") else { panic!("END is answered") };
    assert!(answer.len() < 500, "{answer}");
    let mut answered: Vec<String> = answer.lines().map(str::to_owned).collect();
    assert_eq!(answered.pop().as_deref(), Some("END"));
    assert!(answered.len() <= 3 && answered.iter().all(|line| line.starts_with("COMPLETED SEND ")), "{answered:?}");
    answered
}

fn time_of(completion: &str) -> SimTime {
    parse_time(completion.split(' ').nth(2).unwrap()).unwrap()
}

#[test]
fn a_recorded_exchange_of_dimemas_comes_out_the_same() {
    let recorded = include_str!("../data/dimemas-5.5.0.exchange");
    let mut session = session(IDEAL, 4);
    let mut answered: Vec<String> = Vec::new();
    let mut completions = 0;
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        match line.split_at(2) {
            ("> ", "END") => answered.extend(turn(&mut session, &[])),
            ("> ", "FINISH") => assert_eq!(session.line("FINISH"), Ok(Answer::Finished)),
            ("> ", line) => assert_eq!(session.line(line), Ok(Answer::Listen)),
            (_, expected) => {
                let given = answered.remove(0);
                // To 0.1 ns; what was recorded are doubles.
                assert!(time_of(&given).0.abs_diff(time_of(expected).0) < 100, "{given} and {expected}");
                let rest = |line: &str| line.split(' ').skip(3).take(7).map(str::to_owned).collect::<Vec<_>>();
                assert_eq!(rest(&given), rest(expected));
                completions += 1;
            }
        }
    }
    assert_eq!((completions, answered.len(), session.open_messages()), (4, 0, 0));
    let figures = session.figures();
    assert_eq!((figures.messages, figures.completed, figures.late), (4, 4, 0));
}

#[test]
fn a_stop_ends_at_the_first_completion_or_at_its_time() {
    let mut session = session(IDEAL, 4);
    let sends = ["SEND 0 0 1 7 1000 a b 0 1 0 0", "SEND 0 2 3 7 2000 c d 2 3 0 0"];
    assert!(turn(&mut session, &[sends[0], sends[1], "STOP 1799.9"]).is_empty());
    assert_eq!(session.figures().reached, SimTime(1_799_900));
    assert_eq!(turn(&mut session, &["STOP 5000"]), ["COMPLETED SEND 1800 0 1 1000 a b 0 1 0"]);
    assert_eq!(session.figures().reached, SimTime(1_800_000));
    assert_eq!(turn(&mut session, &["STOP 5000"]), ["COMPLETED SEND 2600 2 3 2000 c d 2 3 0"]);
    assert!(turn(&mut session, &["STOP 5000"]).is_empty());
    assert_eq!(session.figures().reached, SimTime(5_000_000));
}

#[test]
fn of_many_completions_of_one_instant_three_are_told_a_turn() {
    let mut session = session(IDEAL, 20);
    for source in 0..10 {
        let token = "0x55f55b6afdc0";
        let line = format!("SEND 0 {source} {} 7 1000 {token} {token} {source} 9 0 0", source + 10);
        assert_eq!(session.line(&line), Ok(Answer::Listen));
    }
    let counts: Vec<usize> = (0..5).map(|_| turn(&mut session, &["STOP 100000"]).len()).collect();
    assert_eq!(counts, [3, 3, 3, 1, 0]);
}

#[test]
fn long_tokens_make_an_answer_shorter() {
    let mut session = session(IDEAL, 8);
    let token = "x".repeat(40);
    for source in 0..4 {
        let line = format!("SEND 0 {source} {} 7 1000 {token} {token} {token} {token} 0 0", source + 4);
        assert_eq!(session.line(&line), Ok(Answer::Listen));
    }
    let counts: Vec<usize> = (0..3).map(|_| turn(&mut session, &["STOP 100000"]).len()).collect();
    assert_eq!(counts, [2, 2, 0]);
}

#[test]
fn a_rendezvous_of_the_past_starts_now() {
    let mut session = session(IDEAL, 4);
    assert!(turn(&mut session, &["STOP 10000"]).is_empty());
    let ready = "PROTO READY_TO_RECV 0 0 1 7 1000 a b 0 1 0 0";
    assert_eq!(turn(&mut session, &[ready, "STOP 1e9"]), ["COMPLETED SEND 11800 0 1 1000 a b 0 1 10000"]);
    assert_eq!(session.figures().late, 1);
}

#[test]
fn a_stop_beyond_all_times_does_not_move_the_present() {
    let mut session = session(IDEAL, 4);
    assert!(turn(&mut session, &["STOP 2.52e17"]).is_empty());
    assert_eq!(
        turn(&mut session, &["SEND 50 0 1 7 0 a b 0 1 0 0", "STOP 2.52e17"]),
        ["COMPLETED SEND 1050 0 1 0 a b 0 1 50"]
    );
}

#[test]
fn messages_leave_at_their_times_whatever_the_order_of_the_lines() {
    let mut session = session(IDEAL, 4);
    let sends = ["SEND 9000 0 1 7 0 later b 0 1 0 0", "SEND 100 0 1 7 0 first b 0 1 0 0"];
    let first = turn(&mut session, &[sends[0], sends[1], "STOP 1e6"]);
    assert_eq!(first, ["COMPLETED SEND 1100 0 1 0 first b 0 1 100"]);
    assert_eq!(turn(&mut session, &["STOP 1e6"]), ["COMPLETED SEND 10000 0 1 0 later b 0 1 9000"]);
}

#[test]
fn a_task_mapping_puts_tasks_elsewhere_and_names_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapping");
    std::fs::write(&path, "0 3\n1 3\n\n2 0\n").unwrap();
    let mapping = TaskMapping::read(&path, 4).unwrap();
    let text = "kind = \"lightness\"\nloopback = { latency = \"5us\", rate = \"unlimited\" }\n";
    let mut session = Session::new(fabric(text, &lab(4, 1)), mapping);
    // Tasks 0 and 1 share a node: over its loopback.
    assert_eq!(
        turn(&mut session, &["SEND 0 0 1 7 80 a b 0 1 0 0", "STOP 1e9"]),
        ["COMPLETED SEND 5000 0 1 80 a b 0 1 0"]
    );
    let error = session.line("SEND 0 0 7 7 80 a b 0 7 0 0").unwrap_err();
    assert!(matches!(error, SessionError::NoHost(_)) && error.to_string().contains("task 7"), "{error}");
    for (wrong, named) in
        [("0 4\n", "4 nodes"), ("0 1\n0 2\n", ":2:"), ("0\n", ":1:"), ("0 1 2\n", ":1:"), ("a b\n", "\"a b\"")]
    {
        std::fs::write(&path, wrong).unwrap();
        let error = TaskMapping::read(&path, 4).unwrap_err().to_string();
        assert!(error.contains(named), "{wrong}: {error}");
    }
}

#[test]
fn a_node_that_is_not_there_is_named() {
    let error = session(IDEAL, 4).line("SEND 0 0 4 7 80 a b 0 4 0 0").unwrap_err().to_string();
    assert!(error.contains("node 4") && error.contains("--nodes"), "{error}");
}

#[test]
fn a_wrong_line_changes_nothing() {
    let mut session = session(IDEAL, 4);
    for line in ["SEND 0 0 1", "FROB", "STOP soon", "SEND 0 zero 1 7 80 a b 0 1 0 0"] {
        assert!(matches!(session.line(line), Err(SessionError::Line(_))), "{line}");
    }
    assert_eq!(turn(&mut session, &["SEND 0 0 1 7 80 a b 0 1 0 0", "STOP 1e9"]).len(), 1);
}

const FABRICS: [&str; 5] = [
    IDEAL,
    "kind = \"ethernet\"\n",
    "kind = \"lightness\"\n",
    "kind = \"lightness\"\ndecision = \"ocs\"\nocs_first_message_delay = \"50us\"\n",
    "kind = \"lightness\"\ndecision = \"by-size\"\ndecision_threshold = \"20kB\"\nwindow = 4\nwavelengths = 1\n",
];

/// A client as Dimemas is one: sends what its own clock says, then stops at its next event, and takes each completion
/// as the news that its clock has come so far. Returns completion times by token.
fn play(session: &mut Session<Fabric>, sends: &[(u64, u32, u32, u64)]) -> BTreeMap<u64, SimTime> {
    let mut done = BTreeMap::new();
    let mut queue: Vec<(usize, (u64, u32, u32, u64))> = sends.iter().copied().enumerate().collect();
    queue.sort_by_key(|(index, (at, ..))| (*at, *index));
    let mut queue = queue.into_iter().peekable();
    let mut clock = SimTime::ZERO;
    while done.len() < sends.len() {
        let mut lines = Vec::new();
        while let Some((index, (at, from, to, bytes))) = queue.next_if(|(_, (at, ..))| *at <= clock.0) {
            let at = format_time(SimTime(at));
            lines.push(format!("SEND {at} {from} {to} 7 {bytes} {index} r {from} {to} 0 0"));
        }
        let stop = queue.peek().map(|(_, (at, ..))| SimTime(*at));
        lines.push(format!("STOP {}", stop.map_or("252000000000000000".to_owned(), format_time)));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let completions = turn(session, &lines);
        for completion in &completions {
            let at = time_of(completion);
            assert!(at >= clock, "a completion of the past: {completion}");
            clock = at;
            let token = completion.split(' ').nth(6).unwrap().parse().unwrap();
            assert!(done.insert(token, at).is_none(), "twice: {completion}");
        }
        if completions.is_empty() {
            clock = stop.expect("nothing more will happen, and something is still open");
        }
    }
    done
}

/// The same messages handed to the fabric directly.
fn directly(text: &str, nodes: usize, sends: &[(u64, u32, u32, u64)]) -> BTreeMap<u64, SimTime> {
    let mut network = fabric(text, &lab(nodes, 1));
    let mut flows = BTreeMap::new();
    let mut deliveries = Vec::new();
    let mut order: Vec<usize> = (0..sends.len()).collect();
    order.sort_by_key(|index| (sends[*index].0, *index));
    for index in order {
        let (at, from, to, bytes) = sends[index];
        while network.advance(SimTime(at), &mut deliveries) < SimTime(at) {}
        if !flows.contains_key(&(from, to)) {
            let (there, back) = network.open_connection(HostIndex(from), HostIndex(to));
            flows.insert((from, to), there);
            flows.insert((to, from), back);
        }
        network.send(SimTime(at), flows[&(from, to)], bytes, Token(index as u64));
    }
    deliveries.extend(crate::common::run_all(&mut network));
    deliveries.into_iter().map(|delivery| (delivery.token.0, delivery.at)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn turns_change_no_times(
        which in 0..FABRICS.len(),
        sends in prop::collection::vec((0..3_000_000_000u64, 0..5u32, 0..4u32, 0..100_000u64), 1..30),
    ) {
        // Never to oneself: there another flow is opened.
        let sends: Vec<_> = sends.into_iter().map(|(at, from, to, bytes)| (at, from, (from + 1 + to) % 5, bytes)).collect();
        let played = play(&mut session(FABRICS[which], 5), &sends);
        prop_assert_eq!(played, directly(FABRICS[which], 5, &sends));
    }
}

#[test]
fn tasks_of_one_node_have_flows_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks");
    std::fs::write(&file, "0 0\n1 0\n2 1\n3 1\n").unwrap();
    let mapping = TaskMapping::read(&file, 4).unwrap();
    let mut session = Session::new(fabric(IDEAL, &lab(4, 1)), mapping);
    let sends = ["SEND 0 0 2 7 1000 a b 0 2 0 0", "SEND 0 1 3 7 1000 c d 1 3 0 0", "SEND 0 0 2 8 1000 e f 0 2 0 0"];
    let answered = turn(&mut session, &[sends[0], sends[1], sends[2], "STOP 5000"]);
    assert_eq!(answered.iter().map(|line| time_of(line).0).collect::<Vec<_>>(), [1_800_000, 1_800_000]);
    // The second message of one pair follows the first.
    assert_eq!(turn(&mut session, &["STOP 5000"]), ["COMPLETED SEND 2600 0 2 1000 e f 0 2 0"]);
}

#[test]
fn a_stop_is_answered_where_that_was_asked_for() {
    let answer = |session: &mut Session<Fabric>, lines: &[&str]| {
        for line in lines {
            assert_eq!(session.line(line), Ok(Answer::Listen), "{line}");
        }
        let Ok(Answer::Say(answer)) = session.line("END") else { panic!("END is answered") };
        answer
    };
    // 1,250 B take 2,000 ns.
    let send = "SEND 0 0 1 1250 1 2 0 1";
    for (asked, message) in [(true, "STOP 1500.5\nEND\n"), (false, "END\n")] {
        let mut session = session(IDEAL, 2).answering_stops(asked);
        assert_eq!(answer(&mut session, &[send, "STOP 1500.5"]), message);
        // What completes before the stop is told in place of it, and a stop that never comes is not answered.
        let complete = answer(&mut session, &["STOP 9000"]);
        assert!(complete.starts_with("COMPLETED SEND 2000 ") && !complete.contains("STOP"), "{complete}");
        assert_eq!(answer(&mut session, &["STOP 1e300"]), "END\n");
        assert_eq!(answer(&mut session, &[]), "END\n");
    }
}
