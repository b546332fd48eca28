//! Times that can be worked out by hand.

use super::{run, run_with, schedule};

#[test]
fn a_message_takes_overhead_latency_bytes_and_overhead() {
    let program = schedule(&["s: send 500b to 1 tag 3", "r: recv 500b from 0 tag 3;c: calc 40;c requires r"]);
    let ran = run_with(&program, 0).unwrap();
    assert_eq!((ran.end_ns, ran.messages_ns), (1_540, vec![(0, 0, 1_500)]));
    let ran = run_with(&program, 200).unwrap();
    assert_eq!((ran.end_ns, ran.messages_ns), (200 + 1_500 + 200 + 40, vec![(0, 200, 1_700)]));
    assert_eq!(ran.ranks_ns, [200, 1_940]);
}

/// Rank `r` gets the message of round `k` from `r - 2^k` if that is below 2^k, and passes it on.
fn broadcast(rounds: u32, bytes: u64) -> Vec<String> {
    let ranks = 1u32 << rounds;
    let of = |rank: u32| {
        let mut lines = Vec::new();
        let joined = if rank == 0 { 0 } else { rank.ilog2() + 1 };
        if rank > 0 {
            lines.push(format!("r: recv {bytes}b from {} tag 0", rank - (1 << (joined - 1))));
        }
        for round in joined..rounds {
            lines.push(format!("s{round}: send {bytes}b to {} tag 0", rank + (1 << round)));
            if rank > 0 {
                lines.push(format!("s{round} requires r"));
            }
        }
        lines.join(";")
    };
    (0..ranks).map(of).collect()
}

#[test]
fn a_broadcast_by_a_binomial_tree_takes_a_way_each_round() {
    for rounds in 1..=8 {
        let lines = broadcast(rounds, 300);
        let program = schedule(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(program.messages(), (1 << rounds) - 1);
        // No link limits several sends of a rank: the deepest rank hears it after as many ways as there are rounds.
        assert_eq!(run_with(&program, 0).unwrap().end_ns, u64::from(rounds) * 1_300, "{rounds} rounds");
        // With an overhead a rank's sends follow one another: rank 0's last is the first of the shortest way, and the way by
        // its first sends is o more for each round at each of both ends.
        let ran = run_with(&program, 50).unwrap();
        assert_eq!(ran.end_ns, u64::from(rounds) * (50 + 1_300 + 50), "{rounds} rounds");
    }
}

#[test]
fn a_dissemination_ends_everywhere_after_as_many_ways_as_rounds() {
    for rounds in 1..=7u32 {
        let ranks = 1u32 << rounds;
        let of = |rank: u32| {
            let mut lines = Vec::new();
            for round in 0..rounds {
                let far = 1 << round;
                lines.push(format!("s{round}: send 8b to {} tag {round}", (rank + far) % ranks));
                lines.push(format!("r{round}: recv 8b from {} tag {round}", (rank + ranks - far) % ranks));
                if round > 0 {
                    lines.push(format!("s{round} requires r{}", round - 1));
                }
            }
            lines.join(";")
        };
        let lines: Vec<String> = (0..ranks).map(of).collect();
        let ran = run(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.ranks_ns, vec![u64::from(rounds) * 1_008; ranks as usize]);
    }
}

#[test]
fn a_cpu_does_one_operation_at_a_time_and_sends_before_it_calculates() {
    // Both calculations are ready at once; the first of the file is first, whatever they are called.
    let ran = run(&["z: calc 100;a: calc 10;s: send 1b to 1 tag 0;s requires z", "r: recv 1b from 0 tag 0"]);
    assert_eq!(ran.messages_ns, [(0, 100, 1_101)]);
    assert_eq!(ran.ranks_ns[0], 110);
    // On another CPU it need not wait.
    let ran = run(&["z: calc 100 cpu 1;a: calc 10;s: send 1b to 1 tag 0;s requires a", "r: recv 1b from 0 tag 0"]);
    assert_eq!(ran.messages_ns, [(0, 10, 1_011)]);
    assert_eq!(ran.ranks_ns[0], 100);
}

#[test]
fn what_irequires_begins_when_the_other_begins() {
    let ran = run(&["c: calc 500;d: calc 70 cpu 1;d irequires c;e: calc 7 cpu 2;e requires d"]);
    assert_eq!(ran.ranks_ns, [500]);
    let ran = run(&["c: calc 500;d: calc 70 cpu 1;d requires c;e: calc 7 cpu 2;e requires d"]);
    assert_eq!(ran.ranks_ns, [577]);
    // A receive begins when it is posted, a send when its CPU takes it.
    let ran =
        run(&["r: recv 1b from 1 tag 0;c: calc 30;c irequires r", "w: calc 900;s: send 1b to 0 tag 0;s requires w"]);
    assert_eq!((ran.ranks_ns[0], ran.messages_ns[0].2), (1_901, 1_901));
}

#[test]
fn a_chain_of_a_million_operations_is_not_deep() {
    let mut lines = String::from("c0: calc 0");
    for number in 1..1_000_000 {
        lines += &format!(";c{number}: calc 0;c{number} requires c{}", number - 1);
    }
    assert_eq!(run(&[&lines]).end_ns, 0);
}
