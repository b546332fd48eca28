//! Load-latency curves of a sweep.

use super::format;
use super::markup::{Element, element};
use crate::results::synthetic::{PointDetail, TrafficDetail};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 48.0;
/// Of one legend entry.
const ROW: f64 = 18.0;
/// Values further apart than this are drawn by their logarithms.
const LINEAR_UP_TO: f64 = 12.0;
const COLOURS: [&str; 8] = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#0e7490", "#bf3989", "#57606a"];

/// A line: its name and its points, with whether each is saturated.
struct Line {
    name: String,
    points: Vec<(f64, f64, bool)>,
}

/// The pictures of a sweep over loads, as files: name and SVG. None where the load has only one value.
#[must_use]
pub fn curves(detail: &TrafficDetail) -> Vec<(&'static str, String)> {
    let standing = |picture: Element| {
        let white = element("rect").with("width", "100%").with("height", "100%").with("fill", "#ffffff");
        let body = picture.to_string();
        // The background comes first, behind everything else.
        body.replacen('>', &format!(" xmlns=\"http://www.w3.org/2000/svg\">{white}"), 1)
    };
    let mut files = Vec::new();
    if let Some(picture) = latency(detail) {
        files.push(("latency.svg", format!("{}\n", standing(picture))));
    }
    if let Some(picture) = accepted(detail) {
        files.push(("accepted.svg", format!("{}\n", standing(picture))));
    }
    files
}

/// Mean packet latency over offered load.
pub(super) fn latency(detail: &TrafficDetail) -> Option<Element> {
    let lines = lines(detail, |point| point.summary.packet_latency_mean_cycles)?;
    Some(chart(&lines, "Mean packet latency, source queue included (cycles)", false))
}

/// Accepted over offered load.
pub(super) fn accepted(detail: &TrafficDetail) -> Option<Element> {
    let lines = lines(detail, |point| point.summary.accepted_load)?;
    Some(chart(&lines, "Accepted load (flits per node and flit time)", true))
}

/// A line for each combination of the keys that are not the load.
fn lines(detail: &TrafficDetail, value: impl Fn(&PointDetail) -> Option<f64>) -> Option<Vec<Line>> {
    let is_load = |path: &str| matches!(path, "traffic.load" | "traffic.interval");
    let load = detail.axes.iter().position(|axis| is_load(&axis.path) && axis.values.len() > 1)?;
    let mut lines: Vec<Line> = Vec::new();
    for point in &detail.points {
        let others = detail.axes.iter().zip(&point.values).enumerate().filter(|(number, _)| *number != load);
        let name = others.map(|(_, (axis, index))| {
            let key = axis.path.rsplit('.').next().unwrap_or_default();
            format!("{key} = {}", axis.values.get(*index).map_or("", String::as_str))
        });
        let name = name.collect::<Vec<_>>().join(", ");
        let (Some(x), Some(y)) = (point.summary.offered_load, value(point)) else { continue };
        let at = (x, y, point.summary.saturated);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(at),
            None => lines.push(Line { name, points: vec![at] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    (!lines.is_empty()).then_some(lines)
}

/// Where values are drawn.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let of = |value: f64| if self.logarithmic { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let span = of(self.high) - of(self.low);
        let share = if span > 0.0 { (of(value) - of(self.low)) / span } else { 0.0 };
        self.from + share * (self.to - self.from)
    }

    /// Round numbers along it.
    fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            return format::ticks(self.high, 6.0);
        }
        let mut ticks = Vec::new();
        let mut power = 10f64.powf(self.low.log10().floor());
        while power <= self.high {
            ticks.extend(
                [1.0, 2.0, 5.0]
                    .map(|step| step * power)
                    .into_iter()
                    .filter(|tick| (self.low..=self.high).contains(tick)),
            );
            power *= 10.0;
        }
        ticks
    }
}

fn chart(lines: &[Line], title: &str, diagonal: bool) -> Element {
    let legend = lines.iter().filter(|line| !line.name.is_empty()).count();
    let most = |of: fn(&(f64, f64, bool)) -> f64| {
        lines.iter().flat_map(|line| &line.points).map(of).fold(0.0f64, f64::max).max(f64::MIN_POSITIVE)
    };
    let least = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(f64::INFINITY, f64::min);
    let (wide, high) = (most(|point| point.0), most(|point| point.1));
    let logarithmic = !diagonal && least > 0.0 && high / least > LINEAR_UP_TO;
    let x = Scale { low: 0.0, high: wide * 1.05, logarithmic: false, from: LEFT, to: WIDTH - RIGHT };
    let low = if logarithmic { least * 0.8 } else { 0.0 };
    let y = Scale { low, high: high * 1.1, logarithmic, from: HEIGHT - BOTTOM, to: TOP };
    #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
    let height = HEIGHT + ROW * legend as f64;
    let mut picture = element("svg")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("width", "100%")
        .with("role", "img")
        .with("aria-label", title)
        .with("font-family", "sans-serif")
        .with("font-size", 12)
        .child(text(LEFT, 20.0, title, "start").with("font-weight", "bold"))
        .child(text(
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 10.0,
            "Offered load (flits per node and flit time)",
            "middle",
        ));
    for tick in x.ticks().into_iter().filter(|tick| *tick <= x.high) {
        picture = picture.child(line((x.at(tick), TOP), (x.at(tick), HEIGHT - BOTTOM))).child(text(
            x.at(tick),
            HEIGHT - BOTTOM + 16.0,
            &number(tick),
            "middle",
        ));
    }
    for tick in y.ticks().into_iter().filter(|tick| *tick <= y.high) {
        picture = picture.child(line((LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)))).child(text(
            LEFT - 8.0,
            y.at(tick) + 4.0,
            &number(tick),
            "end",
        ));
    }
    if diagonal {
        let end = x.high.min(y.high);
        picture = picture.child(line((x.at(0.0), y.at(0.0)), (x.at(end), y.at(end))).with("stroke-dasharray", "4 4"));
    }
    for (index, one) in lines.iter().enumerate() {
        picture = picture.children(curve(one, COLOURS[index % COLOURS.len()], &x, &y));
    }
    for (index, one) in lines.iter().filter(|line| !line.name.is_empty()).enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
        let at = HEIGHT + ROW * index as f64;
        let mark = element("rect").with("x", LEFT).with("y", at).with("width", 12).with("height", 12);
        picture = picture.child(mark.with("fill", COLOURS[index % COLOURS.len()])).child(text(
            LEFT + 18.0,
            at + 10.0,
            &one.name,
            "start",
        ));
    }
    picture
}

/// A line with its points; saturated ones are hollow.
fn curve(line: &Line, colour: &'static str, x: &Scale, y: &Scale) -> Vec<Element> {
    let places: Vec<String> =
        line.points.iter().map(|point| format!("{:.1},{:.1}", x.at(point.0), y.at(point.1))).collect();
    let way = element("polyline").with("points", places.join(" ")).with("fill", "none").with("stroke", colour);
    let mut drawn = vec![way.with("stroke-width", 2)];
    for (load, value, saturated) in &line.points {
        let dot =
            element("circle").with("cx", format!("{:.1}", x.at(*load))).with("cy", format!("{:.1}", y.at(*value)));
        let told = format!(
            "{}: {} at {}{}",
            line.name,
            number(*value),
            number(*load),
            if *saturated { ", saturated" } else { "" }
        );
        let told = told.trim_start_matches(": ").to_owned();
        let dot = dot.with("r", 4).with("stroke", colour).with("fill", if *saturated { "#ffffff" } else { colour });
        drawn.push(dot.child(element("title").text(told)));
    }
    drawn
}

fn text(x: f64, y: f64, content: &str, anchor: &str) -> Element {
    let place = element("text").with("x", format!("{x:.1}")).with("y", format!("{y:.1}"));
    place.with("text-anchor", anchor).with("fill", "currentColor").text(content)
}

fn line(from: (f64, f64), to: (f64, f64)) -> Element {
    element("line")
        .with("x1", format!("{:.1}", from.0))
        .with("y1", format!("{:.1}", from.1))
        .with("x2", format!("{:.1}", to.0))
        .with("y2", format!("{:.1}", to.1))
        .with("stroke", "currentColor")
        .with("stroke-opacity", "0.2")
}

/// A number with four digits that matter.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    let text = if size >= 1_000.0 || size == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 {
        format!("{value:.3}")
    } else {
        format!("{value:.4}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
