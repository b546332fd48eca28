//! Transfer times of messages, and how far they are from the recorded ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trace::ids::{HostId, MessageId};
use trace::rows::EventKind;

use super::seconds::seconds;
use super::summary::{TransferClass, TransferError, TransferQuantile};
use causal::{JobGraph, JobTime, Outcome};

/// A message is large from here on: its transfer is then ruled by rates and not by round trips.
const LARGE_BYTES: u64 = 64 * 1024;

/// When a message left and arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageTimes {
    /// Its row in the trace.
    pub message: MessageId,
    /// What it is.
    pub kind: &'static str,
    /// RPC method or the like; messages of one name share it.
    pub name: Arc<str>,
    /// From this host, a place among those of the detail.
    pub from: HostId,
    /// To this one.
    pub to: HostId,
    /// Payload bytes that were sent during the job.
    pub bytes: u64,
    /// Sends of which it consists.
    pub sends: u32,
    /// First byte sent and last byte delivered in the replay; `None` if not all of it arrived before the job's end.
    pub simulated: Option<(JobTime, JobTime)>,
    /// The same in the recording.
    pub recorded: (JobTime, JobTime),
}

impl MessageTimes {
    /// Relative error of its transfer time; `None` where there is nothing to compare.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        let recorded_s = self.recorded_s();
        let simulated_s = self.simulated_s()?;
        (recorded_s > 0.0).then(|| simulated_s / recorded_s - 1.0)
    }

    /// Its simulated transfer time in seconds.
    #[must_use]
    pub fn simulated_s(&self) -> Option<f64> {
        self.simulated.map(|(sent, delivered)| seconds(delivered.since_ps(sent)))
    }

    /// Its recorded transfer time in seconds.
    #[must_use]
    pub fn recorded_s(&self) -> f64 {
        seconds(self.recorded.1.since_ps(self.recorded.0))
    }

    fn is_local(&self) -> bool {
        self.from == self.to
    }
}

/// Errors of one kind of message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindTransfers {
    /// Kind of message.
    pub kind: String,
    /// Messages that count.
    pub messages: u64,
    /// Their payload.
    pub bytes: u64,
    /// Median of the recorded transfer times, seconds.
    pub recorded_median_s: f64,
    /// Median of the simulated ones.
    pub simulated_median_s: f64,
    /// Median of the signed error.
    pub median: f64,
    /// 95th percentile of its absolute value.
    pub p95: f64,
}

/// Times of the messages that were sent during the job, in their order.
pub(super) fn of_messages(graph: &JobGraph, outcome: &Outcome) -> Vec<MessageTimes> {
    const NONE: u32 = u32::MAX;
    let rows = &graph.trace.messages;
    let mut places = vec![NONE; rows.len()];
    let mut names: HashMap<&str, Arc<str>> = HashMap::new();
    let mut messages: Vec<MessageTimes> = Vec::new();
    for event in graph.during().filter(|event| event.kind == EventKind::Send) {
        let (Some(message), Some((from, to))) = (event.message, graph.ends(event)) else { continue };
        let result = outcome.event(event.event);
        let simulated = result.happened().zip(result.delivered());
        let recorded = (graph.job_time(event.recorded_ns), graph.job_time(event.recorded_delivered_ns));
        if places[message.index()] == NONE {
            places[message.index()] = u32::try_from(messages.len()).unwrap_or(NONE);
            let row = &rows[message.index()];
            let name = names.entry(&row.name).or_insert_with(|| row.name.as_str().into());
            messages.push(MessageTimes {
                message,
                kind: row.kind.as_str(),
                name: name.clone(),
                from,
                to,
                bytes: 0,
                sends: 0,
                simulated,
                recorded,
            });
        }
        let times = &mut messages[places[message.index()] as usize];
        times.bytes = times.bytes.saturating_add(event.bytes);
        times.sends += 1;
        let widest = |a: (JobTime, JobTime), b: (JobTime, JobTime)| (a.0.min(b.0), a.1.max(b.1));
        times.simulated = times.simulated.zip(simulated).map(|(a, b)| widest(a, b));
        times.recorded = widest(times.recorded, recorded);
    }
    messages.sort_unstable_by_key(|times| times.message);
    messages
}

/// The class of the messages of `LARGE_BYTES` and more.
const LARGE_CLASS: &str = "between hosts, 64 KiB and more";

impl TransferError {
    /// Median of the signed error of messages between hosts of 64 KiB and more: small ones, which are most, show latencies only.
    pub(crate) fn median_of_large(&self) -> Option<f64> {
        self.classes.iter().find(|class| class.class == LARGE_CLASS)?.median
    }
}

/// Errors over all messages, and by class.
pub(super) fn errors(messages: &[MessageTimes]) -> TransferError {
    type Belongs = fn(&MessageTimes) -> bool;
    let classes: [(&str, Belongs); 3] = [
        ("between hosts", |message| !message.is_local()),
        (LARGE_CLASS, |message| !message.is_local() && message.bytes >= LARGE_BYTES),
        ("within a host", MessageTimes::is_local),
    ];
    let all: Vec<f64> = messages.iter().filter_map(MessageTimes::error).collect();
    let differences: Vec<f64> = messages
        .iter()
        .filter(|message| message.error().is_some())
        .filter_map(|message| Some(message.simulated_s()? - message.recorded_s()))
        .collect();
    TransferError {
        messages: all.len() as u64,
        median: quantile(all.clone(), 0.5),
        p95: quantile(absolute(&all), 0.95),
        median_s: quantile(differences.clone(), 0.5),
        p95_s: quantile(absolute(&differences), 0.95),
        classes: classes
            .into_iter()
            .map(|(class, belongs)| {
                let errors: Vec<f64> =
                    messages.iter().filter(|message| belongs(message)).filter_map(MessageTimes::error).collect();
                TransferClass {
                    class: class.to_owned(),
                    messages: errors.len() as u64,
                    median: quantile(errors.clone(), 0.5),
                    p95: quantile(absolute(&errors), 0.95),
                }
            })
            .collect(),
        quantiles: quantiles(messages),
    }
}

/// The distribution of the transfer times between hosts, recorded and simulated.
fn quantiles(messages: &[MessageTimes]) -> Vec<TransferQuantile> {
    let times: Vec<(f64, f64)> = messages
        .iter()
        .filter(|message| !message.is_local())
        .filter_map(|message| Some((message.recorded_s(), message.simulated_s()?)))
        .collect();
    let (recorded, simulated): (Vec<f64>, Vec<f64>) = times.into_iter().unzip();
    [0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
        .into_iter()
        .filter_map(|share| {
            let (recorded_s, simulated_s) =
                quantile(recorded.clone(), share).zip(quantile(simulated.clone(), share))?;
            Some(TransferQuantile { quantile: share, recorded_s, simulated_s })
        })
        .collect()
}

/// Errors by kind of message, those with most bytes first.
pub(super) fn by_kind(messages: &[MessageTimes]) -> Vec<KindTransfers> {
    let mut kinds: BTreeMap<&str, Vec<&MessageTimes>> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.error().is_some()) {
        kinds.entry(message.kind).or_default().push(message);
    }
    let mut kinds: Vec<KindTransfers> = kinds
        .into_iter()
        .map(|(kind, messages)| {
            let errors: Vec<f64> = messages.iter().filter_map(|message| message.error()).collect();
            let middle = |values: Vec<f64>| quantile(values, 0.5).unwrap_or(0.0);
            KindTransfers {
                kind: kind.to_owned(),
                messages: messages.len() as u64,
                bytes: messages.iter().fold(0, |sum, message| sum.saturating_add(message.bytes)),
                recorded_median_s: middle(messages.iter().map(|message| message.recorded_s()).collect()),
                simulated_median_s: middle(messages.iter().filter_map(|message| message.simulated_s()).collect()),
                median: middle(errors.clone()),
                p95: quantile(absolute(&errors), 0.95).unwrap_or(0.0),
            }
        })
        .collect();
    kinds.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.kind.cmp(&b.kind)));
    kinds
}

fn absolute(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.abs()).collect()
}

/// The value below which this share of the values lies (nearest rank); `None` of nothing.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index within the values"
)]
fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
    values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::quantile;

    #[test]
    fn quantiles_are_values_that_are_there() {
        assert_eq!(quantile(vec![], 0.5), None);
        assert_eq!(quantile(vec![3.0], 0.95), Some(3.0));
        assert_eq!(quantile(vec![4.0, 1.0, 3.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile((1..=100).map(f64::from).collect(), 0.95), Some(95.0));
    }
}
