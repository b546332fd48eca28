//! Merges captures and tells of each step how much CPU time and memory it took: where time and memory of a long merge go.
//!
//!     cargo run --release -p merger --example phases -- CAPTURE [MEMORY]
//!
//! A line a step: seconds of CPU, seconds, resident memory when it ended, and the most so far. MEMORY is as for `merger build`.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};
use merger::build::Options;
use merger::built_trace::write_with;
use merger::progress::{Progress, Unit};
use trace::quantity::parse_bytes;

/// What the process took until now.
#[derive(Clone, Copy)]
struct Taken {
    cpu_s: f64,
    at: Instant,
}

struct Phases {
    running: Mutex<(String, Taken)>,
}

impl Phases {
    fn end(&self, next: &str) {
        let (Ok(mut running), Ok(now)) = (self.running.lock(), taken()) else { return };
        let (name, before) = std::mem::replace(&mut *running, (next.to_owned(), now));
        let (held, most) = (status("VmRSS"), status("VmHWM"));
        let (cpu_s, wall_s) = (now.cpu_s - before.cpu_s, (now.at - before.at).as_secs_f64());
        println!("{name:22} {cpu_s:7.2} s CPU {wall_s:7.2} s {held:6} MiB {most:6} MiB at most");
    }
}

impl Progress for Phases {
    fn step(&self, what: &str, _: u64, _: Unit) {
        self.end(what);
    }

    fn done(&self, _: u64) {}
}

fn taken() -> Result<Taken> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("no fields")?.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    // User and system time, in hundredths of a second.
    Ok(Taken { cpu_s: (ticks(11) + ticks(12)) / 100.0, at: Instant::now() })
}

/// A line of the process's status, MiB.
fn status(key: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn main() -> Result<()> {
    // As merger does.
    rayon::ThreadPoolBuilder::new().use_current_thread().build_global()?;
    let mut arguments = std::env::args().skip(1);
    let capture = PathBuf::from(arguments.next().context("phases CAPTURE [MEMORY]")?);
    let mut options = Options::default();
    if let Some(memory) = arguments.next() {
        options.packet_bytes = parse_bytes(&memory).map_err(anyhow::Error::msg)? / 8;
    }
    let phases = Phases { running: Mutex::new(("start".into(), taken()?)) };
    let out = tempfile::tempdir()?;
    let written = write_with(&[capture], &options, &out.path().join("trace"), &phases)?;
    phases.end("");
    println!("{} packets", written.packets);
    Ok(())
}
