//! Connections in the order of their first packets.

use std::io;
use std::net::SocketAddr;
use std::ops::Index;

use trace::ids::{ConnectionId, HostId, ProcessId};
use trace::rows::{ConnectionRow, OwnerEvidence};

use crate::capture::flows::PackedAddress;
use crate::spilled::{Reader, Record, SharedList, Writer};
use crate::words::Words;

/// A [`ConnectionRow`] whose texts lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection<'w> {
    /// Whose it is.
    pub ends: Ends,
    /// Client's address and port.
    pub client: SocketAddr,
    /// Server's.
    pub server: SocketAddr,
    /// Application protocol, as in [`ConnectionRow`].
    pub protocol: &'w str,
    /// Figures.
    pub figures: Figures,
}

/// What is looked up all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Client's host.
    pub client_host: HostId,
    /// Server's host.
    pub server_host: HostId,
    /// Client's process.
    pub client_process: Option<ProcessId>,
    /// How that is known.
    pub client_evidence: OwnerEvidence,
    /// Server's process.
    pub server_process: Option<ProcessId>,
    /// How that is known.
    pub server_evidence: OwnerEvidence,
    /// First segment seen, nanoseconds since the epoch.
    pub first_ns: u64,
    /// Whether its SYN was seen.
    pub syn_seen: bool,
    /// Whether both ends are on one host.
    pub loopback: bool,
}

/// What is seldom looked up. Of pairs, the first is of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Last segment seen, nanoseconds since the epoch.
    pub last_ns: u64,
    /// Whether it was seen to end.
    pub end_seen: bool,
    /// Payload, each byte of the sequence once.
    pub bytes: [u64; 2],
    /// Bytes of the sequence that were never seen.
    pub missing_bytes: [u64; 2],
    /// Payload bytes sent more than once.
    pub retransmitted_bytes: [u64; 2],
    /// What the kernel counted of it; `None` = not known.
    pub kernel_bytes: [Option<u64>; 2],
    /// SYN to SYN-ACK, nanoseconds; `None` = not seen.
    pub handshake_ns: Option<u64>,
}

impl Connection<'_> {
    /// With its number.
    fn row(self, connection: ConnectionId) -> ConnectionRow {
        let Self { ends, figures, .. } = self;
        let [client_bytes, server_bytes] = figures.bytes;
        let [client_missing_bytes, server_missing_bytes] = figures.missing_bytes;
        let [client_retransmitted_bytes, server_retransmitted_bytes] = figures.retransmitted_bytes;
        let [client_kernel_bytes, server_kernel_bytes] = figures.kernel_bytes;
        ConnectionRow {
            connection,
            client_host: ends.client_host,
            client: self.client.to_string(),
            server_host: ends.server_host,
            server: self.server.to_string(),
            client_process: ends.client_process,
            client_evidence: ends.client_evidence,
            server_process: ends.server_process,
            server_evidence: ends.server_evidence,
            protocol: self.protocol.to_owned(),
            first_ns: ends.first_ns,
            last_ns: figures.last_ns,
            syn_seen: ends.syn_seen,
            end_seen: figures.end_seen,
            loopback: ends.loopback,
            client_bytes,
            server_bytes,
            client_missing_bytes,
            server_missing_bytes,
            client_retransmitted_bytes,
            server_retransmitted_bytes,
            client_kernel_bytes,
            server_kernel_bytes,
            handshake_ns: figures.handshake_ns,
        }
    }
}

/// Memory that what is seldom looked up takes at most, bytes.
const MAX_BYTES: usize = 512 << 10;

/// All connections, by their row numbers. What a temporary file did not give back are figures of nothing, until
/// [`Connections::check`] tells.
#[derive(Clone, Debug)]
pub struct Connections {
    ends: Vec<Ends>,
    records: SharedList<ConnectionRecord>,
    words: Words,
}

impl Default for Connections {
    fn default() -> Self {
        Self { ends: Vec::new(), records: SharedList::within(MAX_BYTES), words: Words::default() }
    }
}

impl Connections {
    /// None yet, with room for so many.
    pub(crate) fn with_capacity(connections: usize) -> Self {
        Self { ends: Vec::with_capacity(connections), ..Self::default() }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends a connection; its number is its place.
    pub fn push(&mut self, connection: Connection<'_>) {
        let Connection { ends, client, server, protocol, figures } = connection;
        self.ends.push(ends);
        let protocol = self.words.number_of(protocol);
        self.records.push(ConnectionRecord { client: client.into(), server: server.into(), protocol, figures });
    }

    /// A connection.
    #[must_use]
    pub fn get(&self, connection: ConnectionId) -> Connection<'_> {
        self.view(self.ends[connection.index()], self.records.get(connection.index()))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Connection<'_>> {
        self.ends.iter().zip(self.records.iter()).map(|(ends, record)| self.view(*ends, record))
    }

    /// All of them as rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = ConnectionRow> {
        self.iter().enumerate().map(|(number, connection)| connection.row(ConnectionId(number as u32)))
    }

    /// The processes at its ends, the client's first.
    #[must_use]
    pub fn processes(&self, connection: ConnectionId) -> [Option<ProcessId>; 2] {
        self.ends.get(connection.index()).map_or([None; 2], |ends| [ends.client_process, ends.server_process])
    }

    /// Tells whose a connection is.
    pub fn change_ends(&mut self, connection: ConnectionId, change: impl FnOnce(&mut Ends)) {
        if let Some(ends) = self.ends.get_mut(connection.index()) {
            change(ends);
        }
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.records.check()
    }

    fn view(&self, ends: Ends, record: ConnectionRecord) -> Connection<'_> {
        let ConnectionRecord { client, server, protocol, figures } = record;
        Connection { ends, client: client.into(), server: server.into(), protocol: self.words.text(protocol), figures }
    }
}

impl Index<ConnectionId> for Connections {
    type Output = Ends;

    fn index(&self, connection: ConnectionId) -> &Ends {
        &self.ends[connection.index()]
    }
}

/// What lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionRecord {
    client: PackedAddress,
    server: PackedAddress,
    protocol: u32,
    figures: Figures,
}

impl Record for ConnectionRecord {
    const BLANK: Self = Self {
        client: PackedAddress::BLANK,
        server: PackedAddress::BLANK,
        protocol: u32::MAX,
        figures: Figures {
            last_ns: 0,
            end_seen: false,
            bytes: [0; 2],
            missing_bytes: [0; 2],
            retransmitted_bytes: [0; 2],
            kernel_bytes: [None; 2],
            handshake_ns: None,
        },
    };
    const BYTES: usize = 2 * PackedAddress::BYTES + 4 + 1 + 10 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        self.client.write(out);
        self.server.write(out);
        self.protocol.write(out);
        let Figures { bytes, missing_bytes, retransmitted_bytes, kernel_bytes, handshake_ns, .. } = self.figures;
        let optional = [kernel_bytes[0], kernel_bytes[1], handshake_ns];
        let there = [self.figures.end_seen].into_iter().chain(optional.iter().map(Option::is_some));
        out.bytes([there.enumerate().fold(0, |flags, (bit, is)| flags | u8::from(is) << bit)]);
        let pairs = [bytes, missing_bytes, retransmitted_bytes].into_iter().flatten();
        let numbers = pairs.chain(optional.map(|number| number.unwrap_or(0))).chain([self.figures.last_ns]);
        numbers.for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (client, server) = (PackedAddress::read(input), PackedAddress::read(input));
        let (protocol, flags) = (input.u32(), input.u8());
        let is = |bit: u8| flags & (1 << bit) != 0;
        let [bytes, missing_bytes, retransmitted_bytes] = std::array::from_fn(|_| [input.u64(), input.u64()]);
        let [client_kernel, server_kernel, handshake] = [1, 2, 3].map(|bit| Some(input.u64()).filter(|_| is(bit)));
        let figures = Figures {
            last_ns: input.u64(),
            end_seen: is(0),
            bytes,
            missing_bytes,
            retransmitted_bytes,
            kernel_bytes: [client_kernel, server_kernel],
            handshake_ns: handshake,
        };
        Self { client, server, protocol, figures }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::spilled::read_back;

    prop_compose! {
        fn figures()(
            (last_ns, end_seen, handshake_ns) in any::<(u64, bool, Option<u64>)>(),
            [bytes, missing_bytes, retransmitted_bytes] in any::<[[u64; 2]; 3]>(),
            kernel_bytes in any::<[Option<u64>; 2]>(),
        ) -> Figures {
            Figures { last_ns, end_seen, bytes, missing_bytes, retransmitted_bytes, kernel_bytes, handshake_ns }
        }
    }

    proptest! {
        #[test]
        fn what_lies_in_a_file_is_read_as_it_was_written(figures in figures(), protocol in any::<u32>(), v6 in any::<[u8; 16]>()) {
            let (client, server) = (SocketAddr::from(([10, 0, 0, 1], 40_000)), SocketAddr::from((v6, 9000)));
            let record = ConnectionRecord { client: client.into(), server: server.into(), protocol, figures };
            prop_assert_eq!(read_back(&record), record);
        }
    }

    #[test]
    fn what_is_told_of_ends_stands_in_rows() {
        let mut connections = Connections::default();
        let ends = Ends {
            client_host: HostId(1),
            server_host: HostId(2),
            client_process: None,
            client_evidence: OwnerEvidence::Unknown,
            server_process: Some(ProcessId(3)),
            server_evidence: OwnerEvidence::Scan,
            first_ns: 4,
            syn_seen: true,
            loopback: false,
        };
        let [client, server] = [40_000, 9000].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        let figures = Figures { bytes: [5, 6], kernel_bytes: [None, Some(7)], ..Figures::default() };
        (0..2).for_each(|_| connections.push(Connection { ends, client, server, protocol: "rpc", figures }));
        connections.change_ends(ConnectionId(1), |ends| {
            (ends.client_process, ends.client_evidence) = (Some(ProcessId(8)), OwnerEvidence::Inferred);
        });
        let rows: Vec<ConnectionRow> = connections.rows().collect();
        assert_eq!((rows[0].client_process, rows[0].connection, rows.len()), (None, ConnectionId(0), 2));
        assert_eq!((rows[1].client_process, rows[1].client_evidence), (Some(ProcessId(8)), OwnerEvidence::Inferred));
        assert_eq!((&*rows[1].client, &*rows[1].protocol), ("10.0.0.1:40000", "rpc"));
        assert_eq!((rows[1].client_bytes, rows[1].server_kernel_bytes), (5, Some(7)));
        assert_eq!(connections.processes(ConnectionId(1)), [Some(ProcessId(8)), Some(ProcessId(3))]);
        assert_eq!(connections.processes(ConnectionId(2)), [None; 2]);
        assert!(connections.check().is_ok() && !connections.is_empty());
    }
}
