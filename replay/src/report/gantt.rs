//! When which task ran where.

use crate::results::{Detail, TaskTimes};
use pages::format;
use pages::markup::{Element, div, element, table};

/// With more attempts than this, the recorded ones are left out.
const MAX_WITH_RECORDED: usize = 80;

/// Attempts of one host that do not overlap.
type Lane<'d> = Vec<&'d TaskTimes>;

/// What the colours of tasks mean.
pub(super) fn legend(detail: &Detail) -> Vec<(&'static str, &'static str)> {
    let mut entries = vec![("p-map", "map"), ("p-shuffle", "shuffle"), ("p-sort", "sort"), ("p-reduce", "reduce")];
    if with_recorded(detail) {
        entries.push(("k-recorded", "recorded, the thin line below"));
    }
    entries
}

fn with_recorded(detail: &Detail) -> bool {
    detail.tasks.len() <= MAX_WITH_RECORDED && detail.summary.baseline.is_recorded()
}

/// Hosts on which tasks ran, each with its tasks as bars over a time up to `end_s`.
pub(super) fn hosts(detail: &Detail, end_s: f64) -> Vec<(&str, Element)> {
    let with_recorded = with_recorded(detail);
    let hosts = detail.hosts.iter().map(String::as_str).chain(["unknown host"]);
    let drawn = hosts.filter_map(|host| {
        let lanes = lanes(detail.tasks.iter().filter(|task| task.host == host), with_recorded);
        let drawn = div("lanes").children(
            lanes
                .iter()
                .map(|lane| div("lane reel").children(lane.iter().flat_map(|task| bars(task, end_s, with_recorded)))),
        );
        (!lanes.is_empty()).then_some((host, drawn))
    });
    drawn.collect()
}

/// The attempt that ended last, and when.
pub(super) fn last(tasks: &[TaskTimes]) -> Option<(&TaskTimes, f64)> {
    tasks.iter().filter_map(|task| Some((task, task.simulated.finish?))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The phases of an attempt, each with its start and end.
pub(super) fn phases(task: &TaskTimes) -> Vec<(&'static str, Option<f64>, Option<f64>)> {
    let times = &task.simulated;
    if task.kind == "reduce" {
        vec![
            ("shuffle", times.start, times.shuffle_end),
            ("sort", times.shuffle_end, times.sort_end),
            ("reduce", times.sort_end, times.finish),
        ]
    } else {
        vec![("map", times.start, times.finish)]
    }
}

/// From the start of an attempt to its end, in the replay, and in the recording where that is shown too.
fn extent(task: &TaskTimes, with_recorded: bool) -> Option<(f64, f64)> {
    let simulated = task.simulated.start.map(|start| (start, task.simulated.finish.unwrap_or(start)));
    let recorded = task.recorded.start.zip(task.recorded.finish).filter(|_| with_recorded);
    match (simulated, recorded) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

/// Puts each attempt into the first lane in which it overlaps nothing.
fn lanes<'d>(tasks: impl Iterator<Item = &'d TaskTimes>, with_recorded: bool) -> Vec<Lane<'d>> {
    let mut tasks: Vec<_> = tasks.filter_map(|task| Some((extent(task, with_recorded)?, task))).collect();
    tasks.sort_by(|a, b| a.0.0.total_cmp(&b.0.0).then_with(|| a.1.attempt.cmp(&b.1.attempt)));
    let mut lanes: Vec<(f64, Lane)> = Vec::new();
    for ((start, end), task) in tasks {
        match lanes.iter_mut().find(|(busy_until, _)| *busy_until <= start) {
            Some((busy_until, lane)) => {
                *busy_until = end;
                lane.push(task);
            }
            None => lanes.push((end, vec![task])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

fn bars(task: &TaskTimes, end_s: f64, with_recorded: bool) -> Vec<Element> {
    let place = |from: f64, to: f64| {
        format!("left:{};width:{}", format::percent_of(from, end_s), format::percent_of((to - from).max(0.0), end_s))
    };
    let failed = if task.succeeded { "" } else { " failed" };
    let mut bars: Vec<Element> = phases(task)
        .into_iter()
        .filter_map(|(phase, from, to)| {
            let (from, to) = from.zip(to)?;
            let tip = format!(
                "{}{}\n{phase} on {}: {}\n{} – {}",
                task.attempt,
                if task.succeeded { "" } else { " (failed)" },
                task.host,
                format::seconds(to - from),
                format::seconds(from),
                format::seconds(to),
            );
            let class = format!("p-{phase}{failed}");
            Some(element("span").with("class", class).with("style", place(from, to)).with("data-tip", tip))
        })
        .collect();
    if with_recorded && let Some((from, to)) = task.recorded.start.zip(task.recorded.finish) {
        let tip = format!(
            "{}\nrecorded: {}\n{} – {}",
            task.attempt,
            format::seconds(to - from),
            format::seconds(from),
            format::seconds(to)
        );
        bars.push(element("span").with("class", "was").with("style", place(from, to)).with("data-tip", tip));
    }
    bars
}

/// Start and end of all phases of all attempts.
pub(super) fn table_of(tasks: &[TaskTimes]) -> Element {
    let headers = [
        "attempt", "host", "kind", "start", "recorded", "shuffled", "recorded", "sorted", "recorded", "end", "recorded",
    ];
    let rows = tasks.iter().map(|task| {
        let (new, old) = (&task.simulated, &task.recorded);
        let mut row = vec![task.attempt.clone(), task.host.clone(), task.kind.clone()];
        let moments = [
            new.start,
            old.start,
            new.shuffle_end,
            old.shuffle_end,
            new.sort_end,
            old.sort_end,
            new.finish,
            old.finish,
        ];
        row.extend(moments.map(format::maybe_seconds));
        row
    });
    table(&headers, 3, rows)
}
