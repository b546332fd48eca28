//! What the keys of `[traffic]` come to on a fabric.

use serde::{Deserialize, Serialize};

use super::bursts::BurstPlan;
use super::config::{Arrivals, Flows, React, ShareOf, TrafficConfig, TrafficError};
use super::losing::{BlockedHead, FullQueue};
use super::ping_pong::PingPongPlan;
use super::span::Span;
use super::steps::StepPlan;
use super::table::MAX_PS;
use crate::fabric::packet::{LinkTime, ServiceLevel};
use crate::time::SimTime;
use crate::units::{Bytes, Rate};

/// What the keys come to on a fabric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Lengths of messages in bytes, each with the upper end of its share; empty if all have `bytes`.
    pub lengths: Vec<(u64, f64)>,
    /// Messages of each host; as many as there is time for if none.
    pub count: Option<u64>,
    /// Bursts in place of a load.
    pub bursts: Option<BurstPlan>,
    /// How the measurement begins, and its parts.
    pub steps: StepPlan,
    /// Packets that may wait at a host before it hands nothing over any more.
    pub injection_queue: Option<u64>,
    /// What a host does with a message when more wait.
    pub full_queue: FullQueue,
    /// What it does with the first packet that finds no room.
    pub blocked_head: BlockedHead,
    /// The share of the network's buffers above which nobody hands anything over, and how often that is told, in picoseconds.
    pub network_limit: Option<(f64, u64)>,
    /// Messages that answer to deliveries.
    pub react: Option<React>,
    /// Questions and answers in place of a load.
    pub ping_pong: Option<PingPongPlan>,
    /// Whether there is traffic beside, which is not measured.
    pub has_background: bool,
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
            lengths: Vec::new(),
            count: None,
            bursts: None,
            steps: StepPlan::default(),
            injection_queue: None,
            full_queue: FullQueue::Wait,
            blocked_head: BlockedHead::Wait,
            network_limit: None,
            react: None,
            ping_pong: None,
            has_background: false,
            from_ps: 0,
            until_ps: 0,
            end_ps: 0,
        }
    }
}

impl TrafficConfig {
    /// What the keys come to for `hosts` hosts with such links. `last` is when the table's last message is handed over.
    ///
    /// # Errors
    /// When they do not fit each other or the fabric.
    pub fn plan(&self, link: LinkTime, hosts: u32, last: Option<u64>) -> Result<Plan, TrafficError> {
        self.check()?;
        let (bytes, lengths) = self.lengths(&link)?;
        let (packets, wire_bytes) = link.message(bytes);
        let flit_ps = link.flit_ps();
        if flit_ps <= 0.0 && self.interval.is_none() && last.is_none() && !self.is_ping_pong() {
            return Err(TrafficError::key(
                "load",
                "it is a share of what a host's link carries, and that is unlimited: give the link a rate, or \
                 traffic.interval in place of the load"
                    .to_owned(),
            ));
        }
        #[expect(clippy::cast_precision_loss, reason = "sizes of messages are far below 2^53")]
        let flits = match lengths.as_slice() {
            [] => wire_bytes as f64,
            lengths => {
                let mut lower = 0.0;
                let mean = lengths.iter().map(|(bytes, upper)| {
                    let share = upper - std::mem::replace(&mut lower, *upper);
                    share * link.message(*bytes).1 as f64
                });
                mean.sum()
            }
        } / f64::from(link.flit);
        let gap_ps = match self.interval {
            Some(interval) => {
                #[expect(clippy::cast_precision_loss, reason = "a mean")]
                let mean = interval.ps() as f64;
                mean
            }
            None => flits * flit_ps / self.load.unwrap_or(DEFAULT_LOAD),
        };
        if gap_ps < 1.0 && last.is_none() && self.bursts.is_none() && !self.is_ping_pong() {
            let allowed =
                "a host would hand over more than a message in a picosecond: longer ones, or traffic.interval";
            return Err(match (self.size, self.load) {
                (Some(size), _) => TrafficError::value("size", format!("\"{size}\""), allowed),
                (None, load) => TrafficError::value("load", load.unwrap_or(DEFAULT_LOAD), allowed),
            });
        }
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
                    match (self.load, self.interval) {
                        (None, Some(_)) => "1 / interval".to_owned(),
                        (load, _) => format!("{:?}", load.unwrap_or(DEFAULT_LOAD)),
                    },
                    &format!(
                        "arrivals = \"bernoulli\" hand over a message of {flits} flits in each flit time at most, a \
                         load of {flits}"
                    ),
                ));
            }
        }
        let times = self.times(&link, last)?;
        let steps = self.steps(&link, times)?;
        let (from_ps, until_ps, end_ps) = match steps.convergence {
            // Until the network has settled nothing counts.
            Some((interval_ps, _, latest_ps)) => {
                let spans = [interval_ps, steps.measurement_ps, steps.drain_ps];
                let end = spans.into_iter().fold(latest_ps, u64::saturating_add);
                (SimTime::LATEST.0, SimTime::LATEST.0, end)
            }
            None => times,
        };
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
            lengths,
            count: self.count,
            bursts: self.burst_plan(hosts),
            steps,
            injection_queue: self.injection_queue,
            full_queue: self.full_queue.unwrap_or_default(),
            blocked_head: self.blocked_head.unwrap_or_default(),
            network_limit: self.network_limit(&link)?,
            react: self.react,
            ping_pong: self.ping_pong(&link, bytes)?,
            has_background: self.background.is_some(),
            from_ps,
            until_ps,
            end_ps,
        })
    }

    /// Bytes of the longest messages, and, where there are several lengths, each with the upper end of its share of the messages.
    fn lengths(&self, link: &LinkTime) -> Result<(u64, Vec<(u64, f64)>), TrafficError> {
        if self.lengths.is_empty() {
            return Ok((self.message_bytes(link)?, Vec::new()));
        }
        let mut lengths = Vec::new();
        for length in &self.lengths {
            let bytes = match length.size {
                Some(size) => size.get(),
                None => Self { packets: length.packets, lengths: Vec::new(), ..self.clone() }.message_bytes(link)?,
            };
            #[expect(clippy::cast_precision_loss, reason = "numbers of packets are far below 2^53")]
            let packets = link.message(bytes).0 as f64;
            let of_packets = self.share_of == Some(ShareOf::Packets);
            lengths.push((bytes, if of_packets { length.share / packets } else { length.share }));
        }
        let all: f64 = lengths.iter().map(|(_, share)| share).sum();
        let mut upper = 0.0;
        for (_, share) in &mut lengths {
            upper += *share / all;
            *share = upper;
        }
        let longest = lengths.iter().map(|(bytes, _)| *bytes).max().unwrap_or_default();
        Ok((longest, lengths))
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

    /// The limit of what lies in the network, and how often it is looked at, in picoseconds.
    fn network_limit(&self, link: &LinkTime) -> Result<Option<(f64, u64)>, TrafficError> {
        let every = self.network_limit_every.unwrap_or(Span::Cycles(0));
        Ok(match self.network_limit {
            Some(limit) => Some((limit, span_ps("network_limit_every", every, link)?)),
            None => None,
        })
    }

    /// From when, until when packets count, and when the run ends.
    fn times(&self, link: &LinkTime, last: Option<u64>) -> Result<(u64, u64, u64), TrafficError> {
        let ps = |key: &str, span: Span| span_ps(key, span, link);
        if last.is_some_and(|last| last > MAX_PS) {
            let reason = "its last message leaves later than a simulated day".to_owned();
            return Err(TrafficError::key(if self.count.is_some() { "count" } else { "table" }, reason));
        }
        if self.bursts.is_some() || (self.is_ping_pong() && self.count.is_some()) {
            return Ok((0, MAX_PS, MAX_PS));
        }
        // The last message ends what would else be measured for a time.
        let ends_itself = last.is_some() || self.count.is_some();
        let from = match self.warm_up {
            None if ends_itself => 0,
            given => ps("warm_up", given.unwrap_or(Span::Cycles(DEFAULT_WARM_UP)))?,
        };
        let length = match (self.measurement, last) {
            (None, Some(last)) => (last + 1).saturating_sub(from),
            (None, None) if self.batches.is_some() => {
                let batch = ps("batch", self.batch.unwrap_or(Span::Cycles(0)))?;
                let length = batch.saturating_mul(self.batches.unwrap_or(0));
                if length > MAX_PS {
                    let batches = self.batches.unwrap_or(0);
                    return Err(TrafficError::value("batches", batches, "at most a simulated day together"));
                }
                length
            }
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
        let end = match self.drain {
            None if ends_itself => SimTime::LATEST.0,
            given => until + ps("drain", given.unwrap_or(Span::Cycles(DEFAULT_DRAIN)))?,
        };
        Ok((from, until, end))
    }
}

/// `span` in picoseconds.
pub(super) fn span_ps(key: &str, span: Span, link: &LinkTime) -> Result<u64, TrafficError> {
    match span {
        Span::Time(time) if time.ps() <= MAX_PS => Ok(time.ps()),
        Span::Cycles(1..) if link.rate == Rate::UNLIMITED => Err(TrafficError::value(
            key,
            format!("\"{span}\""),
            "a host's link has no rate, so there are no cycles: write a time, like \"20us\"",
        )),
        Span::Cycles(cycles) if link.cycle_ps(cycles) <= MAX_PS => Ok(link.cycle_ps(cycles)),
        _ => Err(TrafficError::value(key, format!("\"{span}\""), "at most a simulated day")),
    }
}

const DEFAULT_LOAD: f64 = 0.1;
const DEFAULT_WARM_UP: u64 = 5_000;
const DEFAULT_MEASUREMENT: u64 = 20_000;
const DEFAULT_DRAIN: u64 = 20_000;
