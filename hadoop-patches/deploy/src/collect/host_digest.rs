//! `merger digest` on each host, with the rights of the agents' user: of what was recorded one file, which `collect` fetches in
//! place of all.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};

use indicatif::ProgressBar;
use serde::Deserialize;

use super::listing::{self, HostListing};
use crate::agents;
use crate::answer::HostAnswer;
use crate::cluster::{Merger, reports, same_names};
use crate::digest;
use crate::fleet::{Fleet, Outcome};
use crate::places::Places;
use crate::report::{HostReport, Report, size};
use crate::scripts;
use crate::ssh::{Session, SshError};

/// Its name, there and here.
pub(super) const FILE: &str = "digest.hdg.zst";
/// Where it lies, in the agents' folder of the host.
pub(super) const FOLDER: &str = ".digest";
/// An answer of the script that is longer is none, bytes: refused files are most of it.
const MAX_ANSWER: u64 = 64 << 20;
/// A digest is larger than what it is of by so many bytes at most.
const MORE_BYTES: u64 = 1 << 20;
/// So many of what could not be used are told of a host.
const MAX_TOLD: usize = 20;

/// How digests are made.
pub struct DigestSettings {
    /// The program that makes them.
    pub merger: Merger,
    /// What it may take of a host's memory, bytes.
    pub memory: u64,
    /// Whether hosts whose agents run are taken too.
    pub while_recording: bool,
}

/// A digest on a host.
#[derive(Clone, Debug)]
pub(super) struct HostDigest {
    /// Its size, bytes.
    pub size: u64,
    /// Whether it was made now, and not there already.
    pub now: bool,
    packets: u64,
    told: Vec<String>,
    /// Files of users that were no files, or got shorter: by folder how many, and one of their names.
    refused: BTreeMap<String, (u64, String)>,
}

/// What `merger digest --json` prints, as far as it is told.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    hosts: Vec<AnswerHost>,
    refused: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnswerHost {
    packets: u64,
    losses: Vec<String>,
}

/// Makes a digest on each host, and leaves it there.
pub fn digest(fleet: &Fleet, places: &Places, max_bytes: Option<u64>, settings: &DigestSettings) -> Report {
    let mut report =
        Report { command: "digest", heads: vec!["digest", "recorded", "packets", ""], ..Report::default() };
    let listed = fleet.each("list", |session| listing::list(session, places, max_bytes));
    report.hosts = reports(fleet, &listed, |listed| listed.name.clone());
    report.problems = same_names(&report.hosts);
    if !report.problems.is_empty() {
        return report;
    }
    let made = make(fleet, places, settings, &listed);
    for ((host, listed), made) in report.hosts.iter_mut().zip(&listed).zip(&made) {
        let Ok(listed) = listed else { continue };
        tell(host, listed, made);
        if let Ok(made) = made {
            let how = if made.now { "made" } else { "there already" };
            host.cells = vec![size(made.size), size(listed.bytes()), made.packets.to_string(), how.to_owned()];
        }
    }
    if report.ok() {
        report.notes.push("next: hadoptic collect --digest, with the same hosts".to_owned());
    }
    report
}

/// Makes them; `listed` is what there is of each host.
pub(super) fn make(
    fleet: &Fleet,
    places: &Places,
    settings: &DigestSettings,
    listed: &[Outcome<HostListing>],
) -> Vec<Outcome<HostDigest>> {
    let locks = fleet.each("lock", |session| session.lock("digest"));
    let with: Vec<_> = listed.iter().zip(&locks).collect();
    let sum = digest::of(&settings.merger.bytes);
    fleet.each_shown("digest", &with, |session, (listed, lock), bar| {
        let listed = listed.as_ref().map_err(|reason| SshError::Reported(reason.clone()))?;
        agents::locked(lock)?;
        may_be_made(listed, settings)?;
        bring(session, places, settings, &sum)?;
        run(session, places, settings, &sum, listed, bar)
    })
}

fn failed(message: impl Into<String>) -> SshError {
    SshError::Failed { what: "digest".to_owned(), message: message.into() }
}

fn may_be_made(listed: &HostListing, settings: &DigestSettings) -> Result<(), SshError> {
    if !listed.running.is_empty() && !settings.while_recording {
        return Err(failed(format!(
            "{} still run: hadoptic stop first, when the job has ended. A digest of what is there now, beside a job that runs, is \
             made with --while-recording",
            listed.running.join(" and ")
        )));
    }
    if listed.left.folders.contains_key("") {
        return Err(failed("more was recorded than --max-bytes, and a digest holds all of it: say --max-bytes 0"));
    }
    Ok(())
}

/// Brings the program where it is not there.
fn bring(session: &Session, places: &Places, settings: &DigestSettings, sum: &str) -> Result<(), SshError> {
    let what = "bring merger";
    let prefix = places.prefix.as_str();
    let variables = [("PREFIX", prefix), ("SUM", sum)];
    let answer = |script: &str, printed: &[u8]| {
        HostAnswer::parse(script, printed).map_err(|message| SshError::Failed { what: what.to_owned(), message })
    };
    let begun = answer("merger_begin", &session.run(what, &variables, &[], scripts::MERGER_BEGIN)?)?;
    if begun.value("there").is_some() {
        return Ok(());
    }
    session.put(&settings.merger.bytes, &format!("{prefix}/new/merger"))?;
    answer("merger_end", &session.run(what, &variables, &[], scripts::MERGER_END)?).map(drop)
}

fn run(
    session: &Session,
    places: &Places,
    settings: &DigestSettings,
    sum: &str,
    listed: &HostListing,
    bar: &ProgressBar,
) -> Result<HostDigest, SshError> {
    let memory = settings.memory.to_string();
    let variables = [
        ("PREFIX", places.prefix.as_str()),
        ("CAPTURE", places.capture_dir.as_str()),
        ("SUM", sum),
        ("MEMORY", &memory),
    ];
    let mut files = Vec::new();
    for (folder, inside) in &listed.folders {
        for (name, file) in inside {
            let folder = if folder.is_empty() { "." } else { folder };
            files.extend([folder.to_owned(), name.clone(), file.size.to_string()]);
        }
    }
    if files.is_empty() {
        return Err(failed("nothing was recorded here"));
    }
    // Packets are looked at once more, for an estimate.
    bar.set_length(listed.bytes());
    let mut printed = Vec::new();
    session.stream(listed.reader, "digest", &variables, &files, scripts::DIGEST, |stream| {
        let mut stream = BufReader::new(stream.take(MAX_ANSWER));
        loop {
            if session.interrupted() {
                return Err(SshError::Interrupted);
            }
            let mut line = Vec::new();
            match stream.read_until(b'\n', &mut line) {
                Ok(1..) => {}
                _ => return Ok(()),
            }
            match line.strip_prefix(b"at\t") {
                Some(bytes) => {
                    let bytes = String::from_utf8_lossy(bytes).trim().parse().unwrap_or(0);
                    bar.set_position(bytes);
                }
                None => printed.extend_from_slice(&line),
            }
        }
    })?;
    let said = HostAnswer::parse("digest", &printed).map_err(failed)?;
    let answer: Answer = said.value("answer").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let size = said.numbers("size").first().copied().ok_or_else(|| failed("the host tells no size"))?;
    if size > listed.bytes().saturating_add(MORE_BYTES) {
        return Err(failed(format!("the host tells of {size} bytes, more than was recorded: that is no digest")));
    }
    let packets = answer.hosts.iter().map(|host| host.packets).fold(0, u64::saturating_add);
    let told = answer.refused.into_iter().chain(answer.hosts.into_iter().flat_map(|host| host.losses));
    Ok(HostDigest {
        size,
        now: said.value("made") == Some("yes"),
        packets,
        told: told.take(MAX_TOLD).map(|text| plain(&text)).collect(),
        refused: refused(&said),
    })
}

fn refused(said: &HostAnswer) -> BTreeMap<String, (u64, String)> {
    let mut folders = BTreeMap::new();
    for path in said.all("refused").map(plain) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        folders.entry(folder.to_owned()).or_insert_with(|| (0, name.to_owned())).0 += 1;
    }
    folders
}

/// Words of a host, for a terminal.
fn plain(text: &str) -> String {
    text.chars().take(400).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Puts what came of a host into its report.
pub(super) fn tell(host: &mut HostReport, listed: &HostListing, made: &Outcome<HostDigest>) {
    match made {
        Ok(made) => {
            host.fact("digest_bytes", made.size);
            host.fact("capture_bytes", listed.bytes());
            host.fact("packets", made.packets);
            host.fact("made", made.now);
            if !made.told.is_empty() {
                host.notes.push(format!("merger says of the digest: {}", made.told.join("; ")));
            }
            for (folder, (files, name)) in &made.refused {
                host.problem(format!(
                    "{files} files in {folder} ({name}) are no files of their own any more, or got shorter: they are not in the digest \
                     (look who made them)"
                ));
            }
        }
        Err(reason) => host.problem(reason.clone()),
    }
    listing::tell_what_stays(host, listed);
}

/// The file to fetch, by its name, with its size.
pub(super) fn files(made: &HostDigest) -> BTreeMap<String, u64> {
    [(FILE.to_owned(), made.size)].into()
}
