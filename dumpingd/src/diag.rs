//! The TCP sockets of this network namespace, as the kernel lists them (sock_diag(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};
use nix::errno::Errno;
use trace::socket::TcpCounters;

use crate::tcp_info;

/// Longer than any datagram of a dump (the kernel sends at most 32 KiB at once).
const RECEIVE_BYTES: usize = 64 << 10;

/// A TCP socket as the kernel described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// This side; IPv4 addresses mapped into IPv6 are given as IPv4.
    pub local: SocketAddr,
    /// The other side; port 0 = none.
    pub remote: SocketAddr,
    /// State.
    pub state: TcpState,
    /// Inode; 0 = none (any more, or not yet accepted).
    pub inode: u64,
    /// The kernel's own number of the socket: another one for each connection, even between the same ports.
    pub cookie: u64,
    /// Counters; `None` where the kernel gave none (TIME_WAIT, SYN_RECV).
    pub tcp: Option<TcpCounters>,
    /// Whether the kernel is too old to count sent bytes.
    pub lacks_bytes_sent: bool,
}

/// States of TCP sockets (include/net/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TcpState(pub u8);

impl TcpState {
    /// It is connected.
    pub const ESTABLISHED: Self = Self(1);
    /// Not connected (any more).
    pub const CLOSE: Self = Self(7);
    /// It listens.
    pub const LISTEN: Self = Self(10);

    /// By the kernel's name, or lsof's for the same.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let alias = match name {
            "SYN_RCDV" | "SYN_RECEIVED" => "SYN_RECV",
            "FIN_WAIT_1" => "FIN_WAIT1",
            "FIN_WAIT_2" => "FIN_WAIT2",
            "CLOSED" => "CLOSE",
            other => other,
        };
        (1..=12).map(Self).find(|state| state.name() == alias)
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            1 => "ESTABLISHED",
            2 => "SYN_SENT",
            3 => "SYN_RECV",
            4 => "FIN_WAIT1",
            5 => "FIN_WAIT2",
            6 => "TIME_WAIT",
            7 => "CLOSE",
            8 => "CLOSE_WAIT",
            9 => "LAST_ACK",
            10 => "LISTEN",
            11 => "CLOSING",
            12 => "NEW_SYN_RECV",
            _ => "UNKNOWN",
        }
    }
}

/// What a netlink datagram held.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// Sockets.
    pub sockets: Vec<TcpSocket>,
    /// Messages that could not be understood.
    pub malformed: u64,
    /// The dump is over.
    pub done: bool,
    /// The kernel refused, with this error number.
    pub error: Option<i32>,
}

/// Message types (linux/netlink.h, linux/sock_diag.h).
const NOOP: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const BY_FAMILY: u16 = 20;
/// The old request `TCPDIAG_GETSOCK` and its answers (linux/inet_diag.h).
const AT_ONCE: u16 = 18;
/// The attribute that holds `struct tcp_info` (linux/inet_diag.h).
const INFO: u16 = 2;
/// Bytes of the kernel's `struct nlmsghdr` and `struct inet_diag_msg`.
const HEADER_BYTES: usize = 16;
const SOCKET_BYTES: usize = 72;

/// Takes a netlink datagram apart.
#[must_use]
pub fn parse_datagram(bytes: &[u8]) -> Datagram {
    let mut found = Datagram::default();
    parse_into(bytes, &mut found);
    found
}

/// Takes a netlink datagram apart and adds what it holds to `found`. Fields are picked by their place: decoding whole
/// messages into structures took most of the time of a scan.
fn parse_into(bytes: &[u8], found: &mut Datagram) {
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk::<4>() {
        let length = u32::from_ne_bytes(*header) as usize;
        if length < HEADER_BYTES || length > rest.len() {
            found.malformed += 1;
            break;
        }
        let body = &rest[HEADER_BYTES..length];
        match u16::from_ne_bytes([rest[4], rest[5]]) {
            BY_FAMILY | AT_ONCE => match socket(body) {
                Some(socket) => found.sockets.push(socket),
                None => found.malformed += 1,
            },
            DONE => found.done = true,
            ERROR => match body.first_chunk::<4>() {
                Some(code) => {
                    found.error = Some(i32::from_ne_bytes(*code).saturating_abs()).filter(|code| *code != 0);
                    found.done = true;
                }
                None => found.malformed += 1,
            },
            NOOP => {}
            _ => found.malformed += 1,
        }
        // Messages begin at multiples of four bytes.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

/// `struct inet_diag_msg` and the attributes behind it.
fn socket(body: &[u8]) -> Option<TcpSocket> {
    let (fixed, attributes) = body.split_first_chunk::<SOCKET_BYTES>()?;
    let ip = |at: usize| -> Option<IpAddr> {
        match fixed[0] {
            AF_INET => Some(IpAddr::from(*fixed.get(at..)?.first_chunk::<4>()?)),
            AF_INET6 => Some(IpAddr::from(*fixed.get(at..)?.first_chunk::<16>()?).to_canonical()),
            _ => None,
        }
    };
    let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let info = attribute(attributes, INFO);
    Some(TcpSocket {
        local: SocketAddr::new(ip(8)?, port(4)),
        remote: SocketAddr::new(ip(24)?, port(6)),
        state: TcpState(fixed[1]),
        cookie: u64::from_ne_bytes(*fixed[44..].first_chunk::<8>()?),
        inode: u64::from(u32::from_ne_bytes(*fixed[68..].first_chunk::<4>()?)),
        tcp: info.filter(|info| !info.is_empty()).map(tcp_info::counters),
        lacks_bytes_sent: info.is_some_and(|info| info.len() < tcp_info::LENGTH_WITH_BYTES_SENT),
    })
}

/// The value of an attribute: u16 length with these four bytes, u16 type, value; at multiples of four bytes.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some([a, b, c, d]) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([*a, *b]));
        let value = rest.get(4..length)?;
        if u16::from_ne_bytes([*c, *d]) == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

/// A netlink socket that asks for lists.
pub struct Lister {
    socket: Socket,
    receive: Vec<u8>,
    last_length: usize,
    asks_at_once: bool,
}

/// A list of all sockets, and what could not be understood of it.
#[derive(Debug, Default)]
pub struct Listing {
    /// IPv4 and IPv6 sockets, in all states.
    pub sockets: Vec<TcpSocket>,
    /// Messages that could not be understood.
    pub malformed: u64,
}

impl Lister {
    /// Opens the netlink socket.
    ///
    /// # Errors
    /// If the kernel has no sock_diag.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        Ok(Self { socket, receive: Vec::with_capacity(RECEIVE_BYTES), last_length: 0, asks_at_once: true })
    }

    /// Lists all TCP sockets.
    ///
    /// # Errors
    /// If the kernel refuses; a kernel without IPv6 lists what it has.
    pub fn list(&mut self) -> io::Result<Listing> {
        if self.asks_at_once {
            match self.list_at_once() {
                Ok(listing) => return Ok(listing),
                // A kernel that does not know the old request (any more) is asked the other way from now on.
                Err(error) if is_unknown(&error) => self.asks_at_once = false,
                Err(error) => return Err(error),
            }
        }
        self.list_by_family()
    }

    /// With the request of Linux 2.6, which knows no families and lists both. The kernel goes through all sockets of the
    /// host for each request, so that one costs half as much as two.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn list_at_once(&mut self) -> io::Result<Listing> {
        let mut listing = self.listing();
        self.ask(&request_at_once(), &mut listing)?;
        Ok(listing)
    }

    /// With one request for each family.
    ///
    /// # Errors
    /// If the kernel refuses; a kernel without IPv6 lists what it has.
    pub fn list_by_family(&mut self) -> io::Result<Listing> {
        let mut listing = self.listing();
        self.ask(&request_of_family(AF_INET, SocketId::new_v4()), &mut listing)?;
        match self.ask(&request_of_family(AF_INET6, SocketId::new_v6()), &mut listing) {
            // ENOENT: there is no IPv6 in this kernel.
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {}
            other => other?,
        }
        Ok(listing)
    }

    /// With room for about as many as the last time.
    fn listing(&self) -> Listing {
        Listing { sockets: Vec::with_capacity(self.last_length + 64), malformed: 0 }
    }

    fn ask(&mut self, request: &[u8], listing: &mut Listing) -> io::Result<()> {
        self.socket.send(request, 0)?;
        loop {
            self.receive.clear();
            match self.socket.recv(&mut self.receive, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let mut datagram = Datagram { sockets: std::mem::take(&mut listing.sockets), ..Datagram::default() };
            parse_into(&self.receive, &mut datagram);
            listing.sockets = datagram.sockets;
            listing.malformed += datagram.malformed;
            if let Some(error) = datagram.error {
                return Err(io::Error::from_raw_os_error(error));
            }
            if datagram.done || self.receive.is_empty() {
                self.last_length = listing.sockets.len();
                return Ok(());
            }
        }
    }
}

/// Whether the kernel refuses because it does not know such a request.
fn is_unknown(error: &io::Error) -> bool {
    [Errno::ENOENT, Errno::EINVAL, Errno::EOPNOTSUPP, Errno::EPROTONOSUPPORT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(*errno as i32))
}

fn request_of_family(family: u8, socket_id: SocketId) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::from_bits_retain(u32::MAX),
        socket_id,
    };
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// `struct nlmsghdr` and `struct inet_diag_req` (linux/inet_diag.h): four bytes (the last one: which attributes), the
/// socket's addresses (not used in a list), the states, a number that is not used any more.
fn request_at_once() -> Vec<u8> {
    const ADDRESSES_BYTES: usize = 48;
    const LENGTH: u32 = 16 + 4 + 48 + 8;
    let mut bytes = Vec::with_capacity(LENGTH as usize);
    bytes.extend_from_slice(&LENGTH.to_ne_bytes());
    bytes.extend_from_slice(&AT_ONCE.to_ne_bytes());
    bytes.extend_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    // Number of the request and who asks: filled in by the kernel.
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&[AF_INET, 0, 0, 1 << (INFO - 1)]);
    bytes.extend_from_slice(&[0; ADDRESSES_BYTES]);
    bytes.extend_from_slice(&u32::MAX.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}
