//! The head of each file of records.

use trace::socket::SocketRecord;

/// What stands at the head of each file.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub host: String,
    pub interval_ms: u64,
    pub ticks_per_second: u64,
    pub boot_ns: u64,
}

impl Header {
    pub fn at(&self, t: u64) -> SocketRecord {
        SocketRecord::Header {
            t,
            version: 1,
            host: self.host.clone(),
            interval_ms: self.interval_ms,
            ticks_per_second: self.ticks_per_second,
            boot_ns: self.boot_ns,
        }
    }
}
