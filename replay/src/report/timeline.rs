//! Tasks and critical path of a replay over one axis of time, of which a part can be chosen.

use super::words::word;
use super::{gantt, path};
use crate::results::Detail;
use pages::format;
use pages::markup::{Element, div, element};
use pages::parts::{grid, legend, time_axis};

/// Where the axis ends: with the job, or with the recorded one where that took longer.
pub(super) fn end_s(detail: &Detail) -> f64 {
    detail.summary.job_time_s.max(detail.summary.recorded_job_time_s)
}

/// The section with the chart and its tables.
pub(super) fn section(detail: &Detail) -> Element {
    let end_s = end_s(detail);
    let hint = element("p")
        .with("class", "hint")
        .text("What the job waited for, moment by moment (its ")
        .child(word("critical-path", ""))
        .text(format!("), and its {} ", detail.tasks.len()))
        .child(word("attempt", ""))
        .text(format!(
            " by host, over one axis. {}Dashed: the end of the job {}; solid: its end in this replay.",
            last_task(detail),
            compared_with(detail),
        ));
    let plot = div("plot")
        .with("data-end", end_s)
        .with("data-brush", "")
        .with("tabindex", 0)
        .with("role", "group")
        .with("aria-label", "Critical path and tasks over time. Plus and minus zoom, arrows move, 0 shows all.")
        .child(grid(end_s))
        .child(ends(detail, end_s))
        .child(row("job", path::strip(detail, end_s)))
        .children(gantt::hosts(detail, end_s).into_iter().map(|(host, lanes)| row(host, lanes)))
        .child(time_axis(end_s));
    element("section")
        .child(element("h3").text("Critical path and tasks"))
        .child(hint)
        .child(zoomer(["whole job", "Whole job"], "or drag over the chart or a link; Ctrl and wheel; keys + − ← → 0"))
        .child(legend(path::KINDS.iter().map(|kind| (kind.class, kind.label))))
        .child(legend(gantt::legend(detail)))
        .child(plot)
        .child(
            element("details")
                .child(element("summary").text("The 25 longest pieces of the path as a table"))
                .child(path::pieces(detail)),
        )
        .child(
            element("details")
                .child(element("summary").text("All tasks as a table"))
                .child(gantt::table_of(&detail.tasks)),
        )
}

/// Where the end was with which this one is compared.
const fn compared_with(detail: &Detail) -> &'static str {
    if detail.summary.baseline.is_recorded() { "as it was recorded" } else { "on an infinitely fast network" }
}

/// Which task ended last, how long its phases took, and what the job waited for meanwhile.
fn last_task(detail: &Detail) -> String {
    let Some((task, finish)) = gantt::last(&detail.tasks) else { return String::new() };
    let phases: Vec<String> = gantt::phases(task)
        .into_iter()
        .filter_map(|(phase, from, to)| Some(format!("{phase} {}", format::seconds(to? - from?))))
        .collect();
    let began = task.simulated.start.unwrap_or(finish);
    let most = path::most_between(detail, began, finish).map_or_else(String::new, |(kind, what, seconds)| {
        format!(
            "; of its time, the job waited longest for {what} ({}), {}",
            path::kind_label(kind),
            format::seconds(seconds)
        )
    });
    format!(
        "The last to end is {} on {}, at {} ({}{most}). ",
        task.attempt,
        task.host,
        format::seconds(finish),
        phases.join(", ")
    )
}

fn row(label: &str, drawn: Element) -> Element {
    div("host").child(div("label").with("title", label).text(label)).child(drawn)
}

/// Where the job ends, in the replay and in what it is compared with.
fn ends(detail: &Detail, end_s: f64) -> Element {
    let summary = &detail.summary;
    let end = |seconds: f64, class: &str, tip: &str| {
        element("i")
            .with("class", class)
            .with("style", format!("left:{}", format::percent_of(seconds, end_s)))
            .with("data-tip", format!("{tip}\n{}", format::seconds(seconds)))
    };
    let marks = div("reel")
        .child(end(summary.recorded_job_time_s, "end recorded", &format!("end of the job {}", compared_with(detail))))
        .child(end(summary.job_time_s, "end", "end of the job"));
    div("ends").child(marks)
}

/// What chooses a part of the time; the page's script shows it. `whole` stands on the button that shows all of it, and is its name; `hint` stands behind it.
pub(super) fn zoomer([whole, name]: [&str; 2], hint: &str) -> Element {
    let button = |deed: &str, sign: &str, name: &str| {
        element("button")
            .with("type", "button")
            .with("data-do", deed)
            .with("aria-label", name)
            .with("title", name)
            .text(sign)
    };
    let edge = |edge: &str, name: &str| {
        element("label").text(name).child(
            element("input").with("type", "number").with("min", 0).with("step", "any").with("data-edge-of", edge),
        )
    };
    div("zoomer")
        .with("role", "group")
        .with("aria-label", "Part of the time that is shown")
        .with("hidden", "")
        .child(button("in", "+", "Zoom in"))
        .child(button("out", "−", "Zoom out"))
        .child(button("earlier", "←", "Earlier"))
        .child(button("later", "→", "Later"))
        .child(edge("from", "from"))
        .child(edge("to", "to"))
        .child(element("span").text("s"))
        .child(button("all", whole, name))
        .child(element("small").text(hint))
}
