//! Bars in groups: a group for each value of one key, in it a bar for each combination of the others.

use crate::chart::{BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, Scale, WIDTH, legend, number, paper, text, upward_ticks};
use crate::markup::{Element, element};

/// The share of a group's width that its bars take.
const FILLED: f64 = 0.8;

/// The bars of a name, one in each group.
pub struct Series {
    /// What the legend calls it; "" = not in the legend.
    pub name: String,
    /// By group: the value and whether the bar is hollow; `None` = no bar.
    pub values: Vec<Option<(f64, bool)>>,
}

/// What a picture of groups shows.
pub struct Grouped<'a> {
    /// Its heading, and what a screen reader says of it.
    pub title: &'a str,
    /// What the groups are of.
    pub over: &'a str,
    /// What the groups are called.
    pub groups: &'a [String],
    /// What a hollow bar is.
    pub hollow: &'a str,
}

#[expect(clippy::cast_precision_loss, reason = "for a drawing")]
const fn float(number: usize) -> f64 {
    number as f64
}

impl Grouped<'_> {
    /// Draws the bars. Where values are far apart they are drawn by their logarithms, and the title says so.
    #[must_use]
    pub fn draw(&self, series: &[Series]) -> Element {
        let values = || series.iter().flat_map(|one| &one.values).flatten().map(|(value, _)| *value);
        let high = values().fold(0.0f64, f64::max).max(f64::MIN_POSITIVE);
        let y = Scale::upwards(values().fold(f64::INFINITY, f64::min), high, true);
        let title = if y.logarithmic { format!("{}, logarithmic", self.title) } else { self.title.to_owned() };
        let named: Vec<&str> = series.iter().map(|one| one.name.as_str()).filter(|name| !name.is_empty()).collect();
        let mut picture = upward_ticks(paper(&title, self.over, named.len()), &y);
        let group = (WIDTH - LEFT - RIGHT) / float(self.groups.len().max(1));
        let width = group * FILLED / float(series.len().max(1));
        for (index, name) in self.groups.iter().enumerate() {
            let begin = LEFT + group * float(index);
            picture = picture.child(text(begin + group / 2.0, HEIGHT - BOTTOM + 16.0, name, "middle"));
            for (place, one) in series.iter().enumerate() {
                let Some((value, hollow)) = one.values.get(index).copied().flatten() else { continue };
                let x = begin + group * (1.0 - FILLED) / 2.0 + width * float(place);
                let label =
                    format!("{}: {} at {name}{}", one.name, number(value), if hollow { self.hollow } else { "" });
                picture = picture.child(
                    bar((x, width), (y.at(y.low), y.at(value)), COLOURS[place % COLOURS.len()], hollow)
                        .child(element("title").text(label.trim_start_matches(": "))),
                );
            }
        }
        legend(picture, &named)
    }
}

/// A bar: where it begins and how wide it is, where it stands and how far it reaches.
fn bar((x, width): (f64, f64), (foot, top): (f64, f64), colour: &str, hollow: bool) -> Element {
    element("rect")
        .with("x", format!("{x:.1}"))
        .with("y", format!("{top:.1}"))
        .with("width", format!("{:.1}", width * 0.94))
        .with("height", format!("{:.1}", (foot - top).max(0.0)))
        .with("fill", if hollow { "#ffffff" } else { colour })
        .with("stroke", colour)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn drawn(values: [Option<f64>; 4]) -> String {
        let [a, b, c, d] = values.map(|value| value.map(|value| (value, value > 50.0)));
        let groups = ["80 B".to_owned(), "32 KiB".to_owned()];
        let bars = Grouped { title: "Time", over: "size", groups: &groups, hollow: ", saturated" };
        let series = [("ops", vec![a, b]), ("ocs", vec![c, d])];
        bars.draw(&series.map(|(name, values)| Series { name: name.to_owned(), values })).to_string()
    }

    /// The heights of bars, in their order.
    fn heights(picture: &str) -> Vec<f64> {
        let bars = picture.split("<rect").skip(1).filter(|bar| bar.contains("stroke"));
        bars.map(|bar| bar.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn each_group_has_a_bar_for_each_name_as_high_as_its_value() {
        let picture = drawn([Some(10.0), Some(40.0), Some(20.0), None]);
        let heights = heights(&picture);
        // Group by group: 10 and 20, 40 and nothing.
        assert_eq!(heights.len(), 3);
        assert!(
            (heights[1] / heights[0] - 2.0).abs() < 0.01 && (heights[2] / heights[0] - 4.0).abs() < 0.01,
            "{heights:?}"
        );
        for words in [">80 B<", ">32 KiB<", ">ops<", ">ocs<", "ops: 10 at 80 B", "Time"] {
            assert!(picture.contains(words), "{words} in {picture}");
        }
        assert!(!picture.contains("logarithmic") && !picture.contains("saturated"));
    }

    #[test]
    fn values_far_apart_are_drawn_by_their_logarithms_and_hollow_ones_say_what_they_are() {
        let picture = drawn([Some(1.0), Some(10.0), Some(100.0), Some(1_000.0)]);
        assert!(picture.contains("Time, logarithmic") && picture.contains("ocs: 100 at 80 B, saturated"), "{picture}");
        let heights = heights(&picture);
        // 1 and 100, 10 and 1,000: equal steps.
        assert!(((heights[2] - heights[0]) * 2.0 - (heights[1] - heights[0])).abs() < 0.5, "{heights:?}");
    }
}
