//! Which interfaces are recorded, and which way a packet went.

use sniffer::interfaces::{Interface, OwnAddresses, choose, list};
use trace::packet::Direction;

fn interface(name: &str, up: bool, seen_on: Option<&str>) -> Interface {
    Interface {
        name: name.into(),
        loopback: name == "lo",
        up,
        addresses: if name == "eth0" { vec!["10.1.0.1".parse().unwrap()] } else { Vec::new() },
        seen_on: seen_on.map(Into::into),
    }
}

fn names(chosen: &[Interface]) -> Vec<&str> {
    chosen.iter().map(|interface| interface.name.as_str()).collect()
}

#[test]
fn all_that_are_up_are_recorded_but_no_packet_twice() {
    let all = [
        interface("lo", true, None),
        interface("eth0", true, Some("bond0")),
        interface("eth1", true, Some("bond0")),
        interface("bond0", true, None),
        interface("bond0.5", true, Some("bond0")),
        interface("eth2", false, None),
        interface("eth3", true, Some("br9")),
        interface("br9", false, None),
    ];
    assert_eq!(names(&choose(&all, &[]).unwrap()), ["lo", "bond0", "eth3"]);
    assert_eq!(names(&choose(&all, &["eth1".into(), "eth1".into()]).unwrap()), ["eth1"]);
}

#[test]
fn an_interface_that_is_missing_or_down_is_named_with_those_there_are() {
    let all = [interface("lo", true, None), interface("eth2", false, None)];
    let missing = choose(&all, &["eth9".into()]).unwrap_err().to_string();
    assert!(missing.contains("eth9") && missing.contains("lo, eth2"), "{missing}");
    let down = choose(&all, &["eth2".into()]).unwrap_err().to_string();
    assert!(down.contains("down"), "{down}");
    choose(&all[1..], &[]).unwrap_err();
}

#[test]
fn this_machine_has_a_loopback_interface() {
    let all = list().unwrap();
    let lo = all.iter().find(|interface| interface.name == "lo").unwrap();
    assert!(lo.loopback && lo.seen_on.is_none());
}

#[test]
fn the_direction_is_told_by_the_hosts_addresses() {
    let own = OwnAddresses::of(&[interface("eth0", true, None)]);
    let (mine, other, loopback) =
        ("10.1.0.1".parse().unwrap(), "10.1.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap());
    assert_eq!(own.direction(mine, other), Direction::Out);
    assert_eq!(own.direction(other, mine), Direction::In);
    assert_eq!(own.direction(mine, mine), Direction::Loopback);
    assert_eq!(own.direction(loopback, mine), Direction::Loopback);
    assert_eq!(own.direction(other, other), Direction::Foreign);
}
