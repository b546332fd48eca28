//! What every reader of a host's files is told.

/// How a host is read.
pub(crate) struct Reading<'a> {
    /// Its number among the hosts.
    pub number: usize,
    /// Memory that its packets may take, bytes.
    pub limit: u64,
    /// Whether every record is kept as it was, for a digest.
    pub keeps_all: bool,
    /// Is told of bytes of its files that were read.
    pub done: &'a (dyn Fn(u64) + Sync),
}
