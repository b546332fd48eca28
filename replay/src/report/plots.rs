//! Plots of a replay's scalars and vectors, as the LIGHTNESS deliverable drew them with R from OMNEST's result files: each
//! node's and link's figures as bars, throughput and transfer times as curves. Each is a picture of its own, and all are in
//! the report.

use crate::results::{Detail, LinkDetail, StoreError};
use pages::format;
use pages::markup::{Element, div, element};
use std::path::Path;

/// Bars and curves at most.
const MAX_BARS: usize = 24;
const MAX_CURVES: usize = 6;
/// A curve has so many points at most.
const MAX_POINTS: usize = 240;
const WIDTH: f64 = 860.0;
/// Where bars and axes begin, and how long the longest bar and the time axis are.
const LEFT: f64 = 190.0;
const MAX_LENGTH: f64 = 540.0;
const TOP: f64 = 44.0;
const ROW: f64 = 20.0;
/// Height of the drawings with axes.
const HEIGHT: f64 = 240.0;
const COLOURS: [&str; 6] = ["#1f6feb", "#d1570a", "#2f8f4e", "#8250df", "#bf3989", "#57606a"];

/// A picture.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The file's name, without its ending.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    picture: Element,
}

impl Plot {
    /// The picture as an SVG file.
    #[must_use]
    pub fn svg(&self) -> String {
        format!("{}\n", self.picture.clone().with("xmlns", "http://www.w3.org/2000/svg"))
    }
}

/// All plots of a replay for which there is something to draw.
#[must_use]
pub fn of_run(detail: &Detail) -> Vec<Plot> {
    let links = &detail.links;
    let number = |link: &LinkDetail, of: fn(&LinkDetail) -> u64| (link.name.clone(), float(of(link)));
    let by = |of: fn(&LinkDetail) -> u64| links.iter().map(|link| number(link, of)).collect::<Vec<_>>();
    let whole = |value: f64| format::bytes(rounded(value));
    let packets = |value: f64| format::count(rounded(value));
    let utilisation = links.iter().filter_map(|link| Some((link.name.clone(), link.utilisation?))).collect();
    let plots = [
        bars("nodes-sent", "Bytes that each node sent", node_bytes(detail, true), None, whole),
        bars("nodes-received", "Bytes that each node received", node_bytes(detail, false), None, whole),
        bars("links-bytes", "Bytes that crossed each link", by(|link| link.bytes), None, whole),
        bars("links-packets", "Packets that crossed each link", by(|link| link.packets), None, packets),
        bars(
            "links-utilisation",
            "Mean utilisation of each link, of a full width of 100%",
            utilisation,
            Some(1.0),
            format::share,
        ),
        bars("links-queues", "Longest queue in front of each link", by(|link| link.queue_max_bytes), None, whole),
        bars("links-drops", "Packets lost at each link", by(|link| link.drops), None, packets),
        throughput(detail),
        transfer_times(detail),
    ];
    plots.into_iter().flatten().collect()
}

/// Writes all plots of a replay as SVG files into the folder `plots` of its results.
///
/// # Errors
/// If one cannot be written.
pub fn write(results: &Path, detail: &Detail) -> Result<(), StoreError> {
    let folder = results.join("plots");
    crate::results::make_folder(&folder)?;
    for plot in of_run(detail) {
        crate::results::write_text(&folder.join(format!("{}.svg", plot.name)), &plot.svg())?;
    }
    Ok(())
}

/// The section with all plots.
pub(super) fn section(detail: &Detail) -> Element {
    let pictures = of_run(detail).into_iter().map(|plot| div("plotted").child(plot.picture));
    element("section").child(element("h3").text("Result plots")).child(
        element("details")
            .child(element("summary").text("Figures of nodes and links, throughput and transfer times as pictures"))
            .children(pictures),
    )
}

#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn float(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn float_count(value: usize) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that was one")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// Bytes on the links from (or to) each host.
fn node_bytes(detail: &Detail, sent: bool) -> Vec<(String, f64)> {
    let bytes = |host: &String| {
        let own = detail.links.iter().filter(|link| {
            let ends = link.name.split_once("->");
            ends.is_some_and(|(from, to)| if sent { from == host } else { to == host })
        });
        float(own.map(|link| link.bytes).sum())
    };
    detail.hosts.iter().map(|host| (host.clone(), bytes(host))).collect()
}

fn picture(height: f64, title: &str) -> Element {
    element("svg")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("width", "100%")
        .with("role", "img")
        .with("aria-label", title)
        .with("font-family", "sans-serif")
        .with("font-size", 12)
        // The page colours this by its theme; a file of its own is white.
        .child(
            element("rect").with("class", "paper").with("width", WIDTH).with("height", height).with("fill", "#ffffff"),
        )
        .child(text(12.0, 22.0, title).with("font-size", 15).with("font-weight", "bold"))
}

fn text(x: f64, y: f64, content: &str) -> Element {
    element("text").with("x", format!("{x:.1}")).with("y", format!("{y:.1}")).with("fill", "#1b1f24").text(content)
}

/// The largest values as bars, of which the longest is the largest value, or `full`; nothing if all are 0.
fn bars(
    name: &'static str,
    title: &'static str,
    mut values: Vec<(String, f64)>,
    full: Option<f64>,
    say: impl Fn(f64) -> String,
) -> Option<Plot> {
    values.retain(|(_, value)| *value > 0.0);
    values.sort_by(|a, b| b.1.total_cmp(&a.1));
    let largest = values.first()?.1;
    let most = full.unwrap_or(largest);
    let left_out = values.len().saturating_sub(MAX_BARS);
    values.truncate(MAX_BARS);
    let height = TOP + ROW * float_count(values.len()) + 26.0;
    let mut drawn = picture(height, title);
    let mut y = TOP;
    for (label, value) in &values {
        let length = MAX_LENGTH * (value / most).min(1.0);
        drawn = drawn
            .child(text(LEFT - 8.0, y + 12.0, label).with("text-anchor", "end"))
            .child(
                element("rect")
                    .with("x", LEFT)
                    .with("y", format!("{y:.1}"))
                    .with("width", format!("{length:.1}"))
                    .with("height", 14)
                    .with("fill", COLOURS[0]),
            )
            .child(text(LEFT + length + 6.0, y + 12.0, &say(*value)));
        y += ROW;
    }
    if left_out > 0 {
        drawn = drawn.child(text(LEFT, y + 14.0, &format!("{left_out} more, with less")));
    }
    Some(Plot { name, title, picture: drawn })
}

/// A curve: its name, and its points, both of which are shares of the axes.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// Curves between an upper end and marks along the lower one, each a share of its length and a text.
fn curves(title: &'static str, curves: &[Curve], top: &str, marks: &[(f64, String)]) -> Element {
    let height = TOP + HEIGHT + 30.0 + 18.0 * float_count(curves.len());
    let bottom = TOP + HEIGHT;
    let axis = element("path")
        .with("d", format!("M{LEFT} {TOP}V{bottom}H{}", LEFT + MAX_LENGTH))
        .with("fill", "none")
        .with("stroke", "#57606a");
    let mark = |(at, name): &(f64, String)| {
        let x = LEFT + MAX_LENGTH * at;
        let line = element("path").with("d", format!("M{x:.1} {TOP}V{bottom}")).with("stroke", "#57606a");
        let anchor = if *at > 0.98 { "end" } else { "middle" };
        [line.with("stroke-opacity", "0.25"), text(x, bottom + 16.0, name).with("text-anchor", anchor)]
    };
    let mut drawn = picture(height, title)
        .child(axis)
        .child(text(LEFT - 8.0, TOP + 8.0, top).with("text-anchor", "end"))
        .children(marks.iter().flat_map(mark));
    for (number, curve) in curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let mut outline = String::new();
        for (x, y) in &curve.points {
            let step = if outline.is_empty() { 'M' } else { 'L' };
            outline.push_str(&format!("{step}{:.1} {:.1}", LEFT + MAX_LENGTH * x, bottom - HEIGHT * y));
        }
        let y = bottom + 32.0 + 18.0 * float_count(number);
        drawn = drawn
            .child(
                element("path")
                    .with("d", outline)
                    .with("fill", "none")
                    .with("stroke", colour)
                    .with("stroke-width", 1.5),
            )
            .child(
                element("rect")
                    .with("x", LEFT)
                    .with("y", y - 9.0)
                    .with("width", 12)
                    .with("height", 10)
                    .with("fill", colour),
            )
            .child(text(LEFT + 18.0, y, &curve.name));
    }
    drawn
}

/// Throughput of the busiest links over time.
fn throughput(detail: &Detail) -> Option<Plot> {
    let mut links: Vec<&LinkDetail> = detail.links.iter().filter(|link| link.bytes > 0).collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.bytes));
    links.truncate(MAX_CURVES);
    let intervals = links.iter().map(|link| link.bytes_by_interval.len()).max().filter(|intervals| *intervals > 0)?;
    let together = intervals.div_ceil(MAX_POINTS);
    let rate = |bytes: &[u64]| {
        float(bytes.iter().sum()) * 8.0 / (detail.interval_s * float_count(bytes.len())).max(f64::MIN_POSITIVE)
    };
    let rates: Vec<Vec<f64>> =
        links.iter().map(|link| link.bytes_by_interval.chunks(together).map(rate).collect()).collect();
    let most = rates.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let x = |number: usize| float_count(number * together) / float_count(intervals);
    let drawn: Vec<Curve> = links
        .iter()
        .zip(&rates)
        .map(|(link, rates)| {
            let steps = rates.iter().enumerate();
            let points =
                steps.flat_map(|(number, rate)| [(x(number), rate / most), (x(number + 1).min(1.0), rate / most)]);
            Curve { name: link.name.clone(), points: points.collect() }
        })
        .collect();
    let title = "Throughput of the busiest links over time";
    let end_s = detail.interval_s * float_count(intervals);
    let mut marks: Vec<(f64, String)> = format::ticks(end_s, 6.0)
        .into_iter()
        .map(|tick| (tick / end_s.max(f64::MIN_POSITIVE), format::tick(tick)))
        .collect();
    marks.retain(|(at, _)| *at <= 1.0);
    let picture = curves(
        title,
        &drawn,
        &format!(
            "{} (mean of {})",
            format::rate(rounded(most)),
            format::seconds(detail.interval_s * float_count(together))
        ),
        &marks,
    );
    Some(Plot { name: "links-throughput", title, picture })
}

/// How many messages took no longer than a time, simulated and recorded; the time's axis is logarithmic.
fn transfer_times(detail: &Detail) -> Option<Plot> {
    let sorted = |of: fn(&crate::results::TransferPoint) -> f64| {
        let mut times: Vec<f64> = detail.points.iter().map(of).filter(|time| *time > 0.0).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (simulated, recorded) = (sorted(|point| point.simulated_s), sorted(|point| point.recorded_s));
    let all = || simulated.iter().chain(&recorded).copied();
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if most <= 0.0 {
        return None;
    }
    // Whole decades, of which at least one is drawn.
    let (low, high) = (libm::log10(least).floor(), libm::log10(most).ceil().max(libm::log10(least).floor() + 1.0));
    let decades = (0u32..=18).map(|decade| low + f64::from(decade)).take_while(|decade| *decade <= high);
    let marks: Vec<(f64, String)> = decades
        .map(|decade| {
            (
                (decade - low) / (high - low),
                format::seconds(libm::pow(10.0, decade)).replace(".00", "").replace(".0", ""),
            )
        })
        .collect();
    let curve = |name: &str, times: &[f64]| {
        let y = |number: usize| float_count(number + 1) / float_count(times.len());
        let points = times
            .iter()
            .enumerate()
            .map(|(number, time)| ((libm::log10(*time) - low) / (high - low), y(number)))
            .collect();
        Curve { name: name.to_owned(), points }
    };
    let title = "Share of messages between hosts that took at most so long (time: logarithmic)";
    let drawn = [curve("simulated", &simulated), curve("recorded", &recorded)];
    Some(Plot { name: "transfer-times", title, picture: curves(title, &drawn, "100%", &marks) })
}
