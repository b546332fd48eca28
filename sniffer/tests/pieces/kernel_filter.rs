//! The kernel's filter lets everything through that is wanted: tried on an interpreter, and in the kernel itself.

use std::net::SocketAddr;

use etherparse::PacketBuilder;
use proptest::prelude::*;
use sniffer::filter::{Instruction, NETWORK, PROTOCOL, operation as op, program};
use sniffer::ports::PortSet;

/// Runs a program as the kernel does, on a packet whose network header is at its beginning.
fn run(program: &[Instruction], protocol: u16, packet: &[u8]) -> u32 {
    let (mut a, mut x, mut cells, mut at) = (0u32, 0u32, [0u32; 16], 0usize);
    let byte = |offset: u32| packet.get(offset.wrapping_sub(NETWORK) as usize).copied().map(u32::from);
    let half = |offset: u32| Some(byte(offset)? << 8 | byte(offset.wrapping_add(1))?);
    loop {
        let i = program[at];
        at += 1;
        let mut jump = |holds: bool| at += usize::from(if holds { i.jump_true } else { i.jump_false });
        match i.code {
            op::LOAD_HALF if i.operand == PROTOCOL => a = u32::from(protocol),
            // A load beyond the packet's end rejects it.
            op::LOAD_HALF => match half(i.operand) {
                Some(value) => a = value,
                None => return 0,
            },
            op::LOAD_BYTE => match byte(i.operand) {
                Some(value) => a = value,
                None => return 0,
            },
            op::LOAD_HALF_X => match half(i.operand.wrapping_add(x)) {
                Some(value) => a = value,
                None => return 0,
            },
            op::LOAD_X_HEADER => match byte(i.operand) {
                Some(value) => x = 4 * (value & 15),
                None => return 0,
            },
            op::SET_X => x = i.operand,
            op::STORE => cells[i.operand as usize] = a,
            op::LOAD_CELL => a = cells[i.operand as usize],
            op::JUMP => at += i.operand as usize,
            op::EQUAL => jump(a == i.operand),
            op::GREATER => jump(a > i.operand),
            op::AT_LEAST => jump(a >= i.operand),
            op::ANY_BIT => jump(a & i.operand != 0),
            op::RETURN => return i.operand,
            other => panic!("operation {other:#x}"),
        }
    }
}

fn segment(source: SocketAddr, destination: SocketAddr) -> (u16, Vec<u8>) {
    let mut bytes = Vec::new();
    let builder = match (source, destination) {
        (SocketAddr::V4(s), SocketAddr::V4(d)) => PacketBuilder::ipv4(s.ip().octets(), d.ip().octets(), 64),
        (SocketAddr::V6(s), SocketAddr::V6(d)) => PacketBuilder::ipv6(s.ip().octets(), d.ip().octets(), 64),
        _ => unreachable!(),
    };
    builder.tcp(source.port(), destination.port(), 1, 1).write(&mut bytes, b"data").unwrap();
    (if source.is_ipv4() { 0x0800 } else { 0x86dd }, bytes)
}

fn ends(v6: bool, source: u16, destination: u16) -> (SocketAddr, SocketAddr) {
    let ip = if v6 { "fd00::1" } else { "10.1.0.1" }.parse().unwrap();
    (SocketAddr::new(ip, source), SocketAddr::new(ip, destination))
}

proptest! {
    #[test]
    fn just_the_wanted_ports_and_what_may_be_wanted_pass(
        ports in prop::collection::vec(1u16.., 0..200), v6: bool, source in 1u16.., destination in 1u16.., from in 1024u16..,
    ) {
        let set: PortSet = ports.iter().copied().collect();
        let program = program(&set, from, 96);
        let (source, destination) = ends(v6, source, destination);
        let (protocol, bytes) = segment(source, destination);
        let wanted = set.contains(source.port()) || set.contains(destination.port());
        let may_be = source.port() >= from && destination.port() >= from;
        prop_assert_eq!(run(&program, protocol, &bytes), if wanted || may_be { 96 } else { 0 });
        let (source, destination) = ends(v6, ports.first().copied().unwrap_or(from), 1);
        let (protocol, bytes) = segment(source, destination);
        prop_assert_eq!(run(&program, protocol, &bytes) > 0, set.contains(source.port()));
    }
}

#[test]
fn ranges_are_tested_at_their_ends() {
    let set: PortSet = (50_100..=50_200).chain([8020]).collect();
    assert_eq!(set.ranges(), [(8020, 8020), (50_100, 50_200)]);
    assert_eq!(set.names(), ["8020", "50100-50200"]);
    let program = program(&set, u16::MAX, 96);
    for (port, passes) in
        [(8019, false), (8020, true), (50_099, false), (50_100, true), (50_200, true), (50_201, false)]
    {
        let (protocol, bytes) = segment(ends(false, 1000, port).0, ends(false, 1000, port).1);
        assert_eq!(run(&program, protocol, &bytes) > 0, passes, "{port}");
    }
}

#[test]
fn what_the_filter_cannot_judge_passes_and_what_is_no_tcp_does_not() {
    let program = program(&PortSet::default(), u16::MAX, 96);
    let (protocol, whole) = segment(ends(false, 1, 2).0, ends(false, 1, 2).1);
    assert_eq!(run(&program, protocol, &whole), 0);
    let mut fragment = whole.clone();
    fragment[7] = 20;
    assert_eq!(run(&program, protocol, &fragment), 96, "a later fragment has no ports");
    let mut udp = whole.clone();
    udp[9] = 17;
    assert_eq!(run(&program, protocol, &udp), 0);
    let mut protected = whole.clone();
    protected[9] = 51;
    assert_eq!(run(&program, protocol, &protected), 96, "an authentication header");
    for tag in [0x8100, 0x88a8, 0x9100] {
        assert_eq!(run(&program, tag, &whole), 96, "a tag inside the frame");
    }
    assert_eq!(run(&program, 0x0806, &whole), 0, "ARP");
    let (protocol, mut v6) = segment(ends(true, 1, 2).0, ends(true, 1, 2).1);
    assert_eq!(run(&program, protocol, &v6), 0);
    for extension in [0, 43, 44, 51, 60] {
        v6[6] = extension;
        assert_eq!(run(&program, protocol, &v6), 96, "extension header {extension}");
    }
    v6[6] = 58;
    assert_eq!(run(&program, protocol, &v6), 0, "ICMPv6");
}

#[test]
fn more_ports_than_a_program_has_room_for_are_all_of_tcp() {
    let every_second: PortSet = (1..30_000).step_by(2).collect();
    let program = program(&every_second, u16::MAX, 96);
    assert!(program.len() <= 4096);
    let (protocol, bytes) = segment(ends(false, 2, 4).0, ends(false, 2, 4).1);
    assert_eq!(run(&program, protocol, &bytes), 96);
}
