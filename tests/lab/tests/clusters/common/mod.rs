//! What tests of the real lab share: running the program, and looking for what it has left on the machine.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod recording;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A test's turn to start daemons. One cluster at a time: two would take each other's processors, and neither would say what its
/// version does.
pub fn turn() -> MutexGuard<'static, ()> {
    static ONE_CLUSTER: Mutex<()> = Mutex::new(());
    // A test that failed in its turn does not take the turns of others.
    ONE_CLUSTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program with arguments, its output piped.
pub fn lab(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub fn run(arguments: &str) -> Output {
    lab(arguments).output().unwrap()
}

/// What it printed on stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts the program and waits until it says something on stderr. What it says afterwards can be read.
pub fn start_until(arguments: &str, words: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = lab(arguments).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut all = String::new();
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        if said.read_line(&mut line).unwrap() == 0 {
            let status = child.wait().unwrap();
            panic!("it ended with {status} before saying {words:?}:\n{all}");
        }
        all.push_str(&line);
    }
    (child, said)
}

/// All that a lab can leave on the machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Names of namespaces.
    pub namespaces: Vec<String>,
    /// Folders in /etc/netns.
    pub etc: Vec<String>,
    /// Its claim.
    pub claims: Vec<String>,
    /// Processes in its namespaces.
    pub processes: Vec<u32>,
    /// Its work folder, where it still is.
    pub work: Vec<PathBuf>,
}

/// Looks for the traces of a lab. Namespaces whose names are gone are still known by `inodes`, and the work folder by
/// `work`.
pub fn traces(prefix: &str, inodes: &BTreeSet<u64>, work: Option<&Path>) -> Traces {
    let mut all = inodes.clone();
    all.extend(inodes_of(prefix));
    Traces {
        namespaces: named("/run/netns", &format!("{prefix}-")),
        etc: named("/etc/netns", &format!("{prefix}-")),
        claims: named("/run/hadoptic-lab", &format!("{prefix}.")),
        processes: processes(&all),
        work: work.filter(|path| path.exists()).map(Path::to_owned).into_iter().collect(),
    }
}

/// Inodes of the namespaces of a lab that is there.
pub fn inodes_of(prefix: &str) -> BTreeSet<u64> {
    named("/run/netns", &format!("{prefix}-"))
        .iter()
        .filter_map(|name| Some(fs::metadata(Path::new("/run/netns").join(name)).ok()?.ino()))
        .collect()
}

/// Waits until a process of the lab has entered one of its namespaces: a daemon that was just started has not, yet.
pub fn wait_for_a_process(prefix: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    while processes(&inodes_of(prefix)).is_empty() {
        assert!(Instant::now() < end, "no process of {prefix} in 30 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The work folder of a lab that is there.
pub fn work_of(prefix: &str) -> PathBuf {
    let claim = fs::read(format!("/run/hadoptic-lab/{prefix}.json")).unwrap();
    let claim: serde_json::Value = serde_json::from_slice(&claim).unwrap();
    PathBuf::from(claim["work"].as_str().unwrap())
}

fn named(folder: &str, beginning: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(beginning)).collect()
}

fn processes(inodes: &BTreeSet<u64>) -> Vec<u32> {
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_string_lossy().parse::<u32>().ok());
    pids.filter(|pid| fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|file| inodes.contains(&file.ino())))
        .collect()
}
