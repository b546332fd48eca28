//! The page of a characterisation.

use pages::chart::{Chart, Line};
use pages::document::document;
use pages::format::{bytes, count, seconds, share};
use pages::markup::{Element, div, element, table};
use pages::parts::note;
use trace::rows::Trace;

use super::show::{bits, locality_cells, nanoseconds, phase_cells};
use super::tables::{Characteristics, SeriesRow, SizeRow};
use crate::sums;

/// Rows of a table on the page: all of them lie beside it.
const SHOWN: usize = 200;

/// The page as HTML.
#[must_use]
pub fn page(trace: &Trace, found: &Characteristics) -> String {
    let names: Vec<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
    let title = if names.is_empty() { "Traffic".to_owned() } else { format!("Traffic of {}", names.join(", ")) };
    let main = element("main")
        .child(headline(found))
        .child(over_time(found))
        .child(by_role(found))
        .child(by_phase(found))
        .child(calls(found))
        .child(sizes(found))
        .child(connections(found))
        .child(shuffle(found));
    let job = div("job").child(element("strong").text(&title));
    let footer = format!(
        "Drawn by merger {}. Tables of all this lie beside this file as Parquet, CSV and JSON.",
        env!("CARGO_PKG_VERSION")
    );
    document(&format!("{title} · Hadoptic"), Some(job), main, &footer)
}

fn section(title: &str, hint: &str) -> Element {
    element("section").child(element("h2").text(title)).child(element("p").with("class", "hint").text(hint))
}

fn headline(found: &Characteristics) -> Element {
    let totals = &found.totals;
    let of = |part: u64| if totals.payload_bytes > 0 { part as f64 / totals.payload_bytes as f64 } else { 0.0 };
    let sentence = format!(
        "{} of payload in {}: {} is data, {} control",
        bytes(totals.payload_bytes),
        seconds(totals.seconds),
        share(of(totals.data_bytes)),
        share(of(totals.control_bytes))
    );
    let figure =
        |value: String, name: &str| div("figure").child(element("b").text(value)).child(element("span").text(name));
    let local = sums::sum(found.locality.iter().filter(|row| row.scope == "host").map(|row| row.bytes));
    let elephants = elephants(found);
    let figures = div("figures")
        .child(figure(count(totals.messages), "messages"))
        .child(figure(count(totals.connections), "connections"))
        .child(figure(share(of(local)), "of the payload stays on its host"))
        .child(figure(
            elephants.map_or_else(|| "–".to_owned(), share),
            "of it is in the largest tenth of the connections",
        ));
    element("section").with("class", "headline").child(element("h1").text(sentence)).child(figures)
}

/// Share of the bytes in the largest tenth of the connections.
fn elephants(found: &Characteristics) -> Option<f64> {
    let mice = found.sizes.iter().find(|row| row.unit == "connections" && row.percent == 90)?;
    Some(1.0 - mice.share_of_bytes)
}

fn over_time(found: &Characteristics) -> Element {
    let drawn = section("Over time", "A message's bytes count evenly from its first to its last.");
    let Some(first) = found.series.first() else { return drawn.child(note("There is no message.")) };
    let chart = |title: &str, name: &str, unit_bits: f64, of: fn(&SeriesRow) -> u64| {
        let point = |row: &SeriesRow| {
            let seconds = |ns: u64| ns as f64 / 1e9;
            let rate = of(row) as f64 * 8.0 / unit_bits / seconds(row.end_ns.saturating_sub(row.begin_ns).max(1));
            (seconds(row.begin_ns.saturating_sub(first.begin_ns)), rate, false)
        };
        let line = Line { name: name.to_owned(), points: found.series.iter().map(point).collect() };
        Chart { title, over: "Seconds", places: &[], hollow: "", diagonal: false, dots: false, joined: true }
            .draw(&[line])
    };
    drawn.child(chart("Data, Mbit/s", "blocks and map outputs", 1e6, |row| row.data_bytes)).child(chart(
        "Control, kbit/s",
        "calls, requests, acknowledgements",
        1e3,
        |row| row.control_bytes,
    ))
}

fn by_role(found: &Characteristics) -> Element {
    let heads = ["from", "to", "connections", "messages", "bytes", "control", "data", "mean rate", "peak rate"];
    let rows = found.roles.iter().take(SHOWN).map(|row| {
        let counts = [row.connections, row.messages].map(count).to_vec();
        let sizes = [row.bytes, row.control_bytes, row.data_bytes].map(bytes).to_vec();
        [
            vec![row.from_role.clone(), row.to_role.clone()],
            counts,
            sizes,
            [row.mean_bps, row.peak_bps].map(bits).to_vec(),
        ]
        .concat()
    });
    let fans = found.fans.iter().map(|row| {
        let counts =
            [row.processes, row.fan_out_p50, row.fan_out_max, row.fan_in_p50, row.fan_in_max].map(count).to_vec();
        [vec![row.role.clone()], counts].concat()
    });
    let heads_of_fans = ["role", "processes", "opens to, median", "most", "is opened by, median", "most"];
    section("Who speaks with whom", "By role of sender and receiver, each direction by itself.")
        .child(table(&heads, 2, rows))
        .child(element("h3").text("Peers"))
        .child(table(&heads_of_fans, 1, fans))
}

fn by_phase(found: &Characteristics) -> Element {
    let heads = ["job", "phase", "time", "messages", "control", "data", "unknown"];
    let rows = found.phases.iter().take(SHOWN).map(phase_cells);
    section(
        "Phases",
        "A message counts for the phase in which it began: setup until the first map starts, map until the last has ended, \
         shuffle until the last reduce has all map outputs, reduce until the last task has ended, commit until the job has.",
    )
    .child(table(&heads, 2, rows))
}

fn calls(found: &Characteristics) -> Element {
    let heads = [
        "protocol",
        "call",
        "requests",
        "median",
        "99%",
        "responses",
        "median",
        "99%",
        "service, median",
        "99%",
        "gap, median",
        "99%",
    ];
    let rows = found.calls.iter().take(SHOWN).map(|row| {
        let names = vec![row.protocol.clone(), row.name.clone()];
        let requests = vec![count(row.requests), bytes(row.request_p50_bytes), bytes(row.request_p99_bytes)];
        let responses = vec![count(row.responses), bytes(row.response_p50_bytes), bytes(row.response_p99_bytes)];
        let times = [row.service_p50_ns, row.service_p99_ns, row.gap_p50_ns, row.gap_p99_ns].map(nanoseconds).to_vec();
        [names, requests, responses, times].concat()
    });
    section(
        "Calls",
        "Sizes of requests and responses; service: from a request's delivery to the first byte of its response; gap: between two \
         such requests of one process.",
    )
    .child(table(&heads, 2, rows))
}

fn sizes(found: &Characteristics) -> Element {
    let decades: Vec<(f64, String)> = (0..=12)
        .map(|decade: i32| (f64::from(decade), bytes(10_u64.pow(decade.unsigned_abs()))))
        .filter(|(decade, _)| found.sizes.iter().any(|row| log(row.bytes) > decade - 1.0))
        .collect();
    let places: Vec<(f64, &str)> = decades.iter().map(|(at, name)| (*at, name.as_str())).collect();
    let line = |name: &str, of: &str, value: fn(&SizeRow) -> f64| {
        let points = found.sizes.iter().filter(|row| row.unit == of).map(|row| (log(row.bytes), value(row), false));
        let points: Vec<_> = points.collect();
        let begin = points.first().map(|first| (first.0, 0.0, false));
        Line { name: name.to_owned(), points: begin.into_iter().chain(points).collect() }
    };
    let number = |row: &SizeRow| f64::from(row.percent) / 100.0;
    let lines = [
        line("connections", "connections", number),
        line("their bytes", "connections", |row| row.share_of_bytes),
        line("messages", "messages", number),
        line("bytes of messages", "messages", |row| row.share_of_bytes),
    ];
    let title = "Share that is not larger";
    let chart = Chart { title, over: "Size", places: &places, hollow: "", diagonal: false, dots: false, joined: true };
    let drawn = section(
        "Elephants and mice",
        "Which share of all connections and messages, and of their bytes, is not larger than a size; sizes on a logarithmic scale.",
    );
    if found.sizes.is_empty() { drawn.child(note("There is no message.")) } else { drawn.child(chart.draw(&lines)) }
}

fn log(bytes: u64) -> f64 {
    libm::log10(bytes.max(1) as f64)
}

fn connections(found: &Characteristics) -> Element {
    let heads = ["protocol", "connections", "bytes", "median", "99%", "largest", "life, median", "99%", "longest"];
    let rows = found.protocols.iter().map(|row| {
        let sizes = [row.bytes, row.p50_bytes, row.p99_bytes, row.max_bytes].map(bytes).to_vec();
        let lives = [row.life_p50_ns, row.life_p99_ns, row.life_max_ns].map(nanoseconds).to_vec();
        [vec![row.protocol.clone(), count(row.connections)], sizes, lives].concat()
    });
    let scopes = found.locality.iter().map(locality_cells);
    section("Connections", "Lives are those of connections that were recorded from their first packet to their last.")
        .child(table(&heads, 1, rows))
        .child(element("h3").text("How far the payload goes"))
        .child(table(&["within", "protocol", "connections", "bytes"], 2, scopes))
}

fn shuffle(found: &Characteristics) -> Element {
    let heads = ["job", "maps", "reduces", "bytes", "largest reduce / mean", "largest map / mean", "on its host"];
    let rows = found.shuffles.iter().map(|row| {
        vec![
            row.job.clone(),
            count(row.maps),
            count(row.reduces),
            bytes(row.app_bytes),
            format!("{:.2}", row.reduce_skew),
            format!("{:.2}", row.map_skew),
            share(row.local_share),
        ]
    });
    section("Shuffle", "Map output that reduces fetched; the table shuffle.parquet has a row for each map and reduce.")
        .child(table(&heads, 1, rows))
}
