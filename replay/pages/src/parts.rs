//! What several figures have.

use crate::format;
use crate::markup::{Element, div, element};

/// The colours' meaning.
#[must_use]
pub fn legend<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Element {
    div("legend").children(
        entries.into_iter().map(|(class, text)| element("span").child(element("i").with("class", class)).text(text)),
    )
}

/// A time axis from 0 to `end_s`.
#[must_use]
pub fn time_axis(end_s: f64) -> Element {
    div("axis").children(format::ticks(end_s, 8.0).into_iter().enumerate().map(|(number, tick)| {
        element("span")
            .with("class", if number % 2 == 1 { "odd" } else { "even" })
            .with("style", format!("left:{}", format::percent_of(tick, end_s)))
            .text(format::tick(tick))
    }))
}

/// Vertical lines at the ticks of [`time_axis`].
#[must_use]
pub fn grid(end_s: f64) -> Element {
    div("grid").children(
        format::ticks(end_s, 8.0)
            .into_iter()
            .map(|tick| element("i").with("style", format!("left:{}", format::percent_of(tick, end_s)))),
    )
}

/// A remark above the figures.
#[must_use]
pub fn note(text: &str) -> Element {
    element("p").with("class", "note").text(text)
}

/// The experiment with every key.
#[must_use]
pub fn configuration(effective: &str) -> Element {
    element("section").child(element("h3").text("Configuration")).child(
        element("details")
            .child(element("summary").text("Every key of this experiment, as it was run"))
            .child(div("scroll").with("tabindex", 0).child(element("pre").text(effective))),
    )
}
