//! The keys of `[traffic]`, and what they come to on a fabric.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::table::{MAX_PS, TableError};
use crate::fabric::packet::{LinkTime, ServiceLevel};
use crate::time::SimTime;
use crate::units::{Bytes, DurationPs, Rate};

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
    /// To the nearest or second nearest host (`FatTreeSim`).
    NearestNeighbour,
    /// To one host after the other, from the next one on.
    Distribute,
    /// To one host after the other, from a drawn one on.
    RandomDistribute,
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
            Self::NearestNeighbour => "nearest-neighbour",
            Self::Distribute => "distribute",
            Self::RandomDistribute => "random-distribute",
            Self::Table => "table",
        }
    }
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

/// A time, or a number of flit times of the host link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A time.
    Time(DurationPs),
    /// So many flit times.
    Cycles(u64),
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if let Some(number) = trimmed.strip_suffix("cycles").or_else(|| trimmed.strip_suffix("cycle")) {
            return number.trim().replace('_', "").parse().map(Self::Cycles).map_err(|_| {
                format!("\"{text}\" is no number of cycles; write it like \"5000 cycles\", or a time like \"20us\"")
            });
        }
        trimmed.parse().map(Self::Time).map_err(|error: crate::units::UnitError| format!("{error}, or \"5000 cycles\""))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Cycles(cycles) => write!(f, "{cycles} cycles"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, like \"20us\", or a number of flit times, like \"5000 cycles\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Span, E> {
                Err(E::custom(format!("\"{number}\" has no unit; write \"{number} cycles\", or a time like \"20us\"")))
            }
        }
        deserializer.deserialize_any(Text)
    }
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
    /// `nearest-neighbour`: which. Default: `either` (`FatTreeSim`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// `hot-spot`: the hosts that get more. Default: `[0]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spots: Option<Vec<u32>>,
    /// `hot-spot`: the share that goes to them; the rest goes anywhere. Default: 0.1 (ours).
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
    /// How long packets that count may take longer, at most. Default: `20000 cycles` (ours); for `table` without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<Span>,
}

/// What the keys come to on a fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Links and packets.
    pub link: LinkTime,
    /// Hosts that take part.
    pub hosts: u32,
    /// Payload of a message.
    pub bytes: u64,
    /// Packets of a message.
    pub packets: u64,
    /// Bytes that a message takes on a link.
    pub wire_bytes: u64,
    /// Mean time between two messages of a host, in picoseconds.
    pub gap_ps: f64,
    /// How they are spread.
    pub arrivals: Arrivals,
    /// What hashes of flows take for one flow.
    pub flows: Flows,
    /// Service levels, each with the upper end of its share.
    pub levels: Vec<(ServiceLevel, f64)>,
    /// From when on packets count that are handed over, in picoseconds.
    pub from_ps: u64,
    /// Until when.
    pub until_ps: u64,
    /// When the run ends at the latest.
    pub end_ps: u64,
}

impl Plan {
    /// The plan of no traffic at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            link: LinkTime::new(Rate::UNLIMITED, Bytes(1), Bytes(1), Bytes(0)),
            hosts: 0,
            bytes: 0,
            packets: 1,
            wire_bytes: 0,
            gap_ps: 0.0,
            arrivals: Arrivals::Fixed,
            flows: Flows::Pair,
            levels: Vec::new(),
            from_ps: 0,
            until_ps: 0,
            end_ps: 0,
        }
    }
}

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
            Pattern::NearestNeighbour => Arrivals::Fixed,
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
        self.shares().map(|_| ())
    }

    /// Every key belongs to the pattern, and none contradicts another.
    fn check_belonging(&self) -> Result<(), TrafficError> {
        let mine = |key: &str, given: bool, owner: Pattern| {
            if given && self.pattern != owner {
                let (owner, own) = (owner.name(), self.pattern.name());
                return Err(TrafficError::key(
                    key,
                    format!("it belongs to pattern = \"{owner}\", and the pattern is \"{own}\""),
                ));
            }
            Ok(())
        };
        mine("radix", self.radix.is_some(), Pattern::Tornado)?;
        mine("shift", self.shift.is_some(), Pattern::Tornado)?;
        mine("neighbour", self.neighbour.is_some(), Pattern::NearestNeighbour)?;
        mine("spots", self.spots.is_some(), Pattern::HotSpot)?;
        mine("share", self.share.is_some(), Pattern::HotSpot)?;
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
    fn shares(&self) -> Result<Vec<(ServiceLevel, f64)>, TrafficError> {
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

    /// What the keys come to for `hosts` hosts with such links. `last` is when the table's last message is handed over.
    ///
    /// # Errors
    /// When they do not fit each other or the fabric.
    pub fn plan(&self, link: LinkTime, hosts: u32, last: Option<u64>) -> Result<Plan, TrafficError> {
        self.check()?;
        let bytes = self.message_bytes(&link)?;
        let (packets, wire_bytes) = link.message(bytes);
        let flit_ps = link.flit_ps();
        if flit_ps <= 0.0 && self.interval.is_none() && last.is_none() {
            return Err(TrafficError::key(
                "load",
                "it is a share of what a host's link carries, and that is unlimited: give the link a rate, or \
                 traffic.interval in place of the load"
                    .to_owned(),
            ));
        }
        #[expect(clippy::cast_precision_loss, reason = "sizes of messages are far below 2^53")]
        let flits = wire_bytes as f64 / f64::from(link.flit);
        let gap_ps = match self.interval {
            Some(interval) => {
                #[expect(clippy::cast_precision_loss, reason = "a mean")]
                let mean = interval.ps() as f64;
                mean
            }
            None => flits * flit_ps / self.load.unwrap_or(DEFAULT_LOAD),
        };
        let arrivals = self.arrivals();
        if arrivals == Arrivals::Bernoulli && last.is_none() {
            if flit_ps <= 0.0 {
                return Err(TrafficError::value(
                    "arrivals",
                    "\"bernoulli\"",
                    "it draws once in each flit time, and the link's rate is unlimited: \"exponential\" or \"fixed\"",
                ));
            }
            if gap_ps < flit_ps {
                return Err(TrafficError::value(
                    "load",
                    self.load.map_or_else(|| "1 / interval".to_owned(), |load| format!("{load:?}")),
                    &format!(
                        "arrivals = \"bernoulli\" hand over a message of {flits} flits in each flit time at most, a \
                         load of {flits}"
                    ),
                ));
            }
        }
        let (from_ps, until_ps, end_ps) = self.times(&link, last)?;
        Ok(Plan {
            link,
            hosts,
            bytes,
            packets,
            wire_bytes,
            gap_ps,
            arrivals,
            flows: self.flows,
            levels: self.shares()?,
            from_ps,
            until_ps,
            end_ps,
        })
    }

    fn message_bytes(&self, link: &LinkTime) -> Result<u64, TrafficError> {
        let Some(flits) = self.flits else {
            return Ok(self.size.map_or(u64::from(link.mtu), Bytes::get));
        };
        let whole = u64::from(flits) * u64::from(link.flit);
        let payload = whole.checked_sub(u64::from(link.headers)).filter(|payload| *payload <= u64::from(link.mtu));
        let Some(payload) = payload else {
            let flit = u64::from(link.flit.max(1));
            let most = (u64::from(link.mtu) + u64::from(link.headers)) / flit;
            return Err(TrafficError::value(
                "flits",
                flits,
                &format!(
                    "{} to {most}: a packet has fabric.headers = \"{}B\" and a payload of at most fabric.mtu = \"{}B\", \
                     in flits of {flit} bytes",
                    u64::from(link.headers).div_ceil(flit).max(1),
                    link.headers,
                    link.mtu
                ),
            ));
        };
        let packets = self.packets.unwrap_or(1);
        if packets > 1 && payload != u64::from(link.mtu) {
            return Err(TrafficError::value(
                "packets",
                packets,
                &format!(
                    "a message of several packets is cut by fabric.mtu, now \"{}B\": set it to \"{payload}B\" for \
                     packets of {flits} flits",
                    link.mtu
                ),
            ));
        }
        Ok(payload * u64::from(packets))
    }

    /// From when, until when packets count, and when the run ends.
    fn times(&self, link: &LinkTime, last: Option<u64>) -> Result<(u64, u64, u64), TrafficError> {
        let ps = |key: &str, span: Span| match span {
            Span::Time(time) if time.ps() <= MAX_PS => Ok(time.ps()),
            Span::Cycles(_) if link.rate == Rate::UNLIMITED => Err(TrafficError::value(
                key,
                format!("\"{span}\""),
                "a host's link has no rate, so there are no cycles: write a time, like \"20us\"",
            )),
            Span::Cycles(cycles) if link.cycle_ps(cycles) <= MAX_PS => Ok(link.cycle_ps(cycles)),
            _ => Err(TrafficError::value(key, format!("\"{span}\""), "at most a simulated day")),
        };
        if last.is_some_and(|last| last > MAX_PS) {
            let reason = "its last message leaves later than a simulated day".to_owned();
            return Err(TrafficError::key("table", reason));
        }
        let default = |cycles: u64| if last.is_some() { Span::Cycles(0) } else { Span::Cycles(cycles) };
        let or_default = |key: &str, given: Option<Span>, cycles: u64| match (given, last) {
            (None, Some(_)) => Ok(0),
            _ => ps(key, given.unwrap_or_else(|| default(cycles))),
        };
        let from = or_default("warm_up", self.warm_up, DEFAULT_WARM_UP)?;
        let length = match (self.measurement, last) {
            (None, Some(last)) => (last + 1).saturating_sub(from),
            (given, _) => ps("measurement", given.unwrap_or(Span::Cycles(DEFAULT_MEASUREMENT)))?,
        };
        let until = from + length;
        if length == 0 {
            return Err(TrafficError::value(
                "measurement",
                self.measurement.map_or_else(|| "until the last message".to_owned(), |span| format!("\"{span}\"")),
                "longer than 0",
            ));
        }
        let end = match (self.drain, last) {
            (None, Some(_)) => SimTime::LATEST.0,
            (given, _) => until + ps("drain", given.unwrap_or(Span::Cycles(DEFAULT_DRAIN)))?,
        };
        Ok((from, until, end))
    }
}

const DEFAULT_LOAD: f64 = 0.1;
const DEFAULT_WARM_UP: u64 = 5_000;
const DEFAULT_MEASUREMENT: u64 = 20_000;
const DEFAULT_DRAIN: u64 = 20_000;
