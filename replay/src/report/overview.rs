//! What all experiments have in common: how long the job takes, and its phases.

use super::path::{KINDS, kind_label};
use crate::results::{Detail, Phase, Summary};
use pages::format;
use pages::markup::{Element, div, element, table};

/// The answer in a sentence, and the figures that people ask for first.
pub(super) fn headline(details: &[Detail]) -> Element {
    let Some(first) = details.first() else { return element("p") };
    let recorded = format::seconds(first.summary.recorded_job_time_s);
    let is_recorded = first.summary.baseline.is_recorded();
    let sentence = if let [one] = details {
        let against = if is_recorded { "recorded" } else { "on an infinitely fast network" };
        format!(
            "Over {}, the job takes {}: {} against the {recorded} {against}.",
            one.summary.name,
            format::seconds(one.summary.job_time_s),
            format::change(one.summary.job_time_change()),
        )
    } else {
        let by_time = |a: &&Detail, b: &&Detail| a.summary.job_time_s.total_cmp(&b.summary.job_time_s);
        let fastest = details.iter().min_by(by_time).unwrap_or(first);
        let slowest = details.iter().max_by(by_time).unwrap_or(first);
        let begin = if is_recorded {
            format!("Recorded, the job took {recorded}. Replayed, it takes")
        } else {
            format!("On an infinitely fast network the job takes {recorded}. Over these it takes")
        };
        format!(
            "{begin} from {} ({}) to {} ({}).{}",
            format::seconds(fastest.summary.job_time_s),
            fastest.summary.name,
            format::seconds(slowest.summary.job_time_s),
            slowest.summary.name,
            if is_recorded { String::new() } else { format!(" {}", fast_enough(details)) },
        )
    };
    let section = element("section").with("class", "headline").child(element("h1").text(sentence));
    if let [one] = details { section.child(figures(&one.summary)) } else { section }
}

/// A network on which a job takes at most so much longer than on an infinitely fast one is as good as that.
const FAST_ENOUGH: f64 = 0.05;

/// Which networks a generated job needs, in a sentence.
#[must_use]
pub fn fast_enough(details: &[Detail]) -> String {
    let mut real: Vec<&Summary> =
        details.iter().map(|detail| &detail.summary).filter(|summary| summary.fabric != "ideal").collect();
    real.sort_by(|a, b| a.job_time_s.total_cmp(&b.job_time_s));
    let (enough, others): (Vec<&Summary>, Vec<&Summary>) =
        real.into_iter().partition(|summary| summary.job_time_change() <= FAST_ENOUGH);
    let names = |summaries: &[&Summary]| {
        let name = |summary: &&Summary| format!("{} ({})", summary.name, format::change(summary.job_time_change()));
        summaries.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let share = format::share(FAST_ENOUGH);
    match (&enough[..], &others[..]) {
        ([], []) => String::new(),
        ([], [closest, ..]) => format!("None comes within {share} of that; the closest is {}.", names(&[closest])),
        (enough, []) => format!("All are within {share} of that: {}.", names(enough)),
        (enough, others) => {
            format!("Within {share} of that, and fast enough for it: {}. Slower: {}.", names(enough), names(others))
        }
    }
}

/// The figures of one replay that people ask for first.
pub(super) fn figures(summary: &Summary) -> Element {
    let figure =
        |value: String, what: &str| div("figure").child(element("b").text(value)).child(element("span").text(what));
    let errors = &summary.transfer_error;
    div("figures")
        .child(figure(format::share(summary.network_share), "of the job's time on the network"))
        .child(figure(format::maybe_change(errors.median), "median change of transfer times"))
        .child(figure(
            errors.p95.map_or_else(|| "–".to_owned(), |p95| format!("{:.0}%", p95 * 100.0)),
            "95th percentile of that change",
        ))
        .child(figure(format::count(summary.messages), "messages"))
        .child(figure(format::bytes(summary.bytes), "payload"))
        .child(figure(format::count(summary.drops), "packets lost"))
        .child(figure(format::count(summary.events), "events"))
        .child(figure(format::seconds(summary.wall_s), "to simulate"))
}

/// Job times as bars, each broken down by its critical path, below the recorded one.
pub(super) fn job_times(details: &[Detail], first: &Detail) -> Element {
    let recorded_s = first.summary.recorded_job_time_s;
    let longest_s = details.iter().map(|detail| detail.summary.job_time_s).fold(recorded_s, f64::max);
    let row = |name: &str, kind: &str, bar: Element, value: String, change: String| {
        div("row")
            .child(div("what").child(element("b").text(name)).child(element("small").text(kind)))
            .child(
                div("track").child(bar).child(
                    element("i")
                        .with("class", "mark")
                        .with("style", format!("left:{}", format::percent_of(recorded_s, longest_s))),
                ),
            )
            .child(div("value").child(element("b").text(value)).child(element("small").text(change)))
    };
    let recorded_bar = div("stack").child(
        element("span")
            .with("class", "k-recorded")
            .with("style", format!("width:{}", format::percent_of(recorded_s, longest_s)))
            .with("data-tip", format!("{}\n{}", first.summary.baseline.label(), format::seconds(recorded_s))),
    );
    let baseline = first.summary.baseline;
    let hint = if baseline.is_recorded() { "nothing changes" } else { "infinitely fast" };
    let recorded = row(baseline.label(), hint, recorded_bar, format::seconds(recorded_s), String::new());
    let rows = details.iter().map(|detail| {
        let summary = &detail.summary;
        row(
            &summary.name,
            &summary.fabric,
            breakdown(detail, longest_s),
            format::seconds(summary.job_time_s),
            format::change(summary.job_time_change()),
        )
    });
    element("section")
        .child(element("h2").text("How long the job takes"))
        .child(element("p").with("class", "hint").text(
            "Each bar is the time from submission to the end, divided by what the job waited for last: its critical path. \
             The line marks the recorded time.",
        ))
        .child(pages::parts::legend(KINDS.iter().map(|kind| (kind.class, kind.label))))
        .child(div("bars").child(recorded).children(rows))
        .child(summary_table(details))
}

fn breakdown(detail: &Detail, longest_s: f64) -> Element {
    let parts = KINDS.iter().map(|kind| {
        let of_kind = detail.summary.critical_path.iter().filter(|share| share.kind == kind.name);
        (kind, of_kind.map(|share| share.seconds).sum::<f64>())
    });
    let total_s = detail.summary.job_time_s;
    div("stack").children(parts.filter(|(_, seconds)| *seconds > 0.0).map(|(kind, seconds)| {
        let tip = format!(
            "{} · {}\n{} · {} of the job",
            detail.summary.name,
            kind_label(kind.name),
            format::seconds(seconds),
            format::share(seconds / total_s.max(f64::MIN_POSITIVE)),
        );
        element("span")
            .with("class", kind.class)
            .with("style", format!("width:{}", format::percent_of(seconds, longest_s)))
            .with("data-tip", tip)
    }))
}

fn summary_table(details: &[Detail]) -> Element {
    let headers = [
        "experiment",
        "fabric",
        "job",
        details.first().map_or("recorded", |first| first.summary.baseline.label()),
        "change",
        "network",
        "messages",
        "payload",
        "lost",
        "sent again",
        "events",
        "simulated in",
    ];
    let rows = details.iter().map(|detail| {
        let summary = &detail.summary;
        vec![
            summary.name.clone(),
            summary.fabric.clone(),
            format::seconds(summary.job_time_s),
            format::seconds(summary.recorded_job_time_s),
            format::change(summary.job_time_change()),
            format::share(summary.network_share),
            format::count(summary.messages),
            format::bytes(summary.bytes),
            format::count(summary.drops),
            format::count(summary.retransmissions),
            format::count(summary.events),
            format::seconds(summary.wall_s),
        ]
    });
    element("details").child(element("summary").text("As a table")).child(table(&headers, 2, rows))
}

/// Means of the phases, beside the recorded ones.
pub(super) fn phases(details: &[Detail], first: &Detail) -> Element {
    let panels =
        first.summary.phases.iter().filter(|phase| phase.attempts > 0).map(|phase| phase_panel(details, phase));
    element("section")
        .child(element("h2").text("Phases of the tasks"))
        .child(element("p").with("class", "hint").text(
            "Means over the successful attempts, divided by what the end of the phase waited for since its start. A reduce \
             shuffles until it has all map outputs, sorts, and reduces.",
        ))
        .child(pages::parts::legend(KINDS.iter().map(|kind| (kind.class, kind.label))))
        .child(div("panels").children(panels))
        .child(element("details").child(element("summary").text("As a table")).child(phase_table(details)))
}

fn phase_panel(details: &[Detail], phase: &Phase) -> Element {
    let name = phase.name.as_str();
    let recorded_s = phase.recorded_seconds.unwrap_or(0.0);
    let of = |detail: &Detail| detail.summary.phase(name).and_then(|phase| phase.seconds);
    let longest_s = details.iter().filter_map(of).fold(recorded_s, f64::max);
    let part = |class: &'static str, seconds: f64, tip: String| {
        element("span")
            .with("class", class)
            .with("style", format!("width:{}", format::percent_of(seconds, longest_s)))
            .with("data-tip", tip)
    };
    let row = |label: &str, parts: Vec<Element>, seconds: Option<f64>| {
        div("mini")
            .child(element("span").with("class", "what").with("title", label).text(label))
            .child(div("track").child(div("stack").children(parts)))
            .child(element("span").with("class", "value").text(format::maybe_seconds(seconds)))
    };
    let baseline = details.first().map_or("recorded", |first| first.summary.baseline.label());
    let recorded = part("k-recorded", recorded_s, format!("{baseline}\n{name}: {}", format::seconds(recorded_s)));
    let rows = details.iter().map(|detail| {
        let summary = &detail.summary;
        let waits = summary.phase(name).map_or(&[][..], |phase| &phase.waits);
        let parts = KINDS.iter().flat_map(|kind| {
            waits.iter().filter(|wait| wait.kind == kind.name).map(|wait| {
                let tip = format!("{} · {name}\n{}: {}", summary.name, kind.label, format::seconds(wait.seconds));
                part(kind.class, wait.seconds, tip)
            })
        });
        row(&summary.name, parts.collect(), of(detail))
    });
    div("panel")
        .child(element("h3").text(name).child(element("small").text(format!(" mean of {} attempts", phase.attempts))))
        .child(row(baseline, vec![recorded], phase.recorded_seconds))
        .children(rows)
}

fn phase_table(details: &[Detail]) -> Element {
    let mut headers = vec!["experiment", "phase", "attempts", "mean", "recorded mean", "change"];
    headers.extend(KINDS.iter().map(|kind| kind.label));
    headers.extend(["span", "recorded span"]);
    let rows = details.iter().flat_map(|detail| {
        detail.summary.phases.iter().filter(|phase| phase.attempts > 0).map(|phase| {
            let change = phase.seconds.zip(phase.recorded_seconds).filter(|(_, recorded)| *recorded > 0.0);
            let mut row = vec![
                detail.summary.name.clone(),
                phase.name.clone(),
                phase.attempts.to_string(),
                format::maybe_seconds(phase.seconds),
                format::maybe_seconds(phase.recorded_seconds),
                format::maybe_change(change.map(|(new, old)| new / old - 1.0)),
            ];
            row.extend(KINDS.iter().map(|kind| {
                let wait = phase.waits.iter().find(|wait| wait.kind == kind.name);
                format::maybe_seconds(wait.map(|wait| wait.seconds))
            }));
            row.push(format::maybe_seconds(phase.span_seconds));
            row.push(format::maybe_seconds(phase.recorded_span_seconds));
            row
        })
    });
    table(&headers, 2, rows)
}
