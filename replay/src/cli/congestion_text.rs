//! What `congestion` prints.

use comfy_table::Cell;
use congestion::{Bandwidths, Experiment, Histogram, Quality, Summary};
use netsim::topology::{NodeId, Topology};
use replay::results::congestion::{CongestionCase, CongestionDetail, ShuffleDetail};

use super::table::{new_table, right, signed_percent};

/// All cases, a row for each.
pub(super) fn cases(detail: &CongestionDetail) -> String {
    let headers = [
        "routing",
        "pattern",
        "against",
        "hosts",
        "messages",
        "bandwidth",
        "of runs",
        "sum of most",
        "longest chain",
        "median",
        "from, to",
    ];
    let mut table = new_table(&headers);
    let short =
        |runs: Option<Summary>, digits: usize| {
            right(runs.map_or_else(
                || "–".to_owned(),
                |runs| format!("{:.digits$} ± {:.digits$}", runs.mean, runs.half_width_99),
            ))
        };
    for CongestionCase {
        key,
        pairs,
        bandwidth,
        bandwidth_of_runs,
        sum_max_cong,
        dep_max_delay,
        dep_max_delay_median,
        ..
    } in &detail.cases
    {
        let range = |runs: Summary| format!("{:.0} to {:.0}", runs.min, runs.max);
        table.add_row([
            Cell::new(&key.routing),
            Cell::new(&key.pattern),
            Cell::new(key.against.as_deref().unwrap_or("–")),
            right(key.part.map_or_else(|| key.hosts.to_string(), |part| format!("{part} of {}", key.hosts))),
            right(pairs.to_string()),
            right(bandwidth.map_or_else(|| "–".to_owned(), |bandwidth| format!("{bandwidth:.6}"))),
            short(*bandwidth_of_runs, 6),
            short(*sum_max_cong, 2),
            short(*dep_max_delay, 2),
            right(dep_max_delay_median.map_or_else(|| "–".to_owned(), |delay| delay.to_string())),
            right(dep_max_delay.map_or_else(|| "–".to_owned(), range)),
        ]);
    }
    format!(
        "{} of {} hosts, {} runs each\n{table}\n± half of the 99% interval of the mean",
        detail.topology, detail.topology_hosts, detail.runs
    )
}

/// A recorded shuffle, a row for each routing.
pub(super) fn shuffle(shuffle: &ShuffleDetail) -> String {
    let headers =
        ["routing", "busiest link", "MB of it", "its time", "from, to", "hosts' links alone", "times as long"];
    let mut table = new_table(&headers);
    for case in &shuffle.routings {
        let dash = || "–".to_owned();
        table.add_row([
            Cell::new(&case.routing),
            Cell::new(&case.busiest),
            right(megabytes(case.busiest_bytes)),
            right(case.links_s.map_or_else(dash, |runs| format!("{:.6} s ± {:.6}", runs.mean, runs.half_width_99))),
            right(case.links_s.map_or_else(dash, |runs| format!("{:.6} to {:.6} s", runs.min, runs.max))),
            right(case.host_links_s.map_or_else(dash, |runs| format!("{:.6} s", runs.mean))),
            right(case.slowdown.map_or_else(dash, |slowdown| format!("{slowdown:.3}"))),
        ]);
    }
    format!(
        "{} of {}: {} MB between {} pairs of {} hosts, {}; {} MB stayed on their host\n{table}",
        shuffle.job,
        shuffle.trace,
        megabytes(shuffle.bytes),
        shuffle.pairs,
        shuffle.hosts,
        if shuffle.in_order { "in order" } else { "at random" },
        megabytes(shuffle.local_bytes),
    )
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: u64) -> String {
    format!("{:.3}", bytes as f64 / 1e6)
}

/// Static estimates beside simulated times.
pub(super) fn simulated(detail: &CongestionDetail) -> String {
    let headers = ["", "slowest, static", "simulated", "change", "mean, static", "simulated", "change", "error"];
    let mut table = new_table(&headers);
    let time = |seconds: f64| right(format!("{:.3} us", seconds * 1e6));
    let change =
        |new: f64, old: f64| right(if old > 0.0 { signed_percent(new / old - 1.0, 1) } else { "–".to_owned() });
    let mut of = String::new();
    for (label, case) in detail.labelled() {
        let Some(one) = &case.simulated else { continue };
        of = format!("{} bytes a message on {}", one.message_bytes, one.fabric);
        table.add_row([
            Cell::new(label),
            time(one.static_slowest_s),
            time(one.simulated_slowest_s),
            change(one.simulated_slowest_s, one.static_slowest_s),
            time(one.static_mean_s),
            time(one.simulated_mean_s),
            change(one.simulated_mean_s, one.static_mean_s),
            right(format!("{:.1}%", one.mean_error * 100.0)),
        ]);
    }
    format!("{of}\n{table}\n")
}

/// The hosts of a run, rank by rank.
pub(super) fn hosts(topology: &Topology, ranks: &[NodeId]) -> String {
    ranks.iter().map(|host| format!("{}\n", topology.name(*host))).collect()
}

/// The messages of the first run.
pub(super) fn messages(topology: &Topology, experiment: &Experiment, ranks: &[NodeId]) -> String {
    let n = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
    let name = |rank: u32| ranks.get(rank as usize).map_or("", |host| topology.name(*host));
    let mut pairs = Vec::new();
    let mut lines = String::new();
    for level in experiment.level.map_or(0..experiment.pattern.levels(n), |level| level..level + 1) {
        experiment.pattern.level(level, n, experiment.seed, 0, &mut pairs);
        lines.extend(pairs.iter().map(|pair| format!("{level}: {} -> {}\n", name(pair.from), name(pair.to))));
    }
    lines
}

/// ORCS' own form (the paper's listing 3).
pub(super) fn weights(case: &CongestionCase) -> String {
    let line = |(weight, count)| format!("weight {weight}: {count} of the {} connections\n", case.pairs);
    let bandwidth = case.bandwidth.map_or("–".to_owned(), |bandwidth| format!("{bandwidth:.6}"));
    case.congestion.iter().map(line).collect::<String>() + &format!("BW: {bandwidth}\n")
}

/// Runs by a whole number.
pub(super) fn counted(runs: &Histogram, summary: Option<Summary>) -> String {
    let lines: String = runs.iter().map(|(value, runs)| format!("{value}: {runs} runs\n")).collect();
    lines + &mean(summary)
}

/// Runs by their bandwidth, in ORCS' twenty bins.
pub(super) fn bands(case: &CongestionCase) -> String {
    let line = |(bin, runs): (usize, &u64)| {
        format!("{:.4} to {:.4}: {runs} runs\n", Bandwidths::edge(bin), Bandwidths::edge(bin + 1))
    };
    case.bandwidth_bins.iter().enumerate().map(line).collect::<String>() + &mean(case.bandwidth_of_runs)
}

fn mean(summary: Option<Summary>) -> String {
    summary.map_or("no run has messages\n".to_owned(), |found| {
        format!(
            "mean {:.6} ± {:.6} (99%), deviation {:.6}, from {:.6} to {:.6}\n",
            found.mean, found.half_width_99, found.deviation, found.min, found.max
        )
    })
}

/// How evenly links are used.
pub(super) fn evenness(quality: &Quality) -> String {
    format!(
        "links between switches: {}\npaths over each: {:.6} in the mean, deviation {:.6}, {} at most\n",
        quality.links, quality.mean, quality.deviation, quality.most
    )
}
