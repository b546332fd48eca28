//! Which beats carried news, in a replay and in its recording: what misses a beat by a moment waits for the next one, mostly a second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use causal::{CarrierId, JobGraph, Outcome, RecordedBeats};

/// News that waited for the next beats of the timers of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeartbeatWaits {
    /// The call that beats: "allocate", "nodeHeartbeat".
    pub timer: String,
    /// News that a beat carried in the recording, and that was there in the replay.
    pub waits: u64,
    /// Of these, the ones that another beat carried in the replay, or none.
    pub other_beat: u64,
    /// The longest pause between two beats of those timers.
    pub pause_s: f64,
}

/// By name, in its order. Empty where nothing waited for beats.
pub(super) fn of(graph: &JobGraph, outcome: &Outcome) -> Vec<HeartbeatWaits> {
    if outcome.piggybacked.is_empty() {
        return Vec::new();
    }
    let beats = RecordedBeats::new(&graph.trace.events);
    let mut by_name: BTreeMap<&str, HeartbeatWaits> = BTreeMap::new();
    for (number, piggyback) in &outcome.piggybacked {
        let dependency = graph.dependency(*number);
        let (Some(timer), Some(recorded)) = (dependency.timer, beats.carrier(graph, dependency)) else { continue };
        let timer = &graph.trace.timers[timer.index()];
        let waits = by_name.entry(&timer.name).or_default();
        waits.waits += 1;
        waits.other_beat += u64::from(piggyback.carrier != CarrierId::Event(recorded));
        waits.pause_s = waits.pause_s.max(timer.pause_ns as f64 / 1e9);
    }
    by_name.into_iter().map(|(name, waits)| HeartbeatWaits { timer: name.to_owned(), ..waits }).collect()
}

/// Why a model of the recorded network may miss the job's time by whole pauses; `None` where each beat carried what it did.
pub(super) fn note(waits: &[HeartbeatWaits]) -> Option<String> {
    let (all, others) = waits.iter().fold((0, 0), |(all, others), of| (all + of.waits, others + of.other_beat));
    let moved = waits.iter().filter(|of| of.other_beat > 0);
    let names: Vec<String> =
        moved.map(|of| format!("{}: {}, every {:.1} s", of.timer, of.other_beat, of.pause_s)).collect();
    (others > 0).then(|| {
        format!(
            "{others} of {all} waits for a heartbeat ended with another beat than recorded ({}): news that misses its beat by \
             a moment waits for the next one, and what follows moves with it",
            names.join("; ")
        )
    })
}
