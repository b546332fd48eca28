//! The frame of a page.

use crate::markup::{Element, div, element};

const STYLE: &str = include_str!("style.css");
/// What the page may load: nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
/// Without it the page shows all that it has, one below the other.
const SCRIPT: &str = concat!(
    "(function () {\n'use strict';\n",
    include_str!("script/tips.js"),
    include_str!("script/tables.js"),
    include_str!("script/choice.js"),
    include_str!("script/bars.js"),
    include_str!("script/experiments.js"),
    include_str!("script/time.js"),
    "})();\n"
);

/// A page with its head, header and footer. `job` stands beside the name at the top.
#[must_use]
pub fn document(title: &str, job: Option<Element>, main: Element, footer: &str) -> String {
    let head = element("head")
        .child(element("meta").with("charset", "utf-8"))
        .child(element("meta").with("http-equiv", "Content-Security-Policy").with("content", POLICY))
        .child(element("meta").with("name", "viewport").with("content", "width=device-width, initial-scale=1"))
        .child(element("meta").with("name", "color-scheme").with("content", "light dark"))
        .child(element("link").with("rel", "icon").with("href", "data:,"))
        .child(element("title").text(title))
        .child(element("style").own_code(STYLE));
    let body = element("body")
        .child(header(job))
        .child(main)
        .child(element("footer").text(footer))
        .child(div("tip").with("id", "tip").with("role", "tooltip").with("hidden", ""))
        .child(element("script").own_code(SCRIPT));
    format!("<!doctype html>\n{}\n", element("html").with("lang", "en").child(head).child(body))
}

fn header(job: Option<Element>) -> Element {
    element("header").child(
        div("bar").child(element("span").with("class", "brand").text("Hadoptic")).children(job).child(
            element("button")
                .with("id", "theme")
                .with("type", "button")
                .with("hidden", "")
                .with("aria-label", "Switch between light and dark")
                .text("◐"),
        ),
    )
}
