//! The keys of links.

use super::TopologyError;
use crate::units::{Buffer, Bytes, DurationPs, Length, Rate};
use serde::{Deserialize, Serialize};

/// The keys of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkConfig {
    /// Its rate, of frames with their headers. Default: `10Gbps`, the optical links of the LIGHTNESS deliverable.
    pub rate: Rate,
    /// The propagation delay. Default: none; the same key as `length` in other words, so only one of both may be given.
    #[serde(skip_serializing_if = "Option::is_none", alias = "latency")]
    pub delay: Option<DurationPs>,
    /// The length, at 5 ns a metre (the deliverable's cables). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// How much may wait in front of it, the frame on the wire not counted. Default: `170 packets`, the pfifo of the
    /// lab's links, with which TCP loses nothing at 1 Gbit/s there.
    pub buffer: Buffer,
    /// If above 0, the link is no wire but a token bucket (Linux' htb): up to so many bytes pass at once after a pause.
    /// Default: `0B`, a wire. The lab's links have `32KiB`.
    pub burst: Bytes,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: Rate::from_bps(10_000_000_000),
            delay: None,
            length: None,
            buffer: Buffer::Packets(170),
            burst: Bytes(0),
        }
    }
}

/// What a cable is, with its keys checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cable {
    pub(crate) rate: Rate,
    pub(crate) delay_ps: u64,
    pub(crate) buffer: Buffer,
    pub(crate) burst_bytes: u64,
}

impl LinkConfig {
    /// The propagation delay in picoseconds, however it was given.
    ///
    /// # Errors
    /// When both `delay` and `length` are given, or a buffer or burst makes no sense; `key` is the link's key.
    pub fn delay_ps(&self, key: &str) -> Result<u64, TopologyError> {
        if self.burst.get() > 0 && self.rate == Rate::UNLIMITED {
            return Err(TopologyError::BurstWithoutRate { key: key.to_owned(), burst: self.burst });
        }
        match (self.delay, self.length) {
            (Some(delay), Some(length)) => Err(TopologyError::DelayAndLength { key: key.to_owned(), delay, length }),
            (Some(delay), None) => Ok(delay.ps()),
            (None, Some(length)) => Ok(length.light_time().ps()),
            (None, None) => Ok(0),
        }
    }

    /// The cable with these keys; `key` is theirs.
    pub(crate) fn cable(&self, key: &str) -> Result<Cable, TopologyError> {
        let delay_ps = self.delay_ps(key)?;
        Ok(Cable { rate: self.rate, delay_ps, buffer: self.buffer, burst_bytes: self.burst.get() })
    }
}

/// The cables of `levels` levels above the hosts' (of a tree) or dimensions (of a mesh): all as `one`, or each as its
/// entry of `each`, whose key is `key`.
pub(super) fn cables(
    one: (&LinkConfig, &str),
    each: (&[LinkConfig], &str),
    levels: usize,
) -> Result<Vec<Cable>, TopologyError> {
    let (each, key) = each;
    if each.is_empty() {
        return Ok(vec![one.0.cable(one.1)?; levels]);
    }
    if each.len() != levels {
        let what =
            format!("{levels} entries are needed, one for each level or dimension, or none and {} for all", one.1);
        return Err(TopologyError::value(key, format!("[{} entries]", each.len()), what));
    }
    each.iter().enumerate().map(|(index, link)| link.cable(&format!("{key}[{index}]"))).collect()
}
