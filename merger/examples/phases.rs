//! Merges captures and tells of each step how much time and memory it took: where time and memory of a long merge go.
//!
//!     cargo run --release -p merger --example phases -- CAPTURE [MEMORY]
//!
//! A line a step: seconds, seconds of CPU, of these the thread's that took most of them, resident memory when it ended, and the most in
//! it. With the allocator of `merger`. MEMORY is as for `merger build`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result};
use merger::build::Options;
use merger::built_trace::write_with;
use merger::memory;
use merger::progress::{Progress, Unit};
use trace::quantity::parse_bytes;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(unsafe_code, reason = "declares a function with the type of mimalloc.h, as merger does")]
unsafe extern "C" {
    safe fn mi_collect(force: bool);
}

/// What the process took until now.
struct Taken {
    cpu_s: f64,
    /// By thread.
    threads: BTreeMap<String, f64>,
    at: Instant,
}

struct Phases {
    running: Mutex<(String, Taken)>,
}

impl Phases {
    fn end(&self, next: &str) {
        let (Ok(mut running), Ok(now)) = (self.running.lock(), taken()) else { return };
        let wall_s = (now.at - running.1.at).as_secs_f64();
        let cpu_s = now.cpu_s - running.1.cpu_s;
        let of_thread = |(id, cpu_s): (&String, &f64)| cpu_s - running.1.threads.get(id).copied().unwrap_or(0.0);
        let busiest_s = now.threads.iter().map(of_thread).fold(0.0, f64::max);
        let (held, most) = (status("VmRSS"), status("VmHWM"));
        println!(
            "{:28} {wall_s:7.2} s {cpu_s:7.2} s CPU, {busiest_s:6.2} s of one thread, {held:6} MiB {most:6} MiB at most",
            running.0
        );
        *running = (next.to_owned(), now);
        // From here on the peak is the next step's.
        let _ = fs::write("/proc/self/clear_refs", "5");
    }
}

impl Progress for Phases {
    fn step(&self, what: &str, _: u64, _: Unit) {
        rayon::broadcast(|_| mi_collect(true));
        self.end(what);
    }

    fn done(&self, _: u64) {}
}

fn taken() -> Result<Taken> {
    let mut threads = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        threads.insert(entry.file_name().to_string_lossy().into_owned(), cpu_s(&entry.path().join("schedstat"))?);
    }
    // Threads that have ended count in the process's, in hundredths of a second.
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("no fields")?.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok(Taken { cpu_s: (ticks(11) + ticks(12)) / 100.0, threads, at: Instant::now() })
}

/// What a thread took until now.
fn cpu_s(schedstat: &std::path::Path) -> Result<f64> {
    let text = fs::read_to_string(schedstat)?;
    Ok(text.split_whitespace().next().context("no fields")?.parse::<f64>()? / 1e9)
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
    memory::take_no_huge_pages();
    rayon::ThreadPoolBuilder::new().use_current_thread().build_global()?;
    let mut arguments = std::env::args().skip(1);
    let capture = PathBuf::from(arguments.next().context("phases CAPTURE [MEMORY]")?);
    let phases = Phases { running: Mutex::new(("foreseeing".into(), taken()?)) };
    let limit = arguments.next().map(|memory| parse_bytes(&memory).map_err(anyhow::Error::msg)).transpose()?;
    let limit = limit.or_else(memory::default_limit).unwrap_or(u64::MAX);
    memory::check(std::slice::from_ref(&capture), limit, &phases)?;
    let options = Options { packet_bytes: memory::for_packets(limit), ..Options::default() };
    phases.end("start");
    let out = tempfile::tempdir()?;
    let written = write_with(&[capture], &options, &out.path().join("trace"), &phases)?;
    phases.end("");
    println!("{} packets", written.packets);
    Ok(())
}
