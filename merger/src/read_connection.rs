//! What is known of connections that were read, until they are put together: the records lie in a file beyond some megabytes.

use std::cmp::Ordering;

use trace::ids::ConnectionId;
use trace::rows::LimitRow;

use crate::join::{Early, Limits};
use crate::kernel::KernelLimits;
use crate::packed_streams::StreamPlace;
use crate::spilled::{Reader, Record, Writer};

/// A connection, read: what is told of it but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    pub connection: ConnectionId,
    /// Its place among the words of messages.
    pub protocol: u32,
    /// Where its messages begin, and where they end.
    pub messages: (u64, u64),
    /// Its payload: from the client, from the server.
    pub streams: (StreamPlace, StreamPlace),
    /// From the client, from the server.
    pub directions: [ReadDirection; 2],
}

/// One direction of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadDirection {
    pub end: u64,
    pub seen: u64,
    pub retransmitted: u64,
    pub early: Early,
    /// What the kernel of its sender counted.
    pub kernel_bytes: Option<u64>,
    /// What held its sender up, by packets.
    pub limits: Option<Limits>,
    /// The last counters of its sender's socket, where they are of its whole life.
    pub kernel_limits: Option<KernelLimits>,
}

impl ReadDirection {
    /// What held it up; `None` where nothing is known, or nothing was sent.
    pub fn limit_row(&self, connection: ConnectionId, from_client: bool) -> Option<LimitRow> {
        let ns = |of: fn(&KernelLimits) -> u64| self.kernel_limits.as_ref().map(|last| of(last).saturating_mul(1_000));
        let is_known = self.limits.is_some() || self.kernel_limits.is_some();
        (is_known && self.seen > 0).then(|| LimitRow {
            connection,
            from_client,
            busy_ns: self.limits.map(|limits| limits.busy_ns),
            window_limited_ns: self.limits.and_then(|limits| limits.window_limited_ns),
            kernel_busy_ns: ns(|last| last.busy_us),
            kernel_window_limited_ns: ns(|last| last.rwnd_limited_us),
            kernel_buffer_limited_ns: ns(|last| last.sndbuf_limited_us),
        })
    }
}

impl Ord for Read {
    fn cmp(&self, other: &Self) -> Ordering {
        self.connection.cmp(&other.connection)
    }
}

impl PartialOrd for Read {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Record for Read {
    const BLANK: Self = Self {
        connection: ConnectionId(0),
        protocol: u32::MAX,
        messages: (0, 0),
        streams: Record::BLANK,
        directions: [ReadDirection::BLANK; 2],
    };
    const BYTES: usize = 2 * 4 + 2 * 8 + 2 * StreamPlace::BYTES + 2 * ReadDirection::BYTES;

    fn write(&self, out: &mut Writer<'_>) {
        (self.connection.0, self.protocol).write(out);
        self.messages.write(out);
        self.streams.write(out);
        self.directions.iter().for_each(|direction| direction.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let (connection, protocol) = Record::read(input);
        let (messages, streams) = (Record::read(input), Record::read(input));
        let directions = std::array::from_fn(|_| ReadDirection::read(input));
        Self { connection: ConnectionId(connection), protocol, messages, streams, directions }
    }
}

const KERNEL_BYTES: u8 = 1;
const LIMITS: u8 = 2;
const WINDOW_LIMITED: u8 = 4;
const KERNEL_LIMITS: u8 = 8;

impl Record for ReadDirection {
    const BLANK: Self = Self {
        end: 0,
        seen: 0,
        retransmitted: 0,
        early: Early { within_uncertainty: 0, beyond_uncertainty: 0, largest_ns: 0 },
        kernel_bytes: None,
        limits: None,
        kernel_limits: None,
    };
    const BYTES: usize = 1 + 12 * 8;

    fn write(&self, out: &mut Writer<'_>) {
        let window_limited_ns = self.limits.and_then(|limits| limits.window_limited_ns);
        let there = [
            (self.kernel_bytes.is_some(), KERNEL_BYTES),
            (self.limits.is_some(), LIMITS),
            (window_limited_ns.is_some(), WINDOW_LIMITED),
            (self.kernel_limits.is_some(), KERNEL_LIMITS),
        ];
        out.bytes([there.iter().filter(|(is, _)| *is).fold(0, |flags, (_, flag)| flags | flag)]);
        let Early { within_uncertainty, beyond_uncertainty, largest_ns } = self.early;
        let kernel = self.kernel_limits;
        let of_kernel = |of: fn(KernelLimits) -> u64| kernel.map_or(0, of);
        let numbers = [
            self.end,
            self.seen,
            self.retransmitted,
            within_uncertainty,
            beyond_uncertainty,
            largest_ns,
            self.kernel_bytes.unwrap_or(0),
            self.limits.map_or(0, |limits| limits.busy_ns),
            window_limited_ns.unwrap_or(0),
            of_kernel(|limits| limits.busy_us),
            of_kernel(|limits| limits.rwnd_limited_us),
            of_kernel(|limits| limits.sndbuf_limited_us),
        ];
        numbers.iter().for_each(|number| number.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let flags = input.u8();
        let is = |flag: u8| flags & flag != 0;
        let [end, seen, retransmitted, within_uncertainty, beyond_uncertainty, largest_ns] =
            std::array::from_fn(|_| input.u64());
        let [kernel_bytes, busy_ns, window_limited_ns, busy_us, rwnd_limited_us, sndbuf_limited_us] =
            std::array::from_fn(|_| input.u64());
        let limits = Limits { busy_ns, window_limited_ns: is(WINDOW_LIMITED).then_some(window_limited_ns) };
        let kernel_limits = KernelLimits { busy_us, rwnd_limited_us, sndbuf_limited_us };
        Self {
            end,
            seen,
            retransmitted,
            early: Early { within_uncertainty, beyond_uncertainty, largest_ns },
            kernel_bytes: is(KERNEL_BYTES).then_some(kernel_bytes),
            limits: is(LIMITS).then_some(limits),
            kernel_limits: is(KERNEL_LIMITS).then_some(kernel_limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spilled::read_back;

    prop_compose! {
        fn direction()(
            numbers in any::<[u64; 6]>(), kernel_bytes in any::<Option<u64>>(),
            limits in any::<Option<(u64, Option<u64>)>>(), kernel in any::<Option<[u64; 3]>>(),
        ) -> ReadDirection {
            let [end, seen, retransmitted, within_uncertainty, beyond_uncertainty, largest_ns] = numbers;
            ReadDirection {
                end, seen, retransmitted,
                early: Early { within_uncertainty, beyond_uncertainty, largest_ns },
                kernel_bytes,
                limits: limits.map(|(busy_ns, window_limited_ns)| Limits { busy_ns, window_limited_ns }),
                kernel_limits: kernel.map(|[busy_us, rwnd_limited_us, sndbuf_limited_us]| KernelLimits {
                    busy_us, rwnd_limited_us, sndbuf_limited_us,
                }),
            }
        }
    }

    proptest! {
        #[test]
        fn connections_are_read_as_they_were_written(
            (connection, protocol, messages) in any::<(u32, u32, (u64, u64))>(), places in any::<[[u64; 4]; 2]>(),
            client in direction(), server in direction(),
        ) {
            let connection = ConnectionId(connection);
            let [of_client, of_server] = places.map(|[at, bytes, first_block, segments]| StreamPlace { at, bytes, first_block, segments });
            let streams = (of_client, of_server);
            let read = Read { connection, protocol, messages, streams, directions: [client, server] };
            prop_assert_eq!(read_back(&read), read);
        }
    }
}
