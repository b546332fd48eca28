//! Calls: a response waits for its request, a request for what its thread got before, and for nothing else.

use crate::scenario::{MS, Scenario, WAY};
use merger::causality::check;
use trace::ids::ConnectionId;
use trace::jvm::JvmRecord;
use trace::rows::{Evidence, MessageKind, On};

#[test]
fn a_request_waits_for_what_its_own_thread_got_and_not_for_what_came_last() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (task, master) = (s.process(a, "YarnChild", (0, 100 * MS)), s.process(b, "NameNode", (0, 100 * MS)));
    let line = s.connect(task, master, "rpc");
    let (_, first, back) = s.rpc(line, "open", 1, MS, MS, Some(7));
    let (_, other, _) = s.rpc(line, "mkdirs", 2, 10 * MS, MS, Some(8));
    let (next, answer, _) = s.rpc(line, "create", 3, 20 * MS, 2 * MS, Some(7));
    let inferred = s.build();

    let edge = inferred.edge(next, first).expect("the thread's last response");
    assert_eq!((edge.on, edge.evidence), (On::Delivered, Evidence::Thread));
    assert!(inferred.edge(next, other).is_none(), "another thread's response is no cause");
    assert_eq!(inferred.first(next).delay_ns, 20 * MS - back);
    let edge = inferred.edge(answer, next).expect("its request");
    assert_eq!(edge.evidence, Evidence::CallId);
    assert_eq!(inferred.first(answer).delay_ns, 2 * MS);
}

#[test]
fn a_handler_that_calls_others_answers_after_them() {
    let mut s = Scenario::default();
    let (a, b, c) = (s.host("a"), s.host("b"), s.host("c"));
    let client = s.process(a, "Client", (0, 100 * MS));
    let router = s.process(b, "NodeManager", (0, 100 * MS));
    let name = s.process(c, "NameNode", (0, 100 * MS));
    let (front, rear) = (s.connect(client, router, "rpc"), s.connect(router, name, "rpc"));
    let asked = s.message(front, true, MessageKind::RpcRequest, "getListing", 1, 200, MS);
    let begin = MS + WAY;
    let (inner, inner_answer, back) = s.rpc(rear, "getListing", 1, begin + MS, MS, Some(40));
    let answer = s.message(front, false, MessageKind::RpcResponse, "getListing", 1, 100, back + 3 * MS);
    s.span(router, 40, "rpc", "getListing", (begin, back + 3 * MS), Some(asked), Some(answer));
    let inferred = s.build();

    assert!(inferred.edge(inner, asked).is_some(), "the inner call is because of the outer request");
    let edge = inferred.edge(answer, inner_answer).expect("the answer waits for the inner call");
    assert_eq!(edge.evidence, Evidence::Span);
    assert_eq!(inferred.first(answer).delay_ns, 3 * MS, "only what came after the inner answer is thinking");
}

#[test]
fn a_started_thread_acts_because_of_its_starter_and_a_joined_one_holds_it_back() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (client, name) = (s.process(a, "Client", (0, 200 * MS)), s.process(b, "NameNode", (0, 200 * MS)));
    let line = s.connect(client, name, "rpc");
    let (_, opened, _) = s.rpc(line, "getListing", 1, MS, MS, Some(1));
    s.jvm(client, JvmRecord::Thread { t: 5 * MS, th: 1, child: 20, name: "sampler".into() });
    let (child, child_answer, _) = s.rpc(line, "getBlockLocations", 2, 6 * MS, 40 * MS, Some(20));
    let (after, _, _) = s.rpc(line, "create", 3, 60 * MS, MS, Some(1));
    let inferred = s.build();

    let edge = inferred.edge(child, opened).expect("the starter's last response");
    assert_eq!(edge.evidence, Evidence::ThreadStart);
    assert!(inferred.edge(after, child_answer).is_some(), "the starter waited for the thread it had started");
}

#[test]
fn without_any_owner_answers_still_wait_for_requests() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (client, server) = (s.process(a, "other", (0, 100 * MS)), s.process(b, "other", (0, 100 * MS)));
    let line = s.connect(client, server, "");
    s.joined.connections.change_ends(ConnectionId(0), |ends| (ends.client_process, ends.server_process) = (None, None));
    let said = s.message(line, true, MessageKind::Unknown, "", 0, 300, MS);
    let answered = s.message(line, false, MessageKind::Unknown, "", 0, 300, 4 * MS);
    let again = s.message(line, true, MessageKind::Unknown, "", 1, 300, 9 * MS);
    let inferred = s.build();

    assert!(inferred.edge(answered, said).is_some());
    assert!(inferred.edge(again, answered).is_some());
    assert_eq!(inferred.first(again).delay_ns, 5 * MS - WAY);
    let report = check::verify(&inferred.causal.events, &inferred.causal.dependencies).unwrap();
    assert_eq!((report.roots, report.dangling, report.backward), (1, 0, 0));
    assert_eq!(report.worst.unwrap().0, 0);
}

/// The NameNode leaves an answer to the thread that syncs its edit log; the handler takes the next call meanwhile.
#[test]
fn an_answer_that_others_send_does_not_wait_for_what_the_handler_took_next() {
    let mut s = Scenario::default();
    let (a, b) = (s.host("a"), s.host("b"));
    let (client, beating) = (s.process(a, "Client", (0, 100 * MS)), s.process(a, "DataNode", (0, 100 * MS)));
    let name = s.process(b, "NameNode", (0, 100 * MS));
    let (front, beats) = (s.connect(client, name, "rpc"), s.connect(beating, name, "rpc"));
    let asked = s.message(front, true, MessageKind::RpcRequest, "create", 1, 200, MS);
    let beat = s.message(beats, true, MessageKind::RpcRequest, "sendHeartbeat", 1, 200, 2 * MS);
    let beat_answer = s.message(beats, false, MessageKind::RpcResponse, "sendHeartbeat", 1, 100, 4 * MS);
    let answer = s.message(front, false, MessageKind::RpcResponse, "create", 1, 100, 6 * MS);
    s.span(name, 61, "rpc", "create", (MS + WAY, 6 * MS), Some(asked), Some(answer));
    s.span(name, 61, "rpc", "sendHeartbeat", (3 * MS, 4 * MS), Some(beat), Some(beat_answer));
    let inferred = s.build();

    assert!(inferred.edge(answer, beat).is_none(), "the heartbeat is no cause of it");
    assert!(inferred.edge(answer, asked).is_some());
    assert_eq!(inferred.first(answer).delay_ns, 5 * MS - WAY);
}
