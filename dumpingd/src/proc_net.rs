//! `/proc/net/tcp` and `/proc/net/tcp6`: the sockets as text, for kernels that do not let us use sock_diag. There are no
//! counters in it, and it costs some 10 ms even without a socket (the kernel walks its whole table).

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::diag::{Listing, TcpSocket, TcpState};

/// Lists the sockets of a process's network namespace; "self" = this one's.
///
/// # Errors
/// If the files cannot be read; a kernel without IPv6 has only one of them.
pub fn list(pid: &str) -> io::Result<Listing> {
    let mut listing = parse(&fs::read_to_string(format!("/proc/{pid}/net/tcp"))?);
    match fs::read_to_string(format!("/proc/{pid}/net/tcp6")) {
        Ok(text) => {
            let v6 = parse(&text);
            listing.sockets.extend(v6.sockets);
            listing.malformed += v6.malformed;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(listing)
}

/// The sockets in the text of either file; lines that are none are counted.
#[must_use]
pub fn parse(text: &str) -> Listing {
    let mut listing = Listing::default();
    for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        match socket(line) {
            Some(socket) => listing.sockets.push(socket),
            None => listing.malformed += 1,
        }
    }
    listing
}

/// `sl: local remote state queues timer retransmissions uid timeout inode ...`
fn socket(line: &str) -> Option<TcpSocket> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let state = TcpState(u8::from_str_radix(fields.next()?, 16).ok()?);
    let inode = fields.nth(5)?.parse().ok()?;
    Some(TcpSocket { local, remote, state, inode, cookie: 0, tcp: None, lacks_bytes_sent: false })
}

/// `0100007F:1F90`: words of 32 bits in the machine's order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at * 8)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}
