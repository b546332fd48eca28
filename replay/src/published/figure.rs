//! A picture of an outcome: published and simulated times as bars.

use super::{Less, Outcome, RowOutcome};
use pages::markup::{Element, element};

const WIDTH: f64 = 920.0;
/// Where bars begin and how long the longest is; the rest is for labels and values.
const LEFT: f64 = 290.0;
const MAX_LENGTH: f64 = 480.0;
const TOP: f64 = 64.0;
const ROW: f64 = 46.0;
/// The line above the comparisons.
const TITLE: f64 = 28.0;
const BAR: f64 = 16.0;
/// Times further apart than this are drawn by their logarithms.
const LINEAR_UP_TO: f64 = 50.0;

/// How long the bar of a time is.
struct Scale {
    smallest: f64,
    largest: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(rows: &[RowOutcome]) -> Self {
        let times =
            rows.iter().flat_map(|row| [row.published_ps, Some(row.simulated_ps)]).flatten().filter(|ps| *ps > 0);
        let (smallest, largest) = times.fold((u64::MAX, 1), |(low, high), ps| (low.min(ps), high.max(ps)));
        let (smallest, largest) = (float(smallest), float(largest));
        Self { smallest, largest, logarithmic: largest / smallest > LINEAR_UP_TO }
    }

    fn length(&self, ps: u64) -> f64 {
        let ps = float(ps);
        if !self.logarithmic {
            return MAX_LENGTH * ps / self.largest;
        }
        // The shortest bar is a tenth of the smallest time away from nothing.
        let above = |ps: f64| libm::log10(ps.max(self.smallest) * 10.0 / self.smallest);
        MAX_LENGTH * above(ps) / above(self.largest)
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a drawing")]
fn float(number: u64) -> f64 {
    number as f64
}

/// The picture as an SVG file.
#[must_use]
pub fn svg(outcome: &Outcome) -> String {
    let scale = Scale::of(&outcome.rows);
    let comparisons: Vec<(&RowOutcome, &Less)> =
        outcome.rows.iter().flat_map(|row| row.less.iter().map(move |less| (row, less))).collect();
    let below = if comparisons.is_empty() { 0.0 } else { TITLE };
    let height = TOP + ROW * float((outcome.rows.len() + comparisons.len()) as u64) + below + 8.0;
    let unit = if scale.logarithmic { "ns, logarithmic" } else { "ns" };
    let mut picture = element("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("viewBox", format!("0 0 {WIDTH} {height}"))
        .with("font-family", "sans-serif")
        .with("font-size", 13)
        .child(element("rect").with("width", WIDTH).with("height", height).with("fill", "#ffffff"))
        .child(text(12.0, 24.0, &outcome.title).with("font-size", 16).with("font-weight", "bold"))
        .children(legend(LEFT, 36.0, PUBLISHED, "published"))
        .children(legend(LEFT + 110.0, 36.0, SIMULATED, &format!("simulated ({unit})")));
    let mut y = TOP;
    for row in &outcome.rows {
        let label = text(LEFT - 10.0, y + 21.0, &row.what).with("text-anchor", "end");
        picture = picture.child(label);
        if let Some(published) = row.published_ps {
            picture = picture.children(bar(y, published, PUBLISHED, &scale));
        }
        picture = picture.children(bar(y + BAR + 2.0, row.simulated_ps, SIMULATED, &scale));
        y += ROW;
    }
    if !comparisons.is_empty() {
        picture = picture.child(text(12.0, y + 18.0, "less time, in percent").with("font-weight", "bold"));
        y += TITLE;
    }
    for (row, less) in comparisons {
        let label = format!("{} than {}", row.what, less.than);
        picture = picture.child(text(LEFT - 10.0, y + 21.0, &label).with("text-anchor", "end"));
        if let Some(published) = less.published_percent {
            picture = picture.children(percent_bar(y, published, PUBLISHED));
        }
        picture = picture.children(percent_bar(y + BAR + 2.0, less.simulated_percent, SIMULATED));
        y += ROW;
    }
    format!("{picture}\n")
}

const PUBLISHED: &str = "#9aa5b1";
const SIMULATED: &str = "#1f6feb";

fn text(x: f64, y: f64, content: &str) -> Element {
    element("text").with("x", x).with("y", y).with("fill", "#1b1f24").text(content)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64, fill: &str) -> Element {
    let rectangle = element("rect").with("x", x).with("y", y).with("fill", fill);
    rectangle.with("width", format!("{width:.1}")).with("height", height)
}

fn legend(x: f64, y: f64, fill: &str, what: &str) -> [Element; 2] {
    [rectangle(x, y, 12.0, 12.0, fill), text(x + 18.0, y + 11.0, what)]
}

/// A bar of so many percent of the longest; what is below 0 has none.
fn percent_bar(y: f64, percent: f64, fill: &str) -> [Element; 2] {
    let length = MAX_LENGTH * (percent / 100.0).clamp(0.0, 1.0);
    let value = text(LEFT + length + 6.0, y + 13.0, &format!("{percent:.2}%"));
    [rectangle(LEFT, y, length, BAR, fill), value]
}

fn bar(y: f64, ps: u64, fill: &str, scale: &Scale) -> [Element; 2] {
    let length = scale.length(ps);
    let value = text(LEFT + length + 6.0, y + 13.0, &super::nanoseconds(ps));
    [rectangle(LEFT, y, length, BAR, fill), value]
}
