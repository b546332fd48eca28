//! What all experiments have in common: how long the job takes, and its phases.

use super::answer;
use super::path::{KINDS, kind_label};
use super::words::word;
use crate::results::{Detail, Phase, Summary};
use pages::format;
use pages::markup::{Element, div, element, table};
use pages::parts::time_axis;

/// The answer in two sentences, and of one replay the figures that people ask for first.
pub(super) fn headline(details: &[Detail]) -> Element {
    let section = element("section").with("class", "headline").child(element("h1").text(answer::waits(details)));
    let section = match details {
        [one] => section.child(figures(&one.summary)),
        several => {
            let costs = answer::fast_enough(several);
            section.children((!costs.is_empty()).then(|| element("p").with("class", "lead").text(costs)))
        }
    };
    section.children(answer::errors(details).map(|sentence| pages::parts::note(&sentence)))
}

/// The figures of one replay that people ask for first.
pub(super) fn figures(summary: &Summary) -> Element {
    let figure = |value: String, what: Element| div("figure").child(element("b").text(value)).child(what);
    let plain = |value: String, what: &str| figure(value, element("span").text(what));
    let errors = &summary.transfer_error;
    let change = if summary.shows_error() { "error" } else { "change" };
    let most = element("span").child(word("twice-cpu", "at most")).text(", with twice the CPU");
    let median =
        element("span").text(format!("median {change} of the ")).child(word("transfer-time", "transfer times"));
    let saved = answer::twice_the_cpu(summary);
    let figures = div("figures")
        .child(plain(format::share(summary.network_share), "of the job's time on the network"))
        .child(figure(format::change(-saved), most));
    let p95 = errors.p95.filter(|_| summary.shows_error()).map(|p95| format!("{:.0}%", p95 * 100.0));
    let transfers = [
        errors
            .median_of_large()
            .map(|large| plain(format::change(large), &format!("median {change} for messages of 64 KiB and more"))),
        Some(figure(format::maybe_change(errors.median), median.text(" of all messages"))),
        p95.map(|p95| plain(p95, "95th percentile of that error")),
    ];
    let transfers = transfers.into_iter().flatten();
    figures
        .children(transfers.filter(|_| summary.baseline.is_recorded()))
        .child(plain(format::count(summary.drops), "packets lost"))
        .child(plain(format::count(summary.messages), "messages"))
        .child(plain(format::bytes(summary.bytes), "payload"))
        .child(plain(format::seconds(summary.wall_s), &format!("to simulate {} events", format::count(summary.events))))
}

/// Which experiments are shown among the bars; the page's script shows these buttons.
fn hiders(details: &[&Detail]) -> Element {
    let button = |name: &str| {
        element("button").with("type", "button").with("aria-pressed", "true").with("data-hide", name).text(name)
    };
    div("hiders")
        .with("id", "hiders")
        .with("role", "group")
        .with("aria-label", "Experiments that are shown")
        .with("hidden", "")
        .child(element("span").text("Shown:"))
        .children(details.iter().map(|detail| button(&detail.summary.name)))
        .child(
            element("button")
                .with("type", "button")
                .with("id", "whole")
                .with("aria-pressed", "false")
                .text("long bars in full"),
        )
}

/// Job times as bars, each broken down by its critical path, below the recorded one; the shortest first.
pub(super) fn job_times(details: &[&Detail], first: &Detail) -> Element {
    let recorded_s = first.summary.recorded_job_time_s;
    let times = details.iter().map(|detail| detail.summary.job_time_s).chain([recorded_s]);
    let end_s = axis_end(times);
    let row = |name: &str, kind: &str, seconds: f64, parts: Vec<Element>, change: String| {
        let mark = element("i").with("class", "mark").with("style", at(recorded_s, end_s));
        div(if seconds > end_s { "row cut" } else { "row" })
            .with("data-seconds", seconds)
            .child(div("what").child(element("b").text(name)).child(element("small").text(kind)))
            .child(div("track").child(div("stack").children(parts)).child(mark))
            .child(div("value").child(element("b").text(format::seconds(seconds))).child(element("small").text(change)))
    };
    let baseline = first.summary.baseline;
    let part = element("span")
        .with("class", "k-recorded")
        .with("style", at(recorded_s, end_s))
        .with("data-tip", format!("{}\n{}", baseline.label(), format::seconds(recorded_s)));
    let hint = if baseline.is_recorded() { "nothing changes" } else { "infinitely fast" };
    let recorded = row(baseline.label(), hint, recorded_s, vec![part], String::new());
    let rows = details.iter().map(|detail| {
        let summary = &detail.summary;
        let change = format::change(summary.job_time_change());
        let change = if summary.shows_error() { format!("{change} error") } else { change };
        row(&summary.name, &summary.fabric, summary.job_time_s, breakdown(detail, end_s), change)
            .with("data-of", &summary.name)
    });
    let sentence = match baseline.is_recorded() {
        true => "recorded time; percentages are changes against it, and an ",
        false => "time on an infinitely fast network; percentages are changes against it, and an ",
    };
    element("section")
        .child(element("h2").text("How long the job takes"))
        .child(
            element("p")
                .with("class", "hint")
                .text("From submission to the end, divided by what the job waited for: its ")
                .child(word("critical-path", ""))
                .text(format!(". The line marks the {sentence}"))
                .child(word("error", ""))
                .text(" only on a model of the recorded network. A bar that ends with » goes on beyond the axis."),
        )
        .children((details.len() > 1).then(|| hiders(details)))
        .child(pages::parts::legend(KINDS.iter().map(|kind| (kind.class, kind.label))))
        .child(
            div("bars")
                .with("data-bars", end_s)
                .child(recorded)
                .children(rows)
                .child(div("row ruler").child(div("")).child(div("track").child(time_axis(end_s))).child(div(""))),
        )
        .child(summary_table(details))
}

/// A bar that is more than twice as long as the next one is cut: it would leave no room for the others.
fn axis_end(times: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(|a, b| b.total_cmp(a));
    match times[..] {
        [longest, next, ..] if longest > 2.0 * next && next > 0.0 => next * 1.05,
        [longest, ..] => longest,
        [] => 0.0,
    }
}

/// The length of a bar, or the place of a mark, in percent of the axis, which the page's script may stretch.
fn at(seconds: f64, end_s: f64) -> String {
    format!("--at:{:.3}", if end_s > 0.0 { seconds / end_s * 100.0 } else { 0.0 })
}

fn breakdown(detail: &Detail, end_s: f64) -> Vec<Element> {
    let parts = KINDS.iter().map(|kind| {
        let of_kind = detail.summary.critical_path.iter().filter(|share| share.kind == kind.name);
        (kind, of_kind.map(|share| share.seconds).sum::<f64>())
    });
    let total_s = detail.summary.job_time_s;
    let parts = parts.filter(|(_, seconds)| *seconds > 0.0).map(|(kind, seconds)| {
        let tip = format!(
            "{} · {}\n{} · {} of the job",
            detail.summary.name,
            kind_label(kind.name),
            format::seconds(seconds),
            format::share(seconds / total_s.max(f64::MIN_POSITIVE)),
        );
        element("span").with("class", kind.class).with("style", at(seconds, end_s)).with("data-tip", tip)
    });
    parts.collect()
}

fn summary_table(details: &[&Detail]) -> Element {
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
pub(super) fn phases(details: &[&Detail], first: &Detail) -> Element {
    let panels =
        first.summary.phases.iter().filter(|phase| phase.attempts > 0).map(|phase| phase_panel(details, phase));
    element("section")
        .child(element("h2").text("Phases of the tasks"))
        .child(
            element("p")
                .with("class", "hint")
                .text("Means over the successful ")
                .child(word("attempt", ""))
                .text(", divided by what the end of the phase waited for since its start. A reduce does its ")
                .child(word("shuffle", ""))
                .text(" until it has all map outputs, sorts, and reduces."),
        )
        .child(pages::parts::legend(KINDS.iter().map(|kind| (kind.class, kind.label))))
        .child(div("panels").children(panels))
        .child(element("details").child(element("summary").text("As a table")).child(phase_table(details)))
}

fn phase_panel(details: &[&Detail], phase: &Phase) -> Element {
    let name = phase.name.as_str();
    let recorded_s = phase.recorded_seconds.unwrap_or(0.0);
    let of = |detail: &Detail| detail.summary.phase(name).and_then(|phase| phase.seconds);
    let end_s = axis_end(details.iter().filter_map(|detail| of(detail)).chain([recorded_s]));
    let part = |class: &'static str, seconds: f64, tip: String| {
        element("span").with("class", class).with("style", at(seconds, end_s)).with("data-tip", tip)
    };
    let row = |label: &str, parts: Vec<Element>, seconds: Option<f64>| {
        div(if seconds.is_some_and(|seconds| seconds > end_s) { "mini cut" } else { "mini" })
            .with("data-seconds", seconds.unwrap_or(0.0))
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
        row(&summary.name, parts.collect(), of(detail)).with("data-of", &summary.name)
    });
    div("panel")
        .with("data-bars", end_s)
        .child(element("h3").text(name).child(element("small").text(format!(" mean of {} attempts", phase.attempts))))
        .child(row(baseline, vec![recorded], phase.recorded_seconds))
        .children(rows)
}

fn phase_table(details: &[&Detail]) -> Element {
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
