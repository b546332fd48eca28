//! `replay run --ranks`: parts of a network in several processes over MPI, and the same bytes in every table; and ranks that end before they are done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use hadoptic_tests::{program, run};
use serde_json::Value;
use tempfile::TempDir;

const EXPERIMENT: &str = "
[traffic]
pattern = \"uniform\"
load = 0.8
size = \"4KB\"
warm_up = \"5us\"
batches = 4
batch = \"10us\"
evolution = \"10us\"
drain = \"50us\"
[fabric]
kind = \"store-and-forward\"
routing = \"ecmp-packet\"
switch_delay = \"100ns\"
[fabric.topology]
shape = \"k-ary-n-tree\"
k = 4
n = 3
host_link = { rate = \"10Gbps\", delay = \"50ns\", buffer = \"4 packets\" }
uplink = { rate = \"10Gbps\", delay = \"70ns\", buffer = \"4 packets\" }
";

/// Marks the processes of a test.
const MARK: &str = "HADOPTIC_TEST_RANKS";

/// An experiment in a folder, and how ranks are started here.
struct Bench {
    folder: TempDir,
    mpirun: String,
}

/// What ranks over MPI lack here.
fn missing() -> Option<&'static str> {
    if program("netsim-rank").is_err() {
        return Some("netsim-rank is not built: `make ranks`, with an MPI library and libclang");
    }
    Command::new("mpirun").arg("--version").output().is_err().then_some("no mpirun")
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("saf.toml"), EXPERIMENT).unwrap();
        let version = Command::new("mpirun").arg("--version").output().unwrap();
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let mpirun = match (String::from_utf8_lossy(&version.stdout).contains("Open MPI"), root) {
            (true, true) => "mpirun --allow-run-as-root --oversubscribe",
            (true, false) => "mpirun --oversubscribe",
            (false, _) => "mpirun",
        };
        Self { folder, mpirun: mpirun.to_owned() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Runs the experiment into the folder `name`.
    fn run(&self, name: &str, more: &[&str]) -> Output {
        let (file, out) = (self.path("saf.toml"), self.path(name));
        run("replay", &[&["run", &file, "--json", "--pairs", "--out", &out], more].concat()).unwrap()
    }

    /// What is said of such a run.
    fn ran(&self, name: &str, more: &[&str]) -> Value {
        let output = self.run(name, more);
        assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What such a run by two ranks says that fails.
    fn fails(&self, mpirun: &str, more: &[&str]) -> String {
        let output = self.run("none", &[&["--ranks", "2", "--mpirun", mpirun], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// A command like mpirun for two ranks, the second of which runs `script` with the name of the program. What the first says goes to the file `said` as well.
    fn with_second(&self, name: &str, script: &str) -> String {
        let first = self.script(&format!("{name}-first"), &format!("exec \"$1\" > >(exec tee {})", self.path("said")));
        let second = self.script(&format!("{name}-second"), script);
        let (first, second) = (first.display(), second.display());
        self.script(name, &format!("exec {} -n 1 {first} \"$3\" : -n 1 {second} \"$3\"", self.mpirun));
        self.path(name)
    }

    fn script(&self, name: &str, commands: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/bash\n{commands}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

/// All files of `folder` but those that tell of this machine, by name.
fn tables(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path));
    let tells = ["summary.json", "traffic.json", "report.html"];
    named
        .filter(|(name, _)| !tells.contains(&name.as_str()))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

#[test]
fn ranks_over_mpi_leave_the_same_tables() {
    test_support::skip_if!(missing());
    let bench = Bench::new();
    let alone = bench.ran("alone", &["--engine", "events"]);
    assert!(alone["drops"].as_u64().unwrap() > 0 && alone["packets"].as_u64().unwrap() > 1_000, "{alone}");
    let expected = tables(Path::new(&bench.path("alone")));
    assert!(expected.contains_key("links.parquet") && expected.contains_key("pairs.parquet"), "{:?}", expected.keys());
    for ranks in ["2", "4"] {
        let by_ranks = bench.ran(ranks, &["--ranks", ranks, "--mpirun", &bench.mpirun]);
        let parallel = &by_ranks["parallel"];
        assert_eq!(parallel["parts"].to_string(), ranks);
        assert!(parallel["remote_events"].as_u64().unwrap() > 0, "{parallel}");
        let found = tables(Path::new(&bench.path(ranks)));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &found {
            assert!(bytes == &expected[name], "{ranks} ranks: {name}");
        }
        for key in ["packets", "drops", "events", "latency_ns", "confidence", "offered_load", "accepted_load"] {
            assert!(!alone[key].is_null() && by_ranks[key] == alone[key], "{ranks} ranks: {key}");
        }
    }
    let error = bench.fails(&bench.mpirun, &["--set", "fabric.topology.n=1"]);
    assert!(error.contains("2 ranks: this network has fewer"), "{error}");
}

/// A run that takes far longer than any test.
const ENDLESS: [&str; 2] = ["--set", "traffic.batch=10s"];

#[test]
fn a_rank_that_ends_early_ends_the_run_with_an_error() {
    test_support::skip_if!(missing());
    let bench = Bench::new();
    // Once the first has heard of it: it is a rank then.
    let knows = format!("until grep -qs together {}; do sleep 0.1; done", bench.path("said"));
    let killed = bench.with_second("killed", &format!("\"$1\" & {knows}; kill -9 $!; wait $!"));
    let error = bench.fails(&killed, &ENDLESS);
    assert!(error.contains("--ranks: ") && error.contains("ended with"), "{error}");
    // MPICH's mpirun waits for ever for one that has never been a rank.
    let never = bench.with_second("never", "exit 0");
    let error = bench.fails(&never, &[&ENDLESS[..], &["--ranks-within", "2"]].concat());
    assert!(error.contains("--ranks: "), "{error}");
    // The same program with a byte more at its end.
    let copied = format!("cp \"$1\" {0} && echo >> {0} && exec {0}", bench.path("another"));
    let error = bench.fails(&bench.with_second("another-build", &copied), &ENDLESS);
    assert!(error.contains("rank 1 runs another build"), "{error}");
}

#[test]
fn ranks_that_hold_more_than_they_may_end_the_run_with_an_error() {
    test_support::skip_if!(missing());
    let bench = Bench::new();
    let large = [&ENDLESS[..], &["--set", "fabric.topology.k=24"]].concat();
    let error = bench.fails(&bench.mpirun, &[&large[..], &["--memory", "48MiB"]].concat());
    assert!(error.contains("netsim-rank: out of memory") && error.contains("may hold 24MiB"), "{error}");
}

/// Processes that have `mark` in their environment.
fn marked(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("environ"));
    let set = format!("{MARK}={mark}").into_bytes();
    let environments = processes.filter_map(|path| fs::read(path).ok());
    environments.filter(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == set)).count()
}

#[test]
fn a_signal_ends_all_ranks() {
    test_support::skip_if!(missing());
    let bench = Bench::new();
    let mark = bench.path("mark");
    let mut command = Command::new(program("replay").unwrap());
    command.args(["run", &bench.path("saf.toml"), "--out", &bench.path("out")]).args(ENDLESS);
    command.args(["--ranks", "2", "--mpirun", &bench.mpirun]).env(MARK, &mark).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let waits = |until: &dyn Fn(usize) -> bool| {
        (0..600).any(|_| {
            thread::sleep(Duration::from_millis(50));
            until(marked(&mark))
        })
    };
    // replay, mpirun and its helper, two ranks.
    assert!(waits(&|processes| processes >= 5), "{} processes", marked(&mark));
    let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(ended.success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("stopped before anything was measured"), "{error}");
    assert!(waits(&|processes| processes == 0), "{} processes are left", marked(&mark));
}
