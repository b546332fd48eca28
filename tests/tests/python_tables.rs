//! Tables open in the tools that people read them with: pyarrow, pandas, DuckDB, polars (tests/tables.py), and docs/tables.md is
//! what `merger tables` says. So do exports in the libraries of those for whom they are (tests/exports.py).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use hadoptic_tests::{golden, run};
use test_support::skip_if;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn stdout_of(arguments: &[&str]) -> Vec<u8> {
    let output = run("merger", arguments).unwrap();
    assert!(output.status.success(), "{}", text(&output));
    output.stdout
}

/// A Python with the libraries, kept between runs; or why there is none.
fn python() -> Result<PathBuf, String> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PYTHON.get_or_init(installed).clone()
}

fn installed() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tables-python");
    let program = folder.join("bin/python");
    let requirements = root().join("tests/tables-requirements.txt");
    let begun = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
    let begun = begun.map_err(|error| format!("no python3: {error}"))?;
    if !begun.status.success() {
        return Err(format!("no venv of Python: {}", text(&begun)));
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    let installed = Command::new(&program).args(pip).arg(requirements).output();
    let installed = installed.map_err(|error| error.to_string())?;
    // Only that nothing can be fetched is a reason to go without.
    match text(&installed) {
        _ if installed.status.success() => Ok(program),
        message if message.contains("NewConnectionError") || message.contains("No matching distribution") => {
            Err(format!("no pyarrow, pandas, DuckDB, polars from PyPI: {}", message.lines().last().unwrap_or_default()))
        }
        message => panic!("{message}"),
    }
}

#[test]
fn tables_open_everywhere_and_the_examples_of_the_page_are_right() {
    let python = python();
    skip_if!(python.as_ref().err());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("tables.json"), stdout_of(&["tables", "--json"])).unwrap();
    for capture in ["terasort", "encrypted"] {
        let (trace, out) = (path(&format!("{capture}-trace")), path(&format!("{capture}-out")));
        stdout_of(&["build", golden(capture).to_str().unwrap(), "--out", &trace]);
        stdout_of(&["characterise", &trace, "--out", &out]);
        let mut opened = Command::new(python.as_ref().unwrap());
        opened.arg(root().join("tests/tables.py")).args([&trace, &out, &path("tables.json")]);
        let opened = opened.arg(root().join("docs/tables.md")).output().unwrap();
        assert!(opened.status.success(), "{capture}: {}", text(&opened));
    }
}

/// A trace of a golden capture, and its export to a file.
fn exported(folder: &Path, capture: &str, format: &str, file: &str) -> (String, String) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (trace, out) = (path(capture), path(file));
    stdout_of(&["build", golden(capture).to_str().unwrap(), "--out", &trace]);
    stdout_of(&["export", &trace, "--to", format, "--out", &out]);
    (trace, out)
}

fn exports(arguments: &[&str]) -> Result<Output, String> {
    let python = python()?;
    Ok(Command::new(python).arg(root().join("tests/exports.py")).args(arguments).output().unwrap())
}

#[test]
fn spans_of_open_telemetry_are_those_of_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    for capture in ["terasort", "encrypted"] {
        let (trace, out) = exported(folder.path(), capture, "otlp", &format!("{capture}.otlp"));
        stdout_of(&["export", &trace, "--to", "otlp", "--out", &format!("{out}.json")]);
        let read = exports(&["otlp", &trace, &out]);
        skip_if!(read.as_ref().err());
        let read = read.unwrap();
        assert!(read.status.success(), "{capture}: {}", text(&read));
    }
}

#[test]
fn a_second_reader_finds_the_sums_of_the_tables_in_paravers_files() {
    let folder = tempfile::tempdir().unwrap();
    for capture in ["terasort", "encrypted"] {
        let (trace, out) = exported(folder.path(), capture, "paraver", &format!("{capture}.prv"));
        let read = exports(&["paraver", &trace, &out]);
        skip_if!(read.as_ref().err());
        let read = read.unwrap();
        assert!(read.status.success(), "{capture}: {}", text(&read));
    }
}

#[test]
fn the_pages_queries_of_perfettos_file_give_what_the_tables_hold() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = exported(folder.path(), "terasort", "perfetto", "trace.pftrace");
    let page = root().join("docs/exports.md");
    let read = exports(&["perfetto", &trace, &out, page.to_str().unwrap()]);
    skip_if!(read.as_ref().err());
    let read = read.unwrap();
    assert!(read.status.success(), "{}", text(&read));
}

#[test]
fn perfettos_trace_processor_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = exported(folder.path(), "terasort", "perfetto", "trace.pftrace");
    let page = root().join("docs/exports.md");
    let read = exports(&["trace-processor", &trace, &out, page.to_str().unwrap()]);
    skip_if!(read.as_ref().err());
    let read = read.unwrap();
    // The package of PyPI has no program in it, and downloads it.
    let message = text(&read);
    let why = message.lines().find(|line| line.starts_with("no trace processor: ")).unwrap_or(&message);
    skip_if!((read.status.code() == Some(77)).then_some(why));
    assert!(read.status.success(), "{}", text(&read));
}

#[test]
fn the_page_of_tables_is_what_the_program_says() {
    let page = fs::read(root().join("docs/tables.md")).unwrap();
    assert!(page == stdout_of(&["tables"]), "docs/tables.md is old: target/release/merger tables > docs/tables.md");
    let one = String::from_utf8(stdout_of(&["tables", "jobs"])).unwrap();
    assert!(one.starts_with("## jobs\n") && one.contains("| `submit_ns` | i64 |  | Submitted. |"), "{one}");
}

#[test]
fn a_table_that_there_is_not_is_told_with_those_that_there_are() {
    let message = run("merger", &["tables", "job"]).unwrap();
    assert_eq!(message.status.code(), Some(2));
    assert!(text(&message).contains("job: no such table; there are hosts, processes"), "{}", text(&message));
}
