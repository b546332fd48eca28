//! Transfer times of messages: simulated against recorded.

use super::words::word;
use crate::results::{Detail, TransferPoint};
use pages::format;
use pages::markup::{Element, div, element, table};

/// Units of the drawing, and the room for its labels.
const SIZE: f64 = 400.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 18.0;

/// The section with figures, picture and tables.
pub(super) fn section(detail: &Detail) -> Element {
    let errors = &detail.summary.transfer_error;
    let what = if detail.summary.shows_error() { "error" } else { "change" };
    let median = format!("median {what}");
    let percent = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{:.1}%", value * 100.0));
    let all = vec![
        "all".to_owned(),
        format::count(errors.messages),
        format::maybe_change(errors.median),
        percent(errors.p95),
    ];
    let classes = errors.classes.iter().map(|class| {
        vec![class.class.clone(), format::count(class.messages), format::maybe_change(class.median), percent(class.p95)]
    });
    let quantiles = errors.quantiles.iter().map(|row| {
        let share = format!("{:.0}%", row.quantile * 100.0);
        vec![share, format::seconds(row.recorded_s), format::seconds(row.simulated_s)]
    });
    let kinds = detail.kinds.iter().map(|kind| {
        vec![
            kind.kind.clone(),
            format::count(kind.messages),
            format::bytes(kind.bytes),
            format::seconds(kind.recorded_median_s),
            format::seconds(kind.simulated_median_s),
            format::change(kind.median),
            percent(Some(kind.p95)),
        ]
    });
    let kind_headers =
        ["kind of message", "messages", "bytes", "recorded median", "simulated median", &median, "95th percentile"];
    element("section")
        .child(element("h3").text("Transfer times of messages"))
        .child(
            element("p")
                .with("class", "hint")
                .child(word("transfer-time", "Transfer times"))
                .text(" over this network, against those ")
                .child(word("recorded", ""))
                .text(if detail.summary.shows_error() {
                    ". The experiment says that it models the recorded network: points lie on the diagonal where the model is right, and \
                     what differs is its error."
                } else {
                    " on the real one. What differs is what this network changes: no error."
                }),
        )
        .child(
            div("beside").children((!detail.points.is_empty()).then(|| scatter(&detail.points))).child(
                div("tables")
                    .child(table(
                        &["messages", "count", &median, "95th percentile"],
                        1,
                        std::iter::once(all).chain(classes),
                    ))
                    .child(element("p").with("class", "hint").text(
                        "Which message meets a full queue is chance; how many do is not: the times of all messages between \
                         hosts, by quantile.",
                    ))
                    .child(table(&["share that took at most", "recorded", "simulated"], 1, quantiles)),
            ),
        )
        .child(
            element("details")
                .child(element("summary").text("By kind of message"))
                .child(table(&kind_headers, 1, kinds)),
        )
}

/// Recorded against simulated times of messages between hosts, both axes logarithmic.
fn scatter(points: &[TransferPoint]) -> Element {
    let times = points.iter().flat_map(|point| [point.recorded_s, point.simulated_s]).filter(|time| *time > 0.0);
    let (mut low, mut high) = times.fold((f64::MAX, f64::MIN), |(low, high), time| (low.min(time), high.max(time)));
    if low > high {
        (low, high) = (1e-3, 1.0);
    }
    let (low, high) = (libm::log10(low).floor(), libm::log10(high).ceil().max(libm::log10(low).floor() + 1.0));
    let inner = SIZE - LEFT - TOP;
    let scale = |time: f64| (libm::log10(time.max(libm::pow(10.0, low))) - low) / (high - low);
    let x = |time: f64| LEFT + scale(time) * inner;
    let y = |time: f64| SIZE - BOTTOM - scale(time) * (SIZE - BOTTOM - TOP);
    let mut decades = Vec::new();
    let mut exponent = low;
    while exponent <= high {
        decades.push(libm::pow(10.0, exponent));
        exponent += 1.0;
    }
    let line = |class: &str, from: (f64, f64), to: (f64, f64)| {
        element("line")
            .with("class", class)
            .with("x1", format!("{:.1}", from.0))
            .with("y1", format!("{:.1}", from.1))
            .with("x2", format!("{:.1}", to.0))
            .with("y2", format!("{:.1}", to.1))
    };
    let text = |at: (f64, f64), anchor: &str, text: &str| {
        element("text")
            .with("x", format!("{:.1}", at.0))
            .with("y", format!("{:.1}", at.1))
            .with("text-anchor", anchor)
            .text(text)
    };
    let (start, end) = (libm::pow(10.0, low), libm::pow(10.0, high));
    // Labels of neighbours must not run into each other.
    let every = if decades.len() > 6 { 2 } else { 1 };
    let lines = decades.iter().enumerate().flat_map(|(number, decade)| {
        let label = if number % every == 0 { power(*decade) } else { String::new() };
        [
            line("rule", (x(*decade), y(start)), (x(*decade), y(end))),
            line("rule", (x(start), y(*decade)), (x(end), y(*decade))),
            text((x(*decade), SIZE - BOTTOM + 16.0), "middle", &label),
            text((LEFT - 6.0, y(*decade) + 4.0), "end", &power(*decade)),
        ]
    });
    let dots = points.iter().map(|point| {
        let tip = format!(
            "{} · {}\nrecorded {}\nsimulated {}",
            point.kind,
            format::bytes(point.bytes),
            format::seconds(point.recorded_s),
            format::seconds(point.simulated_s)
        );
        element("circle")
            .with("cx", format!("{:.1}", x(point.recorded_s)))
            .with("cy", format!("{:.1}", y(point.simulated_s)))
            .with("r", if point.bytes >= 65_536 { "4" } else { "2.5" })
            .with("data-tip", tip)
    });
    element("figure").with("class", "scatter").child(
        element("svg")
            .with("viewBox", format!("0 0 {SIZE} {SIZE}"))
            .with("role", "img")
            .with("aria-label", "simulated against recorded transfer times")
            .children(lines)
            .child(line("diagonal", (x(start), y(start)), (x(end), y(end))))
            .children(dots)
            .child(text(((LEFT + SIZE - TOP) / 2.0, SIZE - 6.0), "middle", "recorded"))
            .child(
                text((0.0, 0.0), "middle", "simulated")
                    .with("transform", format!("translate(12 {:.1}) rotate(-90)", (SIZE - BOTTOM + TOP) / 2.0)),
            ),
    )
}

/// A decade's label.
fn power(time: f64) -> String {
    if time >= 0.999 {
        format!("{time:.0} s")
    } else if time >= 0.000_999 {
        format!("{:.0} ms", time * 1e3)
    } else if time >= 0.000_000_999 {
        format!("{:.0} µs", time * 1e6)
    } else {
        format!("{:.0} ns", time * 1e9)
    }
}
