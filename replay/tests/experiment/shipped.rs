//! Experiments and job files that the program holds: all of the repository, by name.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use replay::experiment::{EXPERIMENTS, JOBS, Shipped};
use serde_json::Value;

fn replay(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_replay")).args(arguments).current_dir(folder).output().unwrap()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = replay(folder, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = replay(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The names of the files in a folder of the repository's experiments.
fn names(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(folder);
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.map(|path| format!("{folder}{}", path.file_stem().unwrap().to_str().unwrap())).collect()
}

#[test]
fn all_files_of_the_repository_are_built_in() {
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let held = |files: &[Shipped], before: &str| files.iter().map(|file| format!("{before}{}", file.name)).collect();
    let of_folders = ["", "peers/", "sweeps/", "synthetic/"].into_iter().flat_map(names).collect();
    assert_eq!(sorted(held(EXPERIMENTS, "")), sorted(of_folders));
    assert_eq!(sorted(held(JOBS, "jobs/")), sorted(names("jobs/")));
    for file in EXPERIMENTS.iter().chain(JOBS) {
        assert!(file.about().len() > 20, "{} says nothing about itself", file.name);
    }
}

#[test]
fn a_name_stands_for_a_file_and_its_results_can_be_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let compared = ["compare", "ideal", "gigabit", "--generate", "terasort", "--out", "r", "--json"];
    let compared: Value = serde_json::from_str(&printed(path, &compared)).unwrap();
    let of = |number: usize| &compared["experiments"][number];
    assert_eq!((&of(0)["name"], &of(1)["fabric"]), (&"ideal".into(), &"ethernet".into()));
    let again = printed(path, &["run", "r/gigabit/effective.toml", "--out", "again", "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["job_time_s"], of(1)["job_time_s"]);
    // What is printed is the file.
    fs::write(path.join("mine.toml"), printed(path, &["experiments", "gigabit"])).unwrap();
    let mine = printed(path, &["run", "mine.toml", "--generate", "terasort", "--out", "mine", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&mine).unwrap()["job_time_s"], of(1)["job_time_s"]);
    // A file goes before a name.
    fs::write(path.join("ideal"), "[fabric]\nkind = \"ethernet\"\n").unwrap();
    let file = printed(path, &["run", "ideal", "--generate", "terasort", "--out", "file", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&file).unwrap()["fabric"], "ethernet");
}

#[test]
fn the_option_fabric_stands_for_the_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let job_time = |arguments: &[&str]| {
        let all = [arguments, &["--generate", "terasort", "--json"]].concat();
        let results: Value = serde_json::from_str(&printed(path, &all)).unwrap();
        results.get("experiments").map_or_else(|| results["job_time_s"].clone(), |all| all[1]["job_time_s"].clone())
    };
    let argument = job_time(&["run", "gigabit", "--out", "a"]);
    assert!(argument.as_f64().is_some_and(|seconds| seconds > 0.0), "{argument}");
    assert_eq!(job_time(&["run", "--fabric", "gigabit", "--out", "b"]), argument);
    assert_eq!(job_time(&["compare", "ideal", "--fabric", "gigabit", "--out", "c"]), argument);
    assert_eq!(job_time(&["compare", "--fabric", "ideal", "--fabric", "gigabit", "--out", "d"]), argument);
    let both = refused(path, &["run", "ideal", "--fabric", "gigabit", "--out", "e"]);
    assert!(both.contains("cannot be used with '--fabric <EXPERIMENT>'"), "{both}");
    let none = refused(path, &["run", "--out", "e"]);
    assert!(none.contains("<EXPERIMENT>") && none.contains("required"), "{none}");
}

#[test]
fn a_name_that_there_is_not_says_which_may_have_been_meant() {
    let folder = tempfile::tempdir().unwrap();
    for (asked, meant) in [
        ("ethernet-10", "`ethernet-10g`"),
        ("ethernet", "`ethernet-10g`"),
        ("replay/experiments/ideal.toml", "`ideal`"),
        ("experiments/synthetic/fat-tree.toml", "`synthetic/fat-tree`"),
    ] {
        let message = refused(folder.path(), &["run", asked, "--out", "r"]);
        let hint =
            format!("{asked}: No such file or directory (os error 2); did you mean {meant}? `replay experiments`");
        assert!(message.contains(&hint) && message.matches("No such file").count() == 1, "{message}");
    }
    let job = refused(folder.path(), &["run", "ideal", "--generate", "terrasort", "--out", "r"]);
    assert!(job.contains("terrasort: No such file") && job.contains("did you mean `terasort`?"), "{job}");
    let far = refused(folder.path(), &["run", "nothing-like-it", "--out", "r"]);
    assert!(far.contains("`replay experiments` lists") && !far.contains("did you mean"), "{far}");
    let file = refused(folder.path(), &["run", "nothing-like-it.toml", "--out", "r"]);
    assert!(!file.contains("lists"), "{file}");
    assert!(refused(folder.path(), &["experiments", "x"]).contains("x: nothing of this name is built in"));
}

#[test]
fn all_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let lines = printed(folder.path(), &["experiments"]);
    let listed: Value = serde_json::from_str(&printed(folder.path(), &["experiments", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), EXPERIMENTS.len() + JOBS.len());
    for one in listed.as_array().unwrap() {
        assert!(lines.lines().any(|line| line.split_whitespace().next() == one["name"].as_str()), "{one} in {lines}");
    }
}
