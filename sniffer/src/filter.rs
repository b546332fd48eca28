//! The kernel's packet filter for a set of ports: classic BPF, made here and handed over with SO_ATTACH_FILTER.
//!
//! `pcap_setfilter` on a running capture installs a filter that rejects everything, empties the ring and only then
//! installs the new one: packets are lost. SO_ATTACH_FILTER replaces one filter by the next between two packets.
//!
//! The filter lets more through than is wanted, never less: fragments, tags inside the frame and rare headers pass, and
//! whoever reads decides. It finds the network header by the kernel's own note of it (SKF_NET_OFF), so that it fits every
//! link layer, and a VLAN tag that the kernel has taken off is no obstacle.

use std::io;
use std::os::fd::AsFd;

use socket2::{SockFilter, SockRef};

use crate::ports::PortSet;

/// An instruction: operation, jumps if true and if false, operand (linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if the test holds.
    pub jump_true: u8,
    /// Instructions to skip if not.
    pub jump_false: u8,
    /// Operand.
    pub operand: u32,
}

/// Operations (linux/bpf_common.h).
pub mod operation {
    /// A = the byte at the operand.
    pub const LOAD_BYTE: u16 = 0x30;
    /// A = the two bytes at the operand, network order.
    pub const LOAD_HALF: u16 = 0x28;
    /// A = the two bytes at X + operand.
    pub const LOAD_HALF_X: u16 = 0x48;
    /// X = 4 * (the lower half of the byte at the operand).
    pub const LOAD_X_HEADER: u16 = 0xb1;
    /// X = operand.
    pub const SET_X: u16 = 0x01;
    /// Cell of scratch memory = A.
    pub const STORE: u16 = 0x02;
    /// A = cell of scratch memory.
    pub const LOAD_CELL: u16 = 0x60;
    /// Skips instructions.
    pub const JUMP: u16 = 0x05;
    /// A == operand?
    pub const EQUAL: u16 = 0x15;
    /// A > operand?
    pub const GREATER: u16 = 0x25;
    /// A >= operand?
    pub const AT_LEAST: u16 = 0x35;
    /// A & operand != 0?
    pub const ANY_BIT: u16 = 0x45;
    /// Ends; the operand is how many bytes of the packet are wanted.
    pub const RETURN: u16 = 0x06;
}

/// Offsets from here on are behind the network header (SKF_NET_OFF).
pub const NETWORK: u32 = 0xfff0_0000;
/// Here stands the protocol of the frame (SKF_AD_OFF + SKF_AD_PROTOCOL).
pub const PROTOCOL: u32 = 0xffff_f000;

/// The kernel takes no longer programs (BPF_MAXINSNS).
const MAX_INSTRUCTIONS: usize = 4096;

/// Tags that may stand in a frame that a program on this host sent: whoever reads looks behind them.
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];

/// The filter that lets all TCP to or from `ports` through, and what runs between two ports from `ephemeral_from` on;
/// so many bytes of each packet. Ports that the kernel's limit leaves no room for make it a filter for all TCP.
#[must_use]
pub fn program(ports: &PortSet, ephemeral_from: u16, snap_length: u32) -> Vec<Instruction> {
    let program = assemble(Some((ports, ephemeral_from)), snap_length);
    if program.len() <= MAX_INSTRUCTIONS { program } else { assemble(None, snap_length) }
}

fn assemble(selection: Option<(&PortSet, u16)>, snap_length: u32) -> Vec<Instruction> {
    use operation as op;
    let step = |code, operand| Instruction { code, jump_true: 0, jump_false: 0, operand };
    let test = |code, operand, jump_true, jump_false| Instruction { code, jump_true, jump_false, operand };
    let accept = step(op::RETURN, snap_length);
    let reject = step(op::RETURN, 0);
    let mut tests = Vec::new();
    match selection {
        None => tests.push(accept),
        Some((ports, ephemeral_from)) => {
            let ranges = ports.ranges();
            for cell in [0, 1] {
                tests.push(step(op::LOAD_CELL, cell));
                for &(first, last) in &ranges {
                    if first == last {
                        tests.extend([test(op::EQUAL, u32::from(first), 0, 1), accept]);
                    } else {
                        tests.push(test(op::AT_LEAST, u32::from(first), 0, 2));
                        tests.extend([test(op::GREATER, u32::from(last), 1, 0), accept]);
                    }
                }
            }
            let from = u32::from(ephemeral_from);
            tests.extend([test(op::AT_LEAST, from, 0, 3), step(op::LOAD_CELL, 0), test(op::AT_LEAST, from, 0, 1)]);
            tests.extend([accept, reject]);
        }
    }
    // Jumps below are counted by hand: each block says how long it is.
    let mut program = vec![
        step(op::LOAD_HALF, PROTOCOL),
        test(op::EQUAL, 0x0800, 6, 0),  // to IPv4
        test(op::EQUAL, 0x86dd, 13, 0), // to IPv6
        test(op::EQUAL, TAGS[0], 2, 0),
        test(op::EQUAL, TAGS[1], 1, 0),
        test(op::EQUAL, TAGS[2], 0, 1),
        accept,
        reject,
        // IPv4, 8 instructions: the protocol (51 is an authentication header in front of it), fragments, the ports.
        step(op::LOAD_BYTE, NETWORK + 9),
        test(op::EQUAL, 6, 2, 0),
        test(op::EQUAL, 51, 0, 12), // else rejected
        accept,
        step(op::LOAD_HALF, NETWORK + 6),
        test(op::ANY_BIT, 0x1fff, 12, 0), // a later fragment: accepted
        step(op::LOAD_X_HEADER, NETWORK),
        step(op::JUMP, 11), // to the ports
        // IPv6, 11 instructions: the next header; with headers between, whoever reads decides.
        step(op::LOAD_BYTE, NETWORK + 6),
        test(op::EQUAL, 6, 6, 0),
        test(op::EQUAL, 0, 7, 0),
        test(op::EQUAL, 43, 6, 0),
        test(op::EQUAL, 44, 5, 0),
        test(op::EQUAL, 51, 4, 0),
        test(op::EQUAL, 60, 3, 0),
        reject,
        step(op::SET_X, 40),
        step(op::JUMP, 1), // to the ports
        accept,
        // The ports.
        step(op::LOAD_HALF_X, NETWORK),
        step(op::STORE, 0),
        step(op::LOAD_HALF_X, NETWORK + 2),
        step(op::STORE, 1),
    ];
    program.extend(tests);
    program
}

/// Puts a filter on a capture's socket, in place of the one before, without losing a packet.
///
/// # Errors
/// If the kernel refuses it.
pub fn attach(socket: &impl AsFd, program: &[Instruction]) -> io::Result<()> {
    let instructions: Vec<SockFilter> =
        program.iter().map(|i| SockFilter::new(i.code, i.jump_true, i.jump_false, i.operand)).collect();
    SockRef::from(socket).attach_filter(&instructions)
}
