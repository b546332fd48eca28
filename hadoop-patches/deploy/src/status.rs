//! `hadoptic status`: what the agents say of themselves in their manifests, which are at most two seconds old.

use anyhow::Result;
use serde_json::json;
use trace::manifest::{DumpingdManifest, SnifferManifest};

use crate::check;
use crate::clock::{self, Offset};
use crate::cluster::{Places, reports};
use crate::facts;
use crate::fleet::Fleet;
use crate::installed::{FILE, Installed, StartedBy};
use crate::report::{HostReport, Report, size};
use crate::scripts;
use crate::ssh::{Session, SshError};
use crate::wire::Told;

/// Older manifests of a running agent say that it hangs, seconds.
const OLD_S: u64 = 15;
const TOTALS: [&str; 6] = ["packets", "lost", "owners", "spans", "used", "free"];

struct Seen {
    told: Told,
    installed: Option<Installed>,
    clock: Result<Offset, String>,
}

/// Asks all hosts.
///
/// # Errors
/// If this machine cannot do it at all.
pub fn status(fleet: &Fleet, places: &Places) -> Result<Report> {
    let seen = fleet.each("status", |session| ask(session, places));
    let mut report = Report {
        command: "status",
        heads: ["sniffer", "dumpingd"].into_iter().chain(TOTALS).chain(["clock"]).collect(),
        ..Report::default()
    };
    report.hosts = reports(fleet, &seen, |seen| seen.told.value("name").unwrap_or_default().to_owned());
    for (host, seen) in report.hosts.iter_mut().zip(&seen) {
        if let Ok(seen) = seen {
            judge(host, seen);
        }
    }
    Ok(report)
}

fn ask(session: &Session, places: &Places) -> Result<Seen, SshError> {
    let what = "ask for the state";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let variables = [("PREFIX", places.prefix.as_str()), ("CAPTURE", places.capture_dir.as_str())];
    let printed = session.run(what, &variables, &[], scripts::STATUS)?;
    let told = Told::parse("status", &printed).map_err(failed)?;
    let installed = told.file(FILE).map(|file| Installed::parse(&file.bytes)).transpose().map_err(failed)?;
    Ok(Seen { told, installed, clock: clock::offset(session).map_err(|error| error.to_string()) })
}

/// "PID for 3 min".
fn runs(told: &Told, agent: &str) -> Option<(u64, u64)> {
    let words: Vec<&str> = told.all("runs").find_map(|text| text.strip_prefix(agent))?.split_whitespace().collect();
    let now = told.numbers("now").first().copied()?;
    Some((words.first()?.parse().ok()?, now.saturating_sub(words.get(1)?.parse().ok()?)))
}

fn judge(host: &mut HostReport, seen: &Seen) {
    let told = &seen.told;
    let manifest = |agent: &str| told.file(&format!("{agent}.json")).map(|file| file.bytes.as_slice());
    let sniffer: Option<SnifferManifest> = manifest("sniffer").and_then(|text| serde_json::from_slice(text).ok());
    let dumpingd: Option<DumpingdManifest> = manifest("dumpingd").and_then(|text| serde_json::from_slice(text).ok());
    let mut cells = Vec::new();
    for agent in ["sniffer", "dumpingd"] {
        let state = runs(told, agent);
        host.fact(&format!("{agent}_runs"), state.map(|(pid, seconds)| json!({ "pid": pid, "seconds": seconds })));
        let age = told.all("age").find_map(|text| text.strip_prefix(agent)?.trim().parse::<u64>().ok());
        if let (Some((pid, _)), Some(age)) = (state, age)
            && age > OLD_S
        {
            host.problem(format!("{agent} (process {pid}) has said nothing for {age} s: is the disk full?"));
        }
        cells.push(
            state.map_or_else(|| "does not run".to_owned(), |(_, seconds)| format!("since {}", lasting(seconds))),
        );
    }
    let Some(installed) = &seen.installed else {
        host.problem("nothing is installed: hadoptic install");
        host.cells = cells;
        return;
    };
    let unended = [
        ("sniffer", sniffer.as_ref().is_some_and(|manifest| !manifest.ended)),
        ("dumpingd", dumpingd.as_ref().is_some_and(|manifest| !manifest.ended)),
    ];
    for (agent, unended) in unended {
        if runs(told, agent).is_none() && (unended || told.all("gone").any(|gone| gone == agent)) {
            let again = match installed.started_by {
                StartedBy::Daemons => "restart one of the host's daemons",
                StartedBy::Hadoptic | StartedBy::Systemd => "hadoptic start",
            };
            let log = installed.log(agent, &host.name);
            host.problem(format!("{agent} ended without being asked to: see {log}, then {again}"));
        }
    }
    let jar = told.value("jar");
    if installed.files.get(&format!("{}/lib/{}", installed.prefix, crate::versions::JAR)).map(String::as_str) != jar {
        host.problem("the jar is missing or is not the one that was installed: task JVMs may die. Run hadoptic install again at once");
    }
    let counts: Vec<_> = sniffer.iter().flat_map(|manifest| &manifest.interfaces).map(|i| i.counts).collect();
    let packets: u64 = counts.iter().map(|counts| counts.packets).sum();
    let lost: u64 = counts.iter().map(trace::manifest::PacketCounts::lost).sum();
    let owners = told.numbers("owners");
    let share = match owners[..] {
        [known, all] if all > 0 => Some(known as f64 / all as f64),
        _ => None,
    };
    let spans = told.numbers("spans").first().copied();
    let disk = told.numbers("disk");
    let (free, used) =
        (disk.first().copied().unwrap_or(0) * 1024, told.numbers("used").first().copied().unwrap_or(0) * 1024);
    cells.push(packets.to_string());
    cells.push(lost.to_string());
    cells.push(share.map_or_else(String::new, |share| format!("{:.1}%", share * 100.0)));
    cells.push(spans.map_or_else(String::new, |spans| spans.to_string()));
    cells.push(size(used));
    cells.push(size(free));
    cells.push(seen.clock.as_ref().map_or_else(|_| "?".to_owned(), |clock| check::offset(*clock)));
    host.cells = cells;
    host.fact("packets", packets);
    host.fact("lost", lost);
    host.fact("interface_drops", counts.iter().map(|counts| counts.interface_drops).sum::<u64>());
    host.fact("owners_share", share);
    let jvm_files = told.numbers("jvms");
    host.fact("jvm_files", jvm_files.first());
    host.fact("jvm_bytes", jvm_files.get(1));
    host.fact("jvm_records", spans);
    host.fact("used_bytes", used);
    host.fact("free_bytes", free);
    host.fact("clock", seen.clock.as_ref().ok());
    host.fact("tracepoint", dumpingd.as_ref().map(|manifest| manifest.tracepoint));
    host.fact("scans", dumpingd.as_ref().map(|manifest| manifest.scans));
    let jvms = facts::jvms(told);
    let without = facts::without_agent(&jvms);
    if !without.is_empty() {
        host.notes.push(format!("runs without the agent: {}", without.join(", ")));
    }
    host.fact("jvms", jvms);
    if lost > 0 {
        host.notes.push(format!("{lost} packets were lost; sniffer.json says where and when"));
    }
    let said = sniffer.iter().flat_map(|m| m.problems.iter().map(|p| format!("sniffer: {p}")));
    host.notes.extend(said.chain(dumpingd.iter().flat_map(|m| m.problems.iter().map(|p| format!("dumpingd: {p}")))));
}

fn lasting(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}
