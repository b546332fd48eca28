//! What there is to collect on a host, and what of it stays there.

use std::collections::BTreeSet;

use super::choose::{self, Folders, LeftOnHost, Limits};
use crate::answer::HostAnswer;
use crate::installed::{FILE, Installed};
use crate::places::Places;
use crate::report::{HostReport, size};
use crate::scripts;
use crate::ssh::{Reader, Session, SshError};

/// What a host lists.
#[derive(Clone, Debug)]
pub(super) struct HostListing {
    /// As the host calls itself.
    pub name: String,
    /// With whose rights its files are read.
    pub reader: Reader,
    /// What is taken.
    pub folders: Folders,
    /// What is more than is taken of one.
    pub left: LeftOnHost,
    /// Things that are no files of the agents', by folder.
    odd: Vec<(String, u64)>,
    /// Folders of which not all files were listed.
    unlisted: BTreeSet<String>,
    /// Agents that run.
    pub running: Vec<String>,
}

impl HostListing {
    /// Of what is taken.
    pub(super) fn bytes(&self) -> u64 {
        self.folders.values().flat_map(|files| files.values()).fold(0, |sum, file| sum.saturating_add(file.size))
    }
}

/// Asks a host. Of it no more than `max_bytes` are taken (0 = all, `None` = by what it was allowed to record).
pub(super) fn list(session: &Session, places: &Places, max_bytes: Option<u64>) -> Result<HostListing, SshError> {
    let what = "list what was recorded";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
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
    let limits = Limits::of(max_bytes, installed.and_then(|installed| installed.disk_limit), disk);
    let left = choose::within(&mut folders, limits);
    let odd = |text: &str| {
        let (folder, count) = text.split_once(' ')?;
        let folder = if folder == "." { "the agents' folder" } else { folder };
        Some((folder.to_owned(), count.trim().parse().ok().filter(|count| *count > 0)?))
    };
    Ok(HostListing {
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

/// Says what stays on the host, and why.
pub(super) fn tell_what_stays(host: &mut HostReport, listed: &HostListing) {
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
