//! What rates and delays of a job file may be.

use netsim::units::{DurationPs, Rate};

use crate::error::JobError;

/// A node's disk or CPU is no slower than a byte a second.
const MIN_RATE_BPS: u64 = 8;
/// No delay of the file is longer: a day.
const MAX_DELAY_PS: u64 = 86_400_000_000_000_000;

pub(crate) fn check_rate(key: &str, rate: Rate) -> Result<(), JobError> {
    match rate.bps() {
        Some(bps) if bps < MIN_RATE_BPS => Err(JobError::value(key, rate, "at least 1B/s")),
        _ => Ok(()),
    }
}

pub(crate) fn check_delay(key: &str, delay: DurationPs) -> Result<(), JobError> {
    if delay.ps() > MAX_DELAY_PS {
        return Err(JobError::value(key, delay, "at most a day"));
    }
    Ok(())
}
