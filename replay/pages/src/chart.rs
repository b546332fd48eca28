//! Charts: lines over a key or a load.

use crate::format;
use crate::markup::{Element, element};

pub(crate) const WIDTH: f64 = 720.0;
pub(crate) const HEIGHT: f64 = 380.0;
pub(crate) const LEFT: f64 = 70.0;
pub(crate) const RIGHT: f64 = 20.0;
pub(crate) const TOP: f64 = 34.0;
pub(crate) const BOTTOM: f64 = 48.0;
/// Of one legend entry.
const ROW: f64 = 18.0;
/// Values further apart than this are drawn by their logarithms.
const LINEAR_UP_TO: f64 = 12.0;
pub(crate) const COLOURS: [&str; 8] =
    ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#0e7490", "#bf3989", "#57606a"];

/// A line: its name and its points, each with whether it is hollow.
pub struct Line {
    /// What the legend calls it; "" = not in the legend.
    pub name: String,
    /// Place along the lower edge, value, whether the point is hollow.
    pub points: Vec<(f64, f64, bool)>,
}

/// What a chart shows.
pub struct Chart<'a> {
    /// Its heading, and what a screen reader says of it.
    pub title: &'a str,
    /// What lies along its lower edge.
    pub over: &'a str,
    /// The places along it and what they are called; without any, round numbers from 0 on.
    pub places: &'a [(f64, &'a str)],
    /// What a hollow point is.
    pub hollow: &'a str,
    /// Whether a line shows where both are the same.
    pub diagonal: bool,
    /// Whether each point is a dot that says what it is.
    pub dots: bool,
    /// Whether the points of a line are joined.
    pub joined: bool,
}

/// Where values are drawn.
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) logarithmic: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// From the lower to the upper edge, for values from `least` to `high`: from 0 on, or by logarithms if they are far apart.
    pub(crate) fn upwards(least: f64, high: f64, may_be_logarithmic: bool) -> Self {
        let logarithmic = may_be_logarithmic && least > 0.0 && high / least > LINEAR_UP_TO;
        let low = if logarithmic { least * 0.8 } else { 0.0 };
        Self { low, high: high * 1.1, logarithmic, from: HEIGHT - BOTTOM, to: TOP }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let of = |value: f64| if self.logarithmic { libm::log10(value.max(f64::MIN_POSITIVE)) } else { value };
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
        let mut power = libm::pow(10.0, libm::log10(self.low).floor());
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

impl Chart<'_> {
    /// Draws the lines.
    #[must_use]
    pub fn draw(&self, lines: &[Line]) -> Element {
        let most = |of: fn(&(f64, f64, bool)) -> f64| {
            lines.iter().flat_map(|line| &line.points).map(of).fold(0.0f64, f64::max).max(f64::MIN_POSITIVE)
        };
        let least = lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(f64::INFINITY, f64::min);
        let x = self.along(most(|point| point.0));
        let y = Scale::upwards(least, most(|point| point.1), !self.diagonal);
        let named: Vec<&str> = lines.iter().map(|line| line.name.as_str()).filter(|name| !name.is_empty()).collect();
        let picture = self.axes(&x, &y, named.len());
        let curves = lines.iter().enumerate();
        let picture =
            picture.children(curves.flat_map(|(index, one)| self.curve(one, COLOURS[index % COLOURS.len()], &x, &y)));
        legend(picture, &named)
    }

    /// The scale of its lower edge, which reaches to `high` where it has no places.
    fn along(&self, high: f64) -> Scale {
        let (from, to) = (LEFT, WIDTH - RIGHT);
        let places = || self.places.iter().map(|(at, _)| *at);
        let (Some(low), Some(high)) = (places().reduce(f64::min), places().reduce(f64::max)) else {
            return Scale { low: 0.0, high: high * 1.05, logarithmic: false, from, to };
        };
        // Names of places stand in the middle below them.
        let logarithmic = low > 0.0 && high / low > LINEAR_UP_TO;
        Scale { low, high, logarithmic, from: from + 30.0, to: to - 30.0 }
    }

    /// The frame: titles, ticks and what they are called; room for a legend below.
    fn axes(&self, x: &Scale, y: &Scale, legend: usize) -> Element {
        let mut picture = paper(self.title, self.over, legend);
        let named = self.places.iter().map(|(at, name)| (*at, (*name).to_owned()));
        let round = x.ticks().into_iter().filter(|tick| *tick <= x.high).map(|tick| (tick, number(tick)));
        let ticks: Vec<(f64, String)> = if self.places.is_empty() { round.collect() } else { named.collect() };
        for (tick, name) in ticks {
            picture = picture.child(line((x.at(tick), TOP), (x.at(tick), HEIGHT - BOTTOM))).child(text(
                x.at(tick),
                HEIGHT - BOTTOM + 16.0,
                &name,
                "middle",
            ));
        }
        picture = upward_ticks(picture, y);
        if self.diagonal {
            let end = x.high.min(y.high);
            let diagonal = line((x.at(0.0), y.at(0.0)), (x.at(end), y.at(end)));
            picture = picture.child(diagonal.with("stroke-dasharray", "4 4"));
        }
        picture
    }

    /// A line with its points.
    fn curve(&self, line: &Line, colour: &'static str, x: &Scale, y: &Scale) -> Vec<Element> {
        let places: Vec<String> =
            line.points.iter().map(|point| format!("{:.1},{:.1}", x.at(point.0), y.at(point.1))).collect();
        let way = element("polyline").with("points", places.join(" ")).with("fill", "none").with("stroke", colour);
        let mut drawn: Vec<Element> = self.joined.then(|| way.with("stroke-width", 2)).into_iter().collect();
        for (at, value, hollow) in line.points.iter().filter(|_| self.dots) {
            let dot =
                element("circle").with("cx", format!("{:.1}", x.at(*at))).with("cy", format!("{:.1}", y.at(*value)));
            let label = format!(
                "{}: {} at {}{}",
                line.name,
                number(*value),
                self.name_of(*at),
                if *hollow { self.hollow } else { "" }
            );
            let label = label.trim_start_matches(": ").to_owned();
            let dot = dot.with("r", 4).with("stroke", colour).with("fill", if *hollow { "#ffffff" } else { colour });
            drawn.push(dot.child(element("title").text(label)));
        }
        drawn
    }

    /// What a place along its lower edge is called.
    fn name_of(&self, at: f64) -> String {
        let place = self.places.iter().find(|(place, _)| place.total_cmp(&at).is_eq());
        place.map_or_else(|| number(at), |(_, name)| (*name).to_owned())
    }
}

/// An empty picture with its title, what lies along its lower edge, and room for so many lines of a legend.
pub(crate) fn paper(title: &str, over: &str, legend: usize) -> Element {
    #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
    let height = HEIGHT + ROW * legend as f64;
    element("svg")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("width", "100%")
        .with("role", "img")
        .with("aria-label", title)
        .with("font-family", "sans-serif")
        .with("font-size", 12)
        .child(text(LEFT, 20.0, title, "start").with("font-weight", "bold"))
        .child(text(f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 10.0, over, "middle"))
}

/// Ticks along the left edge, and what they are called.
pub(crate) fn upward_ticks(mut picture: Element, y: &Scale) -> Element {
    for tick in y.ticks().into_iter().filter(|tick| *tick <= y.high) {
        picture = picture.child(line((LEFT, y.at(tick)), (WIDTH - RIGHT, y.at(tick)))).child(text(
            LEFT - 8.0,
            y.at(tick) + 4.0,
            &number(tick),
            "end",
        ));
    }
    picture
}

/// What lines or bars are called, below the picture.
pub(crate) fn legend(mut picture: Element, names: &[&str]) -> Element {
    for (index, name) in names.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "for a drawing")]
        let at = HEIGHT + ROW * index as f64;
        let mark = element("rect").with("x", LEFT).with("y", at).with("width", 12).with("height", 12);
        picture = picture.child(mark.with("fill", COLOURS[index % COLOURS.len()])).child(text(
            LEFT + 18.0,
            at + 10.0,
            name,
            "start",
        ));
    }
    picture
}

/// A picture as a file of its own.
#[must_use]
pub fn standing(picture: &Element) -> String {
    let white = element("rect").with("width", "100%").with("height", "100%").with("fill", "#ffffff");
    let body = picture.to_string();
    // The background comes first, behind everything else.
    format!("{}\n", body.replacen('>', &format!(" xmlns=\"http://www.w3.org/2000/svg\">{white}"), 1))
}

pub(crate) fn text(x: f64, y: f64, content: &str, anchor: &str) -> Element {
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
#[must_use]
pub fn number(value: f64) -> String {
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
