//! The packages of `make dist`: made twice alike, installed where nothing else is, used, and purged.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{skip, skip_if, skipped};

use super::bare_debian::BareDebian;
use super::{PROGRAMS, built, done, is_there, not_built, repository, text};

const JAR: &str = "hadoop-patches/target/hadoptic-agent.jar";

/// Packages the programs that the tests use.
fn package(out: &Path) {
    let mut dist = Command::new(repository().join("tests/dist.sh"));
    done(dist.arg("--programs").arg(built()).arg("--out").arg(out).env("SOURCE_DATE_EPOCH", "1700000000"));
}

fn only(folder: &Path, ending: &str) -> PathBuf {
    let mut paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_str().unwrap().ends_with(ending)).unwrap()
}

#[test]
#[ignore = "needs root: installs the packages in a bare Debian"]
fn packages_work_in_a_bare_debian_and_leave_nothing_there() {
    skip_if!(not_built());
    if !repository().join(JAR).is_file() {
        skip!("no {JAR}: no Maven, or no JDK");
    }
    let debian = BareDebian::new();
    skip_if!(debian.as_ref().err());
    let debian = debian.unwrap();
    let (folder, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    package(folder.path());
    package(again.path());
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    assert_eq!(sums(folder.path()), sums(again.path()), "made twice alike");
    done(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(folder.path()));
    let (deb, tarball) = (only(folder.path(), ".deb"), only(folder.path(), ".tar.gz"));
    lint(&deb);
    let before = debian.names();
    fs::copy(&deb, debian.path("root/hadoptic.deb")).unwrap();
    debian.done(&["dpkg", "--install", "/root/hadoptic.deb"]);
    assert_eq!(debian.done(&["dpkg", "--verify", "hadoptic"]), "");
    nothing_is_started(&debian, &before);
    programs_say_what_they_are(&debian, "/usr/bin");
    pages_are_found(&debian);
    a_capture_is_merged_and_replayed(&debian);
    the_agents_are_found(&debian);
    fs::remove_dir_all(debian.path("root")).unwrap();
    fs::create_dir(debian.path("root")).unwrap();
    let root = Path::new("root");
    let before: BTreeSet<_> = before.into_iter().filter(|name| name == root || !name.starts_with(root)).collect();
    debian.done(&["dpkg", "--purge", "hadoptic"]);
    let left: Vec<_> = debian.names().symmetric_difference(&before).cloned().collect();
    assert!(left.is_empty(), "left after dpkg --purge: {left:?}");
    assert!(!debian.run(&["dpkg", "--status", "hadoptic"]).status.success());
    done(
        Command::new("tar")
            .arg("-xzf")
            .arg(&tarball)
            .args(["--strip-components=1", "-C"])
            .arg(debian.path("usr/local")),
    );
    programs_say_what_they_are(&debian, "/usr/local/bin");
}

/// What Debian's own reader of packages calls an error.
fn lint(deb: &Path) {
    if !is_there("lintian") {
        return skipped("lintian's errors: no lintian");
    }
    let said = Command::new("lintian").args(["--allow-root", "--fail-on", "error"]).arg(deb).output().unwrap();
    assert!(said.status.success(), "{}", text(&said));
}

/// Units are there, and nobody has been told to start them.
fn nothing_is_started(debian: &BareDebian, before: &BTreeSet<PathBuf>) {
    let new: Vec<PathBuf> = debian.names().difference(before).cloned().collect();
    let units = new.iter().filter(|name| name.starts_with("usr/lib/systemd/system")).count();
    assert!(units >= 2, "{new:?}");
    let elsewhere: Vec<_> =
        new.iter().filter(|name| !name.starts_with("usr") && !name.ends_with("root/hadoptic.deb")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

fn programs_say_what_they_are(debian: &BareDebian, folder: &str) {
    let version = format!(" {}\n", env!("CARGO_PKG_VERSION"));
    for name in PROGRAMS {
        let program = format!("{folder}/{name}");
        assert_eq!(debian.done(&[&program, "--version"]), format!("{name}{version}"));
        assert!(debian.done(&[&program, "--help"]).contains("Commands:"), "{name}");
    }
}

fn pages_are_found(debian: &BareDebian) {
    for name in PROGRAMS {
        let completions = ["share/bash-completion/completions", "share/zsh/vendor-completions", "share/fish"];
        assert!(completions.iter().all(|folder| debian.path("usr").join(folder).is_dir()), "{name}");
        let shown = debian.done(&["man", name]);
        assert!(shown.contains("SYNOPSIS") && shown.contains(&format!("{name}-completions(1)")), "{shown}");
    }
    for name in ["merger-build", "replay-run", "hadoptic-install", "sniffer-run", "dumpingd-run"] {
        assert!(debian.done(&["man", name]).contains("EXAMPLES"), "{name}");
    }
}

/// As a user does it, and with the numbers that it has to give.
fn a_capture_is_merged_and_replayed(debian: &BareDebian) {
    let golden = repository().join("tests/golden/terasort");
    done(Command::new("cp").arg("-r").arg(golden).arg(debian.path("root/capture")));
    debian.done(&["merger", "build", "/root/capture", "--out", "/root/trace"]);
    let checked = debian.done(&["merger", "check", "/root/trace"]);
    assert!(checked.starts_with("PASS"), "{checked}");
    let replayed =
        debian.done(&["replay", "run", "ideal", "--trace", "/root/trace", "--out", "/root/results", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&replayed).unwrap();
    let seconds = |key: &str| summary[key].as_f64().unwrap();
    assert!(0.0 < seconds("job_time_s") && seconds("job_time_s") < seconds("recorded_job_time_s"), "{replayed}");
    assert!(debian.path("root/results/report.html").is_file());
}

/// `hadoptic` takes the agents and the jar of the package; what it lacks in this root is ssh.
fn the_agents_are_found(debian: &BareDebian) {
    let said = debian.run(&["hadoptic", "check", "--also", "nowhere"]);
    let words = text(&said);
    assert_ne!(said.status.code(), Some(0), "{words}");
    assert!(words.contains("ssh") && !words.contains("is not there"), "{words}");
}
