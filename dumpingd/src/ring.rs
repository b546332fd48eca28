//! What the kernel hands over of a tracepoint: its format (text) and pages of its ring buffer (binary).
//!
//! The text of a trace leaves out the socket's address, by which a connection's events are joined; the pages have it.
//! Their layout: events/header_page, Documentation/trace/ring-buffer-map.rst, kernel/trace/ring_buffer.c.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a page's header: u64 time stamp, u64 length and flags.
const HEADER_BYTES: usize = 16;
/// Flags above the length: events were lost in front of this page.
const MISSED: u64 = 1 << 31;
/// How many is told behind the data.
const MISSED_STORED: u64 = 1 << 30;
/// Lengths are below.
const LENGTH_MASK: u64 = (1 << 27) - 1;

/// The kernel's numbers of families and states.
const AF_INET6: u16 = 10;
const ESTABLISHED: i32 = 1;
const SYN_SENT: i32 = 2;
const LISTEN: i32 = 10;

/// Where the fields of `sock:inet_sock_set_state` stand in an event, bytes from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The event's number.
    pub id: u16,
    pid: usize,
    socket: usize,
    socket_bytes: usize,
    old_state: usize,
    new_state: usize,
    source_port: usize,
    destination_port: usize,
    family: usize,
    source: usize,
    destination: usize,
    source_v6: usize,
    destination_v6: usize,
}

impl Format {
    /// Reads the file `format` of the tracepoint; `None` if a field is missing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let field = |name: &str| -> Option<(usize, usize)> {
            text.lines().find_map(|line| {
                let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
                let declared = parts.next()?.split('[').next()?;
                if declared.rsplit([' ', '*']).next()? != name {
                    return None;
                }
                let mut number = |label: &str| parts.next()?.strip_prefix(label)?.trim().parse::<usize>().ok();
                Some((number("offset:")?, number("size:")?))
            })
        };
        let (socket, socket_bytes) = field("skaddr")?;
        Some(Self {
            id,
            pid: field("common_pid")?.0,
            socket,
            socket_bytes,
            old_state: field("oldstate")?.0,
            new_state: field("newstate")?.0,
            source_port: field("sport")?.0,
            destination_port: field("dport")?.0,
            family: field("family")?.0,
            source: field("saddr")?.0,
            destination: field("daddr")?.0,
            source_v6: field("saddr_v6")?.0,
            destination_v6: field("daddr_v6")?.0,
        })
    }

    fn event(&self, time_ns: u64, data: &[u8]) -> Option<Event> {
        if u16::from_ne_bytes(bytes(data, 0)?) != self.id {
            return None;
        }
        let source_port = u16::from_ne_bytes(bytes(data, self.source_port)?);
        let destination_port = u16::from_ne_bytes(bytes(data, self.destination_port)?);
        let (source, destination): (IpAddr, IpAddr) = if u16::from_ne_bytes(bytes(data, self.family)?) == AF_INET6 {
            let v6 = |at| Some(Ipv6Addr::from(bytes::<16>(data, at)?).to_canonical());
            (v6(self.source_v6)?, v6(self.destination_v6)?)
        } else {
            let v4 = |at| Some(IpAddr::V4(Ipv4Addr::from(bytes::<4>(data, at)?)));
            (v4(self.source)?, v4(self.destination)?)
        };
        let socket = match self.socket_bytes {
            4 => u64::from(u32::from_ne_bytes(bytes(data, self.socket)?)),
            _ => u64::from_ne_bytes(bytes(data, self.socket)?),
        };
        let state = |at| Some(i32::from_ne_bytes(bytes(data, at)?));
        Some(Event {
            time_ns,
            thread: u32::from_ne_bytes(bytes(data, self.pid)?),
            socket,
            change: Change::of(state(self.old_state)?, state(self.new_state)?),
            local: SocketAddr::new(source, source_port),
            remote: SocketAddr::new(destination, destination_port),
        })
    }
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk::<N>().copied()
}

/// How a socket changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It begins to connect: the thread is the caller's, the local port may still be 0.
    Connecting,
    /// It has connected: both ports are known.
    Connected,
    /// It could not connect.
    Failed,
    /// It listens: the thread is the caller's.
    Listening,
    /// Anything else.
    Other,
}

impl Change {
    fn of(old: i32, new: i32) -> Self {
        match (old, new) {
            (_, SYN_SENT) => Self::Connecting,
            (SYN_SENT, ESTABLISHED) => Self::Connected,
            (SYN_SENT, _) => Self::Failed,
            (_, LISTEN) => Self::Listening,
            _ => Self::Other,
        }
    }
}

/// A change of a socket's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the trace's clock, nanoseconds.
    pub time_ns: u64,
    /// The thread that was running.
    pub thread: u32,
    /// The socket's address in the kernel: the same for all events of one connection.
    pub socket: u64,
    /// What happened.
    pub change: Change,
    /// This side.
    pub local: SocketAddr,
    /// The other side.
    pub remote: SocketAddr,
}

/// What a page held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Events, in order.
    pub events: Vec<Event>,
    /// Events that the kernel lost in front of it; 1 where it does not tell how many.
    pub missed: u64,
}

/// Takes a page of the ring buffer apart. What makes no sense ends it.
#[must_use]
pub fn parse_page(format: &Format, page: &[u8]) -> Page {
    let mut found = Page::default();
    let (Some(time), Some(length)) = (bytes::<8>(page, 0), bytes::<8>(page, 8)) else { return found };
    let mut time_ns = u64::from_ne_bytes(time);
    let commit = u64::from_ne_bytes(length);
    let length = usize::try_from(commit & LENGTH_MASK).unwrap_or(usize::MAX);
    let data = &page[HEADER_BYTES..];
    if commit & MISSED != 0 {
        let stored = if commit & MISSED_STORED == 0 { None } else { bytes::<8>(data, length).map(u64::from_ne_bytes) };
        found.missed = stored.filter(|missed| *missed > 0).unwrap_or(1);
    }
    let data = &data[..length.min(data.len())];
    let mut at = 0;
    while let Some(header) = bytes::<4>(data, at).map(u32::from_ne_bytes) {
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        at += 4;
        let word = || bytes::<4>(data, at).map(u32::from_ne_bytes);
        let (begin, length) = match kind {
            // Padding up to the end, or over an event that was taken back.
            29 if delta == 0 => break,
            29 => {
                let Some(length) = word() else { break };
                time_ns = time_ns.wrapping_add(delta);
                at = at.saturating_add(length as usize);
                continue;
            }
            30 => {
                let Some(high) = word() else { break };
                time_ns = time_ns.wrapping_add(delta | u64::from(high) << 27);
                at += 4;
                continue;
            }
            31 => {
                // Absolute; the five bits that do not fit are those of the page's own time.
                let Some(high) = word() else { break };
                time_ns = (delta | u64::from(high) << 27) | (time_ns & (0xf8 << 56));
                at += 4;
                continue;
            }
            0 => {
                let Some(length) = word() else { break };
                (at + 4, (length as usize).saturating_sub(4))
            }
            words => (at, words as usize * 4),
        };
        time_ns = time_ns.wrapping_add(delta);
        let Some(event) = data.get(begin..begin.saturating_add(length)) else { break };
        found.events.extend(format.event(time_ns, event));
        at = begin + length;
    }
    found
}
