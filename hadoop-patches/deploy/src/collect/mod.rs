//! `hadoptic collect`: what was recorded, from all hosts into one capture; goes on where it was broken off.
//!
//! A file that is not whole yet is called NAME.part. Whole is what has the size that the host told and the checksum that
//! the host worked out over just these bytes.

pub mod choose;
mod history;
pub mod host_digest;
mod listing;
mod settings;
mod transfer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use crate::cluster::{reports, same_names};
use crate::fleet::{Fleet, Outcome, bar};
use crate::report::{Report, size};
use crate::ssh::{Session, SshError};
pub use host_digest::DigestSettings;
use host_digest::HostDigest;
use listing::{HostListing, list, tell_what_stays};
pub use settings::{History, Settings};
use transfer::{Fetched, Source};

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
    let listed = fleet.each("list", |session| list(session, &settings.places, settings.max_bytes));
    report.hosts = reports(fleet, &listed, |listed| listed.name.clone());
    report.problems = same_names(&report.hosts);
    let with_digest = settings.digest.is_some();
    let other = listed.iter().flatten().find(|listed| holds_other(&settings.out.join(&listed.name), with_digest));
    if let Some(listed) = other {
        let (what, without) = if with_digest { ("files", "without") } else { ("a digest", "with") };
        let folder = settings.out.join(&listed.name);
        report.problems.push(format!(
            "{} holds {what} of an earlier collect {without} --digest, and a merge takes the one or the other: choose another --out",
            folder.display()
        ));
    }
    if !report.problems.is_empty() {
        return Ok(report);
    }
    let made: Option<Vec<Outcome<HostDigest>>> =
        settings.digest.as_ref().map(|digest| host_digest::make(fleet, &settings.places, digest, &listed));
    let total = match &made {
        Some(made) => made.iter().flatten().map(|made| made.size).fold(0, u64::saturating_add),
        None => listed.iter().flatten().map(HostListing::bytes).fold(0, u64::saturating_add),
    };
    let free = trace::budget::free_bytes(&settings.out).unwrap_or(u64::MAX).saturating_add(folder_bytes(&settings.out));
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
    let made: Vec<Option<&Outcome<HostDigest>>> = match &made {
        Some(made) => made.iter().map(Some).collect(),
        None => vec![None; listed.len()],
    };
    let with: Vec<_> = listed.iter().zip(&made).collect();
    let fetched = fleet.each_with("collect", &with, |session, with| match with {
        (Ok(listed), None) => fetch(session, settings, listed, &progress),
        (Ok(listed), Some(Ok(made))) => fetch_digest(session, settings, listed, made, &progress),
        // It is in the report already.
        _ => Ok(Fetched::default()),
    });
    progress.finish_and_clear();
    for (((host, listed), made), fetched) in report.hosts.iter_mut().zip(&listed).zip(&made).zip(&fetched) {
        let Ok(listed) = listed else { continue };
        match made {
            Some(made) => host_digest::tell(host, listed, made),
            None => tell_what_stays(host, listed),
        }
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

/// What lies in a capture already, bytes: it is not fetched again.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let about = entry.metadata().ok()?;
        Some(if about.is_dir() { folder_bytes(&entry.path()) } else { about.len() })
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

/// Each folder by itself: what a user does to his files breaks off no other's.
fn fetch(
    session: &Session,
    settings: &Settings,
    listed: &HostListing,
    progress: &ProgressBar,
) -> Result<Fetched, SshError> {
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

fn fetch_digest(
    session: &Session,
    settings: &Settings,
    listed: &HostListing,
    made: &HostDigest,
    progress: &ProgressBar,
) -> Result<Fetched, SshError> {
    let from = format!("{}/{}/{}", settings.places.capture_dir, listed.name, host_digest::FOLDER);
    let from = Source { folder: &from, owner: "", reader: listed.reader };
    transfer::fetch(session, from, &host_digest::files(made), &settings.out.join(&listed.name), progress)
}

/// Whether a host's folder here holds a digest, or with `with_digest` anything else.
fn holds_other(folder: &Path, with_digest: bool) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names = names.filter_map(|name| name.into_string().ok());
    names.any(|name| name.starts_with(host_digest::FILE) != with_digest)
}
