//! One JVM's file, read as it grows: no line is kept, what has no end yet is read again.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use trace::jvm::JvmRecord;

/// A line that is longer is no record of ours.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Lines that long after which a file is none of a JVM's.
const MAX_LONG_LINES: u32 = 16;
/// Of a role so many bytes are kept.
const MAX_ROLE_BYTES: usize = 64;
/// Ports on which one JVM listens, at most.
const MAX_PORTS: usize = 64;

/// A connection, this side and the other.
pub type Ends = (SocketAddr, SocketAddr);

/// What is known of a JVM by its file.
#[derive(Debug)]
pub struct JvmTail {
    /// Number of the file: another file of that name is another JVM's.
    pub inode: u64,
    /// Role and pid.
    pub who: Arc<str>,
    /// Ports on which it listens.
    pub listen: Vec<u16>,
    /// Whether it said that it ends.
    pub has_ended: bool,
    offset: u64,
    /// Inside a line that is too long.
    is_skipping: bool,
    long_lines: u32,
}

impl JvmTail {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(inode: u64) -> Self {
        Self {
            inode,
            who: Arc::from(""),
            listen: Vec::new(),
            has_ended: false,
            offset: 0,
            is_skipping: false,
            long_lines: 0,
        }
    }

    /// Bytes that were taken, whole lines.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes at most `most` bytes of what was added; what the JVM opened goes to `opened`. Returns the bytes that were
    /// read, and whether its ports or name have changed.
    ///
    /// # Errors
    /// If it cannot be read, or holds no records.
    pub fn read(&mut self, file: &File, most: usize, opened: &mut Vec<Ends>) -> io::Result<(usize, bool)> {
        let before = (self.listen.len(), Arc::clone(&self.who), self.has_ended);
        let mut buffer = vec![0; MAX_LINE_BYTES];
        let mut taken = 0;
        while taken < most && !self.has_ended {
            let got = file.read_at(&mut buffer, self.offset)?;
            taken += got;
            let used = self.take_lines(&buffer[..got], opened);
            self.offset += used as u64;
            if self.long_lines > MAX_LONG_LINES {
                return Err(io::Error::other("holds no records of a JVM"));
            }
            if got < buffer.len() || used == 0 {
                break;
            }
        }
        Ok((taken, before != (self.listen.len(), Arc::clone(&self.who), self.has_ended)))
    }

    /// Takes the whole lines; returns how many bytes are done with.
    fn take_lines(&mut self, bytes: &[u8], opened: &mut Vec<Ends>) -> usize {
        let mut used = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = line.last() == Some(&b'\n');
            if !is_whole && line.len() < MAX_LINE_BYTES && !self.is_skipping {
                break;
            }
            used += line.len();
            if !is_whole {
                self.long_lines += 1;
                self.is_skipping = true;
            } else if !std::mem::take(&mut self.is_skipping) {
                self.take(line, opened);
            }
        }
        used
    }

    /// Most lines are of calls and blocks: they are told by their beginning, which costs no parsing.
    fn take(&mut self, line: &[u8], opened: &mut Vec<Ends>) {
        let kind = line.strip_prefix(b"{\"k\":\"");
        let is_wanted = |kind: &[u8]| {
            [&b"header\""[..], b"listen\"", b"open\"", b"accept\"", b"end\""].iter().any(|k| kind.starts_with(k))
        };
        if kind.is_some_and(|kind| !is_wanted(kind)) {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(JvmRecord::Header { pid, role, .. }) => self.who = format!("{} {pid}", name(&role)).into(),
            Ok(JvmRecord::Listen { local, .. }) => {
                if let Some(local) = address(&local)
                    && !self.listen.contains(&local.port())
                    && self.listen.len() < MAX_PORTS
                {
                    self.listen.push(local.port());
                }
            }
            Ok(JvmRecord::Open { local, remote, .. } | JvmRecord::Accept { local, remote, .. }) => {
                opened.extend(address(&local).zip(address(&remote)));
            }
            Ok(JvmRecord::End { .. }) => self.has_ended = true,
            _ => {}
        }
    }
}

/// The beginning of a name that somebody else chose.
#[must_use]
pub fn name(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if name.len() + letter.len_utf8() > MAX_ROLE_BYTES {
            break;
        }
        name.push(letter);
    }
    name
}

/// "ip:port", IPv6 with or without brackets.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    let ip: IpAddr = ip.trim_matches(['[', ']']).parse().ok()?;
    Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?))
}
