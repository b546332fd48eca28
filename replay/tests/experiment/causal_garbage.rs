//! A trace with wrong rows is replayed or refused, and never ends in a panic.

use proptest::prelude::*;
use replay::experiment::Experiment;
use replay::report::page;
use replay::run::run_experiment;
use trace::ids::{ConnectionId, EventId, MessageId, ProcessId, TaskId, TimerId};
use trace::rows::{Carrier, EventKind, On, Trace};

/// A change of one cell: which kind, which row, and the new value.
type Change = (u8, usize, u64);

fn apply(trace: &mut Trace, (kind, row, value): Change) {
    let small = u32::try_from(value % 200).unwrap();
    let events = trace.events.len();
    let event = &mut trace.events[row % events];
    match kind {
        0 => event.recorded_ns = value,
        1 => (event.recorded_ns, event.recorded_delivered_ns) = (value, value),
        2 => event.recorded_delivered_ns = value,
        3 => event.delay_ns = value,
        4 => event.bytes = value,
        5 => event.kind = if small % 2 == 0 { EventKind::Mark } else { EventKind::Send },
        6 => event.connection = (small % 3 > 0).then_some(ConnectionId(small)),
        7 => event.process = Some(ProcessId(small)),
        8 => event.task = Some(TaskId(small)),
        9 => event.timer = (small % 2 == 0).then_some(TimerId(0)),
        10 => event.message = (small % 2 == 0).then_some(MessageId(small)),
        11 => event.from_client = !event.from_client,
        12 => event.name = "job.finish".to_owned(),
        _ => {
            let dependencies = trace.dependencies.len();
            let dependency = &mut trace.dependencies[row % dependencies];
            match kind {
                13 => dependency.event = EventId(small),
                14 => dependency.on_event = EventId(small),
                15 => dependency.on = if small % 2 == 0 { On::Sent } else { On::Delivered },
                16 => dependency.timer = (small % 2 == 0).then_some(TimerId(0)),
                17 => dependency.carrier = (small % 2 == 0).then_some(Carrier::Response),
                18 => trace.jobs[0].submit_ns = value,
                19 => trace.jobs[0].finish_ns = value,
                20 => trace.connections[row % 4].handshake_ns = Some(value),
                21 => trace.connections[row % 4].first_ns = value,
                22 => trace.timers[0].service_ns = value % 1_000_000_000_000,
                _ => trace.tasks[row % 3].start_ns = value,
            }
        }
    }
}

fn value() -> impl Strategy<Value = u64> {
    let submit = u64::try_from(crate::common::SUBMIT_NS).unwrap();
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0..1_000u64,
        any::<u64>(),
        submit - 2_000_000_000..submit + 9_000_000_000,
        0..10_000_000_000u64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn wrong_cells_never_end_in_a_panic(
        changes in prop::collection::vec((0u8..24, 0usize..500, value()), 1..6),
        recorded in any::<bool>(),
    ) {
        let mut trace = crate::common::map_reduce(&["m1", "w1"], 2, 1);
        for change in changes {
            apply(&mut trace, change);
        }
        let causality = if recorded { "recorded" } else { "trace" };
        let text = format!("[workload]\ncausality = \"{causality}\"\n[fabric]\nkind = \"ideal\"\nrate = \"100Mbps\"");
        let experiment = Experiment::parse(&text, "x.toml", &[]).unwrap();
        match run_experiment(&experiment, &trace, |_| ()) {
            Ok(results) => prop_assert!(page(&[results.detail]).len() > 1_000),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
