//! The TCP sockets of this network namespace, as the kernel lists them (sock_diag(7)).

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};
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

/// Takes a netlink datagram apart.
#[must_use]
pub fn parse_datagram(bytes: &[u8]) -> Datagram {
    let mut found = Datagram::default();
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk::<4>() {
        let length = u32::from_ne_bytes(*header) as usize;
        if length < 16 || length > rest.len() {
            found.malformed += 1;
            break;
        }
        match NetlinkMessage::<SockDiagMessage>::deserialize(&rest[..length]) {
            Ok(message) => match message.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    found.sockets.push(socket(&response));
                }
                NetlinkPayload::Done(_) => found.done = true,
                NetlinkPayload::Error(error) => {
                    found.error = error.code.map(|code| code.get().saturating_abs());
                    found.done = true;
                }
                NetlinkPayload::Noop => {}
                _ => found.malformed += 1,
            },
            Err(_) => found.malformed += 1,
        }
        // Messages begin at multiples of four bytes.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

fn socket(response: &InetResponse) -> TcpSocket {
    let header = &response.header;
    let id = &header.socket_id;
    let info = response.nlas.iter().find_map(|nla| match nla {
        Nla::TcpInfo(info) => Some(info.as_slice()),
        _ => None,
    });
    let address = |ip: IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
    TcpSocket {
        local: address(id.source_address, id.source_port),
        remote: address(id.destination_address, id.destination_port),
        state: TcpState(header.state),
        inode: u64::from(header.inode),
        cookie: u64::from_ne_bytes(id.cookie),
        tcp: info.filter(|info| !info.is_empty()).map(tcp_info::counters),
        lacks_bytes_sent: info.is_some_and(|info| info.len() < tcp_info::LENGTH_WITH_BYTES_SENT),
    }
}

/// A netlink socket that asks for lists.
pub struct Lister {
    socket: Socket,
    receive: Vec<u8>,
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
        Ok(Self { socket, receive: Vec::with_capacity(RECEIVE_BYTES) })
    }

    /// Lists all TCP sockets.
    ///
    /// # Errors
    /// If the kernel refuses; a kernel without IPv6 lists what it has.
    pub fn list(&mut self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        self.list_family(AF_INET, SocketId::new_v4(), &mut listing)?;
        match self.list_family(AF_INET6, SocketId::new_v6(), &mut listing) {
            // ENOENT: there is no IPv6 in this kernel.
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENOENT as i32) => {}
            other => other?,
        }
        Ok(listing)
    }

    fn list_family(&mut self, family: u8, socket_id: SocketId, listing: &mut Listing) -> io::Result<()> {
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
        self.socket.send(&bytes, 0)?;
        loop {
            self.receive.clear();
            match self.socket.recv(&mut self.receive, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let datagram = parse_datagram(&self.receive);
            listing.sockets.extend(datagram.sockets);
            listing.malformed += datagram.malformed;
            if let Some(error) = datagram.error {
                return Err(io::Error::from_raw_os_error(error));
            }
            if datagram.done || self.receive.is_empty() {
                return Ok(());
            }
        }
    }
}
