//! Records that no JVM wrote: what a user can put into a file that the agents and the merger read.

use std::io::{self, Write};
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::text::Numbers;

/// Bytes of a role or a main class that is too long.
const LONG: usize = 60_000;
/// Connections that one file claims.
const CLAIMS: u64 = 60_000;
/// Bytes of a line without end.
const ENDLESS: usize = 1 << 20;
/// Zeros that a frame of the bomb packs, and frames: 8 GiB in all, in some 0.5 MiB.
const FRAME: usize = 1 << 24;
const FRAMES: usize = 512;

/// A kind of forged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// A role of 60 KB and 60,000 connections opened.
    Hog,
    /// The name, the addresses and the process of another host.
    Stranger,
    /// Counts at the end of their range, twice.
    Overflow,
    /// Every port claimed as listened on.
    Claims,
    /// A line without end, then bytes that are no text.
    Noise,
    /// zstd of 8 GiB of zeros, called a file of text.
    Bomb,
}

impl Forgery {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Hog, Self::Stranger, Self::Overflow, Self::Claims, Self::Noise, Self::Bomb];

    /// Writes a file of this kind.
    ///
    /// # Errors
    /// If the output fails.
    pub fn write(self, claim: &Claim, numbers: &mut Numbers, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Hog => hog(claim, numbers, out),
            Self::Stranger => line(out, &header(&claim.other_host, &claim.other_address, 1, "NameNode")),
            Self::Overflow => overflow(claim, out),
            Self::Claims => claims(claim, out),
            Self::Noise => noise(numbers, out),
            Self::Bomb => bomb(out),
        }
    }
}

/// Whose records they pretend to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The host on which they are.
    pub host: String,
    /// A process of the user's.
    pub pid: u32,
    /// Name of another host.
    pub other_host: String,
    /// Its address.
    pub other_address: String,
}

fn header(host: &str, address: &str, pid: u32, role: &str) -> Value {
    json!({
        "k": "header", "t": 1, "version": 1, "pid": pid, "start_ticks": 1, "netns": 0, "host": host, "addresses": [address],
        "main": format!("org.apache.hadoop.{role}"), "role": role, "hadoop": "3.4.2", "java": "17",
    })
}

fn line(out: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")
}

fn own_header(claim: &Claim, out: &mut impl Write) -> io::Result<()> {
    line(out, &header(&claim.host, "127.0.0.1", claim.pid, "DataNode"))
}

fn hog(claim: &Claim, numbers: &mut Numbers, out: &mut impl Write) -> io::Result<()> {
    line(out, &header(&claim.host, "127.0.0.1", claim.pid, &"x".repeat(LONG)))?;
    for number in 0..CLAIMS {
        let peer = Ipv4Addr::from_bits(numbers.next_u64() as u32);
        let (local, remote) = (1024 + number % 64_000, 1 + numbers.next_u64() % 65_535);
        let open = json!({ "k": "open", "t": number, "th": 1, "local": format!("10.0.0.1:{local}"), "remote": format!("{peer}:{remote}") });
        line(out, &open)?;
    }
    Ok(())
}

fn overflow(claim: &Claim, out: &mut impl Write) -> io::Result<()> {
    own_header(claim, out)?;
    for _ in 0..2 {
        line(out, &json!({ "k": "clock", "t": u64::MAX, "mono": i64::MAX, "dropped": u64::MAX, "cpu_ns": u64::MAX }))?;
    }
    line(out, &json!({ "k": "end", "t": u64::MAX, "dropped": u64::MAX, "hook_ns": u64::MAX }))
}

fn claims(claim: &Claim, out: &mut impl Write) -> io::Result<()> {
    own_header(claim, out)?;
    for port in 1..=u16::MAX {
        line(out, &json!({ "k": "listen", "t": port, "local": format!("0.0.0.0:{port}"), "purpose": "rpc" }))?;
    }
    Ok(())
}

fn noise(numbers: &mut Numbers, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"k\":\"header\",\"role\":\"")?;
    out.write_all(&vec![b'y'; ENDLESS])?;
    for _ in 0..4096 {
        out.write_all(&numbers.next_u64().to_le_bytes())?;
    }
    Ok(())
}

fn bomb(out: &mut impl Write) -> io::Result<()> {
    let frame = zstd::encode_all(io::Cursor::new(vec![0; FRAME]), 1)?;
    for _ in 0..FRAMES {
        out.write_all(&frame)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn forgeries_are_as_large_as_they_are_meant_to_be() {
        let claim = Claim { host: "w1".into(), pid: 7, other_host: "m1".into(), other_address: "10.1.1.1".into() };
        let bytes = |forgery: Forgery| {
            let mut out = Vec::new();
            forgery.write(&claim, &mut Numbers::new(1), &mut out).unwrap();
            out
        };
        let hog = bytes(Forgery::Hog);
        assert!((4_000_000..8_000_000).contains(&hog.len()), "{}", hog.len());
        let first: trace::jvm::JvmRecord =
            serde_json::from_slice(hog.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        assert!(matches!(first, trace::jvm::JvmRecord::Header { role, .. } if role.len() == LONG));
        let bomb = bytes(Forgery::Bomb);
        assert!(bomb.len() < 1_500_000, "{}", bomb.len());
        let stranger = String::from_utf8(bytes(Forgery::Stranger)).unwrap();
        assert!(stranger.contains("10.1.1.1") && serde_json::from_str::<trace::jvm::JvmRecord>(&stranger).is_ok());
    }
}
