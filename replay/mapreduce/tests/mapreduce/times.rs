//! Times of tasks on an infinitely fast network, by hand.

use job_profile::{Learn, parameters};
use mapreduce::JobFile;
use trace::rows::TaskKind;

use super::{MS, S, marks, run, run_on, tasks};

/// One worker with fast disks, where nothing but the CPU takes time.
fn one_node(cores: u32, more: &str) -> String {
    format!(
        "[cluster]\nnodes = 1\ncores = {cores}\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\ncontainer_start = \"2s\"\ntask_start = \"0ps\"\n\
         [hadoop]\ndfs.blocksize = 1000000\nyarn.nodemanager.resource.memory-mb = 16384\n{more}"
    )
}

#[test]
fn a_map_takes_its_start_and_its_bytes_by_its_rate() {
    let trace = run(&one_node(8, "[[job]]\ninput = \"4000kB\"\nmap_rate = \"2MB/s\"\n"));
    let maps: Vec<u64> = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns - map.start_ns).collect();
    // From the answer to startContainers (1 ms) to the start of the JVM (2 s), getTask (1 ms), 1 MB at 2 MB/s.
    assert_eq!(maps, [2 * S + S / 2; 4]);
}

#[test]
fn maps_that_outnumber_the_cores_share_them() {
    let trace = run(&one_node(1, "[[job]]\ninput = \"4000kB\"\nmap_rate = \"2MB/s\"\n"));
    let last = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns - map.start_ns).max().unwrap();
    assert_eq!(last, 2 * S + 4 * S / 2);
}

#[test]
fn maps_that_outnumber_the_containers_come_in_waves() {
    // 8 GB: the master has 2, so that 6 maps run at once.
    let text =
        one_node(8, "yarn.nodemanager.resource.memory-mb = 8192\n[[job]]\ninput = \"12MB\"\nmap_rate = \"1MB/s\"\n")
            .replacen("yarn.nodemanager.resource.memory-mb = 16384\n", "", 1);
    let trace = run(&text);
    let mut starts: Vec<u64> = tasks(&trace, TaskKind::Map).map(|map| map.start_ns).collect();
    starts.sort_unstable();
    assert!(starts[..6].iter().all(|start| *start == starts[0]), "one heartbeat brings all six");
    assert!(starts[6..].iter().all(|start| *start == starts[6]));
    let first_end = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns).min().unwrap();
    // The end is told by the node's next heartbeat, the new container by the master's next one: up to a second each, and a
    // few milliseconds of service.
    assert!((first_end..first_end + 2 * S + 20 * MS).contains(&starts[6]), "{starts:?} after {first_end}");
}

#[test]
fn spills_and_merges_take_what_they_write_and_read_by_the_disk() {
    // 10 MB of output in spills of 0.8 MiB (sort.mb = 1): 12 of them; factor 10: a pass over 3, then all.
    let text = "[cluster]\nnodes = 1\ndisk_read = \"unlimited\"\ndisk_write = \"1MB/s\"\ntask_start = \"0ps\"\npiece = \"16MiB\"\n\
         [hadoop]\ndfs.blocksize = 10000000\nmapreduce.task.io.sort.mb = 1\ndfs.replication = 1\n\
         [[job]]\ninput = \"10MB\"\nmap_rate = \"unlimited\"\nreduce_rate = \"unlimited\"\n";
    let trace = run(text);
    let spill = 838_860_u64;
    assert_eq!(marks(&trace, "map.spill").count(), 12);
    assert_eq!(marks(&trace, "map.merge").count(), 2);
    let map = tasks(&trace, TaskKind::Map).next().unwrap();
    // The smallest is the last, what 11 full ones leave; the first pass takes it and two more.
    let first_pass = 10_000_000 - 11 * spill + 2 * spill;
    let written = 10_000_000 + first_pass + 10_000_000;
    let measured = (map.finish_ns - map.start_ns - 2 * S) / 1_000;
    assert!(measured.abs_diff(written) <= 14, "{measured} us, {written} bytes at 1 MB/s (rounded at each spill)");
}

/// A map of 4 MB that computes on 10 MB a second and sorts what is 1 MB a second of its input, with a buffer of 1 MiB.
fn a_map_with_a_small_buffer(job: &str) -> u64 {
    let text = "[cluster]\nnodes = 1\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\ncontainer_start = \"2s\"\ntask_start = \"0ps\"\n\
         piece = \"10kB\"\n[hadoop]\ndfs.blocksize = 4000000\nmapreduce.task.io.sort.mb = 1\n\
         [[job]]\ninput = \"4MB\"\nmap_rate = \"10MB/s\"\nreduce_rate = \"unlimited\"\n";
    let trace = run(&format!("{text}{job}"));
    let map = tasks(&trace, TaskKind::Map).next().unwrap();
    map.finish_ns - map.start_ns - 2 * S
}

#[test]
fn a_map_stands_still_while_its_buffer_is_full() {
    let (spill, buffer) = (838_860.0, 1_048_576.0);
    // The first spill; three more, each when the buffer that was full is 80% full again; what is left of the input; its spill.
    let first = spill / 10.0 + spill;
    let further = 3.0 * ((2.0 * spill - buffer) / 10.0 + spill);
    let last = (4e6 - buffer - 3.0 * spill) / 10.0 + (4e6 - 4.0 * spill);
    let expected_ms = (first + further + last) / 1e3;
    for job in ["sort_rate = \"1MB/s\"\n", "map_output = 0.01\nbuffer_use = 1.0\nsort_rate = \"10kB/s\"\n"] {
        let took_ms = a_map_with_a_small_buffer(job) as f64 / 1e6;
        assert!((took_ms - expected_ms).abs() < 6.0, "{job}{took_ms} ms, {expected_ms} (a piece takes a millisecond)");
    }
    // With room for all of it the map sorts at its end, and nothing else is on its way.
    let roomy_ms = a_map_with_a_small_buffer("map_output = 0.01\nsort_rate = \"10kB/s\"\n") as f64 / 1e6;
    assert!((roomy_ms - 4_400.0).abs() < 6.0, "{roomy_ms} ms");
}

#[test]
fn sorting_and_merging_take_a_core_and_starts_their_time() {
    let job = "[[job]]\ninput = \"1MB\"\nmap_rate = \"2MB/s\"\nreduce_rate = \"unlimited\"\nsort_rate = \"4MB/s\"\nmerge_rate = \"5MB/s\"\n";
    let trace = run(&one_node(8, job).replace("task_start = \"0ps\"", "task_start = \"700ms\"\nmaster_start = \"4s\""));
    let map = tasks(&trace, TaskKind::Map).next().unwrap();
    assert_eq!(map.finish_ns - map.start_ns, 2 * S + 700 * MS + S / 2 + S / 4);
    let reduce = tasks(&trace, TaskKind::Reduce).next().unwrap();
    assert_eq!(reduce.sort_end_ns.unwrap() - reduce.shuffle_end_ns.unwrap(), S / 5);
    let asked = marks(&trace, "maps.wanted").next().unwrap().recorded_ns;
    let given = marks(&trace, "container.assigned").next().unwrap().recorded_ns;
    // The start, and the registration's service of a millisecond.
    assert_eq!(asked - given, 4 * S + MS);
}

#[test]
fn a_sort_merges_what_is_in_memory_and_not_what_went_to_the_disk_at_once() {
    let job = "[[job]]\ninput = \"1MB\"\nmap_rate = \"2MB/s\"\nreduce_rate = \"unlimited\"\nmerge_rate = \"5MB/s\"\n";
    let sort_ns = |hadoop: &str| {
        let trace = run(&one_node(8, &format!("{hadoop}{job}")));
        let reduce = tasks(&trace, TaskKind::Reduce).next().unwrap();
        reduce.sort_end_ns.unwrap() - reduce.shuffle_end_ns.unwrap()
    };
    assert_eq!(sort_ns(""), S / 5);
    assert_eq!(sort_ns("mapreduce.reduce.shuffle.memory.limit.percent = 0.0\n"), 0);
    // Larger than a quarter of 70% of a heap of 4 MB.
    assert_eq!(sort_ns("mapreduce.job.heap.memory-mb.ratio = 0.004\n"), 0);
}

#[test]
fn what_a_sort_merges_is_learned_by_the_heap_of_reduces() {
    let job = "[[job]]\ninput = \"1MB\"\nmap_rate = \"2MB/s\"\nreduce_rate = \"unlimited\"\nmerge_rate = \"5MB/s\"\n";
    let trace = run(&one_node(8, job));
    let learned = |reduce_heap: Option<u64>| parameters(&trace, Learn { reduce_heap, ..Learn::default() }).unwrap();
    assert!((learned(None).merge_rate.unwrap() / 5e6 - 1.0).abs() < 1e-3, "{:?}", learned(None).merge_rate);
    let small = learned(Some(4 << 20));
    assert_eq!(small.merge_rate, None);
    let file = small.to_toml();
    assert!(file.contains("mapreduce.job.heap.memory-mb.ratio = 0.003906"), "{file}");
    JobFile::parse(&file).unwrap();
    let large = learned(Some(4 << 30)).to_toml();
    assert!(large.contains("mapreduce.reduce.memory.mb = 5120"), "{large}");
    JobFile::parse(&large).unwrap();
}

#[test]
fn reduces_wait_for_the_slow_start() {
    let text =
        one_node(8, "mapreduce.job.reduce.slowstart.completedmaps = 1.0\n[[job]]\ninput = \"4000kB\"\nreduces = 2\n");
    let trace = run(&text);
    let maps = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns).max().unwrap();
    let reduces = tasks(&trace, TaskKind::Reduce).map(|reduce| reduce.start_ns).min().unwrap();
    assert!(reduces > maps);
    let early = run(&text.replace("completedmaps = 1.0", "completedmaps = 0.0"));
    let reduces = tasks(&early, TaskKind::Reduce).map(|reduce| reduce.start_ns).min().unwrap();
    let maps = tasks(&early, TaskKind::Map).map(|map| map.finish_ns).max().unwrap();
    assert!(reduces < maps);
}

#[test]
fn a_fetch_takes_its_bytes_by_the_rate_of_the_network() {
    // One map on one of two workers, one reduce; whichever node it is on, its own or the other, is drawn.
    let text = "[cluster]\nnodes = 2\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\npiece = \"16MiB\"\n\
         [hadoop]\ndfs.blocksize = 10000000\ndfs.replication = 1\n\
         [[job]]\ninput = \"10MB\"\nmap_rate = \"unlimited\"\nreduce_rate = \"unlimited\"\n";
    let trace = run_on("kind = \"ideal\"\nrate = \"8Mbps\"\nlatency = \"1ms\"", text);
    let fetch = trace.messages.iter().find(|message| message.kind.as_str() == "shuffle-response").unwrap();
    assert_eq!(fetch.app_bytes, 10_000_000);
    if !trace.connections[fetch.connection.index()].loopback {
        assert_eq!(fetch.delivered_ns - fetch.sent_ns, fetch.bytes * 1_000 + MS);
    }
}

#[test]
fn a_chained_job_begins_when_the_client_knows_of_the_end() {
    let text = one_node(8, "[[job]]\nprofile = \"protein-clustering\"\ninput = \"10MB\"\n");
    let trace = run(&text);
    let [first, second] = &*trace.jobs else { panic!("two jobs") };
    assert!((first.finish_ns..first.finish_ns + S + 10 * MS).contains(&second.submit_ns));
    // A tenth of its input leaves the maps, a tenth of that the reduces.
    assert_eq!(second.hdfs_bytes_read, Some(100_000));
    assert_eq!(first.hdfs_bytes_written, Some(100_000));
}
