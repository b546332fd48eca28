//! Golden captures, damaged in some 30 ways: the merger neither panics nor aborts, takes less memory than four times what it
//! was given, and says what was lost; some are merged with little memory and by way of digests as well, to the same bytes.
//!
//! `HADOPTIC_MUTATIONS=2000` for more than the suite makes; `HADOPTIC_SEED=N` for one of them alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod damage;
mod random;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use damage::Damage;
use random::Random;
use serde_json::Value;

/// Mutations in the suite.
const USUAL: u64 = 60;
/// Seeds that found something: requests of a shuffle whose times run backwards; a job history that is a folder, of which the digest said
/// nothing.
const FOUND: [u64; 2] = [529, 1395];
/// Of so many seeds one is merged with little memory and by way of digests as well.
const OTHERWISE_EVERY: u64 = 5;
/// What a merge of nothing may take, bytes; beyond that it is four times the capture, unpacked.
const BASE_BYTES: u64 = 96 << 20;
/// Address space: what is more than that ends in an abort, which is seen.
const ADDRESS_SPACE: u64 = 3 << 30;
/// No merge of a golden capture takes longer; one that does hangs.
const MAX_TIME: Duration = Duration::from_secs(120);

/// Golden captures and how often each is taken, of 20.
const CAPTURES: [(&str, u64); 3] = [("encrypted", 13), ("wordcount", 6), ("terasort", 1)];

#[test]
fn damaged_golden_captures_are_merged_or_refused_and_every_loss_is_named() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let work = tempfile::tempdir().unwrap();
    let captures: BTreeMap<&str, Capture> = CAPTURES
        .iter()
        .map(|(name, _)| {
            let folder = work.path().join(name);
            unpack(&golden.join(name), &folder);
            (*name, Capture { answer: Answer::of(&folder, &work.path().join("trace")), folder })
        })
        .collect();
    let one = std::env::var("HADOPTIC_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let count = std::env::var("HADOPTIC_MUTATIONS").map_or(USUAL, |count| count.parse().unwrap());
    let seeds: Vec<u64> = one.map_or_else(|| FOUND.into_iter().chain(0..count).collect(), |seed| vec![seed]);
    let mut failures = Vec::new();
    let mut tally = Tally::default();
    for seed in seeds {
        if let Err(reason) = mutate(seed, &captures, work.path(), &mut tally) {
            eprintln!("seed {seed}: {reason}");
            failures.push(format!("HADOPTIC_SEED={seed}: {reason}"));
        }
    }
    eprintln!("{tally:?}");
    assert!(failures.is_empty(), "{} of them:\n{}", failures.len(), failures.join("\n"));
}

/// What came of all mutations.
#[derive(Debug, Default)]
struct Tally {
    merged: u64,
    refused: u64,
    as_before: u64,
    /// Merged with little memory and by way of digests as well.
    otherwise: u64,
    /// The largest share of what it might take that a merge took.
    most_memory: f64,
    longest_s: f64,
}

struct Capture {
    folder: PathBuf,
    answer: Answer,
}

/// What `merger build --json` says.
struct Answer {
    output: Output,
    /// Its object, without what differs from run to run.
    stated: Value,
    peak_bytes: u64,
    took: Duration,
}

impl Answer {
    fn of(capture: &Path, trace: &Path) -> Self {
        let arguments = ["build", capture.to_str().unwrap(), "--force", "--json", "--out", trace.to_str().unwrap()];
        let began = Instant::now();
        let mut child = Command::new("prlimit")
            .args([&format!("--as={ADDRESS_SPACE}"), env!("CARGO_BIN_EXE_merger")])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let out = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            out.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let err = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            err.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let mut peak_bytes = 0;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            peak_bytes = peak_bytes.max(peak_of(child.id()));
            if began.elapsed() > MAX_TIME {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        let output = Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() };
        let mut stated: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        peak_bytes = peak_bytes.max(stated["memory_peak_bytes"].as_u64().unwrap_or(0));
        let of_the_run =
            ["memory_peak_bytes", "memory_estimate_bytes", "temporary_peak_bytes", "temporary_estimate_bytes"];
        for key in ["wall_s", "trace"].into_iter().chain(of_the_run) {
            if let Some(stated) = stated.as_object_mut() {
                stated.remove(key);
            }
        }
        Self { output, stated, peak_bytes, took: began.elapsed() }
    }

    /// What it says of losses.
    fn said(&self) -> (&Value, &Value) {
        (&self.stated["losses"], &self.stated["notes"])
    }
}

/// The most memory that a process has had in use, bytes.
fn peak_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).map_or(0, |peak| peak << 10)
}

fn mutate(seed: u64, captures: &BTreeMap<&str, Capture>, work: &Path, tally: &mut Tally) -> Result<(), String> {
    let mut random = Random::new(seed);
    let name = choose(&mut random);
    let capture = &captures[name];
    let (folder, trace) = (work.join("damaged"), work.join("damaged-trace"));
    for old in [&folder, &trace] {
        if old.exists() {
            fs::remove_dir_all(old).unwrap();
        }
    }
    copy(&capture.folder, &folder);
    let others: Vec<&Path> = captures.values().map(|capture| capture.folder.as_path()).collect();
    let count = 1 + random.below(3) * random.below(2);
    let damages: Vec<Damage> = (0..count).map(|_| damage::some(&folder, &others, &mut random)).collect();
    let input = size_of(&folder);
    let answer = Answer::of(&folder, &trace);
    let what = format!("{name}: {damages:?}");
    let said = String::from_utf8_lossy(&answer.output.stderr).into_owned();
    let code = answer.output.status.code();
    tally.longest_s = tally.longest_s.max(answer.took.as_secs_f64());
    if said.contains("panicked") || !matches!(code, Some(0 | 2)) {
        return Err(format!("{what}: ended with {:?} after {:?}: {said}", answer.output.status, answer.took));
    }
    let allowed = BASE_BYTES + 4 * input;
    tally.most_memory = tally.most_memory.max(answer.peak_bytes as f64 / allowed as f64);
    if answer.peak_bytes > allowed {
        let peak = answer.peak_bytes >> 20;
        return Err(format!("{what}: took {peak} MiB for {} MiB", input >> 20));
    }
    if code == Some(2) {
        tally.refused += 1;
        // It says what is wrong, and where.
        let one_line = said.starts_with("merger: ") && said.trim_end().lines().count() == 1;
        return if one_line { Ok(()) } else { Err(format!("{what}: refused with {said}")) };
    }
    if answer.stated.is_null() {
        return Err(format!("{what}: no answer"));
    }
    tally.merged += 1;
    if answer.stated == capture.answer.stated {
        tally.as_before += 1;
    } else if answer.said() == capture.answer.said() && checked(&trace) == checked(&work.join("trace")) {
        return Err(format!("{what}: another trace, and nothing is said of it"));
    }
    if seed.is_multiple_of(OTHERWISE_EVERY) {
        merges_the_same_otherwise(&folder, &trace, work).map_err(|how| format!("{what}: another trace {how}"))?;
        tally.otherwise += 1;
    }
    let losses = answer.stated["losses"].to_string();
    for damage in &damages {
        if count == 1
            && let Some(file) = &damage.must_be_named
            && !losses.contains(file.as_str())
        {
            return Err(format!("{what}: {file} is not named in {losses}"));
        }
    }
    Ok(())
}

/// Whether the trace is the same, byte for byte, with little memory and by way of digests; else says how it is not.
fn merges_the_same_otherwise(capture: &Path, trace: &Path, work: &Path) -> Result<(), String> {
    let [other, digests] = ["other-trace", "digests"].map(|name| work.join(name));
    let run = |command: &str, input: &Path, out: &Path, more: &[&str]| {
        _ = fs::remove_dir_all(out);
        let mut merger = Command::new(env!("CARGO_BIN_EXE_merger"));
        let output = merger.arg(command).arg(input).arg("--out").arg(out).args(more).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // Where that is too little it is refused.
    let (code, said) = run("build", capture, &other, &["--memory", "128MiB"]);
    if code != Some(2) && (code != Some(0) || contents(&other) != contents(trace)) {
        return Err(format!("in 128 MiB: {code:?}, {said}"));
    }
    let (digested, of_digest) = run("digest", capture, &digests, &[]);
    let (code, said) = run("build", &digests, &other, &[]);
    // 1: something was refused, which the trace then says as well.
    if !matches!(digested, Some(0 | 1)) || code != Some(0) || contents(&other) != contents(trace) {
        return Err(format!("by digests: {digested:?}, {of_digest}, {code:?}, {said}"));
    }
    Ok(())
}

/// All files of a trace by their names; the manifest without the names of captures.
fn contents(trace: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut content = fs::read(&path).unwrap();
        if name == "manifest.json" {
            let mut manifest: Value = serde_json::from_slice(&content).unwrap();
            manifest["captures"] = Value::Null;
            content = manifest.to_string().into_bytes();
        }
        (name, content)
    };
    fs::read_dir(trace).unwrap().map(read).collect()
}

fn choose(random: &mut Random) -> &'static str {
    let mut at = random.below(CAPTURES.iter().map(|(_, parts)| parts).sum());
    for (name, parts) in CAPTURES {
        match at.checked_sub(parts) {
            Some(rest) => at = rest,
            None => return name,
        }
    }
    CAPTURES[0].0
}

/// What `merger check --json` says of a trace.
fn checked(trace: &Path) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_merger")).arg("check").arg(trace).arg("--json").output().unwrap();
    output.stdout
}

/// Copies a capture with all its files unpacked.
fn unpack(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            unpack(&path, &to.join(name));
        } else if let Some(plain) = name.strip_suffix(".zst") {
            fs::write(to.join(plain), zstd::decode_all(fs::File::open(&path).unwrap()).unwrap()).unwrap();
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(drop).unwrap() }
    }
}

/// Bytes of all files, unpacked.
fn size_of(folder: &Path) -> u64 {
    let mut all = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            all += size_of(&path);
        } else if about.is_file() {
            let mut counted = 0u64;
            if let Ok(mut input) = trace::files::open(&path) {
                counted = std::io::copy(&mut input, &mut std::io::sink()).unwrap_or(0);
            }
            all += counted.max(about.len());
        }
    }
    all
}
