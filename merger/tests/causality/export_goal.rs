//! A schedule in GOAL, read by a strict reader and executed by a plain one, which know the format and not the writer.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use merger::build::Silent;
use merger::built_trace::trace_of;
use merger::export::goal;
use trace::rows::Trace;

fn golden(name: &str) -> Trace {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name);
    trace_of(&[capture], &Silent).unwrap().trace
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Calc(u64),
    Send { bytes: u64, to: usize, tag: u64 },
    Recv { bytes: u64, from: usize, tag: u64 },
}

/// A label of a rank.
type Label = (usize, String);

#[derive(Default)]
struct Schedule {
    ranks: usize,
    operations: BTreeMap<Label, Operation>,
    requires: BTreeMap<Label, Vec<Label>>,
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn size(word: &str) -> u64 {
    number(word.strip_suffix('b').unwrap_or_else(|| panic!("{word} has no b")))
}

/// Reads what `txt2bin` of LogGOPSim takes: labels are of a rank, and stand before what requires them.
fn read(text: &str) -> Schedule {
    let mut schedule = Schedule::default();
    let mut rank = None;
    let mut next_rank = 0;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let words: Vec<&str> = line.split(' ').collect();
        let label = |word: &str| {
            let mut letters = word.chars();
            assert!(letters.next().is_some_and(|first| first.is_ascii_alphabetic()), "{line}");
            assert!(letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_'), "{line}");
            (rank.unwrap_or_else(|| panic!("outside of a rank: {line}")), word.to_owned())
        };
        match words[..] {
            ["num_ranks", ranks] => schedule.ranks = number(ranks),
            ["rank", of, "{"] => {
                assert_eq!(number::<usize>(of), next_rank);
                (rank, next_rank) = (Some(next_rank), next_rank + 1);
            }
            ["}"] => rank = None,
            [one, "requires", other] => {
                let (one, other) = (label(one), label(other));
                assert!(schedule.operations.contains_key(&one) && schedule.operations.contains_key(&other), "{line}");
                schedule.requires.entry(one).or_default().push(other);
            }
            [name, ref rest @ ..] => {
                let operation = match *rest {
                    ["calc", length] => Operation::Calc(number(length)),
                    ["send", bytes, "to", to, "tag", tag] => {
                        Operation::Send { bytes: size(bytes), to: number(to), tag: number(tag) }
                    }
                    ["recv", bytes, "from", from, "tag", tag] => {
                        Operation::Recv { bytes: size(bytes), from: number(from), tag: number(tag) }
                    }
                    _ => panic!("{line}"),
                };
                let name = name.strip_suffix(':').unwrap_or_else(|| panic!("{line}"));
                assert!(schedule.operations.insert(label(name), operation).is_none(), "twice: {line}");
            }
            [] => unreachable!("lines are not empty"),
        }
    }
    assert_eq!((rank, next_rank), (None, schedule.ranks));
    schedule
}

impl Schedule {
    /// Each message has one send and one receive that agree.
    fn messages(&self) -> HashMap<u64, &Label> {
        let mut sends = HashMap::new();
        for (label, operation) in &self.operations {
            if let Operation::Send { bytes, to, tag } = *operation {
                assert_ne!(label.0, to, "nobody sends to himself");
                assert!(sends.insert(tag, (label, bytes, to)).is_none(), "tag {tag} twice");
            }
        }
        let mut received = 0;
        for (label, operation) in &self.operations {
            if let Operation::Recv { bytes, from, tag } = *operation {
                let (send, sent, to) = &sends[&tag];
                assert_eq!((send.0, *sent, *to), (from, bytes, label.0), "tag {tag}");
                received += 1;
            }
        }
        assert_eq!(received, sends.len());
        sends.into_iter().map(|(tag, (label, _, _))| (tag, label)).collect()
    }

    /// When each operation ends, where a message takes as long as `way_ns` says of its tag.
    fn execute(&self, way_ns: impl Fn(u64) -> u64) -> BTreeMap<&Label, u64> {
        let sends = self.messages();
        let mut ends: BTreeMap<&Label, u64> = BTreeMap::new();
        let mut open: Vec<&Label> = self.operations.keys().collect();
        // Each is looked at again when what it waits for has ended; a circle would never end.
        let limit = 100 * open.len();
        for _ in 0..limit {
            let Some(label) = open.pop() else { return ends };
            let operation = self.operations[label];
            let way = match operation {
                Operation::Recv { tag, .. } => Some((sends[&tag], way_ns(tag))),
                _ => None,
            };
            let before = self.requires.get(label).into_iter().flatten().chain(way.map(|(send, _)| send));
            let missing: Vec<&Label> = before.clone().filter(|before| !ends.contains_key(before)).collect();
            if !missing.is_empty() {
                open.push(label);
                open.extend(missing);
                continue;
            }
            let ready_ns = before.map(|before| ends[before]).max().unwrap_or(0);
            let length_ns = match operation {
                Operation::Calc(length_ns) => length_ns,
                _ => way.map_or(0, |(_, way_ns)| way_ns),
            };
            ends.insert(label, ready_ns + length_ns);
        }
        panic!("it does not end");
    }
}

#[test]
fn executed_with_the_recorded_ways_a_schedule_takes_as_long_as_the_job_did() {
    // Of a terasort, sends were held back by the network: a way begins when the first byte left, however long it had waited.
    for (capture, least) in [("encrypted", 1.0), ("wordcount", 0.998), ("terasort", 0.7)] {
        let trace = golden(capture);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("job.goal");
        let written = goal(&trace, None, &out).unwrap();
        let schedule = read(&fs::read_to_string(&out).unwrap());
        assert_eq!(schedule.ranks as u64, written.ranks);
        let sends = schedule.messages().len() as u64;
        assert_eq!(sends, written.messages + written.signals);
        let way_ns = |tag: u64| {
            let event = usize::try_from(tag).ok().and_then(|tag| trace.events.get(tag));
            event.map_or(0, |event| event.recorded_delivered_ns - event.recorded_ns)
        };
        let ends = schedule.execute(way_ns);
        let finish = trace.events.iter().filter(|event| event.name == "job.finish");
        // The job with the largest shuffle.
        let job = trace.jobs.iter().max_by_key(|job| job.shuffle_bytes).unwrap();
        let finish = finish.min_by_key(|event| event.recorded_ns.abs_diff(job.finish_ns)).unwrap();
        let submit = trace.events.iter().filter(|event| event.name == "job.submit");
        let submit = submit.min_by_key(|event| event.recorded_ns.abs_diff(job.submit_ns)).unwrap();
        let mut late = 0;
        for (label, end_ns) in &ends {
            if let Some(event) = label.1.strip_prefix('c') {
                let event = &trace.events[number::<usize>(event)];
                late += u64::from(submit.recorded_ns + end_ns > event.recorded_ns);
            }
        }
        assert_eq!(late, 0, "{capture}: no event is later than it was");
        let time_ns = ends.iter().find(|(label, _)| label.1 == format!("c{}", finish.event)).unwrap().1;
        let share = *time_ns as f64 / (finish.recorded_ns - submit.recorded_ns) as f64;
        println!("{capture}: {share} of the recorded time");
        assert!((least..=1.0).contains(&share), "{capture}: {share}");
        // The last to finish is the job.
        let last_ns =
            ends.iter().filter(|(label, _)| label.1.starts_with('c')).map(|(_, end_ns)| *end_ns).max().unwrap();
        assert_eq!(last_ns, *time_ns, "{capture}");
        // Slower ways make it longer.
        let slower = schedule.execute(|tag| way_ns(tag) + 100_000_000);
        assert!(slower.values().max() > ends.values().max(), "{capture}");
    }
}

#[test]
fn a_job_is_chosen_by_its_id() {
    let trace = golden("terasort");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("job.goal");
    let all = goal(&trace, None, &out).unwrap();
    let first = goal(&trace, Some(&trace.jobs[0].id), &out).unwrap();
    assert!(fs::read_to_string(&out).unwrap().starts_with(&format!("// {}, recorded in ", trace.jobs[0].id)));
    assert_ne!(all, first);
    let error = goal(&trace, Some("job_1_0001"), &out).unwrap_err().to_string();
    assert!(error.contains("job_1_0001") && error.contains(&trace.jobs[0].id), "{error}");
}
