//! Why a replay came to a halt: the chain of events that wait for what never happens.

use std::collections::HashSet;

use trace::ids::EventId;
use trace::rows::{Carrier, EventKind, On};

use super::graph::{JobGraph, JobPeriod};
use super::heartbeats::HeartbeatTimers;
use super::outcome::EventOutcome;

/// More lines than this tell nobody anything.
const MAX_CHAIN: usize = 30;

/// Follows the first unmet dependency of each event from the job's end down to what keeps everything waiting.
pub(crate) fn diagnose(
    graph: &JobGraph,
    events: &[EventOutcome],
    yielded: &[bool],
    heartbeats: &HeartbeatTimers,
) -> String {
    let mut lines = Vec::new();
    let mut seen = HashSet::new();
    let mut event = graph.finish;
    loop {
        if !seen.insert(event) {
            lines.push(format!("and so on: {} waits for itself, a cycle in the trace", describe(graph, event)));
            break;
        }
        if lines.len() == MAX_CHAIN {
            lines.push("and so on".to_owned());
            break;
        }
        let Some(number) = graph.causes(event).iter().find(|number| !yielded[**number as usize]) else {
            lines.push(format!("{} waits for its connection, which never opens", describe(graph, event)));
            break;
        };
        let dependency = graph.dependency(*number);
        let on = events[dependency.on_event.index()];
        let moment = if dependency.on == On::Sent { "to be sent" } else { "to be delivered" };
        let reached = if dependency.on == On::Sent { on.happened() } else { on.delivered() };
        lines.push(format!(
            "{} waits for {} {moment} ({} evidence, dependencies row {number})",
            describe(graph, event),
            describe(graph, dependency.on_event),
            dependency.evidence,
        ));
        if reached.is_none() && on.happened().is_some() {
            lines.push("whose bytes the network has not delivered".to_owned());
            break;
        }
        if reached.is_none() {
            event = dependency.on_event;
            continue;
        }
        // The news is there, but no beat takes it.
        let Some((timer, half)) = dependency.timer.zip(dependency.carrier) else { break };
        let row = &graph.trace.timers[timer.index()];
        lines.push(format!("which has happened; the news waits for the next {half} of timer {timer} ({})", row.name));
        let stuck =
            graph.during().find(|beat| beat.timer == Some(timer) && is_stuck(beat.event, events) && fits(beat, half));
        match stuck {
            Some(beat) if !heartbeats.is_synthetic(timer) => event = beat.event,
            _ => {
                lines.push("which never comes".to_owned());
                break;
            }
        }
    }
    lines.join("\n")
}

fn is_stuck(event: EventId, events: &[EventOutcome]) -> bool {
    events[event.index()].happened().is_none()
}

/// Requests go before responses, so whoever waits for a response looks at both.
fn fits(event: &trace::rows::EventRow, half: Carrier) -> bool {
    half == Carrier::Response || JobGraph::half_of_beat(event) == Carrier::Request
}

/// An event for people.
pub(crate) fn describe(graph: &JobGraph, event: EventId) -> String {
    let row = graph.event(event);
    let task = row.task.map(|task| format!(" of {}", graph.trace.tasks[task.index()].attempt)).unwrap_or_default();
    let place = if graph.period(event) == JobPeriod::Before { ", before the job" } else { "" };
    match row.kind {
        EventKind::Mark => format!("event {event} ({}{task}{place})", row.name),
        EventKind::Send => {
            let message = row.message.map(|message| &graph.trace.messages[message.index()]);
            let what =
                message.map_or_else(|| "send".to_owned(), |message| format!("{} {}", message.kind, message.name));
            let host = |host: trace::ids::HostId| graph.trace.hosts[host.index()].name.as_str();
            let ends = graph.ends(row).map(|(from, to)| format!(" {} -> {}", host(from), host(to))).unwrap_or_default();
            format!("event {event} ({}{ends}, {} bytes{task}{place})", what.trim_end(), row.bytes)
        }
    }
}
