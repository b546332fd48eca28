//! The report in Chromium, as people read it: accessible (axe-core), on large and small screens, light and dark, with mouse, touch and
//! keyboard alone (tests/report/check.js); and the page of a trace's characteristics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use hadoptic_tests::{experiment_file, golden, run};
use test_support::skip_if;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A browser that is installed, or why there is none.
fn chromium() -> Result<&'static str, String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    names.into_iter().find(runs).ok_or_else(|| "no Chromium".to_owned())
}

/// A folder with the check and what it needs of npm, kept between runs; or why there is none. Made once, for all tests.
fn check() -> &'static Result<PathBuf, String> {
    static CHECK: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    CHECK.get_or_init(install)
}

fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-check");
    fs::create_dir_all(&folder).unwrap();
    for file in ["package.json", "package-lock.json", "check.js"] {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("report").join(file), folder.join(file)).unwrap();
    }
    let installed =
        Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder).output();
    let installed = installed.map_err(|error| format!("no npm: {error}"))?;
    // Only that nothing can be fetched is a reason to go without.
    match text(&installed) {
        _ if installed.status.success() => Ok(folder),
        message
            if ["ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ETIMEDOUT"].iter().any(|code| message.contains(code)) =>
        {
            Err(format!("no axe-core, playwright-core from npm: {}", message.lines().next().unwrap_or_default()))
        }
        message => panic!("{message}"),
    }
}

#[test]
fn the_report_is_read_by_all_and_with_whatever_they_have() {
    let chromium = chromium();
    skip_if!(chromium.as_ref().err());
    let check = check();
    skip_if!(check.as_ref().err());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let done = |output: Output| assert!(output.status.success(), "{}", text(&output));
    done(run("merger", &["build", golden("terasort").to_str().unwrap(), "--out", &path("trace")]).unwrap());
    let names = [
        "ideal",
        "ethernet-10g",
        "fat-tree",
        "gigabit",
        "infiniband",
        "lab-100mbit",
        "lab-10mbit",
        "lightness-mixed",
        "lightness-ops",
    ];
    let files: Vec<String> =
        names.map(|name| experiment_file(&format!("{name}.toml")).to_str().unwrap().to_owned()).into();
    let mut arguments = vec!["compare"];
    arguments.extend(files.iter().map(String::as_str));
    let (trace, results) = (path("trace"), path("results"));
    arguments.extend(["--trace", &trace, "--out", &results]);
    done(run("replay", &arguments).unwrap());
    let report = folder.path().join("results/report.html");
    let bytes = fs::metadata(&report).unwrap().len();
    assert!(bytes < 3_000_000, "nine experiments in {bytes} bytes");
    let mut opened = Command::new("node");
    opened.arg("check.js").arg(&report).arg(chromium.unwrap()).current_dir(check.as_ref().unwrap());
    done(opened.output().unwrap());
}

#[test]
fn the_page_of_a_traces_characteristics_is_read_by_all() {
    let chromium = chromium();
    skip_if!(chromium.as_ref().err());
    let check = check();
    skip_if!(check.as_ref().err());
    let (chromium, check) = (chromium.unwrap(), check.as_ref().unwrap());
    let folder = tempfile::tempdir().unwrap();
    for capture in ["terasort", "wordcount", "encrypted"] {
        let (trace, out) = (folder.path().join(format!("{capture}-trace")), folder.path().join(capture));
        let (from, built, to) = (golden(capture), trace.to_str().unwrap(), out.to_str().unwrap());
        for arguments in [["build", from.to_str().unwrap(), "--out", built], ["characterise", built, "--out", to]] {
            let made = run("merger", &arguments).unwrap();
            assert!(made.status.success(), "{}", text(&made));
        }
        let mut read = Command::new("node");
        read.arg("check.js").arg(out.join("report.html")).args([chromium, "read"]).current_dir(check);
        let read = read.output().unwrap();
        assert!(read.status.success(), "{capture}: {}", text(&read));
    }
}
