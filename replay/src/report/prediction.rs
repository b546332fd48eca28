//! The page of a prediction: the answers first, then the replay of a capture over each network.

use std::path::Path;

use pages::document::document;
use pages::markup::{Element, element, table};
use pages::{format, parts};

use super::path::kind_label;
use super::replayed_page::{self, job};
use crate::predict::{FabricPrediction, PredictedTime, Prediction};
use crate::results::{Detail, StoreError, write_text};

/// Writes the report of a prediction. `shown` are replays of one capture, one of each network.
///
/// # Errors
/// If it cannot be written.
pub fn write_prediction(path: &Path, prediction: &Prediction, shown: &[Detail]) -> Result<(), StoreError> {
    write_text(path, &page(prediction, shown))
}

/// The report of a prediction as an HTML page.
#[must_use]
pub fn page(prediction: &Prediction, shown: &[Detail]) -> String {
    let main = replayed_page::main(shown, headline(prediction), prediction.fabrics.iter().map(of_fabric).collect());
    let title = format!("{} predicted · Hadoptic", prediction.job_name);
    document(&title, job(shown), main, &super::footer(" Times count from the job's submission."))
}

/// The answers, and what the reader should know of them.
fn headline(prediction: &Prediction) -> Element {
    let mut answers = prediction.fabrics.iter();
    let first = answers.next().map(|fabric| element("h1").text(&fabric.answer));
    let own = prediction.self_replay.as_ref().map(|own| {
        let errors: Vec<String> = own.errors.iter().map(|error| format::change(*error)).collect();
        format!(
            "On the recorded network ({}) replays differ from the recording by {}.",
            own.experiment,
            errors.join(", ")
        )
    });
    let doubts = prediction.fabrics.iter().flat_map(|fabric| &fabric.doubts);
    element("section")
        .with("class", "headline")
        .children(first)
        .children(answers.map(|fabric| element("p").with("class", "lead").text(&fabric.answer)))
        .children(prediction.fabrics.iter().map(|fabric| {
            let help = &fabric.most_help;
            let text = if prediction.fabrics.len() > 1 { format!("{}: {help}", fabric.name) } else { help.clone() };
            element("p").with("class", "lead").text(text)
        }))
        .children(own.iter().chain(&prediction.notes).chain(doubts).map(|note| parts::note(note)))
}

/// Times and tasks, predicted beside recorded, and what makes them unsure.
fn of_fabric(fabric: &FabricPrediction) -> Element {
    let row = |name: String, time: &PredictedTime| {
        let ends = time.low_s.zip(time.high_s);
        let interval = ends.map_or_else(
            || "–".to_owned(),
            |(low, high)| format!("{} – {}", format::seconds(low), format::seconds(high)),
        );
        let (recorded, predicted) = (format::seconds(time.recorded_s), format::seconds(time.predicted_s));
        vec![name, recorded, predicted, interval, format::change(time.change)]
    };
    let phases = fabric.phases.iter().map(|phase| row(format!("{}, mean", phase.name), &phase.time));
    let times = std::iter::once(row("job".to_owned(), &fabric.job)).chain(phases);
    let headers = ["", "nothing changes", "predicted", "80% interval", "change"];
    let waits = fabric
        .critical_path
        .iter()
        .map(|wait| vec![kind_label(&wait.kind).to_owned(), format::seconds(wait.seconds), format::share(wait.share)]);
    let sources = fabric.sources.iter().map(|source| {
        vec![source.kind.label().to_owned(), format::share(source.deviation), format!("{:.1}", source.freedom)]
    });
    let tasks = fabric.tasks.iter().map(|task| {
        let times = [
            task.recorded_s,
            task.predicted_s,
            task.least_s,
            task.most_s,
            task.recorded_finish_s,
            task.predicted_finish_s,
        ];
        std::iter::once(task.task.clone()).chain(times.map(format::seconds)).collect()
    });
    let of_tasks = ["task", "recorded", "predicted", "shortest", "longest", "ended", "ends"];
    let without = fabric.ablations.iter().map(|ablation| {
        vec![ablation.without.to_string(), format::seconds(ablation.predicted_s), format::change(ablation.change)]
    });
    let hidden = |title: &str, inner: Element| element("details").child(element("summary").text(title)).child(inner);
    let ablations = (!fabric.ablations.is_empty())
        .then(|| hidden("Without some of what a replay does", table(&["without", "predicted", "change"], 1, without)));
    element("section")
        .child(element("h2").text(format!("Predicted for {}", fabric.name)))
        .child(table(&headers, 1, times))
        .child(hidden("What the job waits for there", table(&["", "of the job's time", "share"], 1, waits)))
        .child(hidden("What makes it unsure", table(&["", "standard deviation", "degrees of freedom"], 1, sources)))
        .child(hidden("Each task", table(&of_tasks, 1, tasks)))
        .children(ablations)
}
