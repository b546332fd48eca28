//! Job files: presets, defaults, and what is refused.

use mapreduce::{JobFile, PROPERTIES, Property};

fn error(text: &str) -> String {
    JobFile::parse(text).unwrap_err().to_string()
}

#[test]
fn a_file_with_every_key_says_the_same() {
    let text = "seed = 3\n[cluster]\npreset = \"hec\"\nnodes = 10\n[queues]\na = 0.5\nb = 0.5\n[hadoop]\n\
        \"dfs.replication\" = 2\nmapreduce.map.memory.mb = 2000\n[[job]]\nprofile = \"protein-clustering\"\nname = \"bio\"\n\
        input = \"1GiB\"\nreduces = 3\nqueue = \"b\"\n";
    let file = JobFile::parse(text).unwrap();
    assert_eq!(
        (file.cluster.nodes, file.cluster.cores, file.hadoop.replication),
        (10, 8, 2),
        "given keys go before the preset"
    );
    assert_eq!(
        file.jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
        ["bio-clustering-1", "bio-clustering-2"]
    );
    assert_eq!(file.jobs[1].input_of.as_deref(), Some("bio-clustering-1"));
    assert!(file.jobs.iter().all(|job| job.reduces == 3));
    assert_eq!(JobFile::parse(&file.to_toml().unwrap()).unwrap(), file);
}

#[test]
fn a_job_with_a_count_is_so_many_jobs_one_after_the_other() {
    let text = "[[job]]\nprofile = \"terasort\"\ncount = 3\nevery = \"1500ms\"\nsubmit = \"1s\"\nreduces = 2\n\
        [[job]]\nname = \"a\"\nprofile = \"protein-clustering\"\ncount = 2\n[[job]]\ncount = 1\n[[job]]\n";
    let file = JobFile::parse(text).unwrap();
    let jobs: Vec<(&str, u64)> =
        file.jobs.iter().map(|job| (job.name.as_str(), job.submit.ps() / 1_000_000_000)).collect();
    let sorts = [("terasort-1", 1_000), ("terasort-2", 2_500), ("terasort-3", 4_000)];
    let chains = [("a-1-clustering-1", 0), ("a-1-clustering-2", 0), ("a-2-clustering-1", 0), ("a-2-clustering-2", 0)];
    assert_eq!(jobs, [&sorts[..], &chains, &[("job-1", 0), ("job-9", 0)]].concat());
    assert_eq!(file.jobs[6].input_of.as_deref(), Some("a-2-clustering-1"));
    assert!(file.jobs[..3].iter().all(|job| job.reduces == 2));
    assert_eq!(JobFile::parse(&file.to_toml().unwrap()).unwrap(), file);
}

#[test]
fn a_small_file_makes_no_large_jobs() {
    let long = format!("[[job]]\nname = \"{}\"\ncount = 10000\n", "x".repeat(7_000));
    assert!(error(&long).contains("job.count = 10000: so many of this job are larger than"), "{}", error(&long));
    let samples = "[[job.map]]\ninput = \"1MiB\"\n".repeat(400);
    assert!(error(&format!("[[job]]\ncount = 10000\n{samples}")).contains("are larger than"));
}

#[test]
fn what_is_wrong_is_named_with_its_key_and_value() {
    let job = "[[job]]\n";
    for (text, parts) in [
        ("", ["missing field `job`", ""]),
        ("[cluster]\nnodes = 0\n[[job]]\n", ["cluster.nodes = 0", "between 1 and"]),
        ("[cluster]\nnodes = 2\nracks = 3\n[[job]]\n", ["cluster.racks = 3", "between 1 and 2"]),
        ("[cluster]\ndisk_read = \"80\"\n[[job]]\n", ["\"80\" has no unit", ""]),
        ("[cluster]\npreset = \"hecc\"\n[[job]]\n", ["cluster.preset", "there are: hec"]),
        (
            "[hadoop]\nmapreduce.map.memory.mbb = 3\n[[job]]\n",
            ["mapreduce.map.memory.mbb = 3", "did you mean mapreduce.map.memory.mb?"],
        ),
        ("[hadoop]\ndfs.replication = \"x\"\n[[job]]\n", ["hadoop.dfs.replication", "default: 3"]),
        ("[hadoop]\nmapreduce.map.memory.mb = 9000\n[[job]]\n", ["must fit a node", "9000"]),
        ("[[job]]\nprofile = \"sort\"\n", ["job.profile", "terasort, wordcount"]),
        ("[[job]]\nmap_output = -1.0\n", ["job.map_output of job-1 = -1", "between 0 and"]),
        ("[[job]]\nmap_rate = \"1bps\"\n", ["job.map_rate", "at least 1B/s"]),
        ("[[job]]\ninput_of = \"other\"\n", ["job.input_of", "no job before it"]),
        ("[[job]]\nname = \"a\"\n[[job]]\nname = \"a\"\n", ["job.name = a", "two jobs"]),
        ("[[job]]\nqueue = \"a\"\n", ["job.queue of job-1 = a", "[queues] has"]),
        ("[[job]]\ninput = \"99999999GiB\"\n", ["so many tasks", ""]),
        (
            "[[job]]\ninput = \"10240GiB\"\nmap_output = 1e3\n[[job]]\ninput_of = \"job-1\"\n",
            ["job.input = 82001922", "so many tasks"],
        ),
        ("[[job]]\ncount = 0\n", ["job.count = 0", "a whole number from 1 on"]),
        ("[[job]]\ncount = \"two\"\n", ["job.count = \"two\"", "at most 10000 jobs"]),
        ("[[job]]\ncount = 5000\n[[job]]\ncount = 5001\n", ["job.count = 5001", "at most 10000 jobs"]),
        ("[[job]]\nevery = \"1s\"\n", ["job.every = \"1s\"", "have a `count`"]),
        ("[[job]]\ncount = 2\nevery = \"1\"\n", ["job.every = \"1\"", "has no unit"]),
        ("[[job]]\ncount = 3\nevery = \"9999999s\"\n", ["job.every", "too late"]),
        ("[[job]]\ncount = 2\nsubmit = 3\n", ["job.submit = 3", ""]),
    ] {
        let message =
            error(&if text.contains("[[job]]") || text.is_empty() { text.to_owned() } else { format!("{text}{job}") });
        assert!(parts.iter().all(|part| message.contains(part)), "{text}\n{message}\nlacks {parts:?}");
    }
}

#[test]
fn a_cluster_in_which_a_job_could_only_wait_is_refused() {
    let text = "[cluster]\nnodes = 1\n[hadoop]\nyarn.nodemanager.resource.memory-mb = 2048\n[[job]]\n";
    assert!(error(text).contains("beside the master"), "{}", error(text));
}

#[test]
fn extreme_values_are_refused_or_run() {
    use netsim::engine::Workload;
    let numbers = ["0", "1", "2", "4294967295", "9223372036854775807", "-1", "0.5", "1e308", "nan", "true"];
    let quantities = [
        "\"0B\"",
        "\"1KiB\"",
        "\"1GiB\"",
        "\"8191PiB\"",
        "\"0ps\"",
        "\"8bps\"",
        "\"unlimited\"",
        "\"18446744s\"",
        "\"1e3\"",
    ];
    let keys = [
        "cluster.nodes",
        "cluster.racks",
        "cluster.cores",
        "cluster.disks",
        "cluster.disk_read",
        "cluster.disk_seek",
        "cluster.piece",
        "cluster.task_start",
    ];
    let of_job = [
        "input",
        "submit",
        "reduces",
        "map_output",
        "reduce_output",
        "map_rate",
        "merge_rate",
        "speed_deviation",
        "skew",
        "compressed",
        "output_replication",
    ];
    let keys = keys
        .iter()
        .map(|key| format!("{key} = "))
        .chain(PROPERTIES.iter().map(|property| format!("hadoop.{} = ", property.name)));
    let files =
        keys.map(|key| (key, String::new())).chain(of_job.iter().map(|key| (String::new(), format!("{key} = "))));
    let mut accepted = 0;
    for (top, job) in files {
        for value in numbers.iter().chain(&quantities) {
            let line = |key: &str| if key.is_empty() { String::new() } else { format!("{key}{value}\n") };
            let text = format!("{}[[job]]\n{}", line(&top), line(&job));
            let Ok(file) = JobFile::parse(&text) else { continue };
            accepted += 1;
            let mut network =
                netsim::fabric::build(&"kind = \"ideal\"".parse().unwrap(), &mapreduce::places(&file.cluster)).unwrap();
            let mut model = mapreduce::Model::new(file);
            // Some thousand steps of it; what a whole run does is tested elsewhere.
            for _ in 0..3_000 {
                let Some(at) =
                    model.next_tick(&network).filter(|_| !Workload::<netsim::fabric::Fabric>::is_done(&model))
                else {
                    break;
                };
                let mut deliveries = Vec::new();
                netsim::network::Simulation::advance(&mut network, at, &mut deliveries);
                deliveries.iter().for_each(|delivery| model.delivered(delivery, &mut network));
                if deliveries.is_empty() {
                    model.tick(at, &mut network);
                }
            }
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn a_job_of_more_steps_than_memory_has_room_for_is_refused() {
    let text = "[cluster]\npiece = \"1KiB\"\n[[job]]\ninput = \"100GiB\"\n";
    assert!(error(text).contains("cluster.piece = 1KiB: it makes about"), "{}", error(text));
}

/// Of Hadoop's own files, as they lie in the jars: a property a line, its values in 2.10.2 and 3.4.2, "-" where it is not there.
const HADOOP_DEFAULTS: &str = include_str!("hadoop-defaults.tsv");
const PAGE: &str = include_str!("../../../../docs/generate.md");

#[test]
fn defaults_are_those_of_hadoop() {
    let lines: Vec<Vec<&str>> = HADOOP_DEFAULTS.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), PROPERTIES.len());
    for (property, line) in PROPERTIES.iter().zip(lines) {
        assert_eq!(property.name, line[0]);
        for theirs in &line[1..] {
            match *theirs {
                "-" => assert!(
                    property.source == "code"
                        || property.source.contains("capacity")
                        || property.source.contains("of 3.x"),
                    "{property:?}"
                ),
                "-1" => assert!(property.source.contains("-1"), "{property:?}"),
                theirs => assert_eq!(theirs.parse::<f64>().ok(), property.default.parse::<f64>().ok(), "{property:?}"),
            }
        }
    }
}

#[test]
fn the_page_has_every_property() {
    for Property { name, default, source } in PROPERTIES {
        let row = format!("| `{name}` | {default} | {source} |");
        assert!(PAGE.contains(&row), "docs/generate.md lacks {row}");
    }
}
