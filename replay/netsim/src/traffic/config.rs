//! The keys of `[traffic]`, and what they come to on a fabric.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::logged::HopLogKeys;
use super::losing::{BlockedHead, FullQueue};
use super::ping_pong::{Noise, Partner};
use super::span::Span;
use super::steps::Convergence;
use super::table::TableError;
use crate::fabric::packet::ServiceLevel;
use crate::units::{Bytes, DurationPs};

/// Traffic that cannot be made.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// A value that makes no sense.
    #[error("traffic.{key} = {value}: {allowed}")]
    Value {
        /// The key, below `traffic`.
        key: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A key that the pattern does not know, or that contradicts another one.
    #[error("traffic.{key}: {reason}")]
    Key {
        /// The key, below `traffic`.
        key: String,
        /// Why it cannot stand there.
        reason: String,
    },
    /// The table of messages.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl TrafficError {
    pub(super) fn value(key: &str, value: impl fmt::Display, allowed: &str) -> Self {
        Self::Value { key: key.to_owned(), value: value.to_string(), allowed: allowed.to_owned() }
    }

    pub(super) fn key(key: &str, reason: String) -> Self {
        Self::Key { key: key.to_owned(), reason }
    }
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// To any host, drawn anew for each message.
    #[default]
    Uniform,
    /// The same with exponential gaps (`FatTreeSim`).
    RandomDestination,
    /// To the host whose number has every bit turned over.
    BitComplement,
    /// To the host whose number has the bits in reverse order.
    BitReversal,
    /// To the host whose number has its halves swapped.
    Transpose,
    /// To the host whose number is turned left by a bit.
    Shuffle,
    /// To the host whose number has its first and last bit swapped.
    Butterfly,
    /// Half-way around the ring of the first dimension.
    Tornado,
    /// A share goes to some hosts.
    HotSpot,
    /// A share goes to the first hosts.
    HotRegion,
    /// Mostly to hosts nearby, on a torus.
    Local,
    /// To hosts at distances that a file weighs, on a torus.
    Histogram,
    /// To hosts at distances of which a file holds a sample, on a torus.
    Population,
    /// To the nearest or second nearest host (`FatTreeSim`).
    NearestNeighbour,
    /// To one host after the other, from the next one on.
    Distribute,
    /// To one host after the other, from a drawn one on.
    RandomDistribute,
    /// To a partner that answers, and again when the answer has come (`FatTreeSim`).
    PingPong,
    /// Messages from a file.
    Table,
}

impl Pattern {
    /// As configurations and summaries call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::RandomDestination => "random-destination",
            Self::BitComplement => "bit-complement",
            Self::BitReversal => "bit-reversal",
            Self::Transpose => "transpose",
            Self::Shuffle => "shuffle",
            Self::Butterfly => "butterfly",
            Self::Tornado => "tornado",
            Self::HotSpot => "hot-spot",
            Self::HotRegion => "hot-region",
            Self::Local => "local",
            Self::Histogram => "histogram",
            Self::Population => "population",
            Self::NearestNeighbour => "nearest-neighbour",
            Self::Distribute => "distribute",
            Self::RandomDistribute => "random-distribute",
            Self::PingPong => "ping-pong",
            Self::Table => "table",
        }
    }
}

/// What `tornado` goes around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wrap {
    /// The rings of its dimensions.
    #[default]
    Ring,
    /// All hosts, by their numbers: INSEE's program, which spills into the next row.
    All,
}

/// A length of messages, and how many have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Length {
    /// Packets of a message, each of `traffic.flits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Payload of a message, in place of `packets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// The share of the messages (or packets, see `traffic.share_of`) that have it.
    pub share: f64,
}

/// Messages that answer to deliveries: `{ probability = 0.2, messages = [1, 3] }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct React {
    /// How likely a message that arrives makes its host hand over more.
    pub probability: f64,
    /// How many, from and to, each as likely.
    pub messages: [u32; 2],
}

impl React {
    /// How many messages one brings about directly, as a mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.probability * (f64::from(self.messages[0]) + f64::from(self.messages[1])) / 2.0
    }
}

/// What the shares of `lengths` are shares of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareOf {
    /// The messages.
    #[default]
    Messages,
    /// The packets (INSEE's).
    Packets,
}

/// When a host's messages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// In each flit time with the same probability.
    Bernoulli,
    /// After gaps with an exponential distribution: a Poisson stream.
    Exponential,
    /// After equal gaps; each host begins at a drawn time within the first.
    Fixed,
}

/// Which neighbour gets the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// The other one of the pair.
    Nearest,
    /// The same one of the next pair.
    SecondNearest,
    /// One of both, drawn anew for each message.
    #[default]
    Either,
}

/// What hashes of flows take for one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flows {
    /// All messages from one host to another.
    #[default]
    Pair,
    /// Each message.
    Message,
}

/// The keys of `[traffic]`; what they mean exactly is in `docs/traffic.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficConfig {
    /// Who sends to whom. Default: `uniform`.
    pub pattern: Pattern,
    /// Hosts that take part. Default: those of the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// Racks over which `hosts` are spread evenly, for topologies that ask where hosts stand. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub racks: Option<u32>,
    /// Whether a host may send to itself, over its link and back. Default: false; permutations leave hosts silent that
    /// would send to themselves.
    pub self_traffic: bool,
    /// `tornado`: hosts of a ring of the first dimension. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radix: Option<u32>,
    /// `tornado`: how far around. Default: radix / 2 (INSEE's; Dally and Towles take (radix + 1) / 2 - 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<u32>,
    /// `tornado`, `local`, `histogram`, `population`: hosts in each dimension. Default: one dimension with all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<Vec<u32>>,
    /// `tornado` with `sides`: the dimensions along which it goes. Default: `[0]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<Vec<u32>>,
    /// `tornado`: what is gone around. Default: `ring`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrap: Option<Wrap>,
    /// `hot-region`: the share of the hosts, from the first on, that get more. Default: 0.125 (INSEE's).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<f64>,
    /// `histogram`, `population`: the file, relative to the experiment's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distances: Option<PathBuf>,
    /// `nearest-neighbour`: which. Default: `either` (`FatTreeSim`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// `hot-spot`: the hosts that get more. Default: `[0]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Vec<u32>>,
    /// `hot-spot`, `hot-region`: the share that goes to them; the rest goes anywhere. Default: 0.1 (ours); of `hot-region` 0.25 (INSEE's).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// `table`: the file, relative to the experiment's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<PathBuf>,
    /// When messages are handed over. Default: `bernoulli`; `exponential` for `random-destination` and `fixed` for
    /// `nearest-neighbour` (`FatTreeSim`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Flits that a host hands over in a flit time of its link, as a mean. Default: 0.1 (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The mean time between two messages of a host, in place of `load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<DurationPs>,
    /// Payload of a message. Default: a packet's most (`fabric.mtu`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Flits of each packet, headers included, in place of `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flits: Option<u32>,
    /// Packets of a message, with `flits`. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// Several lengths of messages with their shares, in place of `size` and `packets`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<Length>,
    /// What the shares of `lengths` are shares of. Default: `messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of: Option<ShareOf>,
    /// Messages of each host, in place of `measurement` and `drain`: the run ends when they have arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Packets that may wait at a host: one that has more hands nothing over. Default: without limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection_queue: Option<u64>,
    /// What a host does with a message when more wait. Default: `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_queue: Option<FullQueue>,
    /// What a host does with its first packet where that finds no room. Default: `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_head: Option<BlockedHead>,
    /// `ping-pong`: whom hosts ask. Default: `nearest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partner: Option<Partner>,
    /// `ping-pong`: payload of an answer. Default: that of a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<Bytes>,
    /// `ping-pong`: from a question's arrival to the hand-over of its answer. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turnaround: Option<Span>,
    /// `ping-pong`: questions of a host that are out at a time. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// `ping-pong`: what hosts take longer before they hand a message over. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Traffic beside, which is not measured: its pattern, load and lengths. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<Self>>,
    /// Whether it is counted how far apart the hosts of packets are as these are handed over. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offered_hops: bool,
    /// Whether it is counted how many packets lie in queues. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub occupancy: bool,
    /// Packets whose ways are logged. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<HopLogKeys>,
    /// Messages that answer to deliveries, beside those of `load`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub react: Option<React>,
    /// The share of the buffers between switches above which no host hands anything over (`credit` only). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_limit: Option<f64>,
    /// How often hosts are told what lies in the network. Default: always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_limit_every: Option<Span>,
    /// Bursts of messages, each handed over at once when the one before has arrived, in place of a load and of times. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursts: Option<u64>,
    /// `bursts`: messages of each host in a burst. Default: as many as there are hosts (INSEE's).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// What hashes of flows take for one flow. Default: `pair`.
    pub flows: Flows,
    /// Service levels, 0 to 15, each with its share of the messages. Default: all of level 0.
    pub levels: BTreeMap<String, f64>,
    /// From the start until packets count. Default: `5000 cycles` (ours); for `table` none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Span>,
    /// How long packets count that are handed over. Default: `20000 cycles` (ours); for `table` until the last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Span>,
    /// The measurement begins when the network has settled behind the warm-up. Default: it begins at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
    /// Batches of the measurement, in place of `measurement`; each has figures of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// How long each is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Span>,
    /// Counts what happens in intervals of this length through the whole run. Default: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evolution: Option<Span>,
    /// How long packets that count may take longer, at most. Default: `20000 cycles` (ours); for `table` without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<Span>,
}

/// Messages that one brings about at most.
const MAX_REACTIONS: u32 = 1 << 20;
/// Loads above this only make queues longer.
const MAX_LOAD: f64 = 64.0;
/// Hosts are numbered with 24 bits, as the kernel's places.
const MAX_HOSTS: u32 = 1 << 24;

impl TrafficConfig {
    /// How messages are spread over time.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.unwrap_or(match self.pattern {
            Pattern::RandomDestination => Arrivals::Exponential,
            Pattern::NearestNeighbour | Pattern::PingPong => Arrivals::Fixed,
            _ => Arrivals::Bernoulli,
        })
    }

    /// Checks what can be checked without the fabric.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn check(&self) -> Result<(), TrafficError> {
        self.check_belonging()?;
        self.check_numbers()?;
        self.check_log()?;
        self.shares().map(|_| ())
    }

    /// Every key belongs to the pattern, and none contradicts another.
    fn check_belonging(&self) -> Result<(), TrafficError> {
        let one_of = |key: &str, given: bool, owners: &[Pattern]| {
            if given && !owners.contains(&self.pattern) {
                let owners: Vec<String> = owners.iter().map(|owner| format!("\"{}\"", owner.name())).collect();
                let (owners, own) = (owners.join(" or "), self.pattern.name());
                return Err(TrafficError::key(
                    key,
                    format!("it belongs to pattern = {owners}, and the pattern is \"{own}\""),
                ));
            }
            Ok(())
        };
        let mine = |key: &str, given: bool, owner: Pattern| one_of(key, given, &[owner]);
        mine("radix", self.radix.is_some(), Pattern::Tornado)?;
        mine("shift", self.shift.is_some(), Pattern::Tornado)?;
        mine("neighbour", self.neighbour.is_some(), Pattern::NearestNeighbour)?;
        mine("spots", self.spots.is_some(), Pattern::HotSpot)?;
        one_of("share", self.share.is_some(), &[Pattern::HotSpot, Pattern::HotRegion])?;
        mine("region", self.region.is_some(), Pattern::HotRegion)?;
        let by_distance = [Pattern::Histogram, Pattern::Population];
        one_of("distances", self.distances.is_some(), &by_distance)?;
        one_of(
            "sides",
            self.sides.is_some(),
            &[Pattern::Tornado, Pattern::Local, Pattern::Histogram, Pattern::Population],
        )?;
        mine("dimensions", self.dimensions.is_some(), Pattern::Tornado)?;
        mine("wrap", self.wrap.is_some(), Pattern::Tornado)?;
        if by_distance.contains(&self.pattern) && self.distances.is_none() {
            let pattern = self.pattern.name();
            return Err(TrafficError::key("distances", format!("pattern = \"{pattern}\" needs the file's path here")));
        }
        self.check_tornado()?;
        self.check_lengths()?;
        self.check_count()?;
        self.check_bursts()?;
        self.check_steps()?;
        for (key, given) in [
            ("partner", self.partner.is_some()),
            ("reply", self.reply.is_some()),
            ("turnaround", self.turnaround.is_some()),
            ("window", self.window.is_some()),
            ("noise", self.noise.is_some()),
        ] {
            mine(key, given, Pattern::PingPong)?;
        }
        self.check_ping_pong()?;
        if self.full_queue.is_some() && self.injection_queue.is_none() {
            let reason = "it says what a host does whose traffic.injection_queue is full, which is not given";
            return Err(TrafficError::key("full_queue", reason.to_owned()));
        }
        self.check_background()?;
        mine("table", self.table.is_some(), Pattern::Table)?;
        if self.pattern == Pattern::Table {
            if self.table.is_none() {
                return Err(TrafficError::key("table", "pattern = \"table\" needs the file's path here".to_owned()));
            }
            let says = "the table says itself";
            for (key, given, what) in [
                ("load", self.load.is_some(), "when messages are handed over"),
                ("interval", self.interval.is_some(), "when messages are handed over"),
                ("arrivals", self.arrivals.is_some(), "when messages are handed over"),
                ("size", self.size.is_some(), "how long they are"),
                ("flits", self.flits.is_some(), "how long they are"),
                ("lengths", !self.lengths.is_empty(), "how long they are"),
                ("count", self.count.is_some(), "how many there are"),
                ("injection_queue", self.injection_queue.is_some(), "when messages are handed over"),
                ("full_queue", self.full_queue.is_some(), "when messages are handed over"),
                ("network_limit", self.network_limit.is_some(), "when messages are handed over"),
                ("react", self.react.is_some(), "when messages are handed over"),
                ("levels", !self.levels.is_empty(), "which service level they have"),
                ("self_traffic", self.self_traffic, "where they go"),
            ] {
                if given {
                    return Err(TrafficError::key(key, format!("{says} {what}; leave this out")));
                }
            }
        }
        if self.load.is_some() && self.interval.is_some() {
            return Err(TrafficError::key("interval", "it says the same as traffic.load; give one of them".to_owned()));
        }
        if self.size.is_some() && self.flits.is_some() {
            return Err(TrafficError::key("flits", "it says the same as traffic.size; give one of them".to_owned()));
        }
        if self.packets.is_some() && self.flits.is_none() {
            return Err(TrafficError::key(
                "packets",
                "it needs traffic.flits, the flits of each; a message of traffic.size is cut by fabric.mtu".to_owned(),
            ));
        }
        if self.racks.is_some() && self.hosts.is_none() {
            return Err(TrafficError::key("racks", "it spreads traffic.hosts, which is not given".to_owned()));
        }
        if self.pattern == Pattern::NearestNeighbour && self.self_traffic {
            return Err(TrafficError::key("self_traffic", "no host is its own neighbour; leave this out".to_owned()));
        }
        Ok(())
    }

    fn check_tornado(&self) -> Result<(), TrafficError> {
        if self.radix.is_some() && self.sides.is_some() {
            return Err(TrafficError::key("radix", "it is the first of traffic.sides; give one of both".to_owned()));
        }
        if self.dimensions.is_some() && self.sides.is_none() {
            return Err(TrafficError::key(
                "dimensions",
                "they are those of traffic.sides, which is not given".to_owned(),
            ));
        }
        if self.wrap == Some(Wrap::All) && self.dimensions.is_some() {
            return Err(TrafficError::key(
                "dimensions",
                "with wrap = \"all\" hosts are gone through by number".to_owned(),
            ));
        }
        let no_self = [Pattern::Local, Pattern::Histogram, Pattern::Population];
        if self.self_traffic && no_self.contains(&self.pattern) {
            let reason = format!("\"{}\" sends to other hosts only; leave this out", self.pattern.name());
            return Err(TrafficError::key("self_traffic", reason));
        }
        Ok(())
    }

    fn check_lengths(&self) -> Result<(), TrafficError> {
        if self.lengths.is_empty() {
            return match self.share_of {
                Some(_) => Err(TrafficError::key("share_of", "it belongs to traffic.lengths".to_owned())),
                None => Ok(()),
            };
        }
        for (key, given) in [("size", self.size.is_some()), ("packets", self.packets.is_some())] {
            if given {
                return Err(TrafficError::key(
                    key,
                    "traffic.lengths says how long messages are; leave this out".to_owned(),
                ));
            }
        }
        for length in &self.lengths {
            let given = toml::to_string(length).unwrap_or_default().trim().replace('\n', ", ");
            let wrong = |allowed: &str| Err(TrafficError::value("lengths", format!("{{ {given} }}"), allowed));
            if !(length.share >= 0.0 && length.share <= 1.0) {
                return wrong("shares from 0.0 to 1.0");
            }
            match (length.packets, length.size) {
                (Some(packets), None) if (1..=1 << 20).contains(&packets) => {
                    if self.flits.is_none() {
                        return wrong("packets beside traffic.flits, the flits of each; or size = \"1KiB\"");
                    }
                }
                (None, Some(size)) if size.get() <= 1 << 40 => {
                    if self.flits.is_some() {
                        return wrong("packets of traffic.flits, or sizes without traffic.flits");
                    }
                }
                _ => return wrong("packets (1 to 1048576) or size (at most 1 TiB), one of both"),
            }
        }
        let all: f64 = self.lengths.iter().map(|length| length.share).sum();
        if (all - 1.0).abs() > 1e-9 {
            let shares: Vec<String> = self.lengths.iter().map(|length| format!("{:?}", length.share)).collect();
            return Err(TrafficError::value("lengths", shares.join(" + "), "the shares must add up to 1.0"));
        }
        Ok(())
    }

    fn check_count(&self) -> Result<(), TrafficError> {
        let Some(count) = self.count else { return Ok(()) };
        if count == 0 || count > 1 << 32 {
            return Err(TrafficError::value("count", count, "1 to 4294967296 messages of each host"));
        }
        for (key, given) in [
            ("measurement", self.measurement.is_some()),
            ("drain", self.drain.is_some()),
            ("injection_queue", self.injection_queue.is_some()),
            ("network_limit", self.network_limit.is_some()),
            ("react", self.react.is_some()),
        ] {
            if given {
                let reason = "with traffic.count the run ends when all messages have arrived; leave this out";
                return Err(TrafficError::key(key, reason.to_owned()));
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), TrafficError> {
        let value = |key: &str, value: String, allowed: &str| TrafficError::value(key, value, allowed);
        if let Some(load) = self.load
            && !(load > 0.0 && load <= MAX_LOAD)
        {
            return Err(value(
                "load",
                format!("{load:?}"),
                &format!(
                    "above 0 and at most {MAX_LOAD:?} flits per node and flit time (1.0 = all that a host's link carries)"
                ),
            ));
        }
        if let Some(share) = self.share
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(value("share", format!("{share:?}"), "above 0 and at most 1.0 (of the messages)"));
        }
        if let Some(limit) = self.network_limit
            && !(limit > 0.0 && limit <= 1.0)
        {
            return Err(value(
                "network_limit",
                format!("{limit:?}"),
                "above 0 and at most 1.0 (of the network's buffers)",
            ));
        }
        if let Some(react @ React { probability, messages: [least, most] }) = self.react {
            if !(0.0..=1.0).contains(&probability) {
                return Err(value("react.probability", format!("{probability:?}"), "from 0.0 to 1.0"));
            }
            if least == 0 || most < least || most > MAX_REACTIONS {
                let allowed = format!("[least, most]: 1 to {MAX_REACTIONS}, the least first");
                return Err(value("react.messages", format!("[{least}, {most}]"), &allowed));
            }
            if react.mean() >= 1.0 {
                let given = format!("{:?} messages for each that arrives", react.mean());
                return Err(value("react", given, "less than 1 as a mean, or they never become fewer"));
            }
        }
        if self.network_limit_every.is_some() && self.network_limit.is_none() {
            return Err(TrafficError::key(
                "network_limit_every",
                "it belongs to traffic.network_limit, which is not given".to_owned(),
            ));
        }
        if let Some(region) = self.region
            && !(region > 0.0 && region <= 1.0)
        {
            return Err(value("region", format!("{region:?}"), "above 0 and at most 1.0 (of the hosts)"));
        }
        if let Some(interval) = self.interval
            && interval.ps() == 0
        {
            return Err(value(
                "interval",
                format!("\"{interval}\""),
                "above 0; the mean time between two messages of a host",
            ));
        }
        for (key, number, most) in [
            ("hosts", self.hosts, MAX_HOSTS),
            ("racks", self.racks, MAX_HOSTS),
            ("flits", self.flits, 1 << 20),
            ("packets", self.packets, 1 << 20),
        ] {
            if let Some(number) = number
                && (number == 0 || number > most)
            {
                return Err(value(key, number.to_string(), &format!("1 to {most}")));
            }
        }
        if let (Some(hosts), Some(racks)) = (self.hosts, self.racks)
            && !hosts.is_multiple_of(racks)
        {
            return Err(value(
                "racks",
                racks.to_string(),
                &format!("traffic.hosts = {hosts} must be a multiple of it"),
            ));
        }
        if let Some(size) = self.size
            && size.get() > 1 << 40
        {
            return Err(value("size", format!("\"{size}\""), "at most 1 TiB"));
        }
        if matches!(self.measurement, Some(Span::Time(DurationPs(0)) | Span::Cycles(0))) {
            return Err(value("measurement", "0".to_owned(), "longer than 0"));
        }
        Ok(())
    }

    /// The service levels, each with the upper end of its share of [0, 1).
    pub(super) fn shares(&self) -> Result<Vec<(ServiceLevel, f64)>, TrafficError> {
        if self.levels.is_empty() {
            return Ok(vec![(ServiceLevel(0), 1.0)]);
        }
        let mut levels = Vec::new();
        let mut upper = 0.0;
        for (level, share) in &self.levels {
            let key = format!("levels.{level}");
            let Some(number) = level.parse::<u8>().ok().filter(|number| *number <= 15) else {
                return Err(TrafficError::key(&key, "service levels are 0 to 15".to_owned()));
            };
            if !(*share >= 0.0 && *share <= 1.0) {
                return Err(TrafficError::value(&key, format!("{share:?}"), "a share of the messages, 0.0 to 1.0"));
            }
            upper += share;
            levels.push((ServiceLevel(number), upper));
        }
        if (upper - 1.0).abs() > 1e-9 {
            let shares = self.levels.values().map(|share| format!("{share:?}")).collect::<Vec<_>>().join(" + ");
            return Err(TrafficError::value("levels", shares, "the shares must add up to 1.0"));
        }
        Ok(levels)
    }
}
