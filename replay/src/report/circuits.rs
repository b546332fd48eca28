//! Optical circuits by port, over the time of a job or of synthetic traffic.

use std::collections::BTreeMap;

use super::timeline;
use crate::results::synthetic::CircuitsDrawn;
use crate::results::{CircuitDetail, CircuitSummary, Detail};
use pages::format;
use pages::markup::{Element, div, element, table};
use pages::parts::{grid, legend, time_axis};

/// So many ports, and circuits, are drawn; the table of results has all that are remembered.
const MAX_PORTS: usize = 64;
const MAX_CIRCUITS: usize = 2_000;

/// What is shown of the circuits of one run.
struct Shown<'a> {
    summary: &'a CircuitSummary,
    circuits: &'a [CircuitDetail],
    /// So many are in the table of results.
    known: usize,
    /// When the run ended, and the axis does, seconds.
    run_end_s: f64,
    end_s: f64,
}

/// The section of a job, where the fabric has circuits.
pub(super) fn section(detail: &Detail) -> Option<Element> {
    let summary = detail.summary.circuits.as_ref()?;
    let shown = Shown {
        summary,
        circuits: &detail.circuits[..detail.circuits.len().min(MAX_CIRCUITS)],
        known: detail.circuits.len(),
        run_end_s: detail.summary.job_time_s,
        end_s: timeline::end_s(detail),
    };
    let [picture, table] = drawn(&shown);
    Some(element("section").child(element("h3").text("Optical circuits")).child(picture).child(table))
}

/// The same of synthetic traffic, with an axis of its own.
pub(super) fn of_traffic(circuits: &CircuitsDrawn) -> Element {
    let shown = Shown {
        summary: &circuits.summary,
        circuits: &circuits.circuits,
        known: circuits.known,
        run_end_s: circuits.end_s,
        end_s: circuits.end_s,
    };
    let [picture, table] = drawn(&shown);
    div("circuits")
        .child(element("h4").text("Optical circuits of the first seed"))
        .child(timeline::zoomer(["whole run", "Whole run"], "or drag over the chart; Ctrl and wheel; keys + − ← → 0"))
        .child(picture)
        .child(table)
}

fn drawn(shown: &Shown) -> [Element; 2] {
    let end_s = shown.end_s;
    let mut ports: BTreeMap<(&str, u32), Vec<&CircuitDetail>> = BTreeMap::new();
    for circuit in shown.circuits {
        ports.entry((&circuit.from, circuit.input)).or_default().push(circuit);
    }
    let rows = ports.iter().take(MAX_PORTS).map(|((rack, port), circuits)| {
        let (label, name) = (format!("{rack}:{port}"), format!("{rack}, port {port}"));
        let lane = div("lane reel").children(circuits.iter().flat_map(|circuit| bars(circuit, shown)));
        div("host").child(div("label").with("title", &name).text(&label)).child(div("lanes").child(lane))
    });
    let plot = div("plot")
        .with("data-end", end_s)
        .with("data-brush", "")
        .with("tabindex", 0)
        .with("role", "group")
        .with("aria-label", "Optical circuits by input port over time. Plus and minus zoom, arrows move, 0 shows all.")
        .child(grid(end_s))
        .children(rows)
        .child(time_axis(end_s));
    let picture = div("ports")
        .child(element("p").with("class", "hint").text(sentence(shown.summary)))
        .child(legend([("k-timer-wait", "set up, nothing can pass"), ("k-network", "up")]))
        .child(plot)
        .child(element("p").with("class", "hint").text(left_out(shown, ports.len())));
    let as_table = element("summary").text("Circuits as a table");
    [picture, element("details").child(as_table).child(table_of(shown.circuits))]
}

fn sentence(summary: &CircuitSummary) -> String {
    if summary.requests == 0 {
        return format!(
            "{} circuits carried something, as they had been scheduled. They held {} of the ports' time; {} of the ports' time ({}, added up \
             over the ports) went into their set-up. {} packets crossed them, {}.",
            format::count(summary.set_up),
            format::share(summary.occupancy),
            format::share(summary.reconfiguring_share),
            format::seconds(summary.reconfiguring_s),
            format::count(summary.packets),
            format::bytes(summary.bytes),
        );
    }
    format!(
        "{} of {} requests were granted, {} refused and repeated. {} circuits were released when idle, {} given up for another request. \
         They held {} of the ports' time; {} of the ports' time ({}, added up over the ports) went into their set-up. {} packets crossed them, {}.",
        format::count(summary.set_up),
        format::count(summary.requests),
        format::count(summary.refused),
        format::count(summary.released_idle),
        format::count(summary.evicted),
        format::share(summary.occupancy),
        format::share(summary.reconfiguring_share),
        format::seconds(summary.reconfiguring_s),
        format::count(summary.packets),
        format::bytes(summary.bytes),
    )
}

/// What is not drawn.
fn left_out(shown: &Shown, ports: usize) -> String {
    let more = |number: usize| format::count(u64::try_from(number).unwrap_or(u64::MAX));
    match (shown.known.saturating_sub(shown.circuits.len()), ports.saturating_sub(MAX_PORTS)) {
        (0, 0) => "Each row is an input port of the circuit switch: its rack, and its number there.".to_owned(),
        (0, ports) => format!("{} more ports are in circuits.parquet.", more(ports)),
        (circuits, _) => format!("{} more circuits are in circuits.parquet.", more(circuits)),
    }
}

/// A circuit's set-up, and the time for which it is up.
fn bars(circuit: &CircuitDetail, shown: &Shown) -> Vec<Element> {
    let (end, end_s) = (shown.run_end_s, shown.end_s);
    let up = circuit.up_s.unwrap_or(end).min(end);
    let released = circuit.released_s.unwrap_or(end).min(end);
    let ended = match circuit.end() {
        None => "not released before the end",
        Some("evicted") => "given up for another request",
        Some("scheduled") => "its time was over",
        Some(_) => "released when idle",
    };
    let tip = format!(
        "{} → {}\nasked for {}, granted {}, up {}\n{} packets, {}\n{ended}",
        circuit.from,
        circuit.to,
        format::seconds(circuit.asked_s),
        format::seconds(circuit.granted_s),
        format::maybe_seconds(circuit.up_s),
        format::count(circuit.packets),
        format::bytes(circuit.bytes),
    );
    let bar = |class: &str, from: f64, to: f64| {
        let (left, width) = (format::percent_of(from, end_s), format::percent_of((to - from).max(0.0), end_s));
        element("span")
            .with("class", class)
            .with("style", format!("left:{left};width:{width}"))
            .with("data-tip", tip.clone())
    };
    let set_up = (circuit.granted_s < up).then(|| bar("k-timer-wait", circuit.granted_s, up));
    set_up.into_iter().chain((up < released).then(|| bar("k-network", up, released))).collect()
}

fn table_of(circuits: &[CircuitDetail]) -> Element {
    let headers = [
        "from",
        "port",
        "wavelength",
        "to",
        "port",
        "asked",
        "granted",
        "up",
        "last used",
        "released",
        "packets",
        "bytes",
        "end",
    ];
    let rows = circuits.iter().map(|circuit| {
        vec![
            circuit.from.clone(),
            circuit.input.to_string(),
            circuit.wavelength.to_string(),
            circuit.to.clone(),
            circuit.output.to_string(),
            format::seconds(circuit.asked_s),
            format::seconds(circuit.granted_s),
            format::maybe_seconds(circuit.up_s),
            format::maybe_seconds(circuit.last_used_s),
            format::maybe_seconds(circuit.released_s),
            format::count(circuit.packets),
            format::bytes(circuit.bytes),
            circuit.end().unwrap_or("–").to_owned(),
        ]
    });
    table(&headers, 1, rows)
}
