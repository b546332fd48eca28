//! What the tests across parts share: where the golden captures and the programs are, and how to make captures worse.

pub mod digests;
pub mod interruption;
pub mod job_matrix;
pub mod lab_network;
pub mod lab_runs;
pub mod options;
pub mod prediction;
pub mod process;
pub mod structure;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use trace::files;
use trace::packet::{PacketReader, PacketWriter};

/// The folder of a golden capture.
#[must_use]
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// An experiment file of those that `make demo` compares.
#[must_use]
pub fn experiment_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../replay/experiments").join(name)
}

/// A program of this workspace, built in the profile of the running test.
///
/// # Errors
/// If it is not there: then the test was not run through the workspace's test command.
pub fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().context("a program lies in a folder")?;
    // Tests lie in target/PROFILE/deps, programs in target/PROFILE.
    let folder = if folder.ends_with("deps") { folder.parent().context("deps lies in a folder")? } else { folder };
    let path = folder.join(name);
    ensure!(path.exists(), "{} is not built: run `cargo build --release -p {name}`", path.display());
    Ok(path)
}

/// Runs a program of this workspace to its end.
///
/// # Errors
/// If it is not there or cannot be started.
pub fn run(name: &str, arguments: &[&str]) -> Result<Output> {
    Command::new(program(name)?).args(arguments).output().with_context(|| format!("starting {name}"))
}

/// Runs a program with `--json` and reads its answer, whatever its exit code, as long as it is 0 or 1.
///
/// # Errors
/// If it could not run (exit code 2 or a signal) or prints no JSON.
pub fn run_json(name: &str, arguments: &[&str]) -> Result<Value> {
    let mut all = arguments.to_vec();
    all.push("--json");
    let output = run(name, &all)?;
    let code = output.status.code();
    ensure!(
        matches!(code, Some(0 | 1)),
        "{name} {all:?} ended with {code:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).with_context(|| format!("{name} {all:?} printed no JSON object"))
}

/// Copies a capture as it would be without the Java agent.
///
/// # Errors
/// If something cannot be read or written.
pub fn copy_without_jvms(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if path.is_symlink() {
            continue; // The agent's locks, which point to nothing.
        }
        if path.is_dir() {
            copy_without_jvms(&path, &to.join(name))?;
        } else if !name.to_string_lossy().starts_with("jvm-") {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// The clock of a host, as a wrong clock would show true time: offset at `anchor_ns` and drift from there.
#[derive(Clone, Copy, Debug)]
pub struct WrongClock {
    /// True time at which the clock is off by exactly `offset_ns`, nanoseconds since the epoch.
    pub anchor_ns: u64,
    /// Nanoseconds that it is ahead at the anchor.
    pub offset_ns: i64,
    /// Parts per billion that it is fast.
    pub drift_ppb: i64,
}

impl WrongClock {
    /// What the clock shows at `true_ns`.
    #[must_use]
    pub fn show(&self, true_ns: u64) -> u64 {
        let passed = i128::from(true_ns) - i128::from(self.anchor_ns);
        let shown =
            i128::from(true_ns) + i128::from(self.offset_ns) + passed * i128::from(self.drift_ppb) / 1_000_000_000;
        u64::try_from(shown).unwrap_or(0)
    }
}

/// Copies a host's folder as if its clock had been wrong: packets, sockets, JVM records, manifests.
///
/// # Errors
/// If something cannot be read or written.
pub fn copy_host_with_clock(from: &Path, to: &Path, clock: WrongClock) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let plain = name.strip_suffix(".zst").unwrap_or(&name).to_owned();
        let target = to.join(&plain);
        if plain.ends_with(".hpk") {
            copy_packets(&path, &target, clock)?;
        } else if plain.ends_with(".jsonl") {
            copy_json_lines(&path, &target, clock)?;
        } else if plain.ends_with(".json") {
            let mut value: Value = serde_json::from_reader(files::open(&path)?)?;
            shift_times(&mut value, clock);
            fs::write(&target, serde_json::to_vec(&value)?)?;
        } else {
            fs::copy(&path, to.join(&name))?;
        }
    }
    Ok(())
}

fn copy_packets(from: &Path, to: &Path, clock: WrongClock) -> Result<()> {
    let mut reader = PacketReader::new(files::open(from)?)?;
    let mut header = reader.header().clone();
    header.started_ns = clock.show(header.started_ns);
    let mut writer = PacketWriter::create(BufWriter::new(File::create(to)?), &header)?;
    while let Some(mut packet) = reader.next_packet()? {
        packet.time_ns = clock.show(packet.time_ns);
        writer.write(&packet)?;
    }
    writer.flush()?;
    Ok(())
}

fn copy_json_lines(from: &Path, to: &Path, clock: WrongClock) -> Result<()> {
    let (records, _) = files::read_json_lines::<Value>(from)?;
    let mut out = BufWriter::new(File::create(to)?);
    for mut record in records {
        shift_times(&mut record, clock);
        serde_json::to_writer(&mut out, &record)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Nanoseconds since the epoch are the only integers of our records above 10^18 (September 2001).
fn shift_times(value: &mut Value, clock: WrongClock) {
    match value {
        Value::Number(number) => {
            if let Some(time_ns) =
                number.as_u64().filter(|n| (1_000_000_000_000_000_000..2_500_000_000_000_000_000).contains(n))
            {
                *value = Value::from(clock.show(time_ns));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| shift_times(value, clock)),
        Value::Object(fields) => fields.values_mut().for_each(|value| shift_times(value, clock)),
        _ => {}
    }
}
