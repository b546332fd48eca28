//! The critical path: shares of all experiments, and the way of one through time.

use super::words::word;
use crate::results::{Detail, PieceDetail};
use pages::format;
use pages::markup::{Element, div, element, table};

/// A kind of piece, and how it is shown.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) label: &'static str,
}

/// All kinds, in the order in which bars are stacked.
pub(super) const KINDS: [Kind; 7] = [
    Kind { name: "network", class: "k-network", label: "network" },
    Kind { name: "think", class: "k-think", label: "computing, disks" },
    Kind { name: "hidden-work", class: "k-hidden-work", label: "work while bytes wait" },
    Kind { name: "timer-wait", class: "k-timer-wait", label: "waiting for a heartbeat" },
    Kind { name: "timer-pause", class: "k-timer-pause", label: "a timer's pause" },
    Kind { name: "slot", class: "k-slot", label: "waiting for a container" },
    Kind { name: "outside", class: "k-outside", label: "cause not in the trace" },
];

/// A piece is drawn by itself if it is longer than one part of so many of the time: what can be seen when a part is zoomed in.
const MAX_PARTS_DRAWN: f64 = 4_000.0;

/// What a kind is called.
pub(super) fn kind_label(name: &str) -> &str {
    KINDS.iter().find(|kind| kind.name == name).map_or(name, |kind| kind.label)
}

fn kind_class(name: &str) -> &'static str {
    KINDS.iter().find(|kind| kind.name == name).map_or("k-outside", |kind| kind.class)
}

/// A table of all shares that matter, experiments side by side.
pub(super) fn shares(details: &[&Detail]) -> Element {
    const MIN_SHARE: f64 = 0.01;
    let mut rows: Vec<(&str, &str, f64)> = Vec::new();
    for share in details.iter().flat_map(|detail| &detail.summary.critical_path) {
        match rows.iter_mut().find(|(kind, what, _)| *kind == share.kind && *what == share.what) {
            Some((_, _, largest)) => *largest = largest.max(share.share),
            None => rows.push((&share.kind, &share.what, share.share)),
        }
    }
    rows.retain(|(_, _, largest)| *largest >= MIN_SHARE);
    rows.sort_by(|a, b| b.2.total_cmp(&a.2));
    let head = element("tr").child(element("th").text("the job waits for")).children(details.iter().map(|detail| {
        element("th").with("class", "n").with("data-of", &detail.summary.name).text(&detail.summary.name)
    }));
    let body = rows.iter().map(|(kind, what, _)| {
        let of = |detail: &&Detail| {
            let share = detail.summary.critical_path.iter().find(|share| share.kind == *kind && share.what == *what);
            let cell = element("td").with("class", "n").with("data-of", &detail.summary.name);
            match share {
                Some(share) => {
                    cell.text(format::seconds(share.seconds)).child(element("small").text(format::share(share.share)))
                }
                None => cell.text("–"),
            }
        };
        element("tr")
            .child(
                element("th")
                    .with("scope", "row")
                    .child(element("i").with("class", kind_class(kind)))
                    .text(what)
                    .child(element("small").text(kind_label(kind))),
            )
            .children(details.iter().map(of))
    });
    let shares = div("scroll").with("tabindex", 0).child(
        element("table")
            .with("class", "shares")
            .child(element("thead").child(head))
            .child(element("tbody").children(body)),
    );
    element("section")
        .with("class", "wide")
        .child(element("h2").text("What the time consists of"))
        .child(
            element("p")
                .with("class", "hint")
                .text("The ")
                .child(word("critical-path", ""))
                .text(", summed up. What is below one percent everywhere is left out."),
        )
        .child(shares)
}

/// The way of the critical path through a time up to `end_s`.
pub(super) fn strip(detail: &Detail, end_s: f64) -> Element {
    let pieces = readable(&detail.path, end_s);
    let drawn = pieces.iter().map(|piece| {
        let tip = format!(
            "{}\n{} {}\n{} – {} · {}",
            kind_label(&piece.kind),
            piece.what,
            piece.place,
            format::seconds(piece.from_s),
            format::seconds(piece.to_s),
            format::seconds(piece.to_s - piece.from_s),
        );
        element("span")
            .with("class", kind_class(&piece.kind))
            .with(
                "style",
                format!(
                    "left:{};width:{}",
                    format::percent_of(piece.from_s, end_s),
                    format::percent_of(piece.to_s - piece.from_s, end_s)
                ),
            )
            .with("data-tip", tip)
    });
    div("lanes").child(div("strip reel").children(drawn))
}

/// What the critical path waits for longest between two moments: kind, what, and how long.
pub(super) fn most_between(detail: &Detail, from_s: f64, to_s: f64) -> Option<(&str, &str, f64)> {
    let mut waits: Vec<(&str, &str, f64)> = Vec::new();
    for piece in &detail.path {
        let seconds = piece.to_s.min(to_s) - piece.from_s.max(from_s);
        match waits.iter_mut().find(|(kind, what, _)| *kind == piece.kind && *what == piece.what) {
            _ if seconds <= 0.0 => (),
            Some((_, _, all)) => *all += seconds,
            None => waits.push((&piece.kind, &piece.what, seconds)),
        }
    }
    waits.into_iter().max_by(|a, b| a.2.total_cmp(&b.2))
}

/// The longest pieces of the critical path, in the order of time.
pub(super) fn pieces(detail: &Detail) -> Element {
    let end_s = detail.summary.job_time_s;
    let mut longest: Vec<&PieceDetail> = detail.path.iter().collect();
    longest.sort_by(|a, b| (b.to_s - b.from_s).total_cmp(&(a.to_s - a.from_s)));
    longest.truncate(25);
    longest.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    let rows = longest.into_iter().map(|piece| {
        vec![
            kind_label(&piece.kind).to_owned(),
            piece.what.clone(),
            piece.place.clone(),
            format::seconds(piece.from_s),
            format::seconds(piece.to_s - piece.from_s),
            format::share((piece.to_s - piece.from_s) / end_s.max(f64::MIN_POSITIVE)),
            piece.steps.to_string(),
        ]
    });
    table(&["waits for", "in the form of", "where", "from", "for", "share", "steps"], 3, rows)
}

/// Pieces too short to be seen are put together with their neighbours, under the name of the longest of them.
fn readable(path: &[PieceDetail], end_s: f64) -> Vec<PieceDetail> {
    let shortest_s = end_s / MAX_PARTS_DRAWN;
    let mut readable: Vec<PieceDetail> = Vec::new();
    let mut longest_s = 0.0;
    for piece in path {
        let length_s = piece.to_s - piece.from_s;
        let last = readable.last_mut().filter(|last| last.to_s - last.from_s < shortest_s);
        match last {
            Some(last) if length_s < shortest_s => {
                if length_s > longest_s {
                    (last.kind, last.what, last.place) = (piece.kind.clone(), piece.what.clone(), piece.place.clone());
                    longest_s = length_s;
                }
                last.to_s = piece.to_s;
            }
            _ => {
                readable.push(piece.clone());
                longest_s = length_s;
            }
        }
    }
    readable
}
