//! The report of the congestion of static routing.

use std::path::Path;

use congestion::{Bandwidths, Histogram, Summary};

use crate::results::congestion::{CongestionCase, CongestionDetail, ShuffleDetail};
use crate::results::{StoreError, write_text};
use pages::chart::{Chart, Line, number, standing};
use pages::document::document;
use pages::format;
use pages::markup::{Element, div, element, table};
use pages::parts::note;

/// Values further apart than so many are drawn in groups.
const MAX_PLACES: u64 = 100;

/// Points of a line, none of them hollow.
type Points = Vec<(f64, f64, bool)>;

/// Writes the report and its pictures into a folder.
///
/// # Errors
/// If they cannot be written.
pub fn write_congestion(folder: &Path, detail: &CongestionDetail) -> Result<(), StoreError> {
    for (name, picture) in pictures(detail) {
        write_text(&folder.join(name), &standing(&picture))?;
    }
    write_congestion_page(&folder.join("report.html"), detail)
}

/// Writes the report as an HTML page.
///
/// # Errors
/// If it cannot be written.
pub fn write_congestion_page(path: &Path, detail: &CongestionDetail) -> Result<(), StoreError> {
    write_text(path, &page(detail))
}

/// The report as an HTML page.
fn page(detail: &CongestionDetail) -> String {
    let drawn: Vec<Element> = pictures(detail).into_iter().map(|(_, picture)| picture).collect();
    let explanation =
        "A message's congestion is the most messages that share a link of its path; its bandwidth is the inverse.";
    let distributions = || {
        element("section")
            .child(element("h2").text("Distributions"))
            .children(drawn.iter().cloned())
            .child(note(explanation))
    };
    let main = element("main")
        .children(detail.shuffle.as_ref().map(|shuffle| shuffled(shuffle, detail.runs)))
        .children((!detail.cases.is_empty()).then(|| figures(detail)))
        .children(simulated(detail))
        .children((!drawn.is_empty()).then(distributions));
    let text = format!("congestion on {} of {} hosts", detail.topology, detail.topology_hosts);
    let job = div("job").child(element("strong").text(&text));
    document(&format!("{text} · Hadoptic"), Some(job), main, &super::footer(""))
}

fn mean(runs: Option<Summary>) -> String {
    runs.map_or_else(|| "–".to_owned(), |runs| format!("{} ± {}", number(runs.mean), number(runs.half_width_99)))
}

fn range(runs: Option<Summary>) -> String {
    runs.map_or_else(|| "–".to_owned(), |runs| format!("{} to {}", number(runs.min), number(runs.max)))
}

fn figures(detail: &CongestionDetail) -> Element {
    let headers = [
        "routing",
        "pattern",
        "against",
        "hosts",
        "messages",
        "bandwidth",
        "of runs",
        "from, to",
        "sum of levels' most",
        "longest chain",
        "median",
        "from, to",
    ];
    let rows = detail.cases.iter().map(|case| {
        let key = &case.key;
        let hosts = key.part.map_or_else(|| key.hosts.to_string(), |part| format!("{part} of {}", key.hosts));
        vec![
            key.routing.clone(),
            key.pattern.clone(),
            key.against.clone().unwrap_or_else(|| "–".to_owned()),
            hosts,
            format::count(case.pairs),
            case.bandwidth.map_or_else(|| "–".to_owned(), |bandwidth| format!("{bandwidth:.6}")),
            mean(case.bandwidth_of_runs),
            range(case.bandwidth_of_runs),
            mean(case.sum_max_cong),
            mean(case.dep_max_delay),
            case.dep_max_delay_median.map_or_else(|| "–".to_owned(), |delay| delay.to_string()),
            range(case.dep_max_delay),
        ]
    });
    let explanation = format!(
        "{} runs each, seed {}; means of runs with half their 99% interval.",
        format::count(detail.runs),
        detail.seed
    );
    element("section").child(element("h2").text("Figures")).child(table(&headers, 3, rows)).child(note(&explanation))
}

/// A recorded shuffle, a row for each routing.
fn shuffled(shuffle: &ShuffleDetail, runs: u64) -> Element {
    let headers =
        ["routing", "busiest link", "bytes of it", "its time", "from, to", "hosts' links alone", "times as long"];
    let seconds = |runs: Option<Summary>| format::maybe_seconds(runs.map(|runs| runs.mean));
    let rows = shuffle.routings.iter().map(|case| {
        let range = |runs: Summary| format!("{} to {}", format::seconds(runs.min), format::seconds(runs.max));
        vec![
            case.routing.clone(),
            case.busiest.clone(),
            format::bytes(case.busiest_bytes),
            seconds(case.links_s),
            case.links_s.map_or_else(|| "–".to_owned(), range),
            seconds(case.host_links_s),
            case.slowdown.map_or_else(|| "–".to_owned(), number),
        ]
    });
    let mapped = if shuffle.in_order {
        "mapped to the topology's in order".to_owned()
    } else {
        format!("mapped to the topology's at random, {} runs", format::count(runs))
    };
    let explanation = format!(
        "{} of {}: {} between {} pairs of {} hosts, {mapped}; {} stayed on their host. All at once: no schedule on these paths is \
         shorter than the busiest link's time.",
        shuffle.job,
        shuffle.trace,
        format::bytes(shuffle.bytes),
        shuffle.pairs,
        shuffle.hosts,
        format::bytes(shuffle.local_bytes),
    );
    element("section").child(element("h2").text("Shuffle")).child(table(&headers, 2, rows)).child(note(&explanation))
}

/// Static estimates beside simulated times.
fn simulated(detail: &CongestionDetail) -> Option<Element> {
    let first = detail.cases.iter().find_map(|case| case.simulated.as_ref())?;
    let headers = ["case", "slowest, static", "simulated", "change", "mean, static", "simulated", "change", "error"];
    let change = |new: f64, old: f64| format::maybe_change((old > 0.0).then(|| new / old - 1.0));
    let rows = detail.labelled().filter_map(|(label, case)| {
        let one = case.simulated.as_ref()?;
        Some(vec![
            label,
            format::seconds(one.static_slowest_s),
            format::seconds(one.simulated_slowest_s),
            change(one.simulated_slowest_s, one.static_slowest_s),
            format::seconds(one.static_mean_s),
            format::seconds(one.simulated_mean_s),
            change(one.simulated_mean_s, one.static_mean_s),
            format::share(one.mean_error),
        ])
    });
    let explanation = format!(
        "Messages of {} each on {}; slowest: levels' slowest messages, added up; error: the mean over messages of |simulated / \
         static - 1|.",
        format::bytes(first.message_bytes),
        first.fabric
    );
    let title = element("h2").text("Static estimate beside simulation");
    Some(element("section").child(title).child(table(&headers, 1, rows)).child(note(&explanation)))
}

/// All pictures, with the names of their files.
fn pictures(detail: &CongestionDetail) -> Vec<(&'static str, Element)> {
    let lines = |of: &dyn Fn(&CongestionCase) -> Points| {
        let line = |(name, case)| Line { name, points: of(case) };
        detail.labelled().map(line).filter(|line| !line.points.is_empty()).collect::<Vec<_>>()
    };
    let pictures = [
        (
            "congestion.svg",
            "Messages by their congestion (share)",
            "Congestion",
            lines(&|case| shares(&case.congestion)),
        ),
        (
            "bandwidth.svg",
            "Runs by their mean bandwidth (share)",
            "Bandwidth, as a part of what a message has alone",
            lines(&|case| bins(&case.bandwidth_bins)),
        ),
        (
            "sum_max.svg",
            "Runs by the sum of levels' most (share)",
            "Sum",
            lines(&|case| shares(&case.sum_max_cong_runs)),
        ),
        ("delay.svg", "Runs by their longest chain (share)", "Delay", lines(&|case| shares(&case.dep_max_delay_runs))),
        ("hosts.svg", "Mean bandwidth over hosts", "Hosts", over_hosts(detail)),
    ];
    let draw = |(name, title, over, lines): (&'static str, &'static str, &'static str, Vec<Line>)| {
        let chart = Chart { title, over, places: &[], hollow: "", diagonal: false, dots: true, joined: true };
        (!lines.is_empty()).then(|| (name, chart.draw(&lines)))
    };
    pictures.into_iter().filter_map(draw).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for a drawing")]
const fn float(value: u64) -> f64 {
    value as f64
}

/// The share of each value, at the middle of its group where values lie far apart, with nothing on both sides.
fn shares(histogram: &Histogram) -> Points {
    let (Some((low, _)), Some((high, _))) = (histogram.first_key_value(), histogram.last_key_value()) else {
        return Vec::new();
    };
    let width = (high - low) / MAX_PLACES + 1;
    let mut groups = Histogram::new();
    for (value, count) in histogram {
        *groups.entry(value / width).or_default() += count;
    }
    let places: Vec<u64> = groups.keys().copied().collect();
    for place in places {
        groups.entry(place + 1).or_default();
        groups.entry(place.saturating_sub(1)).or_default();
    }
    let all: u64 = histogram.values().sum();
    let at = |group: u64| float(group * width) + float(width - 1) / 2.0;
    groups.into_iter().map(|(group, count)| (at(group), float(count) / float(all), false)).collect()
}

fn bins(bins: &[u64]) -> Points {
    let all: u64 = bins.iter().sum();
    let near = |bin: usize| bins[bin.saturating_sub(1)..bins.len().min(bin + 2)].iter().any(|runs| *runs > 0);
    let middle = |bin| f64::midpoint(Bandwidths::edge(bin), Bandwidths::edge(bin + 1));
    let bins = bins.iter().enumerate().filter(|(bin, _)| near(*bin));
    bins.map(|(bin, runs)| (middle(bin), float(*runs) / float(all), false)).collect()
}

/// A line for each routing and pattern, where cases have different numbers of hosts.
fn over_hosts(detail: &CongestionDetail) -> Vec<Line> {
    let mut lines: Vec<(Vec<_>, Line)> = Vec::new();
    for case in &detail.cases {
        let Some(bandwidth) = case.bandwidth else { continue };
        let same_hosts = detail.cases.iter().map(|other| &other.key).filter(|other| other.hosts == case.key.hosts);
        let name = case.key.label(same_hosts);
        let key = vec![Some(&case.key.routing), Some(&case.key.pattern), case.key.against.as_ref()];
        let point = (float(case.key.hosts as u64), bandwidth, false);
        match lines.iter_mut().find(|(other, _)| *other == key) {
            Some((_, line)) => line.points.push(point),
            None => lines.push((key, Line { name, points: vec![point] })),
        }
    }
    for (_, line) in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines.into_iter().map(|(_, line)| line).filter(|line| line.points.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_grouped_where_values_are_far_apart() {
        assert_eq!(
            shares(&Histogram::from([(2, 1), (3, 3)])),
            [(1.0, 0.0, false), (2.0, 0.25, false), (3.0, 0.75, false), (4.0, 0.0, false)]
        );
        let wide = shares(&(0..10_000).map(|value| (value, 1)).collect());
        assert!(wide.len() <= 103, "{}", wide.len());
        assert!((wide.iter().map(|point| point.1).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(shares(&Histogram::new()).is_empty());
    }

    #[test]
    fn bins_without_runs_are_left_out_but_beside_those_with() {
        let mut runs = [0; 20];
        runs[10] = 4;
        let drawn = bins(&runs);
        assert_eq!(drawn.iter().map(|point| point.1).collect::<Vec<_>>(), [0.0, 1.0, 0.0]);
        assert!(bins(&[0; 20]).is_empty());
    }
}
