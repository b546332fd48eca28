//! Jobs without reduces: maps write to HDFS what they compute, and the job ends with the last of them.

use std::collections::BTreeSet;

use job_profile::{Learn, parameters, profile};
use mapreduce::{Amount, Growth, JobFile};
use netsim::units::Bytes;
use trace::rows::{MessageKind, TaskKind, Trace};

use super::{MS, S, marks, run, run_on, tasks};

/// Four maps of 16 MB, whose output is half of that, twice.
const COPY: &str = "[cluster]\nnodes = 4\nracks = 2\ncores = 2\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\n\
    container_start = \"2s\"\ntask_start = \"1s\"\noutput_start = \"500ms\"\noutput_commit = \"250ms\"\njob_commit = \"300ms\"\n\
    [hadoop]\ndfs.blocksize = 16000000\ndfs.replication = 2\nmapreduce.map.output.compress = true\nmapreduce.task.io.sort.mb = 1\n\
    [[job]]\nname = \"copy\"\ninput = \"64MB\"\nreduces = 0\nmap_output = 0.5\nmap_rate = \"4MB/s\"\nsort_rate = \"1MB/s\"\n";

fn written(trace: &Trace, hop: u32) -> u64 {
    let data =
        trace.messages.iter().filter(|message| message.kind == MessageKind::BlockData && message.hop == Some(hop));
    data.map(|message| message.app_bytes).sum()
}

#[test]
fn a_map_takes_its_starts_its_computing_and_its_commit() {
    let trace = run(COPY);
    let maps: Vec<u64> = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns - map.start_ns).collect();
    // 2 s, 1 s and 0.5 s to start, 4 s of computing, 0.25 s to commit, and some calls of a millisecond. Nothing is sorted.
    let wanted = 7 * S + 3 * S / 4;
    assert!(maps.iter().all(|took| (wanted..wanted + 10 * MS).contains(took)), "{maps:?}");
    assert_eq!(maps.len(), 4);
    assert_eq!(tasks(&trace, TaskKind::Reduce).count(), 0);
    let job = &trace.jobs[0];
    let last = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns).max().unwrap();
    assert_eq!(job.finish_ns - last, 300 * MS, "the job's own commit");
    for name in ["map.sort", "map.spill", "map.merge", "reduces.wanted"] {
        assert_eq!(marks(&trace, name).count(), 0, "{name}");
    }
}

#[test]
fn it_writes_its_output_once_for_each_copy_and_shuffles_nothing() {
    let trace = run(COPY);
    assert_eq!((written(&trace, 1), written(&trace, 2), written(&trace, 3)), (32_000_000, 32_000_000, 0));
    let job = &trace.jobs[0];
    assert_eq!(
        (job.hdfs_bytes_read, job.hdfs_bytes_written, job.shuffle_bytes),
        (Some(64_000_000), Some(32_000_000), Some(0))
    );
    assert!(!trace.messages.iter().any(|message| message.kind == MessageKind::ShuffleRequest));
}

/// What it writes crosses the network once, as its first copy stays where it is made: 8 MB a map and their checksums.
#[test]
fn a_slow_network_holds_its_output_up() {
    let slow = run_on("kind = \"ideal\"\nrate = \"8Mbps\"", COPY);
    let longest = tasks(&slow, TaskKind::Map).map(|map| map.finish_ns - map.start_ns).max().unwrap();
    // More than 8 s at 8 Mbit/s, after the starts and the first MiB of computing; hosts may get two copies at once.
    assert!((12 * S..25 * S).contains(&longest), "{longest}");
}

#[test]
fn another_job_reads_what_it_wrote() {
    let chained = format!(
        "{COPY}\n[[job]]\nname = \"sort\"\ninput_of = \"copy\"\nreduces = 2\nmap_rate = \"8MB/s\"\nreduce_rate = \"8MB/s\"\n"
    );
    let trace = run(&chained);
    assert_eq!((trace.jobs[1].maps, trace.jobs[1].shuffle_bytes), (4, Some(16_000_000)), "half of 32 MB, compressed");
}

#[test]
fn of_a_slow_map_the_second_attempt_counts() {
    // One container a node, one of which has the master: of the slow nodes one has a map at least.
    let memory = "slow = { w1 = 10.0, w2 = 10.0 }\n[hadoop]\nyarn.nodemanager.resource.memory-mb = 1024\nyarn.app.mapreduce.am.resource.mb = 1024";
    let slow = COPY.replace("nodes = 4", "nodes = 5").replace("[hadoop]", memory);
    let trace = run(&slow);
    assert!(tasks(&trace, TaskKind::Map).any(|map| !map.succeeded), "the slow one has a second attempt");
    assert_eq!(trace.jobs[0].hdfs_bytes_written, Some(32_000_000));
}

/// All blocks lie on one node, which has room for all maps; a heartbeat brings a node one map that asks for no node.
#[test]
fn without_locality_maps_run_on_any_node_and_read_over_the_network() {
    let on_one =
        COPY.replace("map_output = 0.5", "map_output = 0.5\ninput_replication = 1\ninput_share_of_nodes = 0.25");
    let anywhere = on_one.replace("reduces = 0", "reduces = 0\nlocality = false");
    let hosts = |trace: &Trace| tasks(trace, TaskKind::Map).filter_map(|map| map.host).collect::<BTreeSet<_>>().len();
    let (near, far) = (run(&on_one), run(&anywhere));
    assert_eq!((hosts(&near), near.jobs[0].split_hosts), (1, Some(1)));
    assert_eq!((hosts(&far), far.jobs[0].split_hosts), (4, Some(0)));
    for (trace, locality) in [(&near, true), (&far, false)] {
        assert_eq!(parameters(trace, Learn::default()).unwrap().locality, locality);
        let (file, _) = JobFile::of_profile(&profile(trace, Learn::default()).unwrap()).unwrap();
        assert_eq!(file.jobs[0].locality, locality);
    }
    let (file, _) = JobFile::of_profile(&profile(&far, Learn::default()).unwrap()).unwrap();
    assert_eq!(hosts(&run(&file.grow(&Growth::default()).unwrap().to_toml().unwrap())), 4);
}

#[test]
fn it_grows_by_its_data() {
    let file = JobFile::parse(COPY).unwrap();
    let growth = Growth { nodes: Amount::Of(8), data: Amount::Of(Bytes(128_000_000)), ..Growth::default() };
    let grown = file.grow(&growth).unwrap();
    assert_eq!(grown.jobs[0].reduces, 0, "of no reduces there are no more");
    for reduces in [Amount::Of(4), Amount::Times(2.0)] {
        let refused = file.grow(&Growth { reduces: Some(reduces), ..Growth::default() }).unwrap_err().to_string();
        assert!(refused.starts_with("--reduces = ") && refused.contains("no reduces"), "{refused}");
    }
    assert_eq!(tasks(&run(&grown.to_toml().unwrap()), TaskKind::Map).count(), 8);
}

#[test]
fn a_job_that_has_nothing_to_read_ends_at_once() {
    let empty = COPY.replace("map_output = 0.5", "map_output = 0.0");
    let trace = run(&format!("{empty}\n[[job]]\nname = \"next\"\ninput_of = \"copy\"\nreduces = 0\n"));
    let [_, next] = &*trace.jobs else { panic!("{:?}", trace.jobs) };
    assert_eq!((next.maps, next.reduces, next.hdfs_bytes_written), (0, 0, Some(0)));
    assert!(next.finish_ns > next.submit_ns);
}

/// A trace does not tell cores and disks: there are enough, and they take no time.
fn uneven(seed: u64) -> String {
    let job = COPY.replace("cores = 2", "cores = 64").replace("reduces = 0\n", "reduces = 0\nspeed_deviation = 0.5\n");
    format!("seed = {seed}\n{}", job.replace("[[job]]", "mapreduce.map.speculative = false\n[[job]]"))
}

fn job_seconds(trace: &Trace) -> f64 {
    (trace.jobs[0].finish_ns - trace.jobs[0].submit_ns) as f64 / 1e9
}

fn map_seconds(trace: &Trace) -> Vec<f64> {
    let mut took: Vec<f64> =
        tasks(trace, TaskKind::Map).map(|map| (map.finish_ns - map.start_ns) as f64 / 1e9).collect();
    took.sort_by(f64::total_cmp);
    took
}

#[test]
fn one_that_is_learned_task_by_task_takes_as_long() {
    for seed in 1..=8 {
        let trace = run(&uneven(seed));
        let (file, _) = JobFile::of_profile(&profile(&trace, Learn::default()).unwrap()).unwrap();
        let again = run(&file.grow(&Growth::default()).unwrap().to_toml().unwrap());
        // Heartbeats have other phases, a second each.
        let error = job_seconds(&again) - job_seconds(&trace);
        assert!(error.abs() < 0.03 * job_seconds(&trace) + 1.0, "{seed}: {error}");
        for (new, old) in map_seconds(&again).into_iter().zip(map_seconds(&trace)) {
            assert!((new / old - 1.0).abs() < 0.03, "{seed}: {new} s for {old} s");
        }
        let (new, old) = (&again.jobs[0], &trace.jobs[0]);
        assert_eq!((new.maps, new.reduces, new.hdfs_bytes_read), (old.maps, 0, old.hdfs_bytes_read));
        assert!(new.hdfs_bytes_written.unwrap().abs_diff(old.hdfs_bytes_written.unwrap()) <= u64::from(old.maps));
    }
}

#[test]
fn its_like_has_its_medians_and_says_nothing_of_reduces() {
    let trace = run(&uneven(3));
    let learned = parameters(&trace, Learn::default()).unwrap();
    assert_eq!((learned.maps, learned.reduces, learned.map_output, learned.replication), (4, 0, 0.5, 2));
    let commit_ms = learned.output_commit_ns.unwrap() / MS;
    // 250 ms and the calls around them.
    assert!((250..270).contains(&commit_ms), "{commit_ms}");
    assert_eq!(learned.job_commit_ns, Some(300 * MS));
    let text = learned.to_toml();
    for key in ["reduce_", "slowstart", "sort_rate", "merge_rate", "skew", "output_start"] {
        assert!(!text.contains(key), "{key}: {text}");
    }
    let (old, new) = (map_seconds(&trace), map_seconds(&run(&text)));
    let median = f64::midpoint(old[1], old[2]);
    for took in new {
        assert!((took / median - 1.0).abs() < 0.05, "{took} s for {median} s");
    }
}

/// Over a slow network its maps wait for room: that is none of their own time.
#[test]
fn what_a_slow_network_hid_is_not_learned_as_work() {
    let [fast, slow] = ["kind = \"ideal\"", "kind = \"ideal\"\nrate = \"8Mbps\""].map(|fabric| {
        let trace = run_on(fabric, &uneven(5));
        let learned = parameters(&trace, Learn::default()).unwrap();
        (learned.map_rate.unwrap(), learned.output_commit_ns.unwrap() as f64)
    });
    assert!((slow.0 / fast.0 - 1.0).abs() < 0.03, "{slow:?} {fast:?}");
    assert!((slow.1 / fast.1 - 1.0).abs() < 0.1, "{slow:?} {fast:?}");
}
