//! Files: what is read, and what is wrong with what is not.

use program::{Driver, MAX_RANKS, Options, ParseError, flows, goal};
use proptest::prelude::*;

use super::{network, text};

fn wrong(file: &str) -> String {
    goal::read(file.as_bytes()).unwrap_err().to_string()
}

#[test]
fn comments_blanks_nics_and_missing_tags_are_read() {
    let file = "// a job\nnum_ranks 2 // two\n\nrank 1 {\n  l1: recv 10 from 0 nic 1\n}\nrank 0 {\nl1: send 10b to 1 cpu 2 nic 0\n l2: calc 5\nl2 irequires l1\n}\n";
    let program = goal::read(file.as_bytes()).unwrap();
    assert_eq!((program.ranks(), program.operations(), program.messages(), program.bytes()), (2, 3, 1, 10));
}

#[test]
fn a_line_that_is_wrong_is_named_with_what_is_allowed() {
    for (lines, expected) in [
        ("x", "line 3: \"x\" is no label; write \"LABEL: calc NS\""),
        ("x: think 4", "\"think 4\" is no operation; there are \"calc NS\""),
        ("x: calc -4", "\"-4\" is no number of nanoseconds"),
        ("x: calc 99999999999999999999", "is no number of nanoseconds"),
        ("x: calc 9999999999999999999", "a calculation may take 100 days"),
        ("x: send 4b to 2 tag 0", "rank 2: there are 2 ranks, from 0"),
        ("x: send 4b to -1 tag 0", "\"-1\" is no rank"),
        ("x: recv 4k from 1 tag 0", "\"4k\" is no number of bytes"),
        ("x: calc 4 core 1", "\"core 1\" follows the operation; only \"cpu C\" and \"nic N\" may"),
        ("x: calc 4 cpu 70000", "CPU 70000: a rank has at most 65536"),
        ("x: calc 4;x: calc 4", "line 4: the rank has an operation x already"),
        ("x: calc 4;x requires y", "line 4: no operation y stands before this in the rank"),
        ("rank 1 {", "\"rank\" is no label"),
    ] {
        let error = wrong(&text(&[lines, ""]));
        assert!(error.contains(expected), "{lines}: {error}");
    }
    for (file, expected) in [
        ("", "there is no line \"num_ranks N\""),
        ("rank 0 {\n}", "line 1: \"num_ranks N\" has to stand before the first rank"),
        ("num_ranks 0", "0 ranks: from 1 to 1048576 are possible"),
        ("num_ranks 4294967295", "from 1 to 1048576"),
        ("num_ranks 2\nrank 1 {\n}\n", "rank 0 of 2 is missing"),
        ("num_ranks 1\nrank 0 {\nx: calc 1\n", "it ends within rank 0"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", "line 4: rank 0 is there already"),
        ("num_ranks 1\nx: calc 1", "line 2: \"x: calc 1\" stands outside of a rank"),
    ] {
        let error = wrong(file);
        assert!(error.contains(expected), "{file:?}: {error}");
    }
    assert!(wrong(&format!("num_ranks 1\n{}", "x".repeat(17 << 20))).contains("line 2: longer than 16 MiB"));
    let no_text = goal::read(&b"num_ranks 1\nrank 0 {\n\xff: calc 1\n}"[..]).unwrap_err();
    assert!(matches!(no_text, ParseError::Line { line: 3, .. }), "{no_text}");
}

#[test]
fn flows_begin_at_their_time_whatever_was_before() {
    let program = flows::read(&b"0 3 1000 0\n1 2 500 700\n\n0 3 1000 100"[..]).unwrap();
    assert_eq!((program.ranks(), program.messages(), program.bytes()), (4, 3, 2_500));
    let hosts: Vec<_> = (0..4).map(netsim::network::HostIndex).collect();
    let mut network = network(super::LINEAR, 4);
    let mut driver = Driver::new(&program, &hosts, Options::default());
    let end = driver.run(&mut network).unwrap();
    let times: Vec<(u64, u64)> =
        driver.messages().iter().map(|times| (times.sent.0 / 1_000, times.delivered.0 / 1_000)).collect();
    // The last has a connection of its own beside that of the first.
    assert_eq!(times, [(0, 2_000), (100, 2_100), (700, 2_200)]);
    assert_eq!(end.0, 2_200_000);
    let marked = flows::read("\u{feff}0 3 1000 0\n".as_bytes()).unwrap();
    assert_eq!((marked.ranks(), marked.messages()), (4, 1), "an editor's byte order mark");
    for (file, expected) in [
        ("", "there are no flows in it"),
        ("0 1 2", "line 1: \"0 1 2\" is no flow: write SOURCE DESTINATION BYTES START_NS"),
        ("0 1 2 3\n0 1 2 x", "line 2: \"x\" is no start in nanoseconds"),
        ("0 4294967295 2 3", "that many hosts are not possible"),
        ("0 1 2 18446744073709551615", "a flow may begin within 100 days"),
    ] {
        let error = flows::read(file.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{file:?}: {error}");
    }
    assert!(flows::read(format!("0 {MAX_RANKS} 1 0").as_bytes()).is_err());
}

proptest! {
    #[test]
    fn no_file_is_read_in_a_panic(words in prop::collection::vec("num_ranks|rank|\\{|\\}|a:|b:|a|b|requires|irequires|calc|send|recv|to|from|tag|cpu|nic|[0-9]{1,12}|-1|4b|\n|//", 0..60)) {
        let file = words.join(" ");
        let _ = goal::read(file.as_bytes());
        let _ = flows::read(file.as_bytes());
    }
}
