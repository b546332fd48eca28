//! A prediction as tables and sentences.

use std::fmt::Write as _;
use std::path::Path;

use comfy_table::Cell;
use replay::predict::{ENOUGH_CAPTURES, FabricPrediction, PredictedTime, Prediction};

use super::table::{new_table, right, signed_percent};

/// What the reader should know of where the interval is from.
pub(super) fn notes(captures: usize, knows_own_error: bool, noise_given: bool, gets_faster: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if captures < ENOUGH_CAPTURES {
        let from = if noise_given { "the deviation of --noise" } else { "a noise floor (17 terasorts in a lab: 7.3%)" };
        let which = if captures == 1 { "one capture cannot tell" } else { "two captures hardly tell" };
        notes.push(format!(
            "{which} what runs of this job differ by: {from} stands for it, and phases have no interval; give \
             {ENOUGH_CAPTURES} captures or more"
        ));
    }
    if !knows_own_error {
        notes.push(
            "how far a replay on the recorded network is from the recording is not known, and not in the interval: \
             give a model of that network with --recorded, or traces of this version's `merger` whose links were full"
                .to_owned(),
        );
    }
    if gets_faster {
        notes.push(
            "what the recorded network hid of the job's own speed is not in the interval: towards a much faster network the \
             answer may be too long (docs/results.md)"
                .to_owned(),
        );
    }
    notes
}

/// The whole prediction.
pub(super) fn of(prediction: &Prediction, out: Option<&Path>) -> String {
    let captures = prediction.captures.len();
    let runs = if captures == 1 { "1 capture" } else { &format!("{captures} captures") };
    let seeds = prediction.seeds.len();
    let mut text = format!("{}: {runs}, {seeds} replays of each\n", prediction.job_name);
    for fabric in &prediction.fabrics {
        text += &of_fabric(fabric);
    }
    text += "\n";
    if let Some(own) = &prediction.self_replay {
        let errors: Vec<String> = own.errors.iter().map(|error| signed_percent(*error, 1)).collect();
        let _ = writeln!(text, "own error  {} on the recorded network ({})", errors.join(", "), own.experiment);
    }
    for note in &prediction.notes {
        let _ = writeln!(text, "note       {note}");
    }
    if let Some(out) = out {
        let _ = writeln!(text, "report     {}", out.join("report.html").display());
    }
    text.trim_end().to_owned()
}

fn of_fabric(fabric: &FabricPrediction) -> String {
    let mut text = format!("\n{}\n", fabric.answer);
    let mut times = new_table(&["", "nothing changes", "predicted", "80% interval", "change"]);
    let mut row = |name: &str, time: &PredictedTime| {
        let interval = match (time.low_s, time.high_s) {
            (Some(low), Some(high)) => format!("{low:.2} to {high:.2} s"),
            _ => "–".to_owned(),
        };
        times.add_row([
            Cell::new(name),
            right(seconds(time.recorded_s)),
            right(seconds(time.predicted_s)),
            right(interval),
            right(signed_percent(time.change, 1)),
        ]);
    };
    row("job", &fabric.job);
    fabric.phases.iter().for_each(|phase| row(&format!("{} (mean)", phase.name), &phase.time));
    let mut tasks = new_table(&["task", "recorded", "predicted", "shortest to longest", "ended", "ends"]);
    for task in &fabric.tasks {
        tasks.add_row([
            Cell::new(&task.task),
            right(seconds(task.recorded_s)),
            right(seconds(task.predicted_s)),
            right(format!("{:.2} to {:.2} s", task.least_s, task.most_s)),
            right(seconds(task.recorded_finish_s)),
            right(seconds(task.predicted_finish_s)),
        ]);
    }
    let _ = writeln!(text, "{times}\n{tasks}");
    if !fabric.ablations.is_empty() {
        let mut without = new_table(&["without", "predicted", "against everything", "against nothing changes"]);
        for ablation in &fabric.ablations {
            let change = ablation.predicted_s / fabric.job.recorded_s - 1.0;
            without.add_row([
                Cell::new(ablation.without),
                right(seconds(ablation.predicted_s)),
                right(signed_percent(ablation.change, 1)),
                right(signed_percent(change, 1)),
            ]);
        }
        let _ = writeln!(text, "{without}");
    }
    let sources: Vec<String> = fabric
        .sources
        .iter()
        .map(|source| format!("{} {:.1}%", source.kind.label(), source.deviation * 100.0))
        .collect();
    let waits: Vec<String> =
        fabric.critical_path.iter().map(|wait| format!("{} {:.1}%", wait.kind, wait.share * 100.0)).collect();
    let _ = writeln!(text, "unsure     {}", if sources.is_empty() { "–".to_owned() } else { sources.join(", ") });
    let _ = writeln!(text, "waits      {}", waits.join(", "));
    let _ = writeln!(text, "help       {}", fabric.most_help);
    for doubt in &fabric.doubts {
        let _ = writeln!(text, "DOUBT      {doubt}");
    }
    text
}

fn seconds(value: f64) -> String {
    format!("{value:.2} s")
}
