//! Connections, seen from both sides as one.

pub mod content;
mod flows;
mod found;
pub(crate) mod ranges;
mod split;
mod stream;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use smallvec::SmallVec;

use crate::capture::HostCapture;
use crate::capture::flows::{FlowKey, PackedAddress};
use crate::capture::observed::Observed;
use crate::capture::settled::FlowPackets;
use crate::joined::Stream;
use crate::stable_sort::sort_by_key;
use content::Content;
pub(crate) use flows::{ObservedFlow, ObservedFlows};
use found::{Found, Sighting, handshake};
pub(crate) use found::{FoundConnections, find};
use stream::{DirectionBuilder, View};
pub use stream::{Early, Limits};

/// A connection, before it is known whose it is. There may be many.
#[derive(Clone, Debug)]
pub struct ObservedConnection {
    client: PackedAddress,
    server: PackedAddress,
    host: Option<u32>,
    flow: u32,
    /// First packet.
    pub first_ns: u64,
    /// Last packet.
    pub last_ns: u64,
    /// SYN to SYN-ACK at the client's host.
    pub handshake_ns: Option<u64>,
    isn: [Option<u32>; 2],
    /// Of the lower and of the higher address.
    window_shifts: [Option<u8>; 2],
    client_is_low: bool,
    /// Whether a SYN was seen.
    pub syn_seen: bool,
    /// Whether it was seen to end.
    pub end_seen: bool,
    seen: SmallVec<[Seen; 2]>,
}

/// Which of a flow's packets on a host are those of a connection.
#[derive(Clone, Copy, Debug)]
struct Seen {
    host: u32,
    /// The first one, and the first behind them: each takes two bytes at least of the 4 GiB that a flow may have.
    packets: (u32, u32),
    /// As of a [`Sighting`].
    data: [u32; 2],
}

/// One direction of a connection, put together.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Its payload in time.
    pub stream: Stream,
    /// What was kept of it.
    pub content: Content,
    /// Offset behind its last byte.
    pub end: u64,
    /// Bytes that were seen, each once.
    pub seen: u64,
    /// Bytes that were sent more than once.
    pub retransmitted: u64,
    /// Segments that arrived before they left.
    pub early: Early,
    /// What held the sender up; `None` if its host was not captured.
    pub limits: Option<Limits>,
}

/// Which hosts have an address.
#[derive(Clone, Debug, Default)]
pub struct AddressBook {
    hosts: HashMap<IpAddr, usize>,
}

impl AddressBook {
    /// Of the captured hosts.
    #[must_use]
    pub fn new(hosts: &[HostCapture]) -> Self {
        let entries = hosts.iter().enumerate();
        Self { hosts: entries.flat_map(|(n, host)| host.addresses.iter().map(move |&address| (address, n))).collect() }
    }

    /// The captured host with an address; `host` tells it where the address is a local one.
    #[must_use]
    pub fn host_of(&self, address: IpAddr, host: Option<usize>) -> Option<usize> {
        if host.is_some() { host } else { self.hosts.get(&address).copied() }
    }
}

/// Orders connections by their first packet.
pub(crate) fn order(links: &mut [ObservedConnection]) {
    sort_by_key(links, |link| (link.first_ns, link.client, link.server, link.host, link.last_ns));
}

impl ObservedConnection {
    /// Of what was found in the flow of that number. `listens` tells whether a host is known to listen on an address; `moved`
    /// moves a time of a host to the reference clock.
    pub(crate) fn new(
        (flow, key): (usize, FlowKey),
        found: Found,
        book: &AddressBook,
        listens: impl Fn(usize, SocketAddr) -> bool,
        moved: impl Fn(usize, u64) -> u64,
    ) -> Self {
        let (low, high, host) = (key.low(), key.high(), key.host());
        let listens = |address: SocketAddr| book.host_of(address.ip(), host).is_some_and(|host| listens(host, address));
        let Found { about, sightings } = found;
        let opened_by_low = about.opened_by_low.or_else(|| about.syn_ack_from_low.map(|low| !low));
        let client_is_low = opened_by_low.unwrap_or_else(|| match (listens(low), listens(high)) {
            (true, false) => false,
            (false, true) => true,
            // Ports for outgoing connections lie above those that people choose.
            _ => low.port() > high.port(),
        });
        let (client, server) = if client_is_low { (low, high) } else { (high, low) };
        let client_host = book.host_of(client.ip(), host);
        let at_client = sightings.iter().find(|seen| Some(seen.host as usize) == client_host);
        let handshake = at_client.and_then(|seen| Some((seen.host as usize, seen.handshake_ns?)));
        let first = |seen: &Sighting| moved(seen.host as usize, seen.range_ns.0);
        let last = |seen: &Sighting| moved(seen.host as usize, seen.range_ns.1);
        Self {
            client: client.into(),
            server: server.into(),
            host: host.map(|host| host as u32),
            first_ns: sightings.iter().map(first).min().unwrap_or(0),
            last_ns: sightings.iter().map(last).max().unwrap_or(0),
            syn_seen: about.isn.iter().any(Option::is_some),
            end_seen: about.ended,
            handshake_ns: handshake
                .map(|(host, (asked, answered))| moved(host, answered).saturating_sub(moved(host, asked))),
            flow: flow as u32,
            client_is_low,
            isn: about.isn,
            // At most 14 (RFC 7323).
            window_shifts: about.window_shifts.map(|shift| shift.map(|shift| shift as u8)),
            seen: sightings.iter().map(Seen::of).collect(),
        }
    }

    /// The end that opened it.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.client.into()
    }

    /// The other end.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server.into()
    }

    /// The host on which both ends are local addresses, if they are.
    #[must_use]
    pub fn host(&self) -> Option<usize> {
        self.host.map(|host| host as usize)
    }

    /// Its flow, by number.
    pub(crate) fn flow(&self) -> usize {
        self.flow as usize
    }

    /// Puts what depends on the order of times right where clocks that were stepped have changed it; `views` are the flow's
    /// packets on the reference clock.
    pub(crate) fn set_times(&mut self, views: &[(usize, FlowPackets)], book: &AddressBook) {
        let client_host = book.host_of(self.client().ip(), self.host());
        let seen = || self.seen.iter().map(|seen| (seen.host as usize, seen.packets_of(views)));
        let times = || seen().flat_map(|(_, packets)| packets).map(|packet| packet.time_ns);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let at_client = seen().find(|(host, _)| Some(*host) == client_host);
        let handshake_ns =
            at_client.and_then(|(_, packets)| handshake(packets)).map(|(asked, answered)| answered - asked);
        (self.first_ns, self.last_ns, self.handshake_ns) = (first, last, handshake_ns);
    }

    /// Hosts that saw it, by number.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = usize> + '_ {
        self.seen.iter().map(|seen| seen.host as usize)
    }

    /// Bits by which the windows of the client and of the server are shifted, as far as their handshake tells.
    #[must_use]
    pub fn window_shifts(&self) -> [Option<u32>; 2] {
        let [low, high] = self.window_shifts.map(|shift| shift.map(u32::from));
        if self.client_is_low { [low, high] } else { [high, low] }
    }

    /// Puts one direction together, of the flow's packets on the reference clock. `receiver_shift` is used where the handshake
    /// does not tell; `uncertainty_ns` is that of each host's clock.
    #[must_use]
    pub(crate) fn direction(
        &self,
        from_client: bool,
        views: &[(usize, FlowPackets)],
        book: &AddressBook,
        receiver_shift: Option<u32>,
        uncertainty_ns: &[f64],
    ) -> Direction {
        let forward = from_client == self.client_is_low;
        let (source, destination) =
            if from_client { (self.client(), self.server()) } else { (self.server(), self.client()) };
        let view_of = |address: SocketAddr| {
            let wanted = book.host_of(address.ip(), self.host())?;
            self.seen.iter().find(|seen| seen.host as usize == wanted)?.view(views)
        };
        let (mut sender, mut receiver) = (view_of(source), view_of(destination));
        let is_sender_captured = sender.is_some();
        if sender.is_none() && receiver.is_none() {
            // Somebody between the two watched.
            let between = self.seen.first().and_then(|seen| seen.view(views));
            (sender, receiver) = (between, between);
        }
        let shifts = self.window_shifts();
        let uncertainty = |address: SocketAddr| {
            let host = book.host_of(address.ip(), self.host());
            host.and_then(|host| uncertainty_ns.get(host)).map_or(0, |ns| ns.ceil() as u64)
        };
        let way = DirectionBuilder {
            forward,
            isn: self.isn[usize::from(!forward)],
            sender,
            receiver,
            window_shift: shifts[usize::from(from_client)].or(receiver_shift),
            half_round_trip_ns: self.handshake_ns.unwrap_or(0) / 2,
            tolerance_ns: uncertainty(source).saturating_add(uncertainty(destination)),
        };
        let built = way.build();
        Direction {
            stream: built.stream,
            content: built.content,
            end: built.end,
            seen: built.seen,
            retransmitted: built.retransmitted,
            early: built.early,
            limits: if is_sender_captured { built.limits } else { None },
        }
    }
}

impl Seen {
    fn of(sighting: &Sighting) -> Self {
        Self { host: sighting.host, packets: sighting.packets, data: sighting.data }
    }

    fn view<'a>(&self, views: &'a [(usize, FlowPackets)]) -> Option<View<'a>> {
        let (_, flow) = views.iter().find(|(host, _)| *host == self.host as usize)?;
        let (first, behind) = self.packets;
        Some(View { packets: flow.packets.get(first as usize..behind as usize)?, flow, data: self.data })
    }

    fn packets_of<'a>(&self, views: &'a [(usize, FlowPackets)]) -> &'a [Observed] {
        self.view(views).map_or(&[], |view| view.packets)
    }
}
