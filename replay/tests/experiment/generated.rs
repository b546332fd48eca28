//! Jobs from parameters: their trace replays as they ran, and other networks change what they should.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use causal::{JobGraph, Options};
use mapreduce::JobFile;
use netsim::fabric::{self, FabricKind};
use replay::experiment::Experiment;
use replay::generate::generate;
use replay::workload;
use serde_json::Value;
use trace::ids::ProcessId;
use trace::rows::{MessageKind, TaskKind, Trace};

const JOB: &str = "[cluster]\nnodes = 6\nracks = 2\n[hadoop]\ndfs.blocksize = 4194304\n\
    yarn.nodemanager.resource.memory-mb = 3072\n[[job]]\nprofile = \"terasort\"\ninput = \"100MiB\"\nreduces = 4\n";
/// One of the six workers is slow, so that its reduce gets a second attempt; if maps compute longer, they do.
const SPECULATIVE: &str = "[cluster]\nnodes = 6\nracks = 2\nslow = { w2 = 40.0 }\n[hadoop]\ndfs.blocksize = 4194304\n\
    yarn.nodemanager.resource.memory-mb = 3072\nmapreduce.task.progress-report.interval = 1000\n\
    [[job]]\nprofile = \"terasort\"\ninput = \"100MiB\"\nreduces = 6\nreduce_rate = \"5MB/s\"\n";
const ETHERNET: &str = "kind = \"ethernet\"\nswitch_delay = \"1us\"\n[topology]\nshape = \"racks\"\n\
    host_link = { rate = \"1Gbps\", buffer = \"256KiB\" }\nuplink = { rate = \"2Gbps\", buffer = \"1MiB\" }\n";
const CREDIT: &str = "kind = \"credit\"\n[topology]\nshape = \"fat-tree\"\ncores = 2\n";
const LIGHTNESS: &str = "kind = \"lightness\"\n";
/// It resends nothing, and so must lose nothing.
const STORE_AND_FORWARD: &str = "kind = \"store-and-forward\"\n[topology]\nshape = \"fat-tree\"\ncores = 2\n\
    host_link = { rate = \"10Gbps\", buffer = \"unlimited\" }\nuplink = { rate = \"10Gbps\", buffer = \"unlimited\" }\n";

fn generated(fabric: &str, job: &str) -> Trace {
    let file = JobFile::parse(job).unwrap();
    let hosts = mapreduce::places(&file.cluster);
    generate(&file, &fabric.parse().unwrap(), &hosts, |_| ()).unwrap().0
}

/// Simulated and recorded job time, picoseconds.
fn replayed(fabric: &str, trace: &Trace) -> (u64, u64) {
    let graph = JobGraph::new(trace, None, Options::default()).unwrap();
    let hosts = mapreduce::places(&JobFile::parse(JOB).unwrap().cluster);
    let mut network = fabric::build(&fabric.parse().unwrap(), &hosts).unwrap();
    let outcome = workload::run(&graph, &mut network, |_| ()).unwrap();
    (outcome.job_time_ps, (graph.finish_ns - graph.submit_ns) * 1_000)
}

#[test]
fn a_replay_over_its_own_network_takes_as_long_to_the_nanosecond() {
    for fabric in
        ["kind = \"ideal\"\nrate = \"1Gbps\"\nlatency = \"5us\"", ETHERNET, CREDIT, LIGHTNESS, STORE_AND_FORWARD]
    {
        for job in [JOB, &JOB.replace("reduces = 4", "reduces = 0")] {
            let (simulated, recorded) = replayed(fabric, &generated(fabric, job));
            assert!(simulated.abs_diff(recorded) <= 1_000, "{fabric}: {simulated} ps, generated {recorded} ps");
        }
    }
}

#[test]
fn of_a_job_without_reduces_no_reduce_and_no_writing_is_counted_among_its_maps() {
    let folder = bench();
    let path = folder.path();
    fs::write(path.join("copy.toml"), JOB.replace("reduces = 4", "reduces = 0")).unwrap();
    let made = json(path, &["generate", "copy.toml", "--out", "trace", "--json"]);
    let job = &made["jobs"][0];
    let count = |key: &str| job[key].as_u64().unwrap();
    assert!((1..=count("maps")).contains(&count("node_local_maps")), "{job}");
    assert_eq!((count("reduces"), count("shuffle_bytes"), count("hdfs_bytes_written")), (0, 0, 100 << 20), "{job}");
    let table = command(path, &["generate", "copy.toml", "--out", "again"]);
    let table = String::from_utf8(table.stdout).unwrap() + &String::from_utf8(table.stderr).unwrap();
    assert!(table.contains('–') && !table.contains("-0.00"), "{table}");
}

#[test]
fn a_job_with_killed_attempts_replays_as_it_ran_and_says_what_was_wasted() {
    for fabric in
        ["kind = \"ideal\"\nrate = \"1Gbps\"\nlatency = \"5us\"", ETHERNET, CREDIT, LIGHTNESS, STORE_AND_FORWARD]
    {
        for (more, kind) in [("map_rate = \"2MB/s\"\n", TaskKind::Map), ("", TaskKind::Reduce)] {
            let trace = generated(fabric, &format!("{SPECULATIVE}{more}"));
            assert!(trace.tasks.iter().any(|task| !task.succeeded && task.kind == kind), "{fabric}");
            let (simulated, recorded) = replayed(fabric, &trace);
            assert!(simulated.abs_diff(recorded) <= 1_000, "{fabric}: {simulated} ps, generated {recorded} ps");
        }
    }
    let folder = bench();
    let path = folder.path();
    fs::write(path.join("slow.toml"), SPECULATIVE).unwrap();
    let made = json(path, &["generate", "slow.toml", "--out", "trace", "--json"]);
    let killed = &made["jobs"][0]["killed"];
    assert!(killed["attempts"].as_u64() >= Some(1) && killed["bytes"].as_u64() > Some(0), "{killed}");
    let summary = json(path, &["run", "ideal.toml", "--trace", "trace", "--out", "results", "--json"]);
    let wasted = &summary["wasted"];
    assert_eq!(wasted["attempts"], killed["attempts"]);
    let of = |value: &Value| value["seconds"].as_f64().unwrap();
    assert!((of(wasted) - of(killed)).abs() < 1e-6, "{wasted} {killed}");
    assert!(summary["notes"].to_string().contains("did not count"), "{summary}");
    assert!(fs::read_to_string(path.join("results/report.html")).unwrap().contains("did not count"));
    // All tasks succeed in the end, and what they read, shuffle and write is what a job without second attempts does.
    let off = json(
        path,
        &[
            "generate",
            "slow.toml",
            "--out",
            "off",
            "--json",
            "--set",
            "hadoop.mapreduce.map.speculative=false",
            "--set",
            "hadoop.mapreduce.reduce.speculative=false",
        ],
    );
    for key in ["maps", "reduces", "shuffle_bytes", "hdfs_bytes_read", "hdfs_bytes_written"] {
        assert_eq!(made["jobs"][0][key], off["jobs"][0][key], "{key}");
    }
    assert!(off["jobs"][0].get("killed").is_none());
    assert!(made["jobs"][0]["job_time_s"].as_f64() < off["jobs"][0]["job_time_s"].as_f64());
}

#[test]
fn every_event_of_it_happens_when_it_was_generated() {
    let fabric = "kind = \"ideal\"\nrate = \"1Gbps\"\nlatency = \"5us\"";
    let trace = generated(fabric, JOB);
    let graph = JobGraph::new(&trace, None, Options::default()).unwrap();
    let hosts = mapreduce::places(&JobFile::parse(JOB).unwrap().cluster);
    let mut network = fabric::build(&fabric.parse().unwrap(), &hosts).unwrap();
    let outcome = workload::run(&graph, &mut network, |_| ()).unwrap();
    for event in graph.during() {
        let Some(at) = outcome.event(event.event).happened() else {
            assert_eq!(event.recorded_ns, graph.finish_ns, "only what shares the job's last instant may be left out");
            continue;
        };
        let recorded = graph.job_time(event.recorded_ns);
        assert!((at.0 - recorded.0).unsigned_abs() <= 1_000, "event {}: {at}, generated at {recorded}", event.event);
    }
}

#[test]
fn on_a_slower_network_tasks_are_scheduled_anew() {
    let fast = generated("kind = \"ideal\"", JOB);
    let slow = generated("kind = \"ideal\"\nrate = \"50Mbps\"", JOB);
    let time = |trace: &Trace| trace.jobs[0].finish_ns - trace.jobs[0].submit_ns;
    assert!(time(&slow) > time(&fast));
    let hosts = |trace: &Trace| trace.tasks.iter().map(|task| task.host).collect::<Vec<_>>();
    assert_ne!(hosts(&slow), hosts(&fast), "slower maps free their containers in another order");
    // The frozen schedule of the fast network, replayed over the slow one, is another answer.
    let (frozen, _) = replayed("kind = \"ideal\"\nrate = \"50Mbps\"", &fast);
    assert_ne!(frozen, time(&slow) * 1_000);
}

fn command(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
    output
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = command(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments")
}

fn bench() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), JOB).unwrap();
    for name in ["ideal", "ethernet-10g", "lab-100mbit", "lightness-ops"] {
        fs::copy(experiments().join(format!("{name}.toml")), folder.path().join(format!("{name}.toml"))).unwrap();
    }
    folder
}

#[test]
fn the_command_writes_a_trace_that_the_others_take() {
    let folder = bench();
    let path = folder.path();
    let made =
        json(path, &["generate", "job.toml", "--out", "trace", "--json", "--set", "job=[{ profile = \"wordcount\" }]"]);
    assert_eq!((made["jobs"][0]["name"].as_str(), made["jobs"][0]["maps"].as_u64()), (Some("wordcount"), Some(256)));
    let replayed = json(path, &["run", "ideal.toml", "--trace", "trace", "--out", "results", "--json"]);
    let (new, old) = (replayed["job_time_s"].as_f64().unwrap(), made["jobs"][0]["job_time_s"].as_f64().unwrap());
    assert!((new - old).abs() < 1e-8, "{new} {old}");
    // The file beside the tables makes the same trace again.
    json(path, &["generate", "trace/job.toml", "--out", "again", "--json"]);
    for table in ["events", "dependencies", "messages", "tasks", "jobs"] {
        let read = |folder: &str| fs::read(path.join(folder).join(format!("{table}.parquet"))).unwrap();
        assert!(read("trace") == read("again"), "{table}");
    }
    let refused = command(path, &["generate", "job.toml", "--out", "trace"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("it is there already"), "{refused:?}");
}

#[test]
fn a_comparison_says_which_networks_the_job_needs() {
    let folder = bench();
    let names = ["ideal.toml", "ethernet-10g.toml", "lab-100mbit.toml", "lightness-ops.toml"];
    let output =
        command(folder.path(), &[&["compare"], &names[..], &["--generate", "job.toml", "--out", "results"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("on an infinitely fast network") && !text.contains("recorded"), "{text}");
    assert!(text.contains("fast enough for it: ") && text.contains("Slower: lab-100mbit ("), "{text}");
    let page = fs::read_to_string(folder.path().join("results/report.html")).unwrap();
    assert!(page.contains("On an infinitely fast network the job takes"));
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("results/summary.json")).unwrap()).unwrap();
    let times: Vec<f64> =
        summary["experiments"].as_array().unwrap().iter().map(|one| one["job_time_s"].as_f64().unwrap()).collect();
    assert_eq!(summary["experiments"][0]["baseline"], "ideal");
    assert_eq!(
        summary["experiments"][0]["recorded_job_time_s"].as_f64(),
        Some(times[0]),
        "the ideal one is its own bound"
    );
    assert!(times.iter().all(|time| *time >= times[0]));
}

#[test]
fn a_sweep_schedules_each_of_its_networks() {
    let folder = bench();
    let rates = "fabric.topology.host_link.rate=[100Mbps,10Gbps]";
    let swept = json(
        folder.path(),
        &["run", "ethernet-10g.toml", "--generate", "job.toml", "--out", "results", "--set", rates, "--json"],
    );
    let times: Vec<f64> =
        swept["points"].as_array().unwrap().iter().map(|it| it["job_time_s"].as_f64().unwrap()).collect();
    assert!(times.len() == 2 && times[0] > times[1], "{times:?}");
}

#[test]
fn what_is_wrong_is_shown_where_it_stands() {
    let folder = bench();
    let path = folder.path();
    let wrong = |arguments: &[&str], parts: &[&str]| {
        let output = command(path, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(parts.iter().all(|part| text.contains(part)), "{text} lacks {parts:?}");
    };
    fs::write(path.join("bad.toml"), JOB.replace("nodes = 6", "nodes = 0")).unwrap();
    wrong(&["generate", "bad.toml", "--out", "t"], &["bad.toml:2:1", "cluster.nodes = 0", "between 1 and"]);
    fs::write(path.join("bad.toml"), JOB.replace("nodes", "nods")).unwrap();
    wrong(&["generate", "bad.toml", "--out", "t"], &["bad.toml:2:1", "nods", "did you mean `nodes`?"]);
    let jobs = "[cluster]\nnodes = 4\n\n[[job]]\nprofile = \"terasort\"\ninput = \"1GiB\"\n\n[[job]]\nprofile = \"wordcount\"\n";
    for (last, parts) in [
        ("mapps = 3\n", &["bad.toml:10:1", "unknown field `mapps`"][..]),
        (
            "map_output = -1.0\n",
            &["bad.toml:10:1", "job.map_output of", "between 0 and 1000", "10 | map_output = -1.0"],
        ),
        ("input = \"1\"\n", &["bad.toml:10:9", "has no unit"]),
        ("queu = \"a\"\nreduces = 0\nmap_rat = 1\n", &["bad.toml:10:1", "`queue`?", "\nbad.toml:12:1", "`map_rate`?"]),
    ] {
        fs::write(path.join("bad.toml"), format!("{jobs}{last}")).unwrap();
        wrong(&["generate", "bad.toml", "--out", "t"], parts);
    }
    fs::write(path.join("bad.toml"), jobs.replace("wordcount", "wordcont")).unwrap();
    wrong(&["generate", "bad.toml", "--out", "t"], &["bad.toml:9:", "wordcont", "there are:"]);
    wrong(
        &["generate", "job.toml", "--out", "t", "--set", "cluster.nodes=0"],
        &["--set cluster.nodes=0", "between 1 and"],
    );
    wrong(&["generate", "none.toml", "--out", "t"], &["none.toml", "No such file"]);
    let both = "[workload]\ntrace = \"t\"\ngenerate = \"job.toml\"\n[fabric]\nkind = \"ideal\"\n";
    fs::write(path.join("both.toml"), both).unwrap();
    wrong(&["run", "both.toml", "--out", "r"], &["exclude each other"]);
    let factor = ["run", "ideal.toml", "--generate", "job.toml", "--out", "r", "--set", "workload.cpu_factor=2.0"];
    wrong(&factor, &["cpu_factor", "map_rate"]);
    assert!(!path.join("t").exists());
}

/// Of the bytes that are shuffled, those between hosts of different racks.
fn share_that_leaves_its_rack(trace: &Trace) -> f64 {
    let rack = |process: Option<ProcessId>| {
        let host = trace.processes[process.unwrap().index()].host;
        &trace.hosts[host.index()].rack
    };
    let all: u64 = trace.jobs.iter().filter_map(|job| job.shuffle_bytes).sum();
    let mut leaves = 0;
    for message in trace.messages.iter().filter(|message| message.kind == MessageKind::ShuffleResponse) {
        let connection = &trace.connections[message.connection.index()];
        if rack(connection.client_process) != rack(connection.server_process) {
            leaves += message.bytes;
        }
    }
    leaves as f64 / all as f64
}

#[test]
fn the_jobs_of_the_repository_are_what_their_comments_say() {
    let job = |name: &str| {
        let path = experiments().join("jobs").join(name);
        JobFile::parse(&fs::read_to_string(path).unwrap()).unwrap()
    };
    for (name, racks) in [("data-centre.toml", 4), ("sixteen-racks.toml", 16)] {
        let large = job(name);
        assert_eq!((large.cluster.nodes, large.cluster.racks), (64, racks));
        let trace = generated("kind = \"ideal\"", &large.to_toml().unwrap());
        for (kind, count) in [(TaskKind::Map, 128), (TaskKind::Reduce, 128)] {
            let of_kind: Vec<_> = trace.tasks.iter().filter(|task| task.kind == kind).collect();
            let last_start = of_kind.iter().map(|task| task.start_ns).max().unwrap();
            let at_once = of_kind.iter().filter(|task| task.finish_ns > last_start).count();
            assert_eq!(at_once, count, "{name}: {kind:?}s at once");
        }
        let leaves = share_that_leaves_its_rack(&trace);
        assert!(
            (leaves - (1.0 - 1.0 / f64::from(racks))).abs() < 0.02,
            "{name}: {leaves} of the shuffle leaves its rack"
        );
    }
    let terasort = job("terasort.toml");
    assert_eq!(terasort.jobs[0].input.unwrap().0.div_ceil(terasort.hadoop.block_bytes), 64);
    let bio = job("hec-protein-clustering.toml");
    assert_eq!((bio.cluster.nodes, bio.jobs.len()), (50, 2));
    let share = bio.jobs[0].map_output * bio.jobs[0].reduce_output;
    assert!((share - 0.01).abs() < 1e-12, "the second job reads 1% of what the first does: {share}");
    let files = fs::read_dir(experiments().join("jobs")).unwrap().count();
    assert_eq!(files, 4, "each has its lines here");
}

#[test]
fn the_files_of_a_large_cluster_are_what_their_comments_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scale");
    let text = fs::read_to_string(folder.join("jobs.toml")).unwrap();
    let large = JobFile::parse(&text).unwrap();
    assert_eq!((large.cluster.nodes, large.jobs.len()), (10_000, 500));
    let maps = |job: &mapreduce::Job| job.input.unwrap().0.div_ceil(large.hadoop.block_bytes);
    assert!(large.jobs.iter().all(|job| (maps(job), job.reduces) == (190, 10)));
    assert_eq!(large.jobs[499].submit.ps() - large.jobs[498].submit.ps(), 40_000_000_000);
    let input: u64 = large.jobs.iter().map(|job| job.input.unwrap().0).sum();
    assert_eq!(input / 100_000_000_000, 15);

    let fabric = Experiment::read(&folder.join("fat-tree.toml"), &[]).unwrap().fabric;
    let small = text.replace("= 10000", "= 100").replace("racks = 400", "racks = 4").replace("= 500", "= 5");
    let small = JobFile::parse(&small).unwrap();
    let hosts = mapreduce::places(&small.cluster);
    assert_eq!(fabric.network().unwrap().0.build(&hosts).unwrap().hosts(), 11_664);
    let lightness = Experiment::read(&folder.join("lightness.toml"), &[]).unwrap().fabric;
    let small_lightness = "kind = \"lightness\"\ndecision = \"by-size\"\n".parse().unwrap();
    let ends = [fabric, lightness, small_lightness].map(|fabric| {
        let (trace, _) = generate(&small, &fabric, &hosts, |_| ()).unwrap();
        assert_eq!((trace.jobs.len(), trace.tasks.len()), (5, 1_000));
        trace.jobs.iter().map(|job| job.finish_ns - job.submit_ns).max().unwrap()
    });
    assert!(ends[1] < ends[0] * 11 / 10, "wide enough: {ends:?}");
    assert!(ends[2] > ends[1], "the deliverable's is not, even for a hundredth of the cluster: {ends:?}");
}
