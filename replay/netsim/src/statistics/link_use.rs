//! What links carried in the measurement.

use std::fmt;

use compact_str::CompactString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::float;
use crate::network::LinkFigures;
use crate::traffic::Raw;

/// A link in the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    /// Its name.
    pub name: CompactString,
    /// Its rate in bits per second; 0 = it has none.
    pub rate_bps: u64,
    /// Bytes that crossed it in the measurement, flits filled up.
    pub bytes: u64,
    /// The share of the measurement in which it sent; null where it has no rate.
    pub utilisation: Option<f64>,
    /// The same of each virtual lane; empty where there is but one.
    pub lanes: Vec<f64>,
    /// Packets that crossed it in the whole run.
    pub packets: u64,
    /// Packets that were lost in front of it in the whole run.
    pub drops: u64,
    /// The longest queue in front of it in the whole run.
    pub queue_max_bytes: u64,
}

/// All links of a network, in its order. There may be millions: what can be computed of one is computed when it is asked for.
#[derive(Clone)]
pub struct LinkUses(Links);

#[derive(Clone)]
enum Links {
    /// Of a run in this process.
    Counted {
        links: Vec<LinkFigures>,
        /// Bytes of each virtual lane of each link in the measurement; empty without one.
        lane_bytes: Vec<u64>,
        lanes: usize,
        measured_ps: u64,
    },
    /// Of a run that was kept in a file.
    Kept(Vec<LinkUse>),
}

impl LinkUses {
    /// Of a run that measured for `measured_ps`.
    pub(super) fn new(raw: Raw, measured_ps: u64) -> Self {
        let Raw { lanes, lane_bytes, mut figures, .. } = raw;
        // What they did over time is not asked for.
        figures.links.iter_mut().for_each(|link| link.intervals = None);
        Self(Links::Counted { links: figures.links, lane_bytes, lanes: lanes as usize, measured_ps })
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.0 {
            Links::Counted { links, .. } => links.len(),
            Links::Kept(links) => links.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The link with a number; `None` if there are not as many.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<LinkUse> {
        match &self.0 {
            Links::Counted { links, lane_bytes, lanes, measured_ps } => {
                let of_lanes = lane_bytes.get(number * lanes..(number + 1) * lanes).unwrap_or_default();
                links.get(number).map(|link| link_use(link, of_lanes, *measured_ps))
            }
            Links::Kept(links) => links.get(number).cloned(),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = LinkUse> {
        (0..self.len()).filter_map(|number| self.get(number))
    }
}

impl fmt::Debug for LinkUses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for LinkUses {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for LinkUses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for LinkUses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Links::Kept(Vec::deserialize(deserializer)?)))
    }
}

fn link_use(link: &LinkFigures, lane_bytes: &[u64], measured_ps: u64) -> LinkUse {
    let share = |bytes: u64| {
        let known = link.rate_bps > 0 && measured_ps > 0;
        known.then(|| float(bytes) * 8e12 / float(link.rate_bps) / float(measured_ps))
    };
    let bytes = lane_bytes.iter().sum();
    let several = if lane_bytes.len() > 1 { lane_bytes } else { &[] };
    LinkUse {
        name: link.name.clone(),
        rate_bps: link.rate_bps,
        bytes,
        utilisation: share(bytes),
        lanes: several.iter().filter_map(|bytes| share(*bytes)).collect(),
        packets: link.packets,
        drops: link.drops,
        queue_max_bytes: link.queue_max_bytes,
    }
}
