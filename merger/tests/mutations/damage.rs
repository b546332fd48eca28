//! Ways in which a capture gets damaged: by disks, by people who put files together, by users who mean harm.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use trace::packet::{Direction, Packet, PacketReader, PacketWriter};

use crate::random::Random;

/// What was done.
pub struct Damage {
    /// For people.
    what: String,
    /// A file that must be among the losses, if nothing else was done.
    pub must_be_named: Option<String>,
}

impl fmt::Debug for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Damage {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), must_be_named: None }
    }

    fn named(self, file: impl Into<String>) -> Self {
        Self { must_be_named: Some(file.into()), ..self }
    }
}

/// Damages the capture in `folder` in some way; `others` are captures of other clusters.
pub fn some(folder: &Path, others: &[&Path], random: &mut Random) -> Damage {
    match random.below(12) {
        0 | 1 => bytes(folder, random),
        2 => place(folder, random),
        3 => hosts(folder, others, random),
        4 => kinds(folder, random),
        5 | 6 => packets(folder, random),
        7 | 8 => records(folder, random),
        9 => manifests(folder, random),
        10 => lines(folder, random),
        _ => packed(folder, random),
    }
}

/// All regular files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            found.extend(files(&path));
        } else if about.is_file() {
            found.push(path);
        }
    }
    found
}

/// A file whose name has one of these endings; any, if there is none.
fn file(folder: &Path, endings: &[&str], random: &mut Random) -> PathBuf {
    let all = files(folder);
    let fitting: Vec<PathBuf> =
        all.iter().filter(|path| endings.iter().any(|ending| shown(path).ends_with(ending))).cloned().collect();
    random.of(if fitting.is_empty() { &all } else { &fitting }).clone()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.is_dir() && !path.ends_with("job"));
    found.sort();
    found
}

/// FOLDER/NAME.
fn shown(path: &Path) -> String {
    let parts: Vec<_> = path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

/// Bytes are cut, flipped, overwritten, put in or taken out.
fn bytes(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".hpk", ".jsonl", ".json", ".jhist", ".xml"], random);
    let mut content = fs::read(&path).unwrap();
    let length = content.len() as u64;
    let at = random.below(length) as usize;
    let some = random.below(length.min(100_000) + 1) as usize;
    let end = (at + some).min(content.len());
    let what = match random.below(6) {
        0 => {
            content.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            let count = 1 + random.below(64);
            for _ in 0..count.min(length) {
                let at = random.below(length) as usize;
                content[at] ^= 1 << random.below(8);
            }
            format!("{count} bits flipped")
        }
        2 => {
            let fill = *random.of(&[0u8, 0xff, b'\n', b'{', b'9']);
            content[at..end].fill(fill);
            format!("{} bytes at {at} are {fill}", end - at)
        }
        3 => {
            content.splice(at..at, random.bytes(some as u64));
            format!("{some} bytes put in at {at}")
        }
        4 => {
            content.drain(at..end);
            format!("{} bytes taken out at {at}", end - at)
        }
        _ => {
            let again = content[at..end].to_vec();
            content.splice(at..at, again);
            format!("{} bytes doubled at {at}", end - at)
        }
    };
    fs::write(&path, content).unwrap();
    Damage::new(format!("{}: {what}", shown(&path)))
}

/// A file lies elsewhere, or twice, or under another name, or is gone.
fn place(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".hpk", ".jsonl", "sniffer.json", "dumpingd.json"], random);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let hosts = folders(folder);
    let to = random.of(&hosts).clone();
    let (what, to) = match random.below(5) {
        0 => ("moved to", to.join(&name)),
        1 => ("copied to", to.join(&name)),
        2 => ("doubled as", path.with_file_name(other_name(&name, random))),
        3 => ("moved to", {
            let user = to.join("jvm").join(random.below(3).to_string());
            fs::create_dir_all(&user).unwrap();
            user.join(&name)
        }),
        _ => {
            fs::remove_file(&path).unwrap();
            return Damage::new(format!("{} removed", shown(&path)));
        }
    };
    let stated = format!("{} {what} {}", shown(&path), shown(&to));
    if to != path {
        fs::copy(&path, &to).unwrap();
        if what == "moved to" {
            fs::remove_file(&path).unwrap();
        }
    }
    Damage::new(stated)
}

fn other_name(name: &str, random: &mut Random) -> String {
    if name.ends_with(".hpk") {
        return name.replace(".hpk", ".000001.hpk");
    }
    if name.starts_with("sockets") {
        return "sockets.000001.jsonl".into();
    }
    format!("jvm-{}-{}.jsonl", random.below(50_000), random.below(5_000_000))
}

/// A host is gone, there twice, has another's name, or comes from another cluster; or a file does.
fn hosts(folder: &Path, others: &[&Path], random: &mut Random) -> Damage {
    let all = folders(folder);
    let host = random.of(&all).clone();
    let other = random.of(others);
    let elsewhere = folders(other);
    let foreign = random.of(&elsewhere).clone();
    match random.below(6) {
        0 if all.len() > 1 => {
            fs::remove_dir_all(&host).unwrap();
            Damage::new(format!("{} removed", shown(&host)))
        }
        1 => {
            crate::copy(&host, &folder.join("x9"));
            Damage::new(format!("{} doubled as x9", shown(&host)))
        }
        2 if all.len() > 1 => {
            let swapped = all[(all.iter().position(|each| *each == host).unwrap() + 1) % all.len()].clone();
            let between = folder.join("between");
            fs::rename(&host, &between).unwrap();
            fs::rename(&swapped, &host).unwrap();
            fs::rename(&between, &swapped).unwrap();
            Damage::new(format!("{} and {} swapped", shown(&host), shown(&swapped)))
        }
        3 => {
            crate::copy(&foreign, &folder.join("x9"));
            Damage::new(format!("x9 is {}", foreign.display()))
        }
        4 => {
            let from = file(&foreign, &[".hpk", ".jsonl"], random);
            fs::copy(&from, host.join(from.file_name().unwrap())).unwrap();
            Damage::new(format!("{} comes from {}", shown(&host), from.display()))
        }
        _ => {
            let job = folder.join("job");
            for from in files(&other.join("job")) {
                fs::copy(&from, job.join(from.file_name().unwrap())).unwrap();
            }
            Damage::new(format!("job is that of {}", other.display()))
        }
    }
}

/// A file is no regular one, or holds nothing, or nothing that makes sense.
fn kinds(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".hpk", ".jsonl", "sniffer.json", "dumpingd.json", ".jhist"], random);
    fs::remove_file(&path).unwrap();
    let what = match random.below(7) {
        0 => {
            make_fifo(&path);
            "a FIFO"
        }
        1 => {
            symlink("/dev/zero", &path).unwrap();
            "a link to a device"
        }
        2 => {
            symlink(files(folder).first().unwrap(), &path).unwrap();
            "a link"
        }
        3 => {
            fs::create_dir(&path).unwrap();
            "a folder"
        }
        4 => {
            File::create(&path).unwrap().set_len(1 << 30).unwrap();
            let damage = Damage::new(format!("{} is sparse", shown(&path)));
            // 1 GiB of zeros is what the merger is given: less is not asked of it.
            return damage;
        }
        5 => {
            File::create(&path).unwrap();
            return Damage::new(format!("{} is empty", shown(&path)));
        }
        _ => {
            fs::write(&path, random.bytes(100_000)).unwrap();
            "noise"
        }
    };
    let stated = shown(&path);
    // Histories are named among the notes.
    let named = !stated.starts_with("job/");
    let damage = Damage::new(format!("{stated} is {what}"));
    if named { damage.named(stated) } else { damage }
}

/// Packets have other times, numbers or addresses, or are missing, doubled, out of order.
fn packets(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".hpk"], random);
    let Ok(mut reader) = File::open(&path)
        .map_err(|_| ())
        .and_then(|file| PacketReader::new(std::io::BufReader::new(file)).map_err(|_| ()))
    else {
        return Damage::new(format!("{} is no packet file any more", shown(&path)));
    };
    let mut all = Vec::new();
    while let Ok(Some(packet)) = reader.next_packet() {
        all.push(packet);
    }
    let first = all.first().map_or(0, |packet| packet.time_ns);
    let chance = 1 + random.below(100);
    let (kind, by, fixed) = (random.below(14), random.next(), random.extreme());
    let mut out: Vec<Packet> = Vec::with_capacity(all.len());
    for mut packet in all {
        if !random.percent(chance) {
            out.push(packet);
            continue;
        }
        match kind {
            0 => packet.time_ns = random.next(),
            1 => packet.time_ns = first + random.below(100_000_000_000),
            2 => packet.time_ns = fixed,
            3 => packet.time_ns = packet.time_ns.wrapping_add(by % 1_000_000_000_000),
            4 => packet.time_ns = first.saturating_sub(packet.time_ns - first.min(packet.time_ns)),
            5 => packet.sequence = random.extreme() as u32,
            6 => packet.acknowledgement = random.next() as u32,
            7 => packet.payload_length = random.extreme() as u32,
            8 => packet.flags = random.next() as u8,
            9 => packet.window = random.next() as u16,
            10 => packet.source.set_port(random.next() as u16),
            11 => {
                packet.direction =
                    *random.of(&[Direction::In, Direction::Out, Direction::Foreign, Direction::Loopback]);
            }
            12 => continue,
            _ => out.push(packet.clone()),
        }
        out.push(packet);
    }
    if random.percent(10) {
        out.reverse();
    }
    let header = reader.header().clone();
    let mut writer = PacketWriter::create(std::io::BufWriter::new(File::create(&path).unwrap()), &header).unwrap();
    out.iter().for_each(|packet| writer.write(packet).unwrap());
    writer.flush().unwrap();
    Damage::new(format!("{}: packets in way {kind}, {chance}%", shown(&path)))
}

/// Values of records are others'.
fn records(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".jsonl", ".jhist"], random);
    let text = fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let chance = *random.of(&[1, 10, 100]);
    let mut keys: Vec<String> = Vec::new();
    let mut out = String::with_capacity(text.len());
    let only = random.percent(50);
    for line in text.lines() {
        let changed = random.percent(chance);
        match serde_json::from_str::<Value>(line) {
            Ok(mut value) if changed => {
                let mut places = Vec::new();
                gather(&value, String::new(), &mut places);
                if keys.is_empty() && !places.is_empty() {
                    keys.push(random.of(&places).clone());
                }
                let place = if only {
                    keys.first().cloned()
                } else {
                    places.get(random.below(places.len() as u64) as usize).cloned()
                };
                if let Some(value) = place.and_then(|place| value.pointer_mut(&place)) {
                    *value = other_value(value, random);
                }
                out.push_str(&value.to_string());
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    fs::write(&path, out).unwrap();
    Damage::new(format!("{}: values of {chance}% of the records, {keys:?} {only}", shown(&path)))
}

/// Pointers to all values in a value that hold no others.
fn gather(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| gather(value, format!("{at}/{key}"), places)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(key, value)| gather(value, format!("{at}/{key}"), places));
        }
        _ => places.push(at),
    }
}

fn other_value(value: &Value, random: &mut Random) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => json!(""),
        2 => json!("9".repeat(1 + random.below(20_000) as usize)),
        3 => json!(-1),
        4 => json!(1e308),
        5 => json!([[[]]]),
        6 => json!(random.next()),
        7 if value.is_string() => json!("127.0.0.1:1"),
        _ => json!(random.extreme()),
    }
}

/// Values of manifests are others'.
fn manifests(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &["sniffer.json", "dumpingd.json", "counters.json", "_conf.xml"], random);
    let text = fs::read(&path).unwrap();
    let Ok(mut value) = serde_json::from_slice::<Value>(&text) else { return bytes(folder, random) };
    let mut places = Vec::new();
    gather(&value, String::new(), &mut places);
    let mut stated = Vec::new();
    for _ in 0..1 + random.below(5) {
        if places.is_empty() {
            break;
        }
        let place = random.of(&places).clone();
        if let Some(value) = value.pointer_mut(&place) {
            *value = other_value(value, random);
            stated.push(format!("{place} = {}", value.to_string().chars().take(30).collect::<String>()));
        }
    }
    fs::write(&path, value.to_string()).unwrap();
    Damage::new(format!("{}: {stated:?}", shown(&path)))
}

/// Lines are out of order, many times there, or another file's.
fn lines(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".jsonl", ".jhist"], random);
    let text = fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return Damage::new("no lines");
    }
    let what = match random.below(4) {
        0 => {
            for at in (1..lines.len()).rev() {
                lines.swap(at, random.below(at as u64 + 1) as usize);
            }
            "lines out of order"
        }
        1 => {
            let again = random.of(&lines).clone();
            let times = random.below(20_000);
            lines.extend(std::iter::repeat_n(again, times as usize));
            "a line many times"
        }
        2 => {
            let twice = lines.clone();
            lines.extend(twice);
            "all lines twice"
        }
        _ => {
            let other = file(folder, &[".jsonl"], random);
            let other = fs::read(other).unwrap();
            lines.extend(String::from_utf8_lossy(&other).lines().map(str::to_owned));
            "lines of another file"
        }
    };
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    Damage::new(format!("{}: {what}", shown(&path)))
}

/// A file is packed, and then damaged.
fn packed(folder: &Path, random: &mut Random) -> Damage {
    let path = file(folder, &[".hpk", ".jsonl", ".jhist", ".xml"], random);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let plain = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let to = path.with_file_name(format!("{name}.zst"));
    if random.percent(10) {
        // Small, and large once it is unpacked.
        let bomb = zstd::encode_all(std::io::Read::take(std::io::repeat(*random.of(b"0\n{")), 1 << 30), 1).unwrap();
        fs::write(&to, bomb).unwrap();
        return Damage::new(format!("{} grows to a gigabyte", shown(&to)));
    }
    let mut packed = zstd::encode_all(&plain[..], 3).unwrap();
    let length = packed.len() as u64;
    let cut = random.percent(50);
    if cut {
        packed.truncate(random.below(length) as usize);
    } else {
        let at = random.below(length) as usize;
        packed[at] ^= 1 << random.below(8);
    }
    fs::write(&to, packed).unwrap();
    let stated = shown(&to);
    let damage = Damage::new(format!("{stated}: packed, {}", if cut { "cut" } else { "a bit flipped" }));
    if cut && !stated.starts_with("job/") { damage.named(stated) } else { damage }
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
