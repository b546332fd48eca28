//! The kernel's `struct tcp_info` (include/uapi/linux/tcp.h), which older kernels hand over shorter.

use trace::socket::TcpCounters;

/// Offsets in `struct tcp_info`; the structure only ever grows at its end.
mod offset {
    pub const SND_MSS: usize = 16;
    pub const RTT: usize = 68;
    pub const TOTAL_RETRANS: usize = 100;
    pub const BYTES_ACKED: usize = 120;
    pub const BYTES_RECEIVED: usize = 128;
    pub const MIN_RTT: usize = 148;
    pub const BUSY_TIME: usize = 168;
    pub const RWND_LIMITED: usize = 176;
    pub const SNDBUF_LIMITED: usize = 184;
    pub const BYTES_SENT: usize = 200;
    pub const BYTES_RETRANS: usize = 208;
}

/// Length from which on `bytes_sent` and `bytes_retrans` are there (Linux 4.19).
pub const LENGTH_WITH_BYTES_SENT: usize = offset::BYTES_RETRANS + 8;

/// Picks the counters that are recorded; those that the kernel does not have are 0.
#[must_use]
pub fn counters(info: &[u8]) -> TcpCounters {
    TcpCounters {
        bytes_sent: u64_at(info, offset::BYTES_SENT),
        bytes_retrans: u64_at(info, offset::BYTES_RETRANS),
        bytes_acked: u64_at(info, offset::BYTES_ACKED),
        bytes_received: u64_at(info, offset::BYTES_RECEIVED),
        rtt_us: u32_at(info, offset::RTT),
        min_rtt_us: u32_at(info, offset::MIN_RTT),
        total_retrans: u32_at(info, offset::TOTAL_RETRANS),
        snd_mss: u32_at(info, offset::SND_MSS),
        busy_us: u64_at(info, offset::BUSY_TIME),
        rwnd_limited_us: u64_at(info, offset::RWND_LIMITED),
        sndbuf_limited_us: u64_at(info, offset::SNDBUF_LIMITED),
    }
}

fn u64_at(info: &[u8], at: usize) -> u64 {
    info.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn u32_at(info: &[u8], at: usize) -> u32 {
    info.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
