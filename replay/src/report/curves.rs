//! Curves of a sweep, and bars grouped by one of its keys: load and latency of synthetic traffic, times of a recorded job.

use crate::results::synthetic::{PointDetail, TrafficDetail, TrafficSummary};
use crate::results::{AxisValues, JobSweep, Summary, grouping, label, quantities};
use netsim::statistics::float;
use pages::chart::{Chart, Line, standing};
use pages::grouped::{Grouped, Series};
use pages::markup::Element;

/// The pictures of traffic, as files: name and SVG. Those over the load only where it has several values.
#[must_use]
pub(super) fn curves(detail: &TrafficDetail) -> Vec<(&'static str, String)> {
    let pictures = [
        ("latency.svg", latency(detail)),
        ("accepted.svg", accepted(detail)),
        ("lost.svg", lost(detail)),
        ("nacks.svg", refused(detail)),
        ("cdf.svg", cdf(detail)),
    ];
    let pictures = pictures.into_iter().filter_map(|(name, picture)| Some((name, picture?)));
    pictures.chain(grouped(detail)).map(|(name, picture)| (name, standing(&picture))).collect()
}

/// A picture has so many bars in each group at most.
const MAX_BARS: usize = 24;

/// A figure of a combination of synthetic traffic.
type TrafficFigure = fn(&TrafficSummary) -> Option<f64>;

/// Latency and accepted load as bars, grouped by a size of packets or the key that was chosen.
pub(super) fn grouped(detail: &TrafficDetail) -> Vec<(&'static str, Element)> {
    let Some(by) = grouping(&detail.axes, detail.group_by.as_deref()) else { return Vec::new() };
    let figures: [(&str, &str, TrafficFigure); 4] = [
        ("latency-grouped.svg", "Mean packet latency, source queue included (ns)", |row| row.packet_latency_mean_ns),
        ("accepted-grouped.svg", "Accepted load (flits per node and flit time)", |row| row.accepted_load),
        ("lost-grouped.svg", LOST, lost_share),
        ("nacks-grouped.svg", REFUSED, refused_share),
    ];
    let of_all = |figure: TrafficFigure| detail.points.iter().filter_map(move |point| figure(&point.summary));
    let says_something = |figure| of_all(figure).any(|value| value > 0.0);
    let figures = figures.into_iter().filter(|(.., figure)| says_something(*figure));
    let draw = |(name, title, figure): (&'static str, &str, TrafficFigure)| {
        let points = detail
            .points
            .iter()
            .filter_map(|point| Some((point.values.as_slice(), (figure(&point.summary)?, point.summary.saturated))));
        Some((name, bars(&detail.axes, by, (title, ", saturated"), points)?))
    };
    figures.filter_map(draw).collect()
}

/// Bars in groups by the values of the key of number `by`: in each one for each combination of the others; `None` without any, or with too
/// many.
fn bars<'p>(
    axes: &[AxisValues],
    by: usize,
    (title, hollow): (&str, &str),
    points: impl Iterator<Item = (&'p [usize], (f64, bool))>,
) -> Option<Element> {
    let axis = axes.get(by)?;
    let mut series: Vec<Series> = Vec::new();
    for (values, bar) in points {
        let others = axes.iter().zip(values).enumerate().filter(|(number, _)| *number != by);
        let name = label(others.map(|(_, one)| one));
        let known = series.iter().position(|one| one.name == name).unwrap_or_else(|| {
            series.push(Series { name, values: vec![None; axis.values.len()] });
            series.len() - 1
        });
        let place = series[known].values.get_mut(*values.get(by)?)?;
        *place = Some(bar);
    }
    let picture = Grouped { title, over: &axis.path, groups: &axis.values, hollow };
    (1..=MAX_BARS).contains(&series.len()).then(|| picture.draw(&series))
}

/// Mean packet latency over offered load.
pub(super) fn latency(detail: &TrafficDetail) -> Option<Element> {
    let lines = over_load(detail, |point| point.summary.packet_latency_mean_cycles)?;
    Some(load_chart("Mean packet latency, source queue included (cycles)", false).draw(&lines))
}

/// Accepted over offered load.
pub(super) fn accepted(detail: &TrafficDetail) -> Option<Element> {
    let lines = over_load(detail, |point| point.summary.accepted_load)?;
    Some(load_chart("Accepted load (flits per node and flit time)", true).draw(&lines))
}

const LOST: &str = "Packets that were lost (share of those measured)";
const REFUSED: &str = "Attempts that the optical packet switch refused (share)";

/// The share of the packets that count which was lost.
fn lost_share(row: &TrafficSummary) -> Option<f64> {
    let all = row.drops_measured + row.packets_measured + row.packets_undelivered;
    (all > 0).then(|| float(row.drops_measured) / float(all))
}

/// NACKs by attempts, each of which is answered by an ACK or a NACK; of fabrics that count them.
fn refused_share(row: &TrafficSummary) -> Option<f64> {
    let [acks, nacks] = ["ACKs", "NACKs"].map(|name| row.counters.get(name).copied().unwrap_or(0));
    (acks + nacks > 0).then(|| float(nacks) / float(acks + nacks))
}

/// What was lost over the offered load, if anything was.
pub(super) fn lost(detail: &TrafficDetail) -> Option<Element> {
    share_over_load(detail, LOST, lost_share)
}

/// What the optical packet switch refused over the offered load, if it refused anything.
pub(super) fn refused(detail: &TrafficDetail) -> Option<Element> {
    share_over_load(detail, REFUSED, refused_share)
}

fn share_over_load(detail: &TrafficDetail, title: &str, share: TrafficFigure) -> Option<Element> {
    let lines = over_load(detail, |point| share(&point.summary))?;
    let is_there = lines.iter().flat_map(|line| &line.points).any(|(_, value, _)| *value > 0.0);
    is_there.then(|| load_chart(title, false).draw(&lines))
}

/// A picture shows so many distributions at most.
const MAX_DISTRIBUTIONS: usize = 8;

/// The share of the packets over the latency that they do not exceed; of sweeps with few combinations only.
pub(super) fn cdf(detail: &TrafficDetail) -> Option<Element> {
    if detail.points.len() > MAX_DISTRIBUTIONS {
        return None;
    }
    let line = |point: &PointDetail| {
        let all: u64 = point.latency.iter().map(|(.., packets)| packets).sum();
        let mut so_far = 0;
        let points = point.latency.iter().map(|(from, width, packets)| {
            so_far += packets;
            (from + width, float(so_far) / float(all), false)
        });
        Line { name: label(detail.axes.iter().zip(&point.values)), points: points.collect() }
    };
    let mut lines: Vec<Line> = detail.points.iter().filter(|point| !point.latency.is_empty()).map(line).collect();
    if let [only] = &mut lines[..] {
        "packets".clone_into(&mut only.name);
    }
    let chart = Chart {
        title: "Share of the packets that take no longer, source queue included",
        over: "Packet latency (ns)",
        places: &[],
        hollow: "",
        diagonal: false,
        dots: false,
        joined: true,
    };
    (!lines.is_empty()).then(|| chart.draw(&lines))
}

const fn load_chart(title: &str, diagonal: bool) -> Chart<'_> {
    let over = "Offered load (flits per node and flit time)";
    Chart { title, over, places: &[], hollow: ", saturated", diagonal, dots: true, joined: true }
}

/// A line for each combination of the keys that are not the load.
fn over_load(detail: &TrafficDetail, value: impl Fn(&PointDetail) -> Option<f64>) -> Option<Vec<Line>> {
    let points = detail.points.iter().filter_map(|point| {
        let (x, y) = (point.summary.offered_load?, value(point)?);
        Some((point.values.as_slice(), (x, y, point.summary.saturated)))
    });
    lines(&detail.axes, detail.load_axis?, points)
}

/// A line for each combination of the keys but that of number `along`.
fn lines<'p>(
    axes: &[AxisValues],
    along: usize,
    points: impl Iterator<Item = (&'p [usize], (f64, f64, bool))>,
) -> Option<Vec<Line>> {
    let mut lines: Vec<Line> = Vec::new();
    for (values, at) in points {
        let others = axes.iter().zip(values).enumerate().filter(|(number, _)| *number != along);
        let name = label(others.map(|(_, one)| one));
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

/// A curve of a sweep of a recorded job: the name of its file, its title, its figure.
type JobCurve = (&'static str, &'static str, fn(&Summary) -> (Option<f64>, Option<f64>));

/// Job time and the means of the phases, simulated and recorded.
const OF_JOBS: [JobCurve; 5] = [
    ("job_time.svg", "Job time (s)", |summary| (Some(summary.job_time_s), Some(summary.recorded_job_time_s))),
    ("map.svg", "Map, mean of the attempts (s)", |summary| of_phase(summary, "map")),
    ("shuffle.svg", "Shuffle, mean of the attempts (s)", |summary| of_phase(summary, "shuffle")),
    ("sort.svg", "Sort, mean of the attempts (s)", |summary| of_phase(summary, "sort")),
    ("reduce.svg", "Reduce, mean of the attempts (s)", |summary| of_phase(summary, "reduce")),
];

fn of_phase(summary: &Summary, name: &str) -> (Option<f64>, Option<f64>) {
    summary.phase(name).map_or((None, None), |phase| (phase.seconds, phase.recorded_seconds))
}

/// The pictures of a sweep of a recorded job, as files: name and SVG.
#[must_use]
pub(super) fn job_curves(jobs: &JobSweep) -> Vec<(&'static str, String)> {
    let pictures = job_pictures(jobs).into_iter().chain(grouped_jobs(jobs));
    pictures.map(|(name, picture)| (name, standing(&picture))).collect()
}

/// The names of the files of bars, in the order of [`OF_JOBS`].
const GROUPED_JOBS: [&str; 5] =
    ["job_time-grouped.svg", "map-grouped.svg", "shuffle-grouped.svg", "sort-grouped.svg", "reduce-grouped.svg"];

/// Times as bars, grouped by a size of packets or the key that was chosen.
pub(super) fn grouped_jobs(jobs: &JobSweep) -> Vec<(&'static str, Element)> {
    let Some(by) = grouping(&jobs.axes, jobs.group_by.as_deref()) else { return Vec::new() };
    let draw = |(name, (_, title, figure)): (&'static str, JobCurve)| {
        let points = jobs.points.iter();
        let points = points.filter_map(|point| Some((point.values.as_slice(), (figure(&point.summary).0?, false))));
        Some((name, bars(&jobs.axes, by, (title, ""), points)?))
    };
    GROUPED_JOBS.into_iter().zip(OF_JOBS).filter_map(draw).collect()
}

/// Times over the key with most values, a line for each combination of the others and one for the recording.
pub(super) fn job_pictures(jobs: &JobSweep) -> Vec<(&'static str, Element)> {
    let many = jobs.axes.iter().enumerate().rev().max_by_key(|(_, axis)| axis.values.len());
    let Some((along, axis)) = many.filter(|(_, axis)| axis.values.len() > 1) else { return Vec::new() };
    let at = positions(&axis.values);
    let places: Vec<(f64, &str)> = at.iter().copied().zip(axis.values.iter().map(String::as_str)).collect();
    let draw = |(name, title, figure): JobCurve| {
        let points = jobs.points.iter().filter_map(|point| {
            let x = *at.get(*point.values.get(along)?)?;
            Some((point.values.as_slice(), (x, figure(&point.summary).0?, false)))
        });
        let mut lines = lines(&jobs.axes, along, points)?;
        let baseline = jobs.recorded().map_or("recorded", |summary| summary.baseline.label());
        if let Some(recorded) = jobs.recorded().and_then(|summary| figure(summary).1) {
            if let [only] = &mut lines[..] {
                "simulated".clone_into(&mut only.name);
            }
            let points = at.iter().map(|at| (*at, recorded, true));
            lines.push(Line { name: baseline.to_owned(), points: points.collect() });
        }
        if let Some((reference, value)) = jobs.reference.as_ref().and_then(|one| Some((one, figure(one).0?))) {
            let points = at.iter().map(|at| (*at, value, false)).collect();
            lines.push(Line { name: format!("over {}", reference.name), points });
        }
        let chart = Chart {
            title,
            over: &axis.path,
            places: &places,
            hollow: &format!(", {baseline}"),
            diagonal: false,
            dots: true,
            joined: true,
        };
        Some((name, chart.draw(&lines)))
    };
    OF_JOBS.into_iter().filter_map(draw).collect()
}

/// Where values stand along an axis: as numbers or quantities where all are, else one after the other.
fn positions(values: &[String]) -> Vec<f64> {
    quantities(values).unwrap_or_else(|| (0u32..).map(f64::from).take(values.len()).collect())
}

#[cfg(test)]
mod tests {
    use super::positions;

    #[test]
    fn values_stand_by_their_quantity_or_one_after_the_other() {
        let at = |values: &[&str]| positions(&values.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(at(&["0.5", "2"]), [0.5, 2.0]);
        assert_eq!(at(&["100Mbps", "1Gbps"]), [1e8, 1e9]);
        assert_eq!(at(&["200ns", "1us"]), [200e3, 1e6]);
        assert_eq!(at(&["minimal", "1Gbps"]), [0.0, 1.0]);
    }
}
