//! Files in the form of coflow-benchmark.

use coflow::benchmark::{Megabyte, parse};
use coflow::{Flow, PortId};
use proptest::prelude::*;

#[test]
fn reducers_get_the_same_from_each_port_with_a_mapper() {
    let workload = parse("4 2\n7 1500 3 2 0 2 2 1:3.0 3:1.5\n8 20 1 0 1 0:1\n", Megabyte::Decimal).unwrap();
    assert_eq!(workload.ports(), 4);
    let ids: Vec<&str> = workload.coflows().iter().map(|coflow| coflow.id.as_str()).collect();
    assert_eq!(ids, ["8", "7"], "by arrival");
    let flow = |from, to, bytes| Flow { from: PortId(from), to: PortId(to), bytes };
    let expected = [flow(0, 1, 1.5e6), flow(2, 1, 1.5e6), flow(0, 3, 0.75e6), flow(2, 3, 0.75e6)];
    assert_eq!(workload.coflows()[1].flows, expected);
    let binary = parse("1 1\n1 0 1 0 1 0:1\n", Megabyte::Binary).unwrap();
    assert_eq!(binary.coflows()[0].bytes(), 1_048_576.0);
}

#[test]
fn mistakes_are_named_with_line_and_value() {
    let cases = [
        ("", "line 1: the file is empty: `PORTS COFLOWS` is expected"),
        ("4\n", "line 1: the line ends where the number of coflows is expected"),
        ("0 1\n", "line 1: 0 ports: from 1 to 2048 can be simulated"),
        ("4 x\n", "line 1: `x` for the number of coflows"),
        ("4 1 1\n", "line 1: `1` where the line should end"),
        ("4 2\n1 0 1 0 1 1:1\n", "line 2: the first line tells of 2 coflows, the file has 1"),
        ("4 1\n1 -5 1 0 1 1:1\n", "line 2: `-5` for the arrival in milliseconds"),
        ("4 1\n1 99999999999999999 1 0 1 1:1\n", "line 2: the arrival is later than 150 days"),
        ("4 1\n1 0 1 4 1 1:1\n", "line 2: `4` for a mapper's port: the switch has ports 0 to 3"),
        ("4 1\n\n1 0 2 0\n", "line 3: the line ends where a mapper's port is expected"),
        ("4 1\n1 0 0 1 1:1\n", "line 2: a coflow needs a mapper"),
        ("4 1\n1 0 1 0 0\n", "line 2: a coflow needs a reducer"),
        ("4 1\n1 0 1 0 1 1\n", "line 2: `1` for a reducer's PORT:MB"),
        ("4 1\n1 0 1 0 1 1:0\n", "line 2: `1:0`: a reducer gets more than 0 and at most 1e12 MB"),
        ("4 1\n1 0 1 0 1 1:NaN\n", "line 2: `1:NaN`: a reducer gets more than 0 and at most 1e12 MB"),
        ("4 1\n1 0 99999999999 0 1 1:1\n", "line 2: `1:1` for a mapper's port"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text, Megabyte::Decimal).unwrap_err().to_string(), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "([0-9 :.\\n-]|[a-z]){0,200}") {
        let _ = parse(&text, Megabyte::Binary);
    }
}
