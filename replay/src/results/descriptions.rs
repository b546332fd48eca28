//! What `replay tables` says of all tables of results.

use trace_tables::describe::TableDescription;

use super::sweep::described;
use super::tables::{
    CircuitResult, CoflowResult, CongestionResult, HistogramResult, HopsResult, IntervalResult, LaneResult,
    LatencyResult, LinkResult, LogResult, MessageResult, OccupancyResult, PacketResult, PairResult, PathResult,
    PredictedTaskResult, ProgramMessageResult, ProgramRankResult, ShuffleResult, TaskResult, TrafficCircuitResult,
    TrafficLinkResult, TrafficResult, VlResult,
};
use super::{jobs, synthetic};

/// The tables of recorded jobs (and such from parameters), of synthetic traffic, of coflows, of programs and of static congestion.
#[must_use]
pub fn describe() -> [(&'static str, Vec<TableDescription>); 6] {
    let of_jobs = vec![
        TableDescription::of::<MessageResult>(),
        TableDescription::of::<TaskResult>(),
        TableDescription::of::<LinkResult>(),
        TableDescription::of::<TrafficResult>(),
        TableDescription::of::<CircuitResult>(),
        TableDescription::of::<PathResult>(),
        described(&jobs::COLUMNS),
    ];
    let of_predictions = vec![TableDescription::of::<PredictedTaskResult>()];
    let of_traffic = vec![
        TableDescription::of::<TrafficLinkResult>(),
        TableDescription::of::<LaneResult>(),
        TableDescription::of::<VlResult>(),
        TableDescription::of::<TrafficCircuitResult>(),
        TableDescription::of::<LatencyResult>(),
        TableDescription::of::<HopsResult>(),
        TableDescription::of::<OccupancyResult>(),
        TableDescription::of::<IntervalResult>(),
        TableDescription::of::<PairResult>(),
        TableDescription::of::<PacketResult>(),
        TableDescription::of::<LogResult>(),
        described(&synthetic::COLUMNS),
    ];
    let of_congestion = vec![
        TableDescription::of::<CongestionResult>(),
        TableDescription::of::<HistogramResult>(),
        TableDescription::of::<ShuffleResult>(),
    ];
    [
        ("Of a replayed job", of_jobs),
        ("Of a prediction", of_predictions),
        ("Of synthetic traffic", of_traffic),
        ("Of coflows", vec![TableDescription::of::<CoflowResult>()]),
        (
            "Of programs",
            vec![TableDescription::of::<ProgramMessageResult>(), TableDescription::of::<ProgramRankResult>()],
        ),
        ("Of static congestion", of_congestion),
    ]
}
