//! Jobs on a cluster of some version under agents that `hadoptic` deploys: the hosts are afterwards as they were, every connection has its owners, every byte its message, the
//! counters agree, and replayed on a model of its own network the job takes the time that it took.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use trace::truth::Truth;

/// What the capture is made with and read with, built by `make test` before.
pub fn built(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = match name {
        "hadoptic-agent.jar" => root.join("hadoop-patches/target").join(name),
        _ => Path::new(env!("CARGO_BIN_EXE_lab")).with_file_name(name),
    };
    assert!(path.exists(), "{} is not built: run `make agents tables`", path.display());
    path
}

/// A program's answer as JSON, null where it gives none; it has to end with 0.
pub fn answer(program: &str, arguments: &[&str]) -> Value {
    answer_with(program, arguments, &[0])
}

/// The same of a program that ends with one of these codes.
pub fn answer_with(program: &str, arguments: &[&str], codes: &[i32]) -> Value {
    let output = Command::new(built(program)).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let is_expected = output.status.code().is_some_and(|code| codes.contains(&code));
    assert!(is_expected, "{program} {arguments:?}: {said}\n{}", String::from_utf8_lossy(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
}

/// Has the agents deployed onto a cluster of two workers, counts words there and puts a file into HDFS and gets it back, has the
/// agents removed, and looks at everything that is left.
pub fn is_recorded(version: &str, prefix: &str) {
    is_recorded_on(version, prefix, None);
}

/// The same on a Java of one's choice.
pub fn is_recorded_on(version: &str, prefix: &str, java_home: Option<&Path>) {
    let _turn = super::turn();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut lab = super::lab(&format!(
        "run --hadoop {version} --prefix {prefix} --workers 2 --job wordcount --job putget --size 8MB --reduces 2 \
         --quiet --links 100mbit --uplink 50mbit --json --capture {} --deployed-by {} --agent-jar {} --sniffer {} \
         --dumpingd {}",
        path("capture"),
        built("hadoptic").display(),
        built("hadoptic-agent.jar").display(),
        built("sniffer").display(),
        built("dumpingd").display(),
    ));
    lab.envs(java_home.map(|home| ("JAVA_HOME", home)));
    let output = lab.output().unwrap();
    let said = super::stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let truth: Truth = serde_json::from_slice(&fs::read(path("capture/truth.json")).unwrap()).unwrap();
    assert_eq!(truth.versions.hadoop, version);
    // Only a busy machine, on which links do not reach their rates, is excused.
    let wrong: Vec<_> = truth.problems.iter().filter(|problem| !problem.starts_with("the link")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(truth.recorder, "deployed agents");
    let kinds: Vec<&str> = truth.jobs.iter().map(|job| job.kind.as_str()).collect();
    assert_eq!(kinds, ["put", "wordcount", "get", "put", "get"]);
    let job = truth.jobs.iter().find(|job| job.kind == "wordcount").unwrap();
    assert_eq!((job.maps, job.reduces), (2, 2));
    assert_eq!(drift(Path::new(&path("capture"))), Vec::<String>::new());

    answer("merger", &["build", &path("capture"), "--out", &path("trace")]);
    let check = answer("merger", &["check", &path("trace"), "--json"]);
    let share = |key: &str| check[key].as_f64().unwrap_or_else(|| panic!("{key} is missing: {check:#}"));
    assert!(share("owned_both_ends_share") >= 0.999, "{check:#}");
    assert!(share("owned_connections_share") >= 0.99, "{check:#}");
    let listed = check["detail"]["without_owner"].as_array().unwrap();
    assert_eq!(listed.len() as u64, check["detail"]["connections_without_owner"].as_u64().unwrap(), "{check:#}");
    assert!(listed.iter().all(|connection| connection["reason"].as_str().is_some_and(|why| !why.is_empty())));
    assert!(share("in_known_message_share") >= 0.99, "{check:#}");
    assert!(share("captured_vs_kernel_error").abs() <= 0.001, "{check:#}");
    for counter in ["shuffle_bytes_error", "hdfs_read_bytes_error", "hdfs_write_bytes_error"] {
        assert!(share(counter).abs() <= 0.005, "{counter}: {check:#}");
    }

    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../replay/experiments/lab-100mbit.toml");
    let arguments =
        ["run", experiment.to_str().unwrap(), "--trace", &path("trace"), "--out", &path("results"), "--json"];
    let replayed = answer("replay", &arguments);
    let seconds = |value: &Value, key: &str| value[key].as_f64().unwrap_or_else(|| panic!("no {key}: {value:#}"));
    let (found, recorded) = (seconds(&replayed, "job_time_s"), seconds(&replayed, "recorded_job_time_s"));
    // A second is more than 5% of so short a job, and news that misses its heartbeat by a moment waits for the next one, a
    // second later; what follows moves with it.
    let heartbeats = replayed["heartbeats"].as_array().unwrap();
    let moved = heartbeats.iter().filter(|waits| waits["other_beat"] != 0);
    let pause = moved.map(|waits| seconds(waits, "pause_s")).fold(0.0, f64::max);
    let is_within = (found - recorded).abs() <= 0.05 * recorded + pause;
    assert!(is_within, "job: {found} s, recorded {recorded} s: {heartbeats:#?}");
    for name in ["map", "shuffle", "reduce"] {
        let phase = replayed["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == name).unwrap();
        let (found, recorded) = (seconds(phase, "seconds"), seconds(phase, "recorded_seconds"));
        assert!((found / recorded - 1.0).abs() <= 0.10, "{name}: {found} s, recorded {recorded} s");
    }
    let inodes = truth.hosts.iter().map(|host| host.netns).collect();
    assert_eq!(super::traces(prefix, &inodes, None), super::Traces::default());
}

/// The tables of a trace, by name, as checksums.
pub fn tables(trace: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(trace).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    let tables: BTreeMap<String, String> = tables
        .map(|path| {
            let sum = Command::new("sha256sum").stdin(fs::File::open(&path).unwrap()).output().unwrap();
            (path.file_name().unwrap().display().to_string(), String::from_utf8(sum.stdout).unwrap())
        })
        .collect();
    assert!(tables.len() > 5, "{tables:?}");
    tables
}

/// Methods that the Java agent looked for in vain.
fn drift(capture: &Path) -> Vec<String> {
    let texts = jvm_files(capture).into_iter().map(|path| fs::read_to_string(path).unwrap());
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|l| l.contains("\"drift\""))
        .collect()
}

/// Files of JVMs below a folder.
fn jvm_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files.extend(jvm_files(&path));
        } else if path.file_name().unwrap().to_string_lossy().starts_with("jvm-") {
            files.push(path);
        }
    }
    files
}
