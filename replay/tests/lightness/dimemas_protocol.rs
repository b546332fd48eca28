//! Reading and writing the lines of Dimemas' external-network protocol.

use netsim::time::SimTime;
use proptest::prelude::*;
use replay::dimemas::protocol::{Command, completed, format_time, parse_time};

#[test]
fn all_three_forms_of_send_are_read() {
    let forms = [
        ("SEND 1.5 3 4 77 4096 0xaa 0xbb 3 4 0 1", "today"),
        ("SEND 1.5 3 4 4096 0xaa 0xbb 3 4 0 1", "5.1"),
        ("SEND 1.5 3 4 4096 0xaa 0xbb 3 4", "until 2012"),
    ];
    for (line, when) in forms {
        let Command::Send(message) = Command::parse(line).unwrap() else { panic!("{when}") };
        assert_eq!(
            (message.at, message.source, message.destination, message.bytes),
            (SimTime(1_500), 3, 4, 4_096),
            "{when}"
        );
        assert_eq!(message.echo, ["0xaa", "0xbb", "3", "4"], "{when}");
        assert_eq!(
            completed(&message, message.at, SimTime(9_001)),
            "COMPLETED SEND 9.001 3 4 4096 0xaa 0xbb 3 4 1.5\n",
            "{when}"
        );
    }
}

#[test]
fn both_spellings_of_proto_are_read() {
    for proto in ["PROTO ", "PROTO_"] {
        let ok = Command::parse(&format!("{proto}OK_TO_SEND 101000 3 0 9 1048576 0 0")).unwrap();
        assert_eq!(ok, Command::OkToSend);
        let ready = Command::parse(&format!("{proto}READY_TO_RECV 0 3 0 9 1048576 0x1 0x2 3 0 0 0")).unwrap();
        assert!(matches!(ready, Command::ReadyToRecv(message) if message.bytes == 1_048_576));
    }
}

#[test]
fn times_are_read_to_the_picosecond() {
    let times = [
        ("1054428.80000000004656612873077392578125", 1_054_428_800),
        ("3055428.799999999813735485076904296875", 3_055_428_800),
        ("0.0004", 0),
        ("0.0005", 1),
        ("1e3", 1_000_000),
        ("25e-1", 2_500),
        (".5", 500),
        ("7.", 7_000),
        ("-0", 0),
        ("-12.5", 0),
        ("252000000000000000", u64::MAX),
        ("2.52e17", u64::MAX),
        ("2.52e+17", u64::MAX),
        ("0e30000", 0),
        ("18446744073709551.615", u64::MAX),
        ("18446744073709551.614", u64::MAX - 1),
    ];
    for (text, ps) in times {
        assert_eq!(parse_time(text), Ok(SimTime(ps)), "{text}");
    }
    for text in ["", ".", "-", "nan", "inf", "1.2.3", "1e", "1e99999", "0x10", "1,5", "1e5.0"] {
        assert!(parse_time(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_line_is_named() {
    let lines = [
        ("SEND 1 2 3", "SEND has 3 words behind it"),
        ("SEND x 0 1 7 10 a b 0 1 0 0", "the time \"x\""),
        ("SEND 1 -1 1 7 10 a b 0 1 0 0", "the node \"-1\""),
        ("SEND 1 0 1 7 9999999999 a b 0 1 0 0", "size \"9999999999\""),
        ("SEND 1 0 1 tag 10 a b 0 1 0 0", "tag \"tag\""),
        ("SEND 1e17 0 1 7 10 a b 0 1 0 0", "within 100 days"),
        ("STOP", "STOP has 0 words"),
        ("STOP soon", "the time \"soon\""),
        ("END of it", "is no command"),
        ("HELLO", "\"HELLO\" is no command"),
    ];
    for (line, named) in lines {
        let error = Command::parse(line).unwrap_err().to_string();
        assert!(error.contains(named), "{line}: {error}");
    }
}

#[test]
fn a_negative_size_is_one_of_2_to_4_gib() {
    let Command::Send(message) = Command::parse("SEND 0 0 1 7 -2147483648 a b 0 1 0 0").unwrap() else { panic!() };
    assert!(message.wrapped);
    assert_eq!(message.bytes, 1 << 31);
    // It is echoed as it came.
    assert!(completed(&message, SimTime::ZERO, SimTime::ZERO).starts_with("COMPLETED SEND 0 0 1 -2147483648 a b"));
}

proptest! {
    #[test]
    fn a_time_that_was_written_is_read_again(ps in any::<u64>()) {
        prop_assert_eq!(parse_time(&format_time(SimTime(ps))), Ok(SimTime(ps)));
    }

    /// Dimemas keeps times as doubles and writes all their digits.
    #[test]
    fn a_time_survives_the_clients_doubles(ps in 0..1_000_000_000_000_000_000u64) {
        let double: f64 = format_time(SimTime(ps)).parse().unwrap();
        let back = parse_time(&format!("{double:.60}")).unwrap();
        // Doubles are exact to 0.1 ns for 10 days.
        prop_assert!(back.0.abs_diff(ps) <= 100, "{} became {}", ps, back.0);
    }

    #[test]
    fn no_line_makes_it_panic(line in "\\PC*") {
        let _ = Command::parse(&line);
    }

    #[test]
    fn no_line_of_its_words_makes_it_panic(
        words in prop::collection::vec("SEND|PROTO|OK_TO_SEND|READY_TO_RECV|STOP|END|FINISH|-?[0-9]{1,30}|[0-9]{1,9}[.e][0-9]{1,5}|0x[0-9a-f]{1,50}", 0..16)
    ) {
        let _ = Command::parse(&words.join(" "));
    }
}
