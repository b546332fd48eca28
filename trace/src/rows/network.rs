//! Hosts, processes, connections, messages, processing spans.

use super::column::{named, row};
use crate::ids::{ConnectionId, HostId, MessageId, ProcessId};

row! {
    /// A host.
    HostRow in "hosts" {
        /// Row number.
        host: HostId,
        /// Host name.
        name: String,
        /// Its addresses, separated by spaces.
        addresses: String,
        /// Rack, "" = unknown.
        rack: String,
        /// Whether its packets were captured; a host that is only known as a peer has none of its own.
        captured: bool,
        /// What was added to its clock at the trace's start, nanoseconds.
        clock_offset_ns: i64,
        /// What its clock gained over the reference clock, parts per billion.
        clock_drift_ppb: i64,
    }
}

row! {
    /// A process: a pid and its start time on a host.
    ProcessRow in "processes" {
        /// Row number.
        process: ProcessId,
        /// Where it ran.
        host: HostId,
        /// Process id.
        pid: u32,
        /// Start time, clock ticks since boot; 0 = unknown.
        start_ticks: u64,
        /// Role (`trace::role`), or "other".
        role: String,
        /// Main class or executable.
        main: String,
        /// Whether it belongs to Hadoop.
        hadoop: bool,
        /// Task attempt that it ran, if one.
        attempt: Option<String>,
        /// YARN container that it ran in, if one.
        container: Option<String>,
        /// When it was first seen.
        first_seen_ns: u64,
        /// When it was last seen.
        last_seen_ns: u64,
    }
}

named! {
    /// How the owner of one end of a connection is known.
    OwnerEvidence {
        /// The process itself said so (Java agent).
        Jvm = "jvm",
        /// A socket scan saw it.
        Scan = "scan",
        /// It was accepted by a listener whose owner is known.
        Listener = "listener",
        /// A person's manifest says so.
        Manifest = "manifest",
        /// Inferred from what the process did (a call id, a block operation) and not from the connection.
        Inferred = "inferred",
        /// Not known.
        Unknown = "unknown",
    }
}

row! {
    /// A TCP connection. The client is the end that sent the SYN, or else the end with the port that does not listen.
    ConnectionRow in "connections" {
        /// Row number.
        connection: ConnectionId,
        /// Client's host.
        client_host: HostId,
        /// Client's address and port.
        client: String,
        /// Server's host.
        server_host: HostId,
        /// Server's address and port.
        server: String,
        /// Client's process.
        client_process: Option<ProcessId>,
        /// How that is known.
        client_evidence: OwnerEvidence,
        /// Server's process.
        server_process: Option<ProcessId>,
        /// How that is known.
        server_evidence: OwnerEvidence,
        /// Application protocol: "rpc", "data-transfer", "shuffle", "http", "" = unknown.
        protocol: String,
        /// First segment seen.
        first_ns: u64,
        /// Last segment seen.
        last_ns: u64,
        /// Whether its SYN was seen: if not, it was open before the capture began.
        syn_seen: bool,
        /// Whether it was seen to end (FIN both ways, or RST).
        end_seen: bool,
        /// Whether both ends are on one host.
        loopback: bool,
        /// Payload from client to server, each byte of the sequence once.
        client_bytes: u64,
        /// Payload from server to client.
        server_bytes: u64,
        /// Bytes of the sequence that were acknowledged but never seen: lost by the capture, client to server.
        client_missing_bytes: u64,
        /// The same, server to client.
        server_missing_bytes: u64,
        /// Payload bytes sent more than once, client to server.
        client_retransmitted_bytes: u64,
        /// The same, server to client.
        server_retransmitted_bytes: u64,
        /// The kernel's bytes_sent - bytes_retrans of the client's socket within the capture; null = not known.
        client_kernel_bytes: Option<u64>,
        /// The same of the server's socket.
        server_kernel_bytes: Option<u64>,
        /// Handshake round trip (SYN to SYN-ACK as the client's host saw it), nanoseconds; null = not seen.
        handshake_ns: Option<u64>,
    }
}

row! {
    /// What held a direction of a connection up, while its sender had bytes that were not acknowledged: as the packets of the sender's
    /// host tell it, and as the sender's kernel counted it. Directions with payload only.
    LimitRow in "limits" {
        /// Connection.
        connection: ConnectionId,
        /// Whether it is the direction from client to server.
        from_client: bool,
        /// Time with bytes sent that were not acknowledged, or a window without room, nanoseconds; null = the sender's host was not captured.
        busy_ns: Option<u64>,
        /// The part of it in which the receiver's window had no room for a full segment; null = windows are not known as well.
        window_limited_ns: Option<u64>,
        /// tcpi_busy_time of the sender's socket over its whole life, which also counts bytes that were not sent yet; null = not
        /// known, or it was open before the capture or after its last scan.
        kernel_busy_ns: Option<u64>,
        /// tcpi_rwnd_limited: had bytes to send and no room in the receiver's window.
        kernel_window_limited_ns: Option<u64>,
        /// tcpi_sndbuf_limited: the program waited for room in the send buffer, and nothing was left to send.
        kernel_buffer_limited_ns: Option<u64>,
    }
}

named! {
    /// What a message is.
    MessageKind {
        /// "hrpc" header and connection context.
        RpcConnect = "rpc-connect",
        /// An RPC call.
        RpcRequest = "rpc-request",
        /// Its response.
        RpcResponse = "rpc-response",
        /// An RPC ping.
        RpcPing = "rpc-ping",
        /// SASL negotiation, or a handshake of TLS.
        Sasl = "sasl",
        /// A request of the data transfer protocol (read, write, ...).
        BlockRequest = "block-request",
        /// Its first answer (BlockOpResponseProto).
        BlockResponse = "block-response",
        /// Packets of block data, of one operation in one direction.
        BlockData = "block-data",
        /// Acknowledgements of a write pipeline, of one operation.
        BlockAck = "block-ack",
        /// A reader's final status.
        BlockStatus = "block-status",
        /// A request to the shuffle port.
        ShuffleRequest = "shuffle-request",
        /// One map's output for one reduce, with its header (the HTTP header counts with the first).
        ShuffleResponse = "shuffle-response",
        /// Another HTTP request.
        HttpRequest = "http-request",
        /// Its response.
        HttpResponse = "http-response",
        /// Bytes that were not understood.
        Unknown = "unknown",
    }
}

row! {
    /// A message: what an application meant as one unit, in one direction of a connection.
    MessageRow in "messages" {
        /// Row number, in order of `sent_ns`.
        message: MessageId,
        /// Its connection.
        connection: ConnectionId,
        /// True from client to server.
        from_client: bool,
        /// What it is.
        kind: MessageKind,
        /// RPC method, data transfer operation or HTTP path without its query; "" = none.
        name: String,
        /// Call id of an RPC; sequence number of an operation or HTTP exchange on its connection else.
        call: i64,
        /// Offset of its first byte in the connection's direction (0 = first payload byte seen or after SYN).
        offset: u64,
        /// Payload bytes on the wire.
        bytes: u64,
        /// Of these, application data: block data without headers and checksums, map output without headers.
        app_bytes: u64,
        /// When its first byte left, as the sender's host saw it.
        sent_ns: u64,
        /// When its last byte left (for the first time).
        sent_end_ns: u64,
        /// When its last byte had arrived, in order, at the receiver's host.
        delivered_ns: u64,
        /// Block id, for the data transfer protocol.
        block: Option<u64>,
        /// Task attempt of the client that it is for (map attempt of a map output: `map`).
        attempt: Option<String>,
        /// Map attempt of a map output.
        map: Option<String>,
        /// Number of the reduce of a map output.
        reduce: Option<u32>,
        /// Hop of a write pipeline: 1 = from the client, 2 = from the first DataNode, ...; null = no pipeline.
        hop: Option<u32>,
        /// Of `app_bytes`, what was delivered but not taken by the application (an aborted read); null = not known.
        unread_bytes: Option<u64>,
        /// How it was delimited: "framing", "counted" (continued from the framing), "jvm" (segments between the stamps
        /// of JVMs), "shared" (the same, and cut inside a segment, where it is likely), "headers".
        evidence: String,
    }
}

row! {
    /// A processing span: when a process worked on a message (RPC calls, block operations, fetches).
    SpanRow in "spans" {
        /// Who worked.
        process: ProcessId,
        /// Thread.
        thread: u64,
        /// "rpc", "call", "block", "block-read", "block-write", "shuffle", "fetch".
        kind: String,
        /// Method or operation.
        name: String,
        /// Connection, if it could be joined.
        connection: Option<ConnectionId>,
        /// The message that it works on (a request), if it could be joined.
        request: Option<MessageId>,
        /// The message that it sends or gets in the end, if it could be joined.
        response: Option<MessageId>,
        /// Received whole.
        received_ns: u64,
        /// Processing begins.
        begin_ns: u64,
        /// Processing ends.
        end_ns: u64,
    }
}
