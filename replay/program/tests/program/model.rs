//! Random programs beside a slow plain model, which looks at everything at each instant.

use proptest::prelude::*;

use super::{run_with, schedule};

#[derive(Clone, Debug)]
enum Kind {
    Calculate(u64),
    Send { to: usize, bytes: u64, tag: u32 },
    Receive { from: Option<usize>, bytes: u64, tag: u32 },
}

#[derive(Clone, Debug)]
struct Op {
    rank: usize,
    cpu: u32,
    kind: Kind,
    /// Operations of the rank that end (or, with true, begin) before.
    after: Vec<(usize, bool)>,
}

/// Sends and receives in pairs, calculations between them, and orders that lead back in the list only.
fn programs() -> impl Strategy<Value = (usize, Vec<Op>)> {
    let step = (0..4usize, 0..4usize, 0..3u32, prop::bool::ANY, 0..3u32, 0..400u64, 0..2u32, 0..2u32);
    (2..5usize, prop::collection::vec((step, prop::collection::vec((0..40usize, prop::bool::ANY), 0..3)), 1..30))
        .prop_map(|(ranks, steps)| {
            let mut ops: Vec<Op> = Vec::new();
            for ((a, b, what, any, tag, size, cpu, other_cpu), after) in steps {
                let (a, b) = (a % ranks, b % ranks);
                let mut push = |rank: usize, cpu: u32, kind: Kind| {
                    let own: Vec<usize> = (0..ops.len()).filter(|op| ops[*op].rank == rank).collect();
                    let mut before: Vec<(usize, bool)> = after
                        .iter()
                        .filter(|_| !own.is_empty())
                        .map(|(number, begins)| (own[number % own.len()], *begins))
                        .collect();
                    before.sort_unstable();
                    before.dedup();
                    ops.push(Op { rank, cpu, kind, after: before });
                };
                if what == 0 {
                    push(a, cpu, Kind::Calculate(size));
                } else {
                    push(a, cpu, Kind::Send { to: b, bytes: size, tag });
                    push(b, other_cpu, Kind::Receive { from: (!any).then_some(a), bytes: 400, tag });
                }
            }
            (ranks, ops)
        })
}

fn as_text(ranks: usize, ops: &[Op]) -> Vec<String> {
    (0..ranks)
        .map(|rank| {
            let mut lines = Vec::new();
            for (number, op) in ops.iter().enumerate().filter(|(_, op)| op.rank == rank) {
                lines.push(match &op.kind {
                    Kind::Calculate(ns) => format!("o{number}: calc {ns} cpu {}", op.cpu),
                    Kind::Send { to, bytes, tag } => {
                        format!("o{number}: send {bytes}b to {to} tag {tag} cpu {}", op.cpu)
                    }
                    Kind::Receive { from, bytes, tag } => {
                        let from = from.map_or("-1".to_owned(), |from| from.to_string());
                        format!("o{number}: recv {bytes}b from {from} tag {tag} cpu {}", op.cpu)
                    }
                });
                for (before, begins) in &op.after {
                    let word = if *begins { "irequires" } else { "requires" };
                    lines.push(format!("o{number} {word} o{before}"));
                }
            }
            lines.join(";")
        })
        .collect()
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct State {
    posted: bool,
    /// Its message is known, or it needs none; it waits for its CPU.
    ready: bool,
    begun: bool,
    busy_until: Option<u64>,
    ended: Option<u64>,
}

/// `None` if it does not come to its end. The time of each operation's end, by the text's order (rank by rank).
fn plain(ops: &[Op], order: &[usize], overhead: u64) -> Option<Vec<u64>> {
    let mut states = vec![State::default(); ops.len()];
    // Messages under way: arrival, send. Those of one pair follow each other.
    let mut under_way: Vec<(u64, usize)> = Vec::new();
    let mut waiting_messages: Vec<usize> = Vec::new();
    let mut posted: Vec<usize> = Vec::new();
    let mut last_arrival = std::collections::HashMap::new();
    let matches = |receive: usize, send: usize| match (&ops[receive].kind, &ops[send].kind) {
        (Kind::Receive { from, tag, .. }, Kind::Send { to, tag: sent, .. }) => {
            ops[receive].rank == *to && tag == sent && from.is_none_or(|from| from == ops[send].rank)
        }
        _ => false,
    };
    let mut now = 0;
    loop {
        // Messages that arrive now, in the order of the sends in the file.
        let mut arriving: Vec<usize> = under_way.iter().filter(|(at, _)| *at == now).map(|(_, send)| *send).collect();
        arriving.sort_by_key(|send| order.iter().position(|op| op == send));
        under_way.retain(|(at, _)| *at != now);
        for send in arriving {
            match posted.iter().position(|receive| matches(*receive, send)) {
                Some(place) => states[posted.remove(place)].ready = true,
                None => waiting_messages.push(send),
            }
        }
        // All that can happen now without time passing.
        loop {
            // The first of the file that is free of its causes; then the first that has ended.
            let free = |op: usize| {
                let mut causes = ops[op].after.iter();
                causes
                    .all(|(cause, begins)| if *begins { states[*cause].begun } else { states[*cause].ended.is_some() })
            };
            if let Some(op) = order.iter().copied().find(|op| !states[*op].posted && free(*op)) {
                states[op].posted = true;
                if matches!(ops[op].kind, Kind::Receive { .. }) {
                    states[op].begun = true;
                    match waiting_messages.iter().position(|send| matches(op, *send)) {
                        Some(place) => {
                            waiting_messages.remove(place);
                            states[op].ready = true;
                        }
                        None => posted.push(op),
                    }
                } else {
                    states[op].ready = true;
                }
                continue;
            }
            let mut done: Vec<usize> = order.iter().copied().filter(|op| states[*op].busy_until == Some(now)).collect();
            done.truncate(1);
            if done.is_empty() {
                // One operation for each CPU that is free: sends and receives first, then by the file.
                let mut cpus: Vec<(usize, u32)> = ops.iter().map(|op| (op.rank, op.cpu)).collect();
                cpus.sort_unstable();
                cpus.dedup();
                let mut chosen = None;
                for cpu in cpus {
                    let of = |op: &usize| (ops[*op].rank, ops[*op].cpu) == cpu;
                    let busy = order.iter().filter(|op| of(op)).any(|op| states[*op].busy_until.is_some());
                    let mut ready: Vec<usize> =
                        order.iter().copied().filter(|op| of(op) && states[*op].ready && !busy).collect();
                    ready.sort_by_key(|op| {
                        (matches!(ops[*op].kind, Kind::Calculate(_)), order.iter().position(|other| other == op))
                    });
                    if let Some(op) = ready.first() {
                        chosen = Some(*op);
                        break;
                    }
                }
                let Some(op) = chosen else { break };
                states[op].ready = false;
                states[op].begun = true;
                let length = if let Kind::Calculate(ns) = ops[op].kind { ns } else { overhead };
                states[op].busy_until = Some(now + length);
                if length > 0 {
                    continue;
                }
                done.push(op);
            }
            for op in done {
                states[op].busy_until = None;
                states[op].ended = Some(now);
                if let Kind::Send { to, bytes, .. } = ops[op].kind {
                    let pair = (ops[op].rank, to);
                    let begin = now.max(last_arrival.get(&pair).copied().unwrap_or(0));
                    last_arrival.insert(pair, begin + bytes);
                    under_way.push((begin + bytes + 1_000, op));
                }
            }
        }
        let next = under_way.iter().map(|(at, _)| *at).chain(states.iter().filter_map(|state| state.busy_until)).min();
        match next {
            Some(at) => now = at,
            None => break,
        }
    }
    let all: Option<Vec<u64>> = states.iter().map(|state| state.ended).collect();
    all.filter(|_| waiting_messages.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_program_takes_as_long_as_in_the_plain_model((ranks, ops) in programs(), overhead in prop::sample::select(vec![0u64, 30])) {
        let lines = as_text(ranks, &ops);
        let program = schedule(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let of = |rank| (0..ops.len()).filter(|op| ops[*op].rank == rank).collect::<Vec<_>>();
        let order: Vec<usize> = (0..ranks).flat_map(of).collect();
        let ran = run_with(&program, overhead);
        match plain(&ops, &order, overhead) {
            None => prop_assert!(ran.is_err()),
            Some(ends) => {
                let ran = ran.unwrap();
                let arrived = ran.messages_ns.iter().map(|(.., delivered)| *delivered).max().unwrap_or(0);
                for (rank, end_ns) in ran.ranks_ns.iter().enumerate() {
                    // Its last operation, or the last message that reached it.
                    let last = of(rank).into_iter().map(|op| ends[op]).max().unwrap_or(0);
                    prop_assert!(*end_ns == last || (last..=arrived).contains(end_ns));
                }
                prop_assert_eq!(ran.end_ns, ends.iter().copied().max().unwrap_or(0).max(arrived));
            }
        }
    }
}
