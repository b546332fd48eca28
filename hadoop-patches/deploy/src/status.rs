//! `hadoptic status`: what the agents say of themselves in their manifests, which are at most two seconds old, and what was
//! found in the folders where users' JVMs write.

use std::collections::BTreeSet;

use serde_json::json;
use trace::manifest::{DumpingdManifest, SnifferManifest};

use crate::answer::HostAnswer;
use crate::check;
use crate::clock::{self, Offset};
use crate::cluster::reports;
use crate::facts;
use crate::fleet::Fleet;
use crate::installed::{FILE, Installed, StartedBy};
use crate::places::Places;
use crate::report::{HostReport, Report, size};
use crate::scripts;
use crate::ssh::{Reader, Session, SshError};

/// Older manifests of a running agent say that it hangs, seconds.
const OLD_S: u64 = 15;
const TOTALS: [&str; 7] = ["packets", "lost", "owners", "spans", "unwritten", "used", "free"];

/// What a host said of its state.
#[derive(Clone, Debug)]
pub struct HostState {
    answer: HostAnswer,
    /// What was recorded; apart, because it was looked at with fewer rights.
    records: Result<HostAnswer, String>,
    installed: Option<Installed>,
}

impl HostState {
    /// Reads the answers of a host's scripts.
    ///
    /// # Errors
    /// If the first is none; without the second the rest is known all the same.
    pub fn parse(printed: &[u8], records: Result<Vec<u8>, String>) -> Result<Self, String> {
        let answer = HostAnswer::parse("status", printed)?;
        let installed = answer.file(FILE).map(|file| Installed::parse(&file.bytes)).transpose()?;
        let records = records.and_then(|printed| HostAnswer::parse("records", &printed));
        Ok(Self { answer, records, installed })
    }
}

/// Asks all hosts.
pub fn status(fleet: &Fleet, places: &Places) -> Report {
    let seen = fleet.each("status", |session| ask(session, places));
    let mut report = Report {
        command: "status",
        heads: ["sniffer", "dumpingd"].into_iter().chain(TOTALS).chain(["clock"]).collect(),
        ..Report::default()
    };
    report.hosts = reports(fleet, &seen, |(seen, _)| seen.answer.value("name").unwrap_or_default().to_owned());
    for (host, seen) in report.hosts.iter_mut().zip(&seen) {
        if let Ok((seen, clock)) = seen {
            judge(host, seen, clock);
        }
    }
    report
}

type Clock = Result<Offset, String>;

fn ask(session: &Session, places: &Places) -> Result<(HostState, Clock), SshError> {
    let what = "ask for the state";
    let variables = [("PREFIX", places.prefix.as_str()), ("CAPTURE", places.capture_dir.as_str())];
    let printed = session.run(what, &variables, &[], scripts::STATUS)?;
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let reader = Reader::from_answer(&HostAnswer::parse("status", &printed).map_err(failed)?);
    let records = session.run_as(reader, "look at what was recorded", &variables, scripts::RECORDS);
    let seen = HostState::parse(&printed, records.map_err(|error| error.to_string())).map_err(failed)?;
    Ok((seen, clock::offset(session).map_err(|error| error.to_string())))
}

/// Process and seconds since its start.
fn runs(answer: &HostAnswer, agent: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = answer.all("runs").find_map(|text| text.strip_prefix(agent))?.split_whitespace().collect();
    let now = answer.numbers("now").first().copied()?;
    Some((words.first()?.parse().ok()?, now.saturating_sub(words.get(1)?.parse().ok()?)))
}

/// The end of an agent's log, in brackets; "" = it has said nothing. It may hold anything: nothing of it steers a terminal.
fn last_words(agent: &str, answers: [&HostAnswer; 2]) -> String {
    let of_agent =
        |text: &str| text.strip_prefix(agent).map(|words| words.replace(char::is_control, "").trim().to_owned());
    let mut words = answers.into_iter().flat_map(|answer| answer.all("log")).filter_map(of_agent);
    words.find(|words| !words.is_empty()).map_or_else(String::new, |words| format!(" ({words})"))
}

/// What a host's answers mean.
pub fn judge(host: &mut HostReport, seen: &HostState, clock: &Clock) {
    let answer = &seen.answer;
    let records = seen.records.clone().unwrap_or_default();
    if let Err(reason) = &seen.records {
        host.problem(reason.clone());
    }
    let manifest = |agent: &str| records.file(&format!("{agent}.json")).map(|file| file.bytes.as_slice());
    let sniffer: Option<SnifferManifest> = manifest("sniffer").and_then(|text| serde_json::from_slice(text).ok());
    let dumpingd: Option<DumpingdManifest> = manifest("dumpingd").and_then(|text| serde_json::from_slice(text).ok());
    for agent in ["sniffer", "dumpingd"] {
        let state = runs(answer, agent);
        host.fact(&format!("{agent}_runs"), state.map(|(pid, seconds)| json!({ "pid": pid, "seconds": seconds })));
        let age = records.all("age").find_map(|text| text.strip_prefix(agent)?.trim().parse::<u64>().ok());
        match (state, age) {
            (Some((pid, _)), Some(age)) if age > OLD_S => {
                host.problem(format!("{agent} (process {pid}) has said nothing for {age} s: is the disk full?"));
            }
            (Some((pid, seconds)), None) if seconds > OLD_S && seen.records.is_ok() => {
                host.problem(format!("{agent} (process {pid}) runs, and no file {agent}.json of its own can be read"));
            }
            _ => {}
        }
        let running = state.map(|(_, seconds)| format!("since {}", lasting(seconds)));
        host.cells.push(running.unwrap_or_else(|| "does not run".to_owned()));
    }
    let Some(installed) = &seen.installed else {
        host.problem("nothing is installed: hadoptic install");
        return;
    };
    let unended = [
        ("sniffer", sniffer.as_ref().is_some_and(|manifest| !manifest.ended)),
        ("dumpingd", dumpingd.as_ref().is_some_and(|manifest| !manifest.ended)),
    ];
    for (agent, unended) in unended {
        if runs(answer, agent).is_none() && (unended || answer.all("gone").any(|gone| gone == agent)) {
            let again = match installed.started_by {
                StartedBy::Daemons => "restart one of the host's daemons",
                StartedBy::Hadoptic | StartedBy::Systemd => "hadoptic start",
            };
            let log = installed.log(agent, &host.name);
            let words = last_words(agent, [&records, answer]);
            host.problem(format!("{agent} ended without being asked to: see {log}{words}, then {again}"));
        }
    }
    judge_jar(host, answer, installed);
    let jvm = Jvms::from_answer(&records);
    judge_jvms(host, &records, &jvm);
    let counts: Vec<_> = sniffer.iter().flat_map(|manifest| &manifest.interfaces).map(|i| i.counts).collect();
    let sum = |numbers: &dyn Fn(&trace::manifest::PacketCounts) -> u64| {
        counts.iter().map(numbers).fold(0, u64::saturating_add)
    };
    let (packets, lost) = (sum(&|counts| counts.packets), sum(&trace::manifest::PacketCounts::lost));
    let owners = records.numbers("owners");
    let share = match owners[..] {
        [known, all] if all > 0 => Some(known as f64 / all as f64),
        _ => None,
    };
    let disk = answer.numbers("disk");
    let free = disk.first().copied().unwrap_or(0).saturating_mul(1024);
    let kib = |key: &str| records.numbers(key).first().copied().unwrap_or(0).saturating_mul(1024);
    let used = kib("host_kib").saturating_add(kib("jvm_kib"));
    let sockets = dumpingd.as_ref().map_or(0, |manifest| manifest.unwritten.saturating_add(manifest.removed_records));
    let unwritten = sum(&|counts| counts.unwritten).saturating_add(jvm.unwritten).saturating_add(sockets);
    host.cells.extend([
        packets.to_string(),
        lost.to_string(),
        share.map_or_else(String::new, |share| format!("{:.1}%", share * 100.0)),
        jvm.spans.to_string(),
        unwritten.to_string(),
        size(used),
        size(free),
        clock.as_ref().map_or_else(|_| "?".to_owned(), |clock| check::offset(*clock)),
    ]);
    host.fact("packets", packets);
    host.fact("lost", lost);
    host.fact("interface_drops", sum(&|counts| counts.interface_drops));
    host.fact("owners_share", share);
    host.fact("jvm_files", jvm.files);
    host.fact("jvm_bytes", jvm.bytes);
    host.fact("jvm_records", jvm.spans);
    host.fact("used_bytes", used);
    host.fact("used_by", json!({ "agents": kib("host_kib"), "jvms": kib("jvm_kib") }));
    host.fact(
        "unwritten",
        json!({ "packets": sum(&|counts| counts.unwritten), "socket_records": sockets, "jvm_records": jvm.unwritten }),
    );
    host.fact("disk_limit", installed.disk_limit);
    host.fact("free_bytes", free);
    host.fact("clock", clock.as_ref().ok());
    host.fact("tracepoint", dumpingd.as_ref().map(|manifest| manifest.tracepoint));
    host.fact("scans", dumpingd.as_ref().map(|manifest| manifest.scans));
    let jvms = facts::jvms(answer);
    let without = facts::without_agent(&jvms);
    if !without.is_empty() {
        host.notes.push(format!("runs without the agent: {}", without.join(", ")));
    }
    host.fact("jvms", jvms);
    if lost > 0 {
        host.notes.push(format!("{lost} packets were lost; sniffer.json says where and when"));
    }
    if sockets > 0 {
        host.notes.push(format!(
            "{sockets} records of sockets were not written, or removed for newer ones: collect, or install with another --disk-limit"
        ));
    }
    let said = sniffer.iter().flat_map(|m| m.problems.iter().map(|p| format!("sniffer: {p}")));
    host.notes.extend(said.chain(dumpingd.iter().flat_map(|m| m.problems.iter().map(|p| format!("dumpingd: {p}")))));
}

fn judge_jar(host: &mut HostReport, answer: &HostAnswer, installed: &Installed) {
    let jar = answer.value("jar");
    if installed.files.get(&format!("{}/lib/{}", installed.prefix, crate::versions::JAR)).map(String::as_str) != jar {
        host.problem(
            "the jar is missing or is not the one that was installed: JVMs start without the agent (those of 1.x, and of jobs \
             that an earlier version's install set up, die). Run hadoptic install again at once",
        );
    }
}

/// What the JVMs of all users have left.
#[derive(Default)]
struct Jvms {
    files: u64,
    bytes: u64,
    spans: u64,
    unwritten: u64,
    /// Things that no JVM with the agent leaves, by folder.
    odd: Vec<(String, u64)>,
    /// Folders of which not all records were counted.
    unread: BTreeSet<String>,
}

impl Jvms {
    fn from_answer(records: &HostAnswer) -> Self {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let mut jvms = Self::default();
        // "FOLDER FILES BYTES TAKEN ENTRIES"
        for words in records.all("jvms").map(|text| text.split(' ').collect::<Vec<_>>()) {
            let files = number(words.get(1).copied());
            jvms.files = jvms.files.saturating_add(files);
            jvms.bytes = jvms.bytes.saturating_add(number(words.get(2).copied()));
            let odd = number(words.get(4).copied()).saturating_sub(files);
            if odd > 0 {
                jvms.odd.push((format!("jvm/{}", words.first().copied().unwrap_or_default()), odd));
            }
        }
        let all = |key| records.all(key).map(|text| number(text.split(' ').next_back())).fold(0, u64::saturating_add);
        jvms.spans = all("spans");
        jvms.unwritten = all("unwritten");
        jvms.unread = records.all("unread").map(|folder| format!("jvm/{folder}")).collect();
        if all("odd") > 0 {
            jvms.odd.push(("jvm".to_owned(), all("odd")));
        }
        jvms
    }
}

fn judge_jvms(host: &mut HostReport, records: &HostAnswer, jvms: &Jvms) {
    for (folder, count) in &jvms.odd {
        host.notes.push(format!(
            "{folder} holds {count} things that no JVM with the agent leaves (links, pipes, files of others, other names): look whose \
             they are; nothing reads them"
        ));
    }
    host.fact("odd", jvms.odd.iter().map(|(_, count)| *count).fold(0, u64::saturating_add));
    let unread: Vec<&str> = jvms.unread.iter().take(20).map(String::as_str).collect();
    if !unread.is_empty() {
        host.notes.push(format!(
            "records in {} are not all counted: they are more than 1 GiB, or reading them takes longer than 10 s",
            unread.join(", ")
        ));
    }
    host.fact("uncounted", unread);
    if jvms.unwritten > 0 {
        host.notes.push(format!(
            "{} records of JVMs were not written, for want of room within their limit: collect, or install with another --disk-limit",
            jvms.unwritten
        ));
    }
    let without: Vec<&str> = records.all("no_agent").take(20).collect();
    if !without.is_empty() {
        host.notes.push(format!(
            "JVMs of users {} ran without the agent because the jar was missing or damaged: no-agent in their folders says when",
            without.join(", ")
        ));
    }
    host.fact("without_jar", without);
}

fn lasting(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
