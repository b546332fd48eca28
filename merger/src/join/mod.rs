//! Connections, seen from both sides as one.

pub mod content;
pub(crate) mod ranges;
mod split;
mod stream;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use rayon::prelude::*;
use trace::packet::flag;

use crate::capture::HostCapture;
use crate::capture::flows::{FlowKey, Observed};
use crate::joined::Stream;
use content::Content;
use split::{Part, pair, split};
pub use stream::Early;
use stream::{View, Way, window_shift};

/// A connection, before it is known whose it is.
#[derive(Clone, Debug)]
pub struct Link {
    /// The end that opened it.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// The host on which both ends are local addresses, if they are.
    pub host: Option<usize>,
    /// First packet.
    pub first_ns: u64,
    /// Last packet.
    pub last_ns: u64,
    /// Whether a SYN was seen.
    pub syn_seen: bool,
    /// Whether it was seen to end.
    pub end_seen: bool,
    /// SYN to SYN-ACK at the client's host.
    pub handshake_ns: Option<u64>,
    client_is_low: bool,
    isn: [Option<u32>; 2],
    views: Vec<(usize, Vec<Observed>)>,
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

/// Takes the packets out of the hosts and makes connections of them, ordered by their first packet. `listens` tells
/// whether a host is known to listen on an address.
#[must_use]
pub fn connections(
    hosts: &mut [HostCapture],
    book: &AddressBook,
    listens: impl Fn(usize, SocketAddr) -> bool + Sync,
) -> Vec<Link> {
    let mut flows: BTreeMap<FlowKey, Vec<(usize, Vec<Observed>)>> = BTreeMap::new();
    for (number, host) in hosts.iter_mut().enumerate() {
        for (key, packets) in std::mem::take(&mut host.packets.flows) {
            flows.entry(key).or_default().push((number, packets));
        }
    }
    let mut links: Vec<Link> = flows
        .into_par_iter()
        .flat_map_iter(|(key, by_host)| {
            let parts = by_host.into_iter().map(|(host, packets)| (host, split(&packets))).collect();
            let listens =
                |address: SocketAddr| book.host_of(address.ip(), key.host).is_some_and(|host| listens(host, address));
            let roles = (listens(key.low), listens(key.high));
            pair(parts).into_iter().map(move |parts| Link::new(key, roles, parts, book))
        })
        .collect();
    links.sort_by_key(|link| (link.first_ns, link.client, link.server, link.host, link.last_ns));
    links
}

impl Link {
    fn new(
        key: FlowKey,
        (low_listens, high_listens): (bool, bool),
        parts: Vec<(usize, Part)>,
        book: &AddressBook,
    ) -> Self {
        let mut isn = [None; 2];
        let mut opened_by_low = None;
        for (_, part) in &parts {
            isn[0] = isn[0].or(part.isn[0]);
            isn[1] = isn[1].or(part.isn[1]);
            opened_by_low = opened_by_low.or(part.opened_by_low);
        }
        let views: Vec<(usize, Vec<Observed>)> = parts.into_iter().map(|(host, part)| (host, part.packets)).collect();
        let syn_ack_from_low = || {
            let answer = views.iter().flat_map(|(_, packets)| packets).find(|p| p.has(flag::SYN | flag::ACK))?;
            Some(answer.forward)
        };
        let client_is_low = opened_by_low.or_else(|| syn_ack_from_low().map(|low| !low)).unwrap_or({
            match (low_listens, high_listens) {
                (true, false) => false,
                (false, true) => true,
                // Ports for outgoing connections lie above those that people choose.
                _ => key.low.port() > key.high.port(),
            }
        });
        let (client, server) = if client_is_low { (key.low, key.high) } else { (key.high, key.low) };
        let all = || views.iter().flat_map(|(_, packets)| packets);
        let mut ended = [false; 2];
        for packet in all() {
            if packet.has(flag::RST) {
                ended = [true; 2];
            } else if packet.has(flag::FIN) {
                ended[usize::from(packet.forward)] = true;
            }
        }
        let client_host = book.host_of(client.ip(), key.host);
        let at_client = views.iter().find(|(host, _)| Some(*host) == client_host);
        Self {
            client,
            server,
            host: key.host,
            first_ns: all().map(|packet| packet.time_ns).min().unwrap_or(0),
            last_ns: all().map(|packet| packet.time_ns).max().unwrap_or(0),
            syn_seen: isn.iter().any(Option::is_some),
            end_seen: ended == [true; 2],
            handshake_ns: at_client.and_then(|(_, packets)| handshake(packets)),
            client_is_low,
            isn,
            views,
        }
    }

    /// Bits by which the windows of the client and of the server are shifted, as far as their handshake tells.
    #[must_use]
    pub fn window_shifts(&self) -> [Option<u32>; 2] {
        let learn = |forward: bool| self.views.iter().find_map(|(_, packets)| window_shift(packets.iter(), forward));
        [learn(self.client_is_low), learn(!self.client_is_low)]
    }

    /// Puts one direction together. `receiver_shift` is used where the handshake does not tell; `uncertainty_ns` is that
    /// of each host's clock.
    #[must_use]
    pub fn direction(
        &self,
        from_client: bool,
        hosts: &[HostCapture],
        book: &AddressBook,
        receiver_shift: Option<u32>,
        uncertainty_ns: &[f64],
    ) -> Direction {
        let forward = from_client == self.client_is_low;
        let (source, destination) = if from_client { (self.client, self.server) } else { (self.server, self.client) };
        let view_of = |address: SocketAddr| {
            let wanted = book.host_of(address.ip(), self.host)?;
            let (host, packets) = self.views.iter().find(|(host, _)| *host == wanted)?;
            Some(View { packets, kept: &hosts[*host].packets })
        };
        let (mut sender, mut receiver) = (view_of(source), view_of(destination));
        if sender.is_none() && receiver.is_none() {
            // Somebody between the two watched.
            let between = self.views.first().map(|(host, packets)| View { packets, kept: &hosts[*host].packets });
            (sender, receiver) = (between, between);
        }
        let shifts = self.window_shifts();
        let uncertainty = |address: SocketAddr| {
            let host = book.host_of(address.ip(), self.host);
            host.and_then(|host| uncertainty_ns.get(host)).map_or(0, |ns| ns.ceil() as u64)
        };
        let way = Way {
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
        }
    }
}

/// From the last SYN before the answer to the answer.
fn handshake(packets: &[Observed]) -> Option<u64> {
    let answer = packets.iter().find(|packet| packet.has(flag::SYN | flag::ACK))?;
    let asked = packets
        .iter()
        .rfind(|packet| packet.has(flag::SYN) && !packet.has(flag::ACK) && packet.time_ns <= answer.time_ns)?;
    Some(answer.time_ns - asked.time_ns)
}
