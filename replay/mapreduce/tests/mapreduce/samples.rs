//! Jobs whose tasks are like recorded ones.

use std::collections::BTreeMap;

use mapreduce::JobFile;
use trace::ids::HostId;
use trace::rows::{MessageKind, TaskKind, Trace};

use super::{MS, S, marks, run, tasks};

/// Three workers with a core each and fast disks; three recorded maps and two recorded reduces.
fn job(input: &str, nodes: u32) -> String {
    format!(
        "[cluster]\nnodes = {nodes}\ncores = 4\ndisk_read = \"unlimited\"\ndisk_write = \"unlimited\"\n\
         [hadoop]\ndfs.replication = 1\nmapreduce.job.reduce.slowstart.completedmaps = 1.0\n\
         yarn.nodemanager.resource.memory-mb = 65536\n\
         [[job]]\ninput = \"{input}\"\nreduces = 2\nrecorded_nodes = 3\n\
         fetch = [[\"100ms\"], [\"30ms\"]]\n\
         map = [\n\
         {{ input = \"1MB\", node = 2, container_start = \"1s\", task_start = \"100ms\", rate = \"1MB/s\", sort_rate = \"unlimited\", output = 1.0 }},\n\
         {{ input = \"2MB\", node = 0, container_start = \"2s\", task_start = \"200ms\", rate = \"4MB/s\", sort_rate = \"1MB/s\", output = 0.5 }},\n\
         {{ input = \"3MB\", node = 2, container_start = \"3s\", task_start = \"300ms\", rate = \"unlimited\", sort_rate = \"unlimited\", output = 2.0 }},\n\
         ]\n\
         reduce = [\n\
         {{ share = 0.5, container_start = \"1s\", task_start = \"50ms\", merge_rate = \"2MB/s\", rate = \"1MB/s\", output = 0.0 }},\n\
         {{ share = 1.5, container_start = \"2s\", task_start = \"0ps\", merge_rate = \"unlimited\", rate = \"3MB/s\", output = 2.0 }},\n\
         ]\n"
    )
}

/// By map of the trace, the host from which it read.
fn read_from(trace: &Trace) -> BTreeMap<&str, HostId> {
    let requests =
        trace.messages.iter().filter(|message| message.kind == MessageKind::BlockRequest && message.name == "read");
    let from = requests.map(|message| {
        let server = trace.connections[message.connection.index()].server_host;
        (message.attempt.as_deref().unwrap(), server)
    });
    from.collect()
}

#[test]
fn each_task_takes_the_time_of_its_sample() {
    let trace = run(&job("6MB", 3));
    let maps: Vec<u64> = tasks(&trace, TaskKind::Map).map(|map| map.finish_ns - map.start_ns).collect();
    // Start, start, 1 MB at 1 MB/s; 2 MB at 4 MB/s and their half sorted at 1 MB/s; nothing but starts.
    assert_eq!(maps, [2_100 * MS, 2_200 * MS + S / 2 + S, 3_300 * MS]);
    let reduces: Vec<(u64, u64)> = tasks(&trace, TaskKind::Reduce)
        .map(|reduce| {
            let sorted = reduce.sort_end_ns.unwrap();
            (sorted - reduce.shuffle_end_ns.unwrap(), reduce.finish_ns - sorted)
        })
        .collect();
    // 1 + 1 + 6 MB of map output: a quarter and three quarters.
    assert_eq!(reduces[0].0, S);
    assert_eq!(reduces[1].0, 0);
    let rest = reduces[0].1 - 2 * S;
    assert!(rest < 5 * MS, "2 MB at 1 MB/s and the calls at its end: {rest}");
    assert!((2 * S..2 * S + 20 * MS).contains(&reduces[1].1), "6 MB at 3 MB/s: {}", reduces[1].1);
    assert_eq!(trace.jobs[0].shuffle_bytes, Some(8_000_000));
    assert_eq!(trace.jobs[0].hdfs_bytes_written, Some(12_000_000));
}

#[test]
fn blocks_lie_on_the_recorded_nodes_and_in_further_rounds_behind_them() {
    let trace = run(&job("6MB", 3));
    let from: Vec<HostId> = read_from(&trace).into_values().collect();
    // Host 0 has the masters.
    assert_eq!(from, [HostId(3), HostId(1), HostId(3)]);
    let trace = run(&job("12MB", 6));
    let mut from: Vec<HostId> = read_from(&trace).into_values().collect();
    assert_eq!(from[..3], [HostId(3), HostId(1), HostId(3)]);
    from[3..].sort_unstable();
    assert_eq!(from[3..], [HostId(4), HostId(6), HostId(6)]);
}

#[test]
fn splits_name_so_many_hosts_and_lie_on_a_share_of_the_nodes() {
    let with = |keys: &str| {
        let text = format!(
            "[cluster]\nnodes = 4\n[hadoop]\ndfs.blocksize = 1000000\nyarn.nodemanager.resource.memory-mb = 65536\n\
             [[job]]\ninput = \"40MB\"\nreduces = 1\n{keys}"
        );
        read_from(&run(&text)).into_values().collect::<std::collections::BTreeSet<HostId>>().len()
    };
    // Each map reads where it runs, and nodes have room for all: so these are the nodes that splits name.
    assert_eq!(with("input_replication = 1\n"), 4);
    assert_eq!(with("input_replication = 1\ninput_share_of_nodes = 0.5\n"), 2);
    assert_eq!(with("input_replication = 1\ninput_share_of_nodes = 0.01\n"), 1);
    let refused =
        JobFile::parse("[cluster]\nnodes = 1\n[[job]]\ninput = \"1MB\"\ninput_share_of_nodes = 1.5\n").unwrap_err();
    assert!(refused.to_string().contains("input_share_of_nodes"), "{refused}");
}

#[test]
fn more_input_is_more_rounds_of_all_samples() {
    let trace = run(&job("60MB", 3));
    assert_eq!(trace.jobs[0].maps, 30);
    let mut read: BTreeMap<u64, u32> = BTreeMap::new();
    for message in
        trace.messages.iter().filter(|message| message.kind == MessageKind::BlockData && message.name == "read")
    {
        *read.entry(message.app_bytes).or_default() += 1;
    }
    assert_eq!(read, [(1_000_000, 10), (2_000_000, 10), (3_000_000, 10)].into());
    // What is left of the input is the last map's.
    let trace = run(&job("7MB", 3));
    assert_eq!((trace.jobs[0].maps, trace.jobs[0].hdfs_bytes_read), (4, Some(7_000_000)));
}

#[test]
fn a_node_manager_takes_its_first_fetch_as_recorded_and_later_ones_as_the_last() {
    let trace = run(&job("6MB", 3).replace("65536", "2048"));
    let mut services: Vec<u64> = marks(&trace, "fetch.found").map(|event| event.delay_ns).collect();
    services.sort_unstable();
    // Maps ran on two nodes, of which each reduce fetches once.
    assert_eq!(services, [30 * MS, 30 * MS, 100 * MS, 100 * MS]);
}

#[test]
fn calls_have_the_sizes_and_times_of_the_file() {
    let text =
        format!("[calls.getTask]\nrequest = \"1000B\"\nresponse = \"2000B\"\nservice = \"50ms\"\n{}", job("6MB", 3));
    let trace = run(&text);
    let of = |kind| trace.messages.iter().filter(move |message| message.name == "getTask" && message.kind == kind);
    let (requests, responses) = (of(MessageKind::RpcRequest), of(MessageKind::RpcResponse));
    for (request, response) in requests.zip(responses) {
        assert_eq!((request.bytes, response.bytes), (1000, 2000));
        assert_eq!(response.sent_ns - request.delivered_ns, 50 * MS);
    }
}

#[test]
fn wrong_samples_are_refused_with_their_key() {
    for (from, to, key) in [
        ("node = 0", "node = 3", "job.map[1] of job-1.node = 3"),
        ("input = \"3MB\"", "input = \"0B\"", "job.map[2] of job-1.input"),
        ("output = 0.5", "output = nan", "job.map[1] of job-1.output"),
        ("share = 1.5", "share = -1.0", "job.reduce[1] of job-1.share"),
        ("rate = \"3MB/s\"", "rate = \"1bps\"", "job.reduce[1] of job-1.rate"),
        ("task_start = \"50ms\"", "task_start = \"100000s\"", "job.reduce[0] of job-1.task_start"),
        ("[[\"100ms\"], [\"30ms\"]]", "[[\"100ms\"], []]", "job.fetch[1] of job-1"),
        ("recorded_nodes = 3", "recorded_nodes = 0", "job.recorded_nodes of job-1"),
    ] {
        let text = job("6MB", 3);
        assert!(text.contains(from), "{from}");
        let error = JobFile::parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
    let call = format!("[calls.getTasks]\nrequest = \"1B\"\nresponse = \"1B\"\nservice = \"0ps\"\n{}", job("6MB", 3));
    assert!(JobFile::parse(&call).unwrap_err().to_string().contains("getTask,"));
}
