//! `hadoptic collect`: what was recorded, from all hosts into one capture; goes on where it was broken off.
//!
//! A file that is not whole yet is called NAME.part. Whole is what has the size that the host told and the checksum that
//! the host worked out over just these bytes.

pub mod choose;
mod history;
mod settings;
mod transfer;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use crate::answer::HostAnswer;
use crate::cluster::{reports, same_names};
use crate::fleet::{Fleet, bar};
use crate::installed::{FILE, Installed};
use crate::report::{HostReport, Report, size};
use crate::scripts;
use crate::ssh::{Reader, Session, SshError};
use choose::{Folders, Left, Limits};
pub use settings::{History, Settings};
use transfer::{Fetched, Source};

#[derive(Clone, Debug)]
struct Listed {
    name: String,
    reader: Reader,
    folders: Folders,
    left: Left,
    /// Things that are no files of the agents', by folder.
    odd: Vec<(String, u64)>,
    /// Folders of which not all files were listed.
    unlisted: BTreeSet<String>,
    running: Vec<String>,
}

impl Listed {
    fn bytes(&self) -> u64 {
        self.folders.values().flat_map(|files| files.values()).fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// Why nothing can be collected.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source}", path = folder.display())]
pub struct CollectError {
    folder: PathBuf,
    source: io::Error,
}

/// Collects from all hosts.
///
/// # Errors
/// If the capture's folder cannot be written.
pub fn collect(fleet: &Fleet, settings: &Settings) -> Result<Report, CollectError> {
    transfer::make_folder(&settings.out).map_err(|source| CollectError { folder: settings.out.clone(), source })?;
    let mut report =
        Report { command: "collect", heads: vec!["folder", "files", "bytes", "here already"], ..Report::default() };
    let listed = fleet.each("list", |session| list(session, settings));
    report.hosts = reports(fleet, &listed, |listed| listed.name.clone());
    report.problems = same_names(&report.hosts);
    let total = listed.iter().flatten().map(Listed::bytes).fold(0, u64::saturating_add);
    let free = trace::budget::free_bytes(&settings.out).unwrap_or(u64::MAX).saturating_add(here(&settings.out));
    if total > free {
        report.problems.push(format!(
            "{} are to be fetched, and {} are free in {}: choose another --out, or less of each host with --max-bytes",
            size(total),
            size(free),
            settings.out.display()
        ));
    }
    if !report.problems.is_empty() {
        return Ok(report);
    }
    let progress = bytes_bar(total);
    let fetched = fleet.each_with("collect", &listed, |session, listed| match listed {
        Ok(listed) => fetch(session, settings, listed, &progress),
        // It is in the report already.
        Err(_) => Ok(Fetched::default()),
    });
    progress.finish_and_clear();
    for ((host, listed), fetched) in report.hosts.iter_mut().zip(&listed).zip(&fetched) {
        let Ok(listed) = listed else { continue };
        match fetched {
            Ok(fetched) => {
                host.cells =
                    vec![listed.name.clone(), fetched.files.to_string(), size(fetched.bytes), size(fetched.had)];
                host.fact("folder", settings.out.join(&listed.name));
                host.fact("files", fetched.files);
                host.fact("bytes", fetched.bytes);
                host.fact("had_bytes", fetched.had);
                fetched.problems.iter().for_each(|problem| host.problem(problem.clone()));
            }
            Err(reason) => host.problem(format!("{reason}; run collect again: it goes on where it was broken off")),
        }
        tell_what_stays(host, listed);
    }
    if let Some(history) = &settings.history {
        history::fetch_all(fleet, settings, history, &mut report);
    } else {
        report.notes.push(
            "the jobs' histories belong into the capture's job/ folder: --job-history HOST:FOLDER or --job-history-hdfs \
             HOST:FOLDER fetches them"
                .to_owned(),
        );
    }
    Ok(report)
}

fn tell_what_stays(host: &mut HostReport, listed: &Listed) {
    if !listed.running.is_empty() {
        host.notes.push(format!(
            "{} still run: what they record from now on is not in the capture",
            listed.running.join(" and ")
        ));
    }
    for (folder, (files, bytes)) in &listed.left.folders {
        let whose =
            if folder.is_empty() { "of the agents".to_owned() } else { format!("of user {}", choose::user_of(folder)) };
        host.problem(format!(
            "{files} files {whose} ({}) are more than is fetched of one, and stay there: look at them, or say --max-bytes 0",
            size(*bytes)
        ));
    }
    for folder in &listed.unlisted {
        host.problem(format!(
            "{folder} holds more files than are listed in its time (60 s, 100,000 files): the others stay there, look whose they are"
        ));
    }
    for (folder, count) in &listed.odd {
        host.notes.push(format!(
            "{count} things in {folder} are no files of the agents' (links, pipes, second names, other names): left there"
        ));
    }
    let left = listed.left.folders.values().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    host.fact("left_bytes", left);
    host.fact("odd", listed.odd.iter().map(|(_, count)| *count).fold(0, u64::saturating_add));
}

/// What lies in a capture already, bytes: it is not fetched again.
fn here(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let about = entry.metadata().ok()?;
        Some(if about.is_dir() { here(&entry.path()) } else { about.len() })
    });
    sizes.fold(0, u64::saturating_add)
}

fn bytes_bar(total: u64) -> ProgressBar {
    let bar = bar("collect", 0);
    bar.set_length(total);
    if let Ok(style) =
        indicatif::ProgressStyle::with_template("{prefix:>9} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar
}

fn list(session: &Session, settings: &Settings) -> Result<Listed, SshError> {
    let what = "list what was recorded";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let places = &settings.places;
    let variables = [("PREFIX", places.prefix.as_str()), ("CAPTURE", places.capture_dir.as_str())];
    let runs = HostAnswer::parse("runs", &session.run(what, &variables, &[], scripts::RUNS)?).map_err(failed)?;
    let name = runs.value("name").unwrap_or_default().to_owned();
    if !choose::is_plain(&name) {
        return Err(failed(format!("its own name is \"{name}\": no folder can be called so")));
    }
    let reader = Reader::from_answer(&runs);
    let answer =
        HostAnswer::parse("list", &session.run_as(reader, what, &variables, scripts::LIST)?).map_err(failed)?;
    let mut folders = choose::listed(&answer);
    let installed = runs.file(FILE).map(|file| Installed::parse(&file.bytes)).transpose().map_err(failed)?;
    let disk = runs.numbers("disk").get(1).copied().unwrap_or(0).saturating_mul(1024);
    let limits = Limits::of(settings.max_bytes, installed.and_then(|installed| installed.disk_limit), disk);
    let left = choose::within(&mut folders, limits);
    let odd = |text: &str| {
        let (folder, count) = text.split_once(' ')?;
        let folder = if folder == "." { "the agents' folder" } else { folder };
        Some((folder.to_owned(), count.trim().parse().ok().filter(|count| *count > 0)?))
    };
    Ok(Listed {
        name,
        reader,
        left,
        folders,
        odd: answer.all("odd").filter_map(odd).collect(),
        unlisted: answer.all("unlisted").map(str::to_owned).collect(),
        running: ["sniffer", "dumpingd"]
            .into_iter()
            .filter(|agent| runs.value(agent).is_some())
            .map(str::to_owned)
            .collect(),
    })
}

/// Each folder by itself: what a user does to his files breaks off no other's.
fn fetch(session: &Session, settings: &Settings, listed: &Listed, progress: &ProgressBar) -> Result<Fetched, SshError> {
    let mut fetched = Fetched::default();
    for (folder, files) in &listed.folders {
        let of_agents = folder.is_empty();
        let from = if of_agents {
            format!("{}/{}", settings.places.capture_dir, listed.name)
        } else {
            format!("{}/{folder}", settings.places.capture_dir)
        };
        let from = Source { folder: &from, owner: choose::user_of(folder), reader: listed.reader };
        let to = settings.out.join(&listed.name).join(folder);
        let sizes = files.iter().map(|(name, file)| (name.clone(), file.size)).collect();
        match transfer::fetch(session, from, &sizes, &to, progress) {
            Ok(received) => fetched.add(received),
            Err(error) if of_agents || matches!(error, SshError::Interrupted) => return Err(error),
            Err(error) => fetched.problems.push(format!("of {folder} not all came: {error}")),
        }
    }
    Ok(fetched)
}
