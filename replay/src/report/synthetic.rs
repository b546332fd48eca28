//! The report of synthetic traffic.

use pages::chart::number;
use pages::document::document;
use pages::markup::{Element, div, element, table};
use pages::parts::note;
use pages::{format, parts};

use super::{circuits, curves};
use crate::results::label;
use crate::results::synthetic::{PointDetail, TrafficDetail, TrafficSummary};
use netsim::statistics::Distribution;

/// The report of synthetic traffic as an HTML page.
#[must_use]
pub fn page(detail: &TrafficDetail) -> String {
    let main = element("main")
        .children(detail.interim.then(|| note("The run was stopped: these are interim results.")))
        .children(detail.failed.iter().map(|(what, reason)| note(&format!("{what}: {reason}"))))
        .child(overview(detail))
        .children(pictures(detail))
        .children(grouped(detail))
        .children(distributions(detail))
        .children(detail.points.iter().map(|point| one(detail, point)))
        .child(parts::configuration(&detail.effective));
    let job = div("job").child(element("strong").text(&detail.name)).child(element("span").text("synthetic traffic"));
    document(&format!("{} · Hadoptic", detail.name), Some(job), main, &super::footer(""))
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), number)
}

/// A mean with half its confidence interval.
fn mean(summary: &TrafficSummary, key: &str, value: Option<f64>) -> String {
    match summary.confidence.get(key) {
        Some(half) => format!("{} ± {}", figure(value), number(*half)),
        None => figure(value),
    }
}

fn overview(detail: &TrafficDetail) -> Element {
    let mut headers: Vec<&str> = detail.axes.iter().map(|axis| axis.path.as_str()).collect();
    let left = headers.len();
    headers.extend([
        "offered",
        "accepted",
        "latency (cycles)",
        "in the network",
        "p99 (cycles)",
        "hops",
        "busiest link",
        "saturated",
    ]);
    let rows = detail.points.iter().map(|point| {
        let summary = &point.summary;
        let axes = detail.axes.iter().zip(&point.values);
        let mut row: Vec<String> = axes.map(|(axis, index)| axis.text(*index).to_owned()).collect();
        row.extend([
            figure(summary.offered_load),
            mean(summary, "accepted_load", summary.accepted_load),
            mean(summary, "packet_latency_mean_cycles", summary.packet_latency_mean_cycles),
            mean(summary, "network_latency_mean_cycles", summary.network_latency_mean_cycles),
            figure(summary.latency_cycles.get("packet").and_then(|latency| latency.p99)),
            mean(summary, "hops_mean", summary.hops_mean),
            summary.link_utilisation_max.map_or_else(|| "–".to_owned(), format::share),
            if summary.saturated { "yes" } else { "no" }.to_owned(),
        ]);
        row
    });
    element("section").child(element("h2").text("Loads and latencies")).child(table(&headers, left, rows))
}

fn pictures(detail: &TrafficDetail) -> Option<Element> {
    let all = [curves::latency(detail), curves::accepted(detail), curves::lost(detail), curves::refused(detail)];
    let drawn: Vec<Element> = all.into_iter().flatten().collect();
    (!drawn.is_empty()).then(|| {
        let hollow = note("Hollow points are saturated. Loads are flits per node and flit time of the host link.");
        element("section").child(element("h2").text("Over the offered load")).children(drawn).child(hollow)
    })
}

fn grouped(detail: &TrafficDetail) -> Option<Element> {
    let drawn: Vec<Element> = curves::grouped(detail).into_iter().map(|(_, picture)| picture).collect();
    (!drawn.is_empty()).then(|| {
        let hollow = note("Hollow bars are saturated.");
        element("section").child(element("h2").text("By packet size or another key")).children(drawn).child(hollow)
    })
}

fn distributions(detail: &TrafficDetail) -> Option<Element> {
    Some(element("section").child(element("h2").text("How latencies are distributed")).child(curves::cdf(detail)?))
}

/// One combination.
fn one(detail: &TrafficDetail, point: &PointDetail) -> Element {
    let summary = &point.summary;
    let title = label(detail.axes.iter().zip(&point.values));
    let kinds =
        [("packet", "packet, source queue included"), ("network", "packet, network only"), ("message", "message")];
    let row = |(key, name): (&str, &str)| {
        let of = |map: &std::collections::BTreeMap<String, Distribution>| map.get(key).copied().unwrap_or_default();
        let (ns, cycles) = (of(&summary.latency_ns), of(&summary.latency_cycles));
        let both = |ns: Option<f64>, cycles: Option<f64>| format!("{} ns ({})", figure(ns), figure(cycles));
        vec![
            name.to_owned(),
            format::count(ns.count),
            both(ns.mean, cycles.mean),
            both(ns.deviation, cycles.deviation),
            both(ns.p50, cycles.p50),
            both(ns.p95, cycles.p95),
            both(ns.p99, cycles.p99),
            both(ns.max, cycles.max),
        ]
    };
    let headers = ["latency", "count", "mean", "deviation", "median", "p95", "p99", "most"];
    let links = point.links.iter().map(|link| {
        vec![
            link.name.to_string(),
            format::rate(link.rate_bps),
            link.utilisation.map_or_else(|| "–".to_owned(), format::share),
            format::bytes(link.bytes),
            format::bytes(link.queue_max_bytes),
            format::count(link.drops),
        ]
    });
    let busiest = ["link", "rate", "utilisation", "bytes", "longest queue", "lost"];
    let body = div("point")
        .children(summary.saturated_because.iter().map(|reason| note(&format!("Saturated: {reason}."))))
        .children(summary.losses().map(|lost| note(&format!("Packets {lost}."))))
        .child(table(&headers, 1, kinds.into_iter().map(row)))
        .children(histogram(point))
        .child(element("h4").text("The busiest links"))
        .child(table(&busiest, 1, links))
        .children(point.circuits.as_ref().map(circuits::of_traffic));
    if title.is_empty() {
        return element("section").child(element("h2").text("Latencies and links")).child(body);
    }
    element("section").child(element("details").child(element("summary").text(title)).child(body))
}

const BARS: usize = 60;

/// The distribution of packet latency, as bars of equal width up to the 99.9th percentile.
fn histogram(point: &PointDetail) -> Option<Element> {
    let end = point.summary.latency_ns.get("packet")?.p999?;
    let start = point.latency.first()?.0;
    #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
    let width = (end - start) / BARS as f64;
    if width <= 0.0 {
        return None;
    }
    let mut bars = [0u64; BARS];
    for (from, wide, count) in &point.latency {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 on; casts saturate")]
        let bar = ((from + wide / 2.0 - start) / width) as usize;
        if let Some(bar) = bars.get_mut(bar) {
            *bar += count;
        }
    }
    let most = bars.iter().copied().max().unwrap_or(1).max(1);
    let drawn = bars.iter().enumerate().map(|(bar, count)| {
        #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
        let (high, at) = (*count as f64 / most as f64 * 120.0, bar as f64 * 12.0);
        let from = start + f64::from(u32::try_from(bar).unwrap_or(0)) * width;
        element("rect")
            .with("x", at)
            .with("y", format!("{:.1}", 130.0 - high))
            .with("width", 10)
            .with("height", format!("{high:.1}"))
            .with("fill", "#1f6feb")
            .child(element("title").text(format!("{} to {} ns: {count}", number(from), number(from + width))))
    });
    let label = |x: f64, anchor: &str, value: f64| {
        let place = element("text").with("x", x).with("y", 148).with("text-anchor", anchor);
        place.with("fill", "currentColor").with("font-size", 12).text(format!("{} ns", number(value)))
    };
    let picture = element("svg")
        .with("viewBox", "0 0 720 154")
        .with("width", "100%")
        .with("role", "img")
        .with("aria-label", "Distribution of packet latency")
        .children(drawn)
        .child(label(0.0, "start", start))
        .child(label(720.0, "end", end));
    Some(element("div").child(element("h4").text("Packet latency, up to its 99.9th percentile")).child(picture))
}
