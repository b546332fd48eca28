//! The answer in sentences.

use super::{FabricPrediction, LEVEL, Wait};

/// How long the job takes on a network, and how long it took.
pub(super) fn sentence(prediction: &FabricPrediction, captures: usize) -> String {
    let job = &prediction.job;
    let interval = match (job.low_s, job.high_s) {
        (Some(low), Some(high)) => format!(" ({:.0}% interval {low:.2} to {high:.2} s)", LEVEL * 100.0),
        _ => String::new(),
    };
    let runs = if captures > 1 { format!(" (mean of {captures} runs)") } else { String::new() };
    format!(
        "On {} the job takes {:.2} s{interval}; on the recorded network it took {:.2} s{runs}, so it takes {} there.",
        prediction.name,
        job.predicted_s,
        job.recorded_s,
        change_in_words(job.change)
    )
}

fn change_in_words(change: f64) -> String {
    let percent = format!("{:.1}%", change.abs() * 100.0);
    match (percent.as_str(), change < 0.0) {
        ("0.0%", _) => "as long".to_owned(),
        (_, true) => format!("{percent} less"),
        (_, false) => format!("{percent} more"),
    }
}

/// What can be done about a kind of wait, and which part of it that saves at most.
const REMEDIES: [(&[&str], &str, f64); 4] = [
    (&["network"], "a faster network", 1.0),
    (&["think", "hidden-work"], "processors and disks twice as fast", 0.5),
    (&["timer-wait"], "shorter heartbeats", 1.0),
    (&["slot"], "containers that start at once", 1.0),
];

/// What would shorten the job most. Each saving is a bound: what the critical path waits for now may give way to other waits.
pub(super) fn most_help(waits: &[Wait]) -> String {
    let saving = |kinds: &[&str], part: f64| {
        let share: f64 = waits.iter().filter(|wait| kinds.contains(&wait.kind.as_str())).map(|wait| wait.share).sum();
        share * part
    };
    let mut savings: Vec<(&str, f64)> = REMEDIES
        .iter()
        .map(|(kinds, remedy, part)| (*remedy, saving(kinds, *part)))
        .filter(|(_, saved)| *saved > 0.0)
        .collect();
    savings.sort_by(|a, b| b.1.total_cmp(&a.1));
    let bound = |saved: f64| format!("at most {:.1}% of the job's time", saved * 100.0);
    let Some(((remedy, saved), others)) = savings.split_first() else { return String::new() };
    let others: Vec<String> = others.iter().map(|(remedy, saved)| format!("{remedy} {:.1}%", saved * 100.0)).collect();
    let rest = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    format!("What would help most there: {remedy}, {}{rest}.", bound(*saved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(kind: &str, share: f64) -> Wait {
        Wait { kind: kind.to_owned(), seconds: share * 40.0, share }
    }

    #[test]
    fn what_saves_most_stands_first_and_computing_counts_half() {
        let answer =
            most_help(&[wait("think", 0.4), wait("hidden-work", 0.1), wait("network", 0.3), wait("timer-wait", 0.2)]);
        assert!(
            answer.starts_with("What would help most there: a faster network, at most 30.0% of the job's time;"),
            "{answer}"
        );
        assert!(answer.contains("processors and disks twice as fast 25.0%"), "{answer}");
        assert_eq!(most_help(&[wait("outside", 1.0)]), "");
    }

    #[test]
    fn a_change_is_told_in_words() {
        assert_eq!(
            (change_in_words(0.1), change_in_words(-0.25), change_in_words(0.0004)),
            ("10.0% more".into(), "25.0% less".into(), "as long".into())
        );
    }
}
