//! The answer in two sentences: what the job waits for, and which networks are as good as the fastest.

use super::path::kind_label;
use crate::results::{Detail, Summary};
use causal::Causality;
use pages::format;

/// A network on which a job takes at most so much longer than on the fastest one is as good as that.
const FAST_ENOUGH: f64 = 0.05;
/// What makes up a smaller share of the job's time is not worth a word.
const WORTH_A_WORD: f64 = 0.1;

/// What the job takes and what it waits for, on the fastest network; of one replay, on its own.
pub(super) fn waits(details: &[Detail]) -> String {
    let Some(fastest) = fastest(details) else { return String::new() };
    // A number and its unit stay on one line.
    let seconds = |value: f64| format::seconds(value).replace(' ', "\u{a0}");
    let time = seconds(fastest.job_time_s);
    let recorded = seconds(fastest.recorded_job_time_s);
    let waits = waits_of(fastest);
    match (details.len(), fastest.baseline.is_recorded()) {
        (1, true) => {
            let change = format::change(fastest.job_time_change());
            let what = if fastest.shows_error() { "an error of" } else { "a change of" };
            format!(
                "Over {}, the job takes {time} ({what} {change} against the {recorded} recorded) and waits {waits}.",
                fastest.name
            )
        }
        (1, false) => {
            let change = format::change(fastest.job_time_change());
            format!(
                "Over {}, the job takes {time} ({change} against the {recorded} on an infinitely fast network) and waits {waits}.",
                fastest.name
            )
        }
        (_, true) => {
            format!(
                "Even over the fastest network ({}), the job takes {time} (recorded: {recorded}) and waits {waits}.",
                fastest.name
            )
        }
        (_, false) if fastest.fabric == "ideal" => {
            format!("On an infinitely fast network the job takes {time} and waits {waits}.")
        }
        (_, false) => {
            format!(
                "On an infinitely fast network the job takes {recorded}; over the fastest here ({}) it takes {time} and waits {waits}.",
                fastest.name
            )
        }
    }
}

/// For what the job waits, the longest first, and always how much of it is the network: "for computing and disks (77.0%), little for the
/// network (1.2%)".
fn waits_of(summary: &Summary) -> String {
    let share = |seconds: f64| format::share(seconds / summary.job_time_s.max(f64::MIN_POSITIVE));
    let kinds = by_kind(summary);
    let long = kinds.iter().filter(|(_, seconds)| *seconds >= WORTH_A_WORD * summary.job_time_s);
    let mut said: Vec<String> =
        long.map(|(kind, seconds)| format!("for {} ({})", words_of(kind), share(*seconds))).collect();
    let network = kinds.iter().find(|(kind, _)| *kind == "network").map_or(0.0, |(_, seconds)| *seconds);
    if network <= 0.0 {
        said.push("not for the network".to_owned());
    } else if network < WORTH_A_WORD * summary.job_time_s {
        said.push(format!("little for the network ({})", share(network)));
    }
    said.join(", ")
}

/// A kind of wait within a sentence.
fn words_of(kind: &str) -> &str {
    match kind {
        "network" => "the network",
        "think" => "computing and disks",
        "hidden-work" => "work on bytes that wait",
        "timer-wait" => "heartbeats",
        "timer-pause" => "pauses of timers",
        "slot" => "containers",
        "outside" => "causes that are not in the trace",
        other => kind_label(other),
    }
}

/// How long the job waits for each kind of thing, the longest first.
fn by_kind(summary: &Summary) -> Vec<(&str, f64)> {
    let mut kinds: Vec<(&str, f64)> = Vec::new();
    for share in &summary.critical_path {
        match kinds.iter_mut().find(|(kind, _)| *kind == share.kind) {
            Some((_, seconds)) => *seconds += share.seconds,
            None => kinds.push((&share.kind, share.seconds)),
        }
    }
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    kinds
}

/// Replays whose time follows from their network.
fn replays(details: &[Detail]) -> impl Iterator<Item = &Summary> {
    details.iter().map(|detail| &detail.summary).filter(|summary| summary.causality == Causality::Trace)
}

/// The fastest replay; an ideal network goes before others of the same time.
fn fastest(details: &[Detail]) -> Option<&Summary> {
    let first = details.first().map(|detail| &detail.summary);
    let by_time = |a: &&Summary, b: &&Summary| {
        a.job_time_s.total_cmp(&b.job_time_s).then_with(|| (a.fabric != "ideal").cmp(&(b.fabric != "ideal")))
    };
    replays(details).min_by(by_time).or(first)
}

/// Which networks are as good as the best, and what each other one costs and for what.
///
/// The best is an infinitely fast network where the job comes from parameters, otherwise the fastest of the replays.
#[must_use]
pub fn fast_enough(details: &[Detail]) -> String {
    let Some(best) = fastest(details) else { return String::new() };
    let best_s = if best.baseline.is_recorded() { best.job_time_s } else { best.recorded_job_time_s };
    let over = |summary: &Summary| summary.job_time_s / best_s.max(f64::MIN_POSITIVE) - 1.0;
    // The best of the replays goes without saying, and so does what is infinitely fast.
    let said = |summary: &&Summary| {
        let is_best = best.baseline.is_recorded() && summary.name == best.name;
        !is_best && (summary.fabric != "ideal" || over(summary) > 0.0)
    };
    let mut real: Vec<&Summary> = replays(details).filter(said).collect();
    real.sort_by(|a, b| a.job_time_s.total_cmp(&b.job_time_s));
    let (enough, others): (Vec<&Summary>, Vec<&Summary>) =
        real.into_iter().partition(|summary| over(summary) <= FAST_ENOUGH);
    let names = |summaries: &[&Summary]| {
        let name = |summary: &&Summary| format!("{} ({})", summary.name, format::change(over(summary)));
        summaries.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let costs = |summaries: &[&Summary]| {
        let cost = |summary: &&Summary| {
            let why = reason(summary, best).map(|why| format!(", {why}")).unwrap_or_default();
            format!("{} ({}{why})", summary.name, format::change(over(summary)))
        };
        summaries.iter().map(cost).collect::<Vec<_>>().join("; ")
    };
    let share = format!("{:.0}%", FAST_ENOUGH * 100.0);
    match (&enough[..], &others[..]) {
        ([], []) => String::new(),
        ([], others) => format!("None comes within {share} of that; the closest is {}.", costs(others)),
        (enough, []) => format!("All are within {share} of that: {}.", names(enough)),
        (enough, others) => {
            format!("Within {share} of that, and fast enough for it: {}. Slower: {}.", names(enough), costs(others))
        }
    }
}

/// What a job waits for longer than over the best network, where most of the difference is one thing: "16.67 s more for HDFS blocks
/// on the network".
fn reason(summary: &Summary, best: &Summary) -> Option<String> {
    let of_best = |kind: &str, what: &str| {
        let same = best.critical_path.iter().filter(|share| share.kind == kind && share.what == what);
        same.map(|share| share.seconds).sum::<f64>()
    };
    let more = summary.critical_path.iter().map(|share| (share, share.seconds - of_best(&share.kind, &share.what)));
    let (share, more) = more.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, more)| *more > 0.0)?;
    let what = match (share.kind.as_str(), share.what.as_str()) {
        ("network", "block-data") => "HDFS blocks on the network".to_owned(),
        ("network", "shuffle-response") => "map outputs on the network".to_owned(),
        ("network", "handshake") => "opening connections".to_owned(),
        ("network", what) => format!("{what} on the network"),
        (kind, what) => format!("{} ({what})", words_of(kind)),
    };
    Some(format!("{} more for {what}", format::seconds(more)))
}

/// By how much the job would be shorter at most with twice the CPU, as a share of its time.
pub(super) fn twice_the_cpu(summary: &Summary) -> f64 {
    let kinds = by_kind(summary).into_iter().filter(|(kind, _)| matches!(*kind, "think" | "hidden-work"));
    let computing: f64 = kinds.map(|(_, seconds)| seconds).sum();
    computing / 2.0 / summary.job_time_s.max(f64::MIN_POSITIVE)
}

/// What replays on a model of the recorded network say of the model.
pub(super) fn errors(details: &[Detail]) -> impl Iterator<Item = String> {
    details.iter().map(|detail| &detail.summary).filter(|summary| summary.shows_error()).map(|summary| {
        format!(
            "{} models the network of the recording: its job time is off by {}, its transfer times by {} (median). All other differences from the \
             recording are changes, no errors.",
            summary.name,
            format::change(summary.job_time_change()),
            format::maybe_change(summary.transfer_error.median),
        )
    })
}
