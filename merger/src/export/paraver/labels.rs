//! `.pcf` and `.row`: names of states, events, their values, and rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use trace::rows::Trace;

use super::codes::{EventType, STATES, of_state};
use crate::export::file::one_line;
use crate::export::lanes::Lanes;

/// Names of events' values, by event type.
#[derive(Default)]
pub struct Labels {
    values: BTreeMap<EventType, BTreeMap<String, u64>>,
}

impl Labels {
    /// The number of a name, from 1: 0 means the end.
    pub fn value(&mut self, kind: EventType, name: &str) -> u64 {
        let values = self.values.entry(kind).or_default();
        if let Some(known) = values.get(name) {
            return *known;
        }
        let next = values.len() as u64 + 1;
        values.insert(name.to_owned(), next);
        next
    }

    /// Gives a value a name.
    pub fn name(&mut self, kind: EventType, value: u64, name: &str) {
        let values = self.values.entry(kind).or_default();
        if !values.contains_key(name) {
            values.insert(name.to_owned(), value);
        }
    }
}

/// The `.pcf` file.
pub fn configuration(labels: &Labels) -> String {
    let mut text = String::from(
        "DEFAULT_OPTIONS\n\nLEVEL               THREAD\nUNITS               NANOSEC\nLOOK_BACK           100\n\
         SPEED               1\nFLAG_ICONS          ENABLED\nNUM_OF_STATE_COLORS 1000\nYMAX_SCALE          37\n\n\n\
         DEFAULT_SEMANTIC\n\nTHREAD_FUNC         State As Is\n\n\nSTATES\n",
    );
    for (number, name, _) in STATES.map(of_state) {
        let _ = writeln!(text, "{number}    {name}");
    }
    text.push_str("\n\nSTATES_COLOR\n");
    for (number, _, [red, green, blue]) in STATES.map(of_state) {
        let _ = writeln!(text, "{number}    {{{red},{green},{blue}}}");
    }
    for kind in EventType::all() {
        let _ = write!(text, "\n\nEVENT_TYPE\n0    {}    {}\n", kind.number(), kind.name());
        if kind.is_number() {
            continue;
        }
        text.push_str("VALUES\n0      End\n");
        let mut values: Vec<_> = labels.values.get(&kind).into_iter().flatten().collect();
        values.sort_by_key(|(_, value)| **value);
        for (name, value) in values {
            let _ = writeln!(text, "{value}      {}", one_line(name));
        }
    }
    text
}

/// The `.row` file.
pub fn rows(trace: &Trace, lanes: &Lanes<'_>) -> String {
    let tasks: Vec<String> = lanes.tasks.iter().map(|task| task.name(trace)).collect();
    let threads: Vec<String> = lanes
        .tasks
        .iter()
        .zip(&tasks)
        .flat_map(|(task, name)| (0..).zip(&task.lanes).map(move |(at, lane)| format!("{name} {}", lane.name(at))))
        .collect();
    // CPUs stand in the order of the threads; a host without any has one of its own.
    let mut cpus = Vec::new();
    let mut next = threads.iter();
    for (node, (host, count)) in trace.hosts.iter().zip(&lanes.cpus).enumerate() {
        let here: usize = lanes.tasks.iter().filter(|task| task.node == node + 1).map(|task| task.lanes.len()).sum();
        cpus.extend(next.by_ref().take(here).cloned());
        cpus.extend((here..*count).map(|_| host.name.clone()));
    }
    let hosts: Vec<String> = trace.hosts.iter().map(|host| host.name.clone()).collect();
    let levels = [
        ("CPU", &cpus),
        ("NODE", &hosts),
        ("THREAD", &threads),
        ("TASK", &tasks),
        ("APPL", &vec!["Hadoop".to_owned()]),
    ];
    let mut text = String::new();
    for (level, labels) in levels {
        let _ = writeln!(text, "LEVEL {level} SIZE {}", labels.len());
        for label in labels {
            let _ = writeln!(text, "{}", one_line(label));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_line_breaks_stay_one_label() {
        let mut labels = Labels::default();
        labels.value(EventType::Role, "a\r\nEVENT_TYPE\n0 1 forged");
        labels.value(EventType::Role, "\n");
        let text = configuration(&labels);
        assert_eq!(text.lines().filter(|line| *line == "EVENT_TYPE").count(), EventType::all().count());
        assert!(text.lines().any(|line| line == "1      a  EVENT_TYPE 0 1 forged"), "{text}");
        assert!(text.lines().any(|line| line == "2      unknown"), "{text}");
    }
}
