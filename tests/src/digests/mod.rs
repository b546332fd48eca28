//! SHA-256 of every file that merger and replay write from fixed inputs: a change that should leave all results as they are
//! is held against them.
//!
//! `tests/golden/results.sha256` has a line a file: digest, two blanks, case/path. What depends on the machine or the moment
//! is set to zero before (`normal`). Parquet files are digested as they are: a new version of the table library changes
//! their lines, and only theirs.

mod cases;
mod dimemas;
mod normal;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::program;
use cases::{CASES, Case, TRACES, Work};

/// Digests by case and path: `replay-wordcount-ideal/links.parquet`.
pub type Digests = BTreeMap<String, String>;

/// Where the digests lie.
#[must_use]
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/results.sha256")
}

/// Reads recorded digests.
///
/// # Errors
/// If the file cannot be read, or a line has not two words.
pub fn read(path: &Path) -> Result<Digests> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let pair = |line: &str| line.split_once("  ").map(|(digest, name)| (name.to_owned(), digest.to_owned()));
    text.lines().map(|line| pair(line).with_context(|| format!("{}: {line:?}", path.display()))).collect()
}

/// Writes digests.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, digests: &Digests) -> Result<()> {
    let mut text = String::new();
    for (name, digest) in digests {
        writeln!(text, "{digest}  {name}")?;
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// How `found` differs from what was recorded, a line a file; with `quick` only the quick cases are expected.
#[must_use]
pub fn differences(recorded: &Digests, found: &Digests, quick: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, digest) in found {
        match recorded.get(name) {
            None => lines.push(format!("{name}: is new")),
            Some(other) if other != digest => lines.push(format!("{name}: is another")),
            Some(_) => {}
        }
    }
    let expected = |name: &str| {
        let case = name.split_once('/').map_or(name, |(case, _)| case);
        !quick || cases::is_quick(case)
    };
    lines.extend(
        recorded
            .keys()
            .filter(|name| expected(name) && !found.contains_key(*name))
            .map(|name| format!("{name}: is missing")),
    );
    lines
}

/// Runs the cases, or the quick ones only, and digests what they leave; `stated` hears of each case before it runs.
///
/// # Errors
/// If a program cannot be run, or ends with another exit code than 0 or 1.
pub fn compute(quick: bool, stated: &mut dyn FnMut(&str)) -> Result<Digests> {
    let folder = tempfile::tempdir()?;
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))?;
    let work = fs::canonicalize(folder.path())?;
    let mut run = Run { root, work, digests: Digests::new() };
    for trace in TRACES.iter().filter(|trace| trace.quick || !quick) {
        stated(trace.name);
        run.trace(trace.name)?;
    }
    for case in CASES.iter().filter(|case| case.quick || !quick) {
        stated(case.name);
        run.case(case)?;
    }
    Ok(run.digests)
}

struct Run {
    /// The repository.
    root: PathBuf,
    /// Where results lie until they are digested.
    work: PathBuf,
    digests: Digests,
}

impl Run {
    /// Makes a trace, on which the cases build, and replays it by every experiment.
    fn trace(&mut self, name: &str) -> Result<()> {
        let trace = self.work.join(name);
        self.program("merger", &["build", &format!("tests/golden/{name}"), "--out", text_of(&trace)?])?;
        // The table library writes what it was given: the trace's own files are left as they are, for replays read them.
        self.digest_copies(&format!("trace-{name}"), &trace)?;
        let check = self.program("merger", &["check", text_of(&trace)?, "--json"])?;
        self.digest(&format!("trace-{name}/check.json"), &check);
        let mut experiments: Vec<PathBuf> = fs::read_dir(self.root.join("replay/experiments"))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        experiments.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        experiments.sort();
        for path in experiments {
            let stem = path.file_stem().context("a file has a name")?.to_string_lossy().into_owned();
            let case = format!("replay-{name}-{stem}");
            let out = self.work.join(&case);
            self.program("replay", &["run", text_of(&path)?, "--trace", text_of(&trace)?, "--out", text_of(&out)?])?;
            self.digest_results(&case, &out)?;
        }
        Ok(())
    }

    fn case(&mut self, case: &Case) -> Result<()> {
        let out = self.work.join(case.name);
        match case.work {
            Work::Results { arguments, settings } => {
                let mut words: Vec<&str> = arguments.to_vec();
                words.extend(["--out", text_of(&out)?]);
                words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
                self.program("replay", &words)?;
                self.digest_results(case.name, &out)
            }
            Work::Printed(arguments) => {
                let printed = self.program("replay", arguments)?;
                self.digest(&format!("{}/printed", case.name), &printed);
                Ok(())
            }
            Work::Dimemas(experiment) => {
                let answers = dimemas::exchange(&self.root, experiment)?;
                self.digest(&format!("{}/answers", case.name), answers.as_bytes());
                Ok(())
            }
            Work::Job { trace, arguments, settings } => {
                let trace = self.work.join(trace);
                let mut words: Vec<&str> = arguments.to_vec();
                words.extend(["--trace", text_of(&trace)?, "--out", text_of(&out)?]);
                words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
                self.program("replay", &words)?;
                self.digest_results(case.name, &out)
            }
        }
    }

    /// What a program prints.
    fn program(&self, name: &str, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new(program(name)?).args(arguments).current_dir(&self.root).output()?;
        let code = output.status.code();
        if !matches!(code, Some(0 | 1)) {
            bail!("{name} {arguments:?} ended with {code:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output.stdout)
    }

    /// Makes results independent of machine and moment, draws their report anew, digests all and removes them.
    fn digest_results(&mut self, case: &str, folder: &Path) -> Result<()> {
        for path in files_below(folder)? {
            match normal::file(&path, &fs::read(&path)?, &self.work) {
                Some(bytes) => fs::write(&path, bytes)?,
                None => fs::remove_file(&path)?,
            }
        }
        for report in files_below(folder)?.iter().filter(|path| path.ends_with("report.html")) {
            let drawn = report.parent().context("a file lies in a folder")?;
            self.program("replay", &["report", text_of(drawn)?])?;
        }
        self.digest_copies(case, folder)?;
        fs::remove_dir_all(folder).context("results that were digested")
    }

    /// Digests all files of a folder, each without what depends on machine and moment.
    fn digest_copies(&mut self, case: &str, folder: &Path) -> Result<()> {
        let files = files_below(folder)?;
        ensure!(!files.is_empty(), "{case}: no results");
        for path in files {
            if let Some(bytes) = normal::file(&path, &fs::read(&path)?, &self.work) {
                let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
                self.add(format!("{case}/{name}"), &bytes);
            }
        }
        Ok(())
    }

    /// Digests what a program printed.
    fn digest(&mut self, name: &str, printed: &[u8]) {
        let bytes = normal::printed(printed, &self.work);
        self.add(name.to_owned(), &bytes);
    }

    fn add(&mut self, name: String, bytes: &[u8]) {
        let digest = Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        self.digests.insert(name, digest);
    }
}

fn text_of(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{}: is no text", path.display()))
}

/// All files below a folder, in order.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
