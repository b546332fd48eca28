//! The report of a sweep of a recorded job.

use pages::document::document;
use pages::markup::{Element, div, element, table};
use pages::{format, parts};

use super::curves;
use crate::results::{Baseline, JobSweep};

/// The report of a sweep of a recorded job as an HTML page.
#[must_use]
pub fn page(jobs: &JobSweep) -> String {
    let first = jobs.points.first().map(|point| &point.summary);
    let remarks = first.into_iter().flat_map(|summary| summary.doubts.iter().chain(&summary.notes));
    let main = element("main")
        .child(element("section").with("class", "headline").child(element("h1").text(headline(jobs))))
        .children(jobs.circuits_pay().iter().chain(&jobs.pays_against()).map(|sentence| parts::note(sentence)))
        .children(jobs.interim.then(|| parts::note("The sweep was stopped: these are interim results.")))
        .children(jobs.failed.iter().map(|(what, reason)| parts::note(&format!("{what}: {reason}"))))
        .children(remarks.map(|note| parts::note(note)))
        .child(overview(jobs))
        .children(pictures(jobs))
        .child(parts::configuration(&jobs.effective));
    let job = first.map(|summary| {
        div("job")
            .child(element("strong").text(&jobs.name))
            .child(element("span").with("class", "mono").text(&summary.job))
    });
    document(&format!("{} · Hadoptic", jobs.name), job, main, &super::footer(" Times count from the job's submission."))
}

/// The answer in a sentence.
fn headline(jobs: &JobSweep) -> String {
    let by_time = |a: &&_, b: &&_| {
        let of = |point: &crate::results::JobPoint| point.summary.job_time_s;
        of(a).total_cmp(&of(b))
    };
    let (fastest, slowest) = (jobs.points.iter().min_by(by_time), jobs.points.iter().max_by(by_time));
    let Some((fastest, slowest)) = fastest.zip(slowest) else { return "No combination came to a result.".to_owned() };
    let recorded = jobs.recorded().map_or_else(
        || "The job takes".to_owned(),
        |summary| {
            let time = format::seconds(summary.recorded_job_time_s);
            match summary.baseline {
                Baseline::Recorded => format!("Recorded, the job took {time}. Replayed, it takes"),
                Baseline::Ideal => format!("On an infinitely fast network the job takes {time}. Over these it takes"),
            }
        },
    );
    format!(
        "{recorded} from {} ({}) to {} ({}).",
        format::seconds(fastest.summary.job_time_s),
        jobs.label(&fastest.values),
        format::seconds(slowest.summary.job_time_s),
        jobs.label(&slowest.values),
    )
}

fn overview(jobs: &JobSweep) -> Element {
    let mut headers: Vec<&str> = jobs.axes.iter().map(|axis| axis.path.as_str()).collect();
    let left = headers.len();
    headers.extend(["job", "change", "map", "shuffle", "sort", "reduce", "on the network", "packets lost"]);
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), format::seconds);
    let rows = jobs.points.iter().map(|point| {
        let summary = &point.summary;
        let axes = jobs.axes.iter().zip(&point.values);
        let mut row: Vec<String> = axes.map(|(axis, index)| axis.text(*index).to_owned()).collect();
        row.extend([format::seconds(summary.job_time_s), format::change(summary.job_time_change())]);
        row.extend(
            ["map", "shuffle", "sort", "reduce"].map(|name| time(summary.phase(name).and_then(|it| it.seconds))),
        );
        row.extend([format::share(summary.network_share), format::count(summary.drops)]);
        row
    });
    element("section").child(element("h2").text("Times")).child(table(&headers, left, rows))
}

fn pictures(jobs: &JobSweep) -> Option<Element> {
    let all = curves::job_pictures(jobs).into_iter().chain(curves::grouped_jobs(jobs));
    let drawn: Vec<Element> = all.map(|(_, picture)| picture).collect();
    (!drawn.is_empty()).then(|| element("section").child(element("h2").text("Over the swept key")).children(drawn))
}
