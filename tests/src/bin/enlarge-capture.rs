//! Makes a capture longer, so that size can be measured: the same again and again, each time later, from other ports, by other
//! processes, as other jobs.

use std::fs::{self, File};
use std::io::{BufRead as _, BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::Value;
use trace::files;
use trace::packet::{PacketReader, PacketWriter};

const PERIOD_S: u64 = 200;
const FIRST_PORT: u16 = 32_768;
const PORTS: u32 = 28_232;
const PORT_STEP: u32 = 7_919;
const PID_STEP: u64 = 100_000;
/// Fields of records that are times.
const TIMES: [&str; 9] = ["t", "received", "begin", "end", "responded", "sent", "t0", "t1", "boot_ns"];

/// Makes a capture longer: the same again and again, each time later, from other ports, by other processes, as other jobs.
///
/// Each round begins 200 s after the one before. Ports of outgoing connections (32768 to 60999) are moved on by 7919, process ids by 100,000, job
/// ids by one.
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  enlarge-capture tests/golden/terasort /tmp/long 145   # 100 million packets")]
struct Options {
    /// Folder of the capture.
    capture: PathBuf,
    /// Folder of the longer one, which is made; its files are plain.
    out: PathBuf,
    /// How often it is told.
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3_000))]
    times: u64,
    /// Hosts whose files are wanted [default: all].
    #[arg(value_name = "HOST")]
    only: Vec<String>,
}

fn main() -> Result<()> {
    let Options { capture, out, times, only } = Options::parse();
    let cluster = cluster_of(&capture.join("job"))?;
    let rounds: Vec<Round> = (0..times).map(|number| Round { number, cluster: cluster.clone() }).collect();
    for folder in sorted(&capture)? {
        let name = name_of(&folder)?;
        if name == "job" {
            job(&folder, &out.join("job"), &rounds)?;
        } else if folder.is_dir() && (only.is_empty() || only.contains(&name)) {
            host(&folder, &out.join(&name), &rounds)?;
        }
    }
    Ok(())
}

/// One time that the capture is told.
struct Round {
    number: u64,
    /// The start time of the resource manager, which is in all ids of jobs.
    cluster: String,
}

impl Round {
    fn time_ns(&self, t: u64) -> u64 {
        if t == 0 { 0 } else { t + self.number * PERIOD_S * 1_000_000_000 }
    }

    fn port(&self, port: u16) -> u16 {
        match port.checked_sub(FIRST_PORT).map(u32::from) {
            Some(above) if above < PORTS => {
                let moved = (u64::from(above) + self.number * u64::from(PORT_STEP)) % u64::from(PORTS);
                FIRST_PORT + moved as u16
            }
            _ => port,
        }
    }

    fn address(&self, address: SocketAddr) -> SocketAddr {
        SocketAddr::new(address.ip(), self.port(address.port()))
    }

    fn ids(&self, text: &str) -> String {
        text.replace(&self.cluster, &self.cluster_then())
    }

    fn cluster_then(&self) -> String {
        let then = self.cluster.parse::<u64>().unwrap_or_default() + self.number;
        format!("{then:0width$}", width = self.cluster.len())
    }

    /// Ids and times of milliseconds in the text of a history.
    fn history(&self, text: &str) -> String {
        let mut moved = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let digits = rest[begin..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len() - begin);
            let (before, number) = (&rest[..begin], &rest[begin..begin + digits]);
            moved += before;
            let is_time = digits == self.cluster.len() && number[..4] == self.cluster[..4] && !before.ends_with('_');
            match number.parse::<u64>() {
                Ok(ms) if is_time => moved += &(ms + self.number * PERIOD_S * 1_000).to_string(),
                _ => moved += number,
            }
            rest = &rest[begin + digits..];
        }
        self.ids(&(moved + rest))
    }

    fn record(&self, record: &mut Value) {
        let number = |value: &mut Value, to: &dyn Fn(u64) -> u64| {
            if let Some(before) = value.as_u64() {
                *value = to(before).into();
            }
        };
        for time in TIMES {
            if let Some(value) = record.get_mut(time) {
                number(value, &|t| self.time_ns(t));
            }
        }
        if let Some(value) = record.get_mut("pid") {
            number(value, &|pid| self.pid(pid));
        }
        if let Some(value) = record.get_mut("start_ticks") {
            number(value, &|ticks| ticks + self.number * PERIOD_S * 100);
        }
        for end in ["local", "remote"] {
            if let Some(value) = record.get_mut(end)
                && let Some(Ok(address)) = value.as_str().map(str::parse::<SocketAddr>)
            {
                *value = self.address(address).to_string().into();
            }
        }
    }

    fn pid(&self, pid: u64) -> u64 {
        pid + self.number * PID_STEP
    }
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> Result<String> {
    Ok(path.file_name().context("a file has a name")?.to_string_lossy().into_owned())
}

fn cluster_of(job: &Path) -> Result<String> {
    let names = sorted(job)?.iter().map(|path| name_of(path)).collect::<Result<Vec<_>>>()?;
    let id = names.iter().find_map(|name| name.strip_prefix("job_")?.split_once('_'));
    Ok(id.context("no history of a job in the capture")?.0.to_owned())
}

fn job(from: &Path, to: &Path, rounds: &[Round]) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut counters = serde_json::Map::new();
    for path in sorted(from)? {
        let (name, text) = (name_of(&path)?, fs::read_to_string(&path)?);
        for round in rounds {
            if name == "counters.json" {
                let of_jobs: serde_json::Map<String, Value> = serde_json::from_str(&round.ids(&text))?;
                counters.extend(of_jobs);
            } else {
                fs::write(to.join(round.history(&name)), round.history(&text))?;
            }
        }
    }
    fs::write(to.join("counters.json"), serde_json::to_vec(&counters)?)?;
    Ok(())
}

fn host(from: &Path, to: &Path, rounds: &[Round]) -> Result<()> {
    fs::create_dir_all(to)?;
    for path in sorted(from)? {
        let name = name_of(&path)?;
        let plain = name.strip_suffix(".zst").unwrap_or(&name);
        if plain.ends_with(".hpk") {
            packets(&path, &to.join(plain), rounds)?;
        } else if let Some((pid, ticks)) = process_of(plain) {
            for round in rounds {
                let name = format!("jvm-{}-{}.jsonl", round.pid(pid), ticks + round.number * PERIOD_S * 100);
                lines(&path, &to.join(name), std::slice::from_ref(round))?;
            }
        } else if plain.ends_with(".jsonl") {
            lines(&path, &to.join(plain), rounds)?;
        } else if plain.ends_with(".json") {
            manifest(&path, &to.join(plain), rounds)?;
        }
    }
    Ok(())
}

fn process_of(name: &str) -> Option<(u64, u64)> {
    let (pid, ticks) = name.strip_prefix("jvm-")?.strip_suffix(".jsonl")?.split_once('-')?;
    Some((pid.parse().ok()?, ticks.parse().ok()?))
}

fn packets(from: &Path, to: &Path, rounds: &[Round]) -> Result<()> {
    let mut reader = PacketReader::new(files::open(from)?)?;
    let mut writer = PacketWriter::create(BufWriter::with_capacity(1 << 20, File::create(to)?), reader.header())?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet()? {
        packets.push(packet);
    }
    for round in rounds {
        let (before, then) = (round.cluster.as_bytes(), round.cluster_then().into_bytes());
        for packet in &packets {
            let mut packet = packet.clone();
            packet.time_ns = round.time_ns(packet.time_ns);
            packet.source = round.address(packet.source);
            packet.destination = round.address(packet.destination);
            for at in 0..packet.payload.len() {
                if packet.payload[at..].starts_with(before) {
                    packet.payload[at..at + then.len()].copy_from_slice(&then);
                }
            }
            writer.write(&packet)?;
        }
    }
    Ok(writer.flush()?)
}

fn lines(from: &Path, to: &Path, rounds: &[Round]) -> Result<()> {
    let mut out = BufWriter::new(File::create(to)?);
    let text = files::open(from)?.lines().collect::<Result<Vec<_>, _>>()?;
    for round in rounds {
        for line in &text {
            let mut record: Value = serde_json::from_str(&round.ids(line))?;
            // A file has one header.
            if round.number == rounds[0].number || record["k"] != "header" {
                round.record(&mut record);
                writeln!(out, "{}", as_agents_write(record)?)?;
            }
        }
    }
    Ok(out.flush()?)
}

/// A record as a line whose kind comes first, by which readers know what follows.
fn as_agents_write(mut record: Value) -> Result<String> {
    let kind = record.as_object_mut().and_then(|fields| fields.remove("k")).context("a record without a kind")?;
    let others = serde_json::to_string(&record)?;
    Ok(format!("{{\"k\":{kind},{}", others.strip_prefix('{').context("a record is an object")?))
}

fn manifest(from: &Path, to: &Path, rounds: &[Round]) -> Result<()> {
    let mut manifest: Value = serde_json::from_slice(&fs::read(from)?)?;
    let last = rounds.last().context("there is a round")?;
    if let Some(ended) = manifest["ended_ns"].as_u64() {
        manifest["ended_ns"] = last.time_ns(ended).into();
    }
    let times = rounds.len() as u64;
    if let Some(scans) = manifest["scans"].as_u64() {
        manifest["scans"] = (scans * times).into();
    }
    for interface in manifest["interfaces"].as_array_mut().into_iter().flatten() {
        if let Some(packets) = interface["packets"].as_u64() {
            interface["packets"] = (packets * times).into();
        }
    }
    Ok(fs::write(to, serde_json::to_vec_pretty(&manifest)?)?)
}
