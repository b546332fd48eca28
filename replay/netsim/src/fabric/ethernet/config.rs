//! The keys of an Ethernet fabric.

use crate::fabric::pipe::PipeConfig;
use crate::fabric::{FabricError, figures};
use crate::routing::RoutingConfig;
use crate::topology::TopologyConfig;
use crate::units::{Buffer, Bytes, DurationPs};
use serde::{Deserialize, Serialize};

/// The keys of an Ethernet fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EthernetConfig {
    /// Hosts, switches and links. Default: racks, with links of 10 Gbit/s.
    pub topology: TopologyConfig,
    /// How flows choose among equal ways. Default: `ecmp`, as switches do.
    pub routing: RoutingConfig,
    /// Decides the hashes of `ecmp`. Default: 1.
    pub seed: u64,
    /// Largest IP packet. Default: `1500B`, Ethernet's.
    pub mtu: Bytes,
    /// IP and TCP headers of a segment. Default: `52B` (20 + 20 + 12 for time stamps, which Linux sends).
    pub headers: Bytes,
    /// What a frame adds to its IP packet. Default: `14B`, what Linux' queueing disciplines count (a frame of 1,514
    /// bytes, an ACK of 66); on a real wire it is 38 B (checksum, preamble and gap).
    pub framing: Bytes,
    /// What a switch needs to forward a frame, beyond receiving it. Default: `0ps`, as bridges in the lab; the
    /// LIGHTNESS deliverable has 200 ns for InfiniBand switches.
    pub switch_delay: DurationPs,
    /// What a host needs from a frame's arrival until TCP has dealt with it. Default: `12us`: half of the
    /// small messages between hosts of the lab took 10 to 22 us one way.
    pub host_delay: DurationPs,
    /// Congestion window of a new connection, in segments. Default: 10 (Linux).
    pub initial_window: u32,
    /// Whether a pause shrinks the window. Default: true (Linux).
    pub slow_start_after_idle: bool,
    /// How many segments of a connection are acknowledged at once before ACKs are delayed. Default: 16 (Linux).
    pub quick_acks: u32,
    /// Receive window of a new connection. Default: `64KiB` (Linux: half of a buffer of 131,072 B).
    pub receive_window: Bytes,
    /// Receive window at most. Default: `3MiB` (Linux: half of a buffer of 6 MB).
    pub receive_window_max: Bytes,
    /// The queue of a host's own network card, in place of its link's `buffer`, which is the switch's. Default:
    /// `1000 packets` (Linux: a device's `txqueuelen`, the limit of `pfifo_fast`).
    pub host_queue: Buffer,
    /// TCP small queues: what a flow may have in its host's queue at most. Default: `1MiB` (Linux).
    pub small_queue_max: Bytes,
    /// Traffic of a host to itself.
    pub loopback: PipeConfig,
    /// Width of the intervals of the traffic over time. Default: `100ms` (ours).
    pub interval: DurationPs,
}

impl Default for EthernetConfig {
    fn default() -> Self {
        Self {
            topology: TopologyConfig::default(),
            routing: RoutingConfig::default(),
            seed: 1,
            mtu: Bytes(1_500),
            headers: Bytes(52),
            framing: Bytes(14),
            switch_delay: DurationPs(0),
            host_delay: DurationPs::from_us(12),
            initial_window: 10,
            slow_start_after_idle: true,
            quick_acks: 16,
            receive_window: Bytes(65_536),
            receive_window_max: Bytes(3 << 20),
            host_queue: Buffer::Packets(1_000),
            small_queue_max: Bytes(1 << 20),
            loopback: PipeConfig::default(),
            interval: figures::DEFAULT_INTERVAL,
        }
    }
}

impl EthernetConfig {
    pub(super) fn check(&self) -> Result<(), FabricError> {
        let wrong = |key, value: String, allowed| Err(FabricError::Value { key, value, allowed });
        if !self.routing.keeps_flows() {
            let allowed = "TCP keeps a flow on one way: ecmp, d-mod-k, s-mod-k, shortest, up-down, dor and { table = FILE } \
                           do that";
            return wrong("routing", self.routing.to_string(), allowed);
        }
        if self.mtu.get() > 65_535 || self.mtu.get() <= self.headers.get() {
            return wrong("mtu", self.mtu.to_string(), "more than headers, at most 65535B");
        }
        if self.framing.get() > 1_000 {
            return wrong("framing", self.framing.to_string(), "at most 1000B");
        }
        if self.initial_window == 0 {
            return wrong("initial_window", "0".to_owned(), "at least 1 segment");
        }
        if self.receive_window.get() < self.mtu.get() {
            return wrong("receive_window", self.receive_window.to_string(), "at least mtu");
        }
        if self.receive_window_max < self.receive_window {
            return wrong("receive_window_max", self.receive_window_max.to_string(), "at least receive_window");
        }
        Ok(())
    }

    /// Bytes on the wire of a segment with `len` bytes of data.
    pub(super) fn wire_bytes(&self, len: u64) -> u32 {
        u32::try_from(len + self.headers.get() + self.framing.get()).unwrap_or(u32::MAX)
    }

    /// Data of the largest segment.
    pub(super) const fn segment_bytes(&self) -> u64 {
        self.mtu.get() - self.headers.get()
    }
}
