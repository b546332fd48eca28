//! RPC, version 9: what a connection begins with, and call ids that are none of calls (`RpcConstants`).

/// Bytes of "hrpc", version, service class and authentication.
pub(super) const PREAMBLE: u64 = 7;
/// Call ids with a meaning of their own (RpcConstants).
pub(super) const CONNECTION_CONTEXT: i64 = -3;
pub(super) const PING: i64 = -4;
pub(super) const SASL: i64 = -33;
