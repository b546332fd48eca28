//! Traffic beside a program.

use netsim::network::{HostIndex, Simulation as _};
use netsim::time::SimTime;
use netsim::units::DurationPs;
use program::{Background, Driver, Options, StuckError};

use crate::{network, schedule};

/// Four hosts at each of two switches. A byte takes 1 ns on a link; packets of 1,000 B.
const TWO_SWITCHES: &str = "kind = \"store-and-forward\"\nmtu = \"1000B\"\nheaders = \"0B\"\nrouting = \"shortest\"\n[topology]\n\
                            shape = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts = 4\n\
                            host_link = { rate = \"8Gbps\", delay = \"0ns\" }\nuplink = { rate = \"8Gbps\", delay = \"0ns\" }";

/// Ten messages of 1,000 B at once from rank 0 on host 0 to rank 1 on host `to`: when the last one has arrived, and what was sent beside.
fn time(to: u32, background: Option<Background>) -> (SimTime, u64) {
    let messages =
        |what: &str, of: &str| (0..10).map(|tag| format!("{what}{tag}: {of} tag {tag}")).collect::<Vec<_>>().join(";");
    let program = schedule(&[&messages("s", "send 1000b to 1"), &messages("r", "recv 1000b from 0")]);
    let hosts = [HostIndex(0), HostIndex(to)];
    let mut network = network(TWO_SWITCHES, 8);
    let mut driver = Driver::new(&program, &hosts, Options::default());
    if let Some(background) = background {
        driver = driver.beside(background);
    }
    let end = driver.run(&mut network).unwrap();
    assert!(network.figures().events > 0);
    (end, driver.background().map_or(0, Background::sent))
}

fn between(hosts: &[u32]) -> Background {
    let hosts = hosts.iter().map(|host| HostIndex(*host)).collect();
    Background::new(hosts, DurationPs::from_ns(1_000), 1_000, 7)
}

#[test]
fn it_is_in_the_way_on_shared_links_only_and_ends_with_the_program() {
    // Ten packets one after the other, and the last one's second link.
    let alone = SimTime(11_000_000);
    assert_eq!(time(1, None), (alone, 0));
    // At the other switch, and at the same switch between others.
    for hosts in [&[4, 5, 6, 7][..], &[2, 3]] {
        let (end, sent) = time(1, Some(between(hosts)));
        assert_eq!(end, alone, "{hosts:?}");
        // One in 1,000 ns of each, as a mean.
        let mean = 11.0 * hosts.len() as f64;
        assert!((sent as f64 - mean).abs() < 4.0 * mean.sqrt(), "{sent} messages of {hosts:?}");
    }
    // Across the one uplink.
    let across = time(4, None).0;
    assert_eq!(across, SimTime(13_000_000));
    assert!(time(4, Some(between(&[1, 5]))).0 > across, "the uplink is shared");
}

#[test]
fn a_program_that_waits_for_ever_is_told_beside_it_too() {
    let program = schedule(&["a: recv 10b from 1 tag 1", "b: calc 1000"]);
    let mut driver = Driver::new(&program, &[HostIndex(0), HostIndex(1)], Options::default()).beside(between(&[2, 3]));
    let error = driver.run(&mut network(TWO_SWITCHES, 8)).unwrap_err();
    assert!(matches!(error, StuckError::NoMessage { .. }), "{error}");
}

#[test]
fn one_host_sends_nothing() {
    assert_eq!(time(1, Some(between(&[2]))), (SimTime(11_000_000), 0));
}
