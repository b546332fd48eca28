//! The check of a finished graph: it finds wrong delays, wrong order and loose ends.

use crate::scenario::{Inferred, MS, Scenario};
use merger::causality::check::verify;
use trace::ids::EventId;

fn conversation() -> Inferred {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (client, name) = (s.process(a, "Client", (0, 900 * MS)), s.process(b, "NameNode", (0, 900 * MS)));
    let line = s.connect(client, name, "rpc");
    for call in 0..20u64 {
        s.rpc(line, "getFileInfo", call as i64, (1 + 10 * call) * MS, MS, Some(1));
    }
    s.build()
}

#[test]
fn on_the_recorded_network_the_graph_yields_the_recording() {
    let inferred = conversation();
    let report = verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!(report.worst.unwrap().0, 0);
    assert_eq!((report.roots, report.dangling, report.backward, report.off), (1, 0, 0, 0));
}

#[test]
fn a_wrong_delay_shows_in_all_that_follows() {
    let mut inferred = conversation();
    inferred.causal.events[10].delay_ns += 5 * MS;
    let report = verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!(report.worst.unwrap().0, 5 * MS);
    assert_eq!(report.off, 30);
}

#[test]
fn edges_to_the_future_and_to_nowhere_are_counted() {
    let mut inferred = conversation();
    let last = inferred.causal.dependencies.len() - 1;
    inferred.causal.dependencies[0].on_event = EventId(39);
    inferred.causal.dependencies[last].on_event = EventId(4_000);
    let report = verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!((report.backward, report.dangling), (1, 1));
}
