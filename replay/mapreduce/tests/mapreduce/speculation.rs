//! Second attempts of slow tasks, by hand: who gets one and when, which one counts, what the other has wasted.

use job_profile::{Learn, parameters};
use mapreduce::JobFile;
use trace::rows::{TaskKind, TaskRow, Trace};

use super::{MS, S, marks, run, run_on, tasks};

/// Six workers with room for one container each, of which one has the master; a map takes 2 s to start and 10 s to compute, on
/// `w3` so many times as long to compute.
fn six_nodes(slow: &str, more: &str) -> String {
    format!(
        "[cluster]\nnodes = 6\ncores = 1\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\ncontainer_start = \"2s\"\n\
         task_start = \"0ps\"\npiece = \"10kB\"\nslow = {{ {slow} }}\n\
         [hadoop]\ndfs.blocksize = 1000000\nyarn.nodemanager.resource.memory-mb = 1024\nyarn.app.mapreduce.am.resource.mb = 1024\n\
         mapreduce.job.reduce.slowstart.completedmaps = 1.0\n{more}"
    )
}

const SORT: &str = "[[job]]\ninput = \"5MB\"\nmap_rate = \"100kB/s\"\nreduce_rate = \"unlimited\"\n";
const OFF: &str = "mapreduce.map.speculative = false\nmapreduce.reduce.speculative = false\n";

fn took(task: &TaskRow) -> u64 {
    task.finish_ns - task.start_ns
}

/// The attempts that counted, and those that were killed.
fn attempts(trace: &Trace, kind: TaskKind) -> (Vec<&TaskRow>, Vec<&TaskRow>) {
    tasks(trace, kind).partition(|task| task.succeeded)
}

#[test]
fn a_straggler_gets_a_second_attempt_that_finishes_first() {
    let trace = run(&six_nodes("w3 = 10.0", SORT));
    let (done, killed) = attempts(&trace, TaskKind::Map);
    let [straggler] = *killed else { panic!("{killed:?}") };
    assert_eq!(trace.hosts[straggler.host.unwrap().index()].name, "w3");
    // All that counted took the start and the bytes by the rate, the second attempt among them.
    assert_eq!(done.iter().map(|map| took(map)).collect::<Vec<_>>(), [12 * S; 5]);
    let second = done.iter().find(|map| map.attempt.ends_with("_1")).unwrap();
    assert_eq!(second.attempt[..second.attempt.len() - 1], straggler.attempt[..straggler.attempt.len() - 1]);
    assert_ne!(second.host, straggler.host);
    assert_eq!(straggler.finish_ns, second.finish_ns, "it is killed when the second one is done");

    // The speculator looks each second; the first look after the first map is done finds it: it has reported 6 of 100 s.
    let begin = marks(&trace, "maps.wanted").next().unwrap().recorded_ns;
    let first = done.iter().map(|map| map.finish_ns).min().unwrap();
    let wanted = marks(&trace, "attempt.wanted").next().unwrap().recorded_ns;
    assert_eq!(wanted - begin, (first - begin).next_multiple_of(S));
    // The container: the master's next beat asks, a node's next beat gives, the master's next beat brings it.
    assert!((wanted..wanted + 3 * S + 20 * MS).contains(&second.start_ns));

    let alone = run(&six_nodes("w3 = 10.0", &format!("{OFF}{SORT}")));
    let slowest = tasks(&alone, TaskKind::Map).map(took).max().unwrap();
    assert_eq!((slowest, alone.tasks.len()), (2 * S + 100 * S, 6));
    let time = |trace: &Trace| trace.jobs[0].finish_ns - trace.jobs[0].submit_ns;
    let saved = time(&alone) - time(&trace);
    // 102 s but for what the second attempt took, and a beat of a node and of the master for the reduce.
    let earlier = straggler.start_ns + 102 * S - second.finish_ns;
    assert!(saved.abs_diff(earlier) <= 2 * S, "{saved} {earlier}");
}

#[test]
fn what_a_killed_attempt_was_doing_stops() {
    let trace = run(&six_nodes("w3 = 10.0", SORT));
    let straggler = tasks(&trace, TaskKind::Map).find(|map| !map.succeeded).unwrap();
    let killed = marks(&trace, "container.killed").next().unwrap().recorded_ns;
    let last =
        trace.events.iter().filter(|event| event.task == Some(straggler.task)).map(|event| event.recorded_ns).max();
    assert!(last.unwrap() <= killed);
    // A piece of 1% of its block takes a second there.
    let pieces = marks(&trace, "map.piece").filter(|event| event.task == Some(straggler.task)).count() as u64;
    assert_eq!(pieces, (killed - straggler.start_ns - 2 * S) / S);
    assert_eq!(trace.jobs[0].shuffle_bytes, Some(5_000_000));
    assert_eq!(trace.jobs[0].hdfs_bytes_read, Some(5_000_000));
    // The rest of its block was not sent.
    let of_straggler = |message: &&trace::rows::MessageRow| {
        message.attempt.as_deref() == Some(&*straggler.attempt) && message.kind.as_str() == "block-data"
    };
    let read = trace.messages.iter().find(of_straggler).unwrap();
    let sent: u64 =
        trace.events.iter().filter(|event| event.message == Some(read.message)).map(|event| event.bytes).sum();
    assert_eq!(read.bytes, sent);
    assert!(read.app_bytes < 500_000, "{}", read.app_bytes);
}

#[test]
fn a_first_attempt_may_still_win() {
    let speculated = run(&six_nodes("w3 = 2.0", SORT));
    let alone = run(&six_nodes("w3 = 2.0", &format!("{OFF}{SORT}")));
    let (done, killed) = attempts(&speculated, TaskKind::Map);
    let [second] = *killed else { panic!("{killed:?}") };
    assert!(second.attempt.ends_with("_1"), "{second:?}");
    assert_eq!(done.iter().map(|map| took(map)).max(), Some(2 * S + 20 * S));
    assert_eq!(
        done.iter().map(|map| map.finish_ns).max(),
        tasks(&alone, TaskKind::Map).map(|map| map.finish_ns).max(),
        "nothing is gained"
    );
}

#[test]
fn tasks_that_are_alike_get_no_second_attempt() {
    let speculated = run(&six_nodes("", SORT));
    let alone = run(&six_nodes("", &format!("{OFF}{SORT}")));
    assert_eq!(speculated.tasks.len(), 6);
    let times = |trace: &Trace| trace.tasks.iter().map(|task| (task.start_ns, task.finish_ns)).collect::<Vec<_>>();
    assert_eq!(times(&speculated), times(&alone));
    // Each map reports once, 6 s after its start: the next report would come as it ends.
    let reports = |trace: &Trace| trace.messages.iter().filter(|message| message.name == "statusUpdate").count();
    assert_eq!(reports(&alone), 0);
    assert_eq!(reports(&speculated), 2 * 5);
}

#[test]
fn caps_bound_how_many_tasks_have_two_attempts() {
    let caps = |minimum: u64, running: f64, total: f64| {
        let text = six_nodes(
            "w3 = 10.0",
            &format!(
                "mapreduce.job.speculative.minimum-allowed-tasks = {minimum}\n\
                 mapreduce.job.speculative.speculative-cap-running-tasks = {running:?}\n\
                 mapreduce.job.speculative.speculative-cap-total-tasks = {total:?}\n{SORT}"
            ),
        );
        run(&text).tasks.len() - 6
    };
    assert_eq!(caps(0, 0.0, 0.0), 0);
    assert_eq!(caps(1, 0.0, 0.0), 1);
    // Of the five that run at most, a cap of 0.19 leaves none.
    assert_eq!((caps(0, 0.19, 0.0), caps(0, 1.0, 0.0)), (0, 1));
    // A fifth of five maps is one.
    assert_eq!((caps(0, 0.0, 0.19), caps(0, 0.0, 0.2)), (0, 1));
}

#[test]
fn a_slow_reduce_gets_one_and_its_output_counts_once() {
    let job = "dfs.replication = 2\n[[job]]\nname = \"first\"\ninput = \"5MB\"\nmap_rate = \"unlimited\"\nreduce_rate = \"100kB/s\"\nreduces = 5\n\
               [[job]]\ninput_of = \"first\"\nmap_rate = \"unlimited\"\nreduce_rate = \"unlimited\"\n";
    // By its report two thirds of a reduce are done when it begins to compute: one that is not much slower counts as nearly done.
    let trace = run_on("kind = \"ideal\"\nrate = \"1Gbps\"\nlatency = \"50us\"", &six_nodes("w3 = 40.0", job));
    let of_first = |task: &&&TaskRow| task.job == trace.jobs[0].job;
    let (done, killed) = attempts(&trace, TaskKind::Reduce);
    let (done, killed): (Vec<_>, Vec<_>) =
        (done.iter().filter(of_first).collect(), killed.iter().filter(of_first).collect());
    let [straggler] = *killed else { panic!("{killed:?}") };
    assert_eq!(trace.hosts[straggler.host.unwrap().index()].name, "w3");
    assert_eq!(done.len(), 5);
    assert!(done.iter().all(|reduce| took(reduce) < 20 * S), "{done:?}");
    assert_eq!(trace.jobs[0].shuffle_bytes, Some(5_000_000));
    assert_eq!(trace.jobs[0].hdfs_bytes_written, Some(5_000_000));
    assert_eq!(trace.jobs[1].hdfs_bytes_read, Some(5_000_000));
}

#[test]
fn a_job_with_second_attempts_is_learned_as_one() {
    let learned =
        |text: &str| JobFile::parse(&parameters(&run(text), Learn::default()).unwrap().to_toml()).unwrap().hadoop;
    let of = |hadoop: mapreduce::Hadoop| (hadoop.map_speculative, hadoop.reduce_speculative);
    assert_eq!(of(learned(&six_nodes("w3 = 10.0", SORT))), (true, false));
    assert_eq!(of(learned(&six_nodes("", SORT))), (false, false));
}

#[test]
fn a_second_attempt_of_a_recorded_task_has_the_speed_of_a_drawn_one() {
    // One of six recorded maps was slow: whether its second attempt is, too, is drawn.
    let map = |rate: &str| {
        format!(
            "[[job.map]]\ninput = \"1MB\"\ncontainer_start = \"2s\"\ntask_start = \"0ps\"\nrate = \"{rate}\"\n\
             sort_rate = \"unlimited\"\noutput = 1.0\n"
        )
    };
    let samples = map("10kB/s") + &map("100kB/s").repeat(4);
    let job = format!("[[job]]\ninput = \"5MB\"\nreduce_rate = \"unlimited\"\n{samples}");
    let seconds: Vec<u64> = (1..=20)
        .map(|seed| {
            let trace = run(&format!("seed = {seed}\n{}", six_nodes("", &job)));
            let second = tasks(&trace, TaskKind::Map).find(|map| map.attempt.ends_with("_1")).unwrap();
            if second.succeeded { took(second) } else { 0 }
        })
        .collect();
    assert!(seconds.iter().all(|took| [0, 12 * S].contains(took)), "{seconds:?}");
    assert!(seconds.contains(&0) && seconds.iter().filter(|took| **took > 0).count() > 10, "{seconds:?}");
}
