//! INSEE's, MPICH's, Dimemas' and VEF traces, and programs written in other forms.

use program::{Sequences, alog, dimemas, goal, trc, vef};
use proptest::prelude::*;

use super::kernels::{KINDS, kernel};
use super::run_with;

fn all_kernels() -> impl Iterator<Item = Sequences> {
    KINDS.into_iter().map(|(kind, dimensions)| kernel(kind, &vec![4; dimensions as usize]).sequences().unwrap())
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut text = Vec::new();
    write(&mut text).unwrap();
    text
}

#[test]
fn what_is_written_in_a_form_is_read_in_it() {
    for sequences in all_kernels() {
        let time = run_with(&sequences.program().unwrap(), 70).unwrap().ranks_ns;
        assert_eq!(trc::read(&written(|file| trc::write(&sequences, file))[..]).unwrap(), sequences);
        // Kernels calculate nothing here, so that nothing is left out.
        assert_eq!(alog::read(&written(|file| alog::write(&sequences, file))[..]).unwrap(), sequences);
        let of_dimemas = dimemas::read(&written(|file| dimemas::write(&sequences, "a \"name\"", file))[..]).unwrap();
        assert_eq!(of_dimemas.ranks(), sequences.ranks());
        assert_eq!(run_with(&of_dimemas.program().unwrap(), 70).unwrap().ranks_ns, time);
        let of_goal = goal::read(&written(|file| goal::write(&sequences, file))[..]).unwrap();
        assert_eq!(run_with(&of_goal, 70).unwrap().ranks_ns, time);
    }
}

#[test]
fn offsets_of_a_dimemas_trace_lead_to_its_tasks() {
    for sequences in all_kernels() {
        let text = String::from_utf8(written(|file| dimemas::write(&sequences, "k", file))).unwrap();
        let number = |words: &str| words.parse::<usize>().unwrap();
        let tail = number(text.split(':').nth(2).unwrap().split(',').nth(1).unwrap());
        assert!(text[..tail].ends_with('\n'));
        for line in text[tail..].lines() {
            let [_, task, offset] = line.split(':').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let at = &text[number(offset)..];
            let record = at.lines().next().unwrap();
            let owner = record.split(':').nth(1).unwrap();
            let is_empty = sequences.ranks()[number(task)].is_empty();
            assert!(owner == task || is_empty, "{task}: {record}");
        }
    }
}

#[test]
fn a_trace_of_insee_is_matched_by_bytes_as_well() {
    // Both have one tag: each receive takes the message of its own size, in whatever order they come.
    let text =
        "# two sizes\ns 0 1 7 100 # first\ns 0 1 7 900\nr 0 1 7 900\nc 1 50\nr 0 1 7 100\ns 1 1 0 5\nr 1 1 0 5\n";
    let sequences = trc::read(text.as_bytes()).unwrap();
    // What a task says to itself is left out.
    assert_eq!(sequences.ranks().iter().map(Vec::len).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(run_with(&sequences.program().unwrap(), 0).unwrap().end_ns, 1_000 + 100 + 900 + 50);
    let missing = trc::read(&b"s 0 1 7 100\nr 0 1 7 101\n"[..]).unwrap().program().unwrap();
    assert!(run_with(&missing, 0).err().unwrap().to_string().contains("rank 1 waits for ever"));
    for (text, expected) in [
        ("", "there is no step of a task"),
        ("s 0 1 7", "line 1: \"s 0 1 7\" is no step; there are \"c TASK TIME\""),
        ("c 0 -1", "is no number of nanoseconds"),
        ("c 0 99999999999999999", "a calculation may take 100 days"),
        ("c 1048576 1", "rank 1048576: from 0 to 1048575 are possible"),
    ] {
        let error = trc::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn collective_operations_of_a_dimemas_trace_are_expanded() {
    // Four ranks: a barrier, then 100 bytes from rank 2 to all, then 100 bytes of each at rank 1; of the two in communicator 2 each has the other's as well.
    let mut text = "#DIMEMAS:x:1,9:4(1,1,1,1),2\nd:1:1:4:0:1:2:3\nd:1:2:2:0:3\n".to_owned();
    let record = |rank: u32, kind: u32, communicator: u32, root: u32, sent: u32, received: u32| {
        format!("10:{rank}:0:{kind}:{communicator}:{root}:0:{sent}:{received}:1\n")
    };
    for rank in 0..4 {
        text += &record(rank, 0, 1, 0, 0, 0);
        let (sent, received) = if rank == 2 { (100, 0) } else { (0, 100) };
        text += &record(rank, 1, 1, 2, sent, received);
        text += &record(rank, 10, 1, 1, 100, if rank == 1 { 100 } else { 0 });
        if rank % 3 == 0 {
            text += &record(rank, 11, 2, 0, 50, 50);
        }
    }
    let sequences = dimemas::read(text.as_bytes()).unwrap();
    let messages = sequences.program().unwrap().messages();
    // Two rounds of four, three edges of a tree twice, one exchange.
    assert_eq!(messages, 8 + 3 + 3 + 2);
    let ran = run_with(&sequences.program().unwrap(), 0).unwrap();
    // A way takes 1,000 ns and the bytes: two of the barrier, then from 2 to 0, where 0 has its part of the third to send to 3, and 3 to 1.
    assert_eq!(ran.end_ns, 2 * 1_000 + 3 * 1_100);
}

#[test]
fn a_trace_of_mpich_has_sends_and_receives_among_other_events() {
    // As INSEE's program reads it: a header, an event of its own, then a message and one to itself.
    let text = "-1 0 0 0 0 0 0 whoever\n-3 0 0 0 1 2.5 0\n-101 0 0 1 0 0.001 7 0\n-101 1 0 1 0 0.002 7 50\n\
                -102\t1 0 0 0 0.003 7 0\n";
    let sequences = alog::read(text.as_bytes()).unwrap();
    assert_eq!(sequences.ranks().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    // A message of 0 bytes counts as one byte, for 1,000 ns and one more.
    assert_eq!(run_with(&sequences.program().unwrap(), 0).unwrap().end_ns, 1_000 + 1);
    for (text, expected) in [
        ("-1 0 0\n", "there is no send (-101) or receive (-102)"),
        ("-1 0\n-101 0 0 1 0 0.001 7\n", "line 2: \"-101 0 0 1 0 0.001 7\" is too short"),
        ("-102 0 0 x 0 0 7 5\n", "\"x\" is no process"),
        ("-101 0 0 1048576 0 0 7 5\n", "rank 1048576: from 0 to 1048575 are possible"),
    ] {
        let error = alog::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_trace_of_dimemas_takes_its_bursts_and_ways() {
    let file =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments/dimemas/microbenchmark.dim")).unwrap();
    let ran = run_with(&dimemas::read(&file[..]).unwrap().program().unwrap(), 0).unwrap();
    // Bursts of 1 ms before, between and after; the second message has 32 KiB.
    assert_eq!(ran.messages_ns, [(0, 1_000_000, 1_001_080), (0, 2_000_000, 2_000_000 + 1_000 + 32_768)]);
    assert_eq!(ran.ranks_ns, [3_000_000, 2_033_768]);
    for (text, expected) in [
        ("1:0:0:1", "line 1: the first line has to be #DIMEMAS:"),
        ("#DIMEMAS:\"x\":1,9:2(1,2),0", "tasks of 1,2 threads: each has to have 1"),
        (
            "#DIMEMAS:x:1,9:2(1,1),0\n10:0:0:12:1:0:0:1:1:0",
            "line 2: collective operation \"12\": there are 0 (barrier)",
        ),
        ("#DIMEMAS:x:1,9:2(1,1),0\n10:0:0:1:1:1:0:1:1:0", "its root, rank 1, does not take part"),
        (
            "#DIMEMAS:x:1,9:2(1,1),0\n10:0:0:0:1:0:0:0:0:1\n10:0:0:0:1:0:0:0:0:1\n10:1:0:0:1:0:0:0:0:1",
            "communicator 1: rank 1 takes part in 1 collective operations, others in 2",
        ),
        (
            "#DIMEMAS:x:1,9:2(1,1),0\n10:0:0:0:1:0:0:0:0:1\n10:1:0:11:1:0:0:8:8:1",
            "call it by different names, or with different roots",
        ),
        ("#DIMEMAS:x:1,9:2(1,1),0\n1:0:0:-1", "a burst may take from 0 s to 100 days"),
        ("#DIMEMAS:x:1,9:2(1,1),0\n1:0:3:1", "thread 3: each task has thread 0 alone"),
        ("#DIMEMAS:x:1,9:2(1,1),0\n1:5:0:1", "rank 5: there are 2 ranks, from 0"),
        ("#DIMEMAS:x:1,9:2(1,1),0\n2:0:0:21:-1:80:1:1:0", "line 2: rank 21: there are 2 ranks, from 0"),
        ("#DIMEMAS:x:1,9:2(1,1),0\n3:0:0:21:-1:80:1:1:0", "line 2: rank 21: there are 2 ranks, from 0"),
        ("#DIMEMAS:x:1,9:2(1,1),0\n7:5", "is no record of a burst"),
        ("", "there is no header"),
    ] {
        let error = dimemas::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Rank 0 sends at 100 ns; rank 1 answers 20 ns after that was received, and sends on to 2 for 5 ns after its answer was sent.
const CHAIN: &str = "VEF3 3 3 1 0 0 TRUE\nC0 0 1 2\n0 0 1 500 0 100 -1\n1 1 0 10 2 20 0\n2 1 2 40 1 5 1\n";

#[test]
fn messages_of_a_vef_trace_wait_for_what_they_depend_on() {
    let ran = run_with(&vef::read(CHAIN.as_bytes()).unwrap(), 0).unwrap();
    assert_eq!(ran.messages_ns, [(0, 100, 1_600), (1, 1_620, 2_630), (1, 1_625, 2_665)]);
    for (wrong, right, expected) in [
        ("VEF3 3 3 1", "VEF3 3 4 1", "the header says 4 messages, there are 3"),
        ("VEF3 3 3 1", "VEF3 3 3 2", "the header says 2 communicators, there are 1"),
        ("VEF3", "NET3", "the first line has to begin with VEF"),
        ("1 1 0 10 2 20 0", "1 1 0 10 4 20 0", "line 4: dependency kind \"4\""),
        ("1 1 0 10 2 20 0", "1 1 0 10 2 20 9", "line 4: message 9 is not there"),
        ("1 1 0 10 2 20 0", "1 2 0 10 2 20 0", "line 4: rank 2 waits for message 0, which rank 1 receives"),
        ("1 1 0 10 2 20 0", "1 1 0 10 3 20 G4", "line 4: rank 1 takes no part in G4"),
        ("1 1 0 10 2 20 0", "5 1 0 10 2 20 0", "line 4: message 5: the next one is 1"),
        ("C0 0 1 2", "C0 0 1 1", "line 2: communicator 0 has no rank, or one twice"),
        ("0 0 1 500 0", "0 0 3 500 0", "line 3: rank 3: there are 3 ranks"),
    ] {
        let error = vef::read(CHAIN.replace(wrong, right).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{right}: {error}");
    }
}

/// A collective operation of all ranks at time 0, and what a message sent after it tells of its end.
fn collective(operation: u32, ranks: u32, sizes: impl Fn(u32) -> (u64, u64)) -> Result<String, String> {
    let members: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
    let mut text = format!("VEF {ranks} 0 1 1 1 TRUE\nC0 {}\n", members.join(" "));
    for rank in 0..ranks {
        let (sent, received) = sizes(rank);
        text += &format!("G0 0 {operation} {rank} {sent} {received} 0 0 -1\n");
    }
    let program = vef::read(text.as_bytes()).map_err(|error| error.to_string())?;
    let ran = run_with(&program, 0).map_err(|error| error.to_string())?;
    Ok(format!("{} {} {}", program.messages(), program.bytes(), ran.end_ns))
}

#[test]
fn collective_operations_take_as_many_ways_as_their_trees_are_deep() {
    for ranks in 2..18u32 {
        let n = u64::from(ranks);
        // A rank is as deep in a binomial tree as its number has bits.
        let depth = (0..ranks).map(|rank| u64::from(rank.count_ones())).max().unwrap();
        let root = |rank: u32, at: u32, bytes: u64| if rank == at { bytes } else { 0 };
        // A broadcast of 500 bytes from rank 1, a reduction of as many to it.
        let found = collective(0, ranks, |rank| (root(rank, 1, 500), 500)).unwrap();
        assert_eq!(found, format!("{} {} {}", n - 1, (n - 1) * 500, depth * 1_500), "{ranks}");
        let found = collective(1, ranks, |rank| (500, root(rank, 1, 500))).unwrap();
        assert_eq!(found, format!("{} {} {}", n - 1, (n - 1) * 500, depth * 1_500), "{ranks}");
        let messages = if ranks.is_power_of_two() { n * depth } else { 2 * (n - 1) };
        let ways = if ranks.is_power_of_two() { depth } else { 2 * depth };
        let found = collective(6, ranks, |_| (0, 0)).unwrap();
        assert_eq!(found, format!("{messages} 0 {}", ways * 1_000), "{ranks}");
        let found = collective(2, ranks, |_| (500, 500)).unwrap();
        assert_eq!(found, format!("{messages} {} {}", messages * 500, ways * 1_500), "{ranks}");
        // Each to each its part of all it sends.
        let found = collective(7, ranks, |_| (100 * (n - 1), 100 * (n - 1))).unwrap();
        assert_eq!(found, format!("{} {} {}", n * (n - 1), n * (n - 1) * 100, (n - 1) * 1_100), "{ranks}");
        // What is gathered from the ranks below crosses each edge of the tree.
        for (operation, at) in [(3, 0), (4, 0)] {
            let sizes = |rank| if operation == 3 { (10, root(rank, at, 10 * n)) } else { (root(rank, at, 10 * n), 10) };
            let found = collective(operation, ranks, sizes).unwrap();
            assert!(found.starts_with(&format!("{} ", n - 1)), "{operation} of {ranks}: {found}");
        }
        collective(5, ranks, |_| (10, 10 * n)).unwrap();
    }
    assert!(collective(0, 4, |_| (5, 5)).unwrap_err().contains("G0: its root is the one rank that has bytes"));
    assert!(collective(9, 4, |_| (5, 5)).unwrap_err().contains("collective operation \"9\": there are 0 (broadcast)"));
}

/// What a small file says of many ranks takes no memory before it is refused.
#[test]
fn collective_operations_of_many_ranks_are_refused_at_once() {
    // Two hundred exchanges of 512 ranks with each other.
    let mut text = format!("#DIMEMAS:\"x\":1,9:512({}),0\n", vec!["1"; 512].join(","));
    for number in 0..200 {
        for rank in 0..512 {
            text += &format!("10:{rank}:0:8:1:0:0:{number}:{number}\n");
        }
    }
    let error = dimemas::read(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("104652800 sends and receives, and 67108864 are possible"), "{error}");
    // Operations of which each has one rank's line, of a communicator of all.
    let ranks: Vec<String> = (0..100_000).map(|rank| rank.to_string()).collect();
    let mut text = format!("VEF {} 0 1 1 1 TRUE\nC0 {}\n", ranks.len(), ranks.join(" "));
    for number in 0..20_000 {
        text += &format!("G{number} 0 6 0 0 0 0 0 -1\n");
    }
    let error = vef::read(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("G0 has no line of rank 1"), "{error}");
}

proptest! {
    #[test]
    fn no_trace_is_read_in_a_panic(words in prop::collection::vec("VEF|C0|C1|G0|G1|[0-9]{1,20}|-1|c|s|r|#|:|#DIMEMAS:x:1,9:2\\(1,1\\),0|\n|2:0:0:1:-1:5:5:1:2", 0..60)) {
        for text in [words.join(" "), words.concat(), format!("VEF 2 0 1 0 0 TRUE\nC0 0 1\n{}", words.join(" "))] {
            let _ = (trc::read(text.as_bytes()), dimemas::read(text.as_bytes()), vef::read(text.as_bytes()));
        }
    }
}
