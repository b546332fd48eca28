//! Tasks that take turns on cores, of a node or of the whole cluster; and what is learned of such a job.

use job_profile::{CoreSharing, Learn, parameters, profile};
use mapreduce::{Amount, Growth, JobFile};
use netsim::units::Bytes;
use trace::rows::{TaskKind, Trace};

use super::{S, run, tasks};

/// Maps that each take 2 s to start their container, 1 s to begin, and 4 s for 16 MB, with a core of their own.
fn maps(cluster: &str, maps: u64) -> String {
    format!(
        "[cluster]\n{cluster}\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\n\
         [hadoop]\ndfs.blocksize = 16000000\nmapreduce.job.reduce.slowstart.completedmaps = 1.0\n\
         mapreduce.map.speculative = false\nmapreduce.reduce.speculative = false\n\
         [[job]]\nprofile = \"terasort\"\ninput = \"{}B\"\nreduces = 2\nmap_rate = \"4MB/s\"\nreduce_rate = \"8MB/s\"\n",
        maps * 16_000_000
    )
}

/// From the start of the first map to the end of the last, nanoseconds.
fn all_maps(trace: &Trace) -> u64 {
    let first = tasks(trace, TaskKind::Map).map(|map| map.start_ns).min().unwrap();
    tasks(trace, TaskKind::Map).map(|map| map.finish_ns).max().unwrap() - first
}

fn job_seconds(trace: &Trace) -> f64 {
    (trace.jobs[0].finish_ns - trace.jobs[0].submit_ns) as f64 / 1e9
}

/// Maps of several nodes begin within two heartbeats of a second, and less than that is lost while a core waits for the next.
#[test]
fn maps_of_all_nodes_share_the_cores_of_the_cluster() {
    let alone = all_maps(&run(&maps("nodes = 4\ncores = 2", 4)));
    assert!((7 * S..10 * S).contains(&alone), "{alone}");
    // 4 maps of 7 s on 2 cores.
    let shared = all_maps(&run(&maps("nodes = 4\ncores = 2\ncore_sharing = \"cluster\"", 4)));
    assert!((14 * S - S / 10..16 * S).contains(&shared), "{shared}");
    // As many cores as maps: nobody waits.
    let plenty = all_maps(&run(&maps("nodes = 4\ncores = 4\ncore_sharing = \"cluster\"", 4)));
    assert!((7 * S - S / 10..10 * S).contains(&plenty), "{plenty}");
}

#[test]
fn maps_of_a_node_share_its_cores_while_they_start_as_well() {
    // 3 maps of 7 s on 1 core; without sharing only the 4 s are on it.
    let shared = all_maps(&run(&maps("nodes = 1\ncores = 1\ncore_sharing = \"node\"", 3)));
    assert!((21 * S - S / 10..23 * S).contains(&shared), "{shared}");
    let pieces = all_maps(&run(&maps("nodes = 1\ncores = 1", 3)));
    assert!((12 * S..17 * S).contains(&pieces), "{pieces}");
}

/// Two maps that begin at once end together, and not one after the other.
#[test]
fn cores_are_had_by_turns() {
    let trace = run(&maps("nodes = 1\ncores = 1\ncore_sharing = \"node\"", 2));
    let ends: Vec<u64> = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns).collect();
    assert!(ends[0].abs_diff(ends[1]) < S / 10, "{ends:?}");
}

const SHARED: Learn<'static> = Learn { job: None, sharing: Some(CoreSharing::new(2, true)), reduce_heap: None };
const CLUSTER: &str = "nodes = 4\nracks = 2\ncores = 2\ncore_sharing = \"cluster\"";

#[test]
fn what_tasks_cost_each_other_is_taken_out_of_what_is_learned() {
    let trace = run(&maps(CLUSTER, 4));
    let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.06;
    // As many cores as tasks: nobody waits for one.
    let free = parameters(&run(&maps(&CLUSTER.replace("cores = 2", "cores = 8"), 4)), Learn::default()).unwrap();
    let alone = parameters(&trace, SHARED).unwrap();
    let (rate, start) = (alone.map_rate.unwrap(), alone.container_start_ns.unwrap() as f64);
    assert!(near(rate, free.map_rate.unwrap()) && near(start, 2e9), "{rate} B/s, {start} ns, {free:?}");
    assert!(near(alone.task_start_ns.unwrap() as f64, 1e9), "{alone:?}");
    assert!(near(alone.reduce_rate.unwrap(), free.reduce_rate.unwrap()), "{alone:?}, {free:?}");
    let together = parameters(&trace, Learn::default()).unwrap();
    let (rate, start) = (together.map_rate.unwrap(), together.container_start_ns.unwrap() as f64);
    assert!(rate < 0.7 * free.map_rate.unwrap() && start > 3e9, "{rate} B/s, {start} ns");
    let text = alone.to_toml();
    assert!(text.contains("cores = 2\ncore_sharing = \"cluster\"\n"), "{text}");
}

#[test]
fn reduces_start_as_they_are_told_to_and_not_as_maps() {
    let started = |starts: &str| run(&maps(&format!("{CLUSTER}\n{starts}"), 4).replace("cores = 2", "cores = 8"));
    let as_maps = started("");
    let trace = started("reduce_container_start = \"1500ms\"\nreduce_task_start = \"250ms\"");
    let reduces = |trace: &Trace| -> u64 {
        tasks(trace, TaskKind::Reduce).map(|task| task.shuffle_end_ns.unwrap() - task.start_ns).sum()
    };
    // Two reduces, each 1.25 s sooner.
    let sooner = reduces(&as_maps) - reduces(&trace);
    assert!(sooner.abs_diff(2 * 5 * S / 4) < S / 5, "{sooner}");
    let learned = parameters(&trace, Learn::default()).unwrap();
    let near = |found: Option<u64>, wanted: u64| found.unwrap().abs_diff(wanted) < S / 50;
    assert!(near(learned.container_start_ns, 2 * S) && near(learned.task_start_ns, S), "{learned:?}");
    assert!(near(learned.reduce_container_start_ns, 3 * S / 2), "{learned:?}");
    assert!(near(learned.reduce_task_start_ns, S / 4), "{learned:?}");
    let twice_as_fast = Growth { cpu: "2x".parse().unwrap(), ..Growth::default() };
    let file = JobFile::parse(&learned.to_toml()).unwrap().grow(&twice_as_fast).unwrap();
    let half = file.cluster.reduce_container_start.unwrap().ps() / 1_000;
    assert!(half.abs_diff(3 * S / 4) < S / 50, "{half}");
}

#[test]
fn a_job_on_shared_cores_grows_as_it_would_run() {
    let (small, large) = (run(&maps(CLUSTER, 4)), run(&maps(&CLUSTER.replace("nodes = 4", "nodes = 8"), 8)));
    let (file, _) = JobFile::of_profile(&profile(&small, SHARED).unwrap()).unwrap();
    let grown = |growth: &Growth| job_seconds(&run(&file.grow(growth).unwrap().to_toml().unwrap()));
    let same = grown(&Growth::default());
    assert!((same - job_seconds(&small)).abs() < 1.0 + 0.03 * job_seconds(&small), "{same}");
    let growth = Growth {
        nodes: Amount::Of(8),
        data: Amount::Of(Bytes(8 * 16_000_000)),
        reduces: Some(Amount::Of(2)),
        ..Growth::default()
    };
    let (more, wanted) = (grown(&growth), job_seconds(&large));
    assert!((more - wanted).abs() < 1.0 + 0.05 * wanted, "{more} s, {wanted} s if it is run");
    // Twice the work on the same cores.
    assert!(wanted > 1.5 * job_seconds(&small));
}
