//! `lsof`: sockets with their processes as another program lists them, as in the LIGHTNESS deliverable. The slowest way,
//! and it knows no counters and no closed connections; but it needs nothing that an administrator has not allowed already.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};

use crate::diag::{Listing, TcpSocket, TcpState};

/// Lists sockets and their processes.
///
/// # Errors
/// If there is no `lsof` or it fails.
pub fn list() -> io::Result<(Listing, HashMap<u64, u32>)> {
    let output = Command::new("lsof")
        .args(["-nP", "-w", "-iTCP", "-F", "pftdnT"])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("lsof cannot be run: {error}")))?;
    // It also exits with 1 where there is nothing to list.
    if !output.status.success() && !output.stderr.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("lsof: {}", said.lines().next().unwrap_or_default())));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

#[derive(Default)]
struct File<'a> {
    v6: bool,
    inode: u64,
    name: &'a str,
    state: &'a str,
}

/// The sockets in lsof's output for programs (-F pftdnT), and the process of each inode.
#[must_use]
pub fn parse(text: &str) -> (Listing, HashMap<u64, u32>) {
    let (mut listing, mut owners) = (Listing::default(), HashMap::new());
    let mut pid = None;
    let mut file: Option<File<'_>> = None;
    let mut end = |file: Option<File<'_>>, pid: Option<u32>| {
        let Some(file) = file else { return };
        match (socket(&file), pid) {
            // A socket that several processes have open is listed for each.
            (Some(socket), Some(pid)) if socket.inode == 0 || owners.insert(socket.inode, pid).is_none() => {
                listing.sockets.push(socket);
            }
            (Some(_), Some(_)) => {}
            _ => listing.malformed += 1,
        }
    };
    for line in text.lines() {
        let Some(kind) = line.chars().next() else { continue };
        let value = &line[kind.len_utf8()..];
        match (kind, &mut file) {
            ('p', _) => {
                end(file.take(), pid);
                pid = value.parse().ok();
            }
            ('f', _) => end(file.replace(File::default()), pid),
            ('t', Some(file)) => file.v6 = value == "IPv6",
            ('d', Some(file)) => file.inode = value.parse().unwrap_or(0),
            ('n', Some(file)) => file.name = value,
            ('T', Some(file)) => {
                if let Some(state) = value.strip_prefix("ST=") {
                    file.state = state;
                }
            }
            _ => {}
        }
    }
    end(file, pid);
    (listing, owners)
}

fn socket(file: &File<'_>) -> Option<TcpSocket> {
    let nobody = if file.v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let (local, remote) = match file.name.split_once("->") {
        Some((local, remote)) => (address(local, nobody)?, address(remote, nobody)?),
        None => (address(file.name, nobody)?, SocketAddr::new(nobody, 0)),
    };
    let state = TcpState::named(file.state)?;
    Some(TcpSocket { local, remote, state, inode: file.inode, cookie: 0, tcp: None, lacks_bytes_sent: false })
}

/// `127.0.0.1:80`, `[::1]:80`, `*:80`.
fn address(text: &str, any: IpAddr) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    let port = if port == "*" { 0 } else { port.parse().ok()? };
    let ip = if ip == "*" { any } else { ip.trim_matches(['[', ']']).parse::<IpAddr>().ok()?.to_canonical() };
    Some(SocketAddr::new(ip, port))
}
