//! `hadoptic collect`: what was recorded, from all hosts into one capture; goes on where it was broken off.
//!
//! A file that is not whole yet is called NAME.part. Whole is what has the size that the host told and the checksum that
//! the host worked out over just these bytes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use indicatif::ProgressBar;

use crate::cluster::{Places, reports, same_names};
use crate::digest::Running;
use crate::fleet::{Fleet, bar};
use crate::quote;
use crate::report::{Report, size};
use crate::scripts;
use crate::ssh::{Session, SshError};
use crate::wire::Told;

/// Files and bytes asked for at once.
const BATCH_FILES: usize = 200;
const BATCH_BYTES: u64 = 64 << 20;

/// What is to be collected.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it lies.
    pub places: Places,
    /// The capture.
    pub out: PathBuf,
    /// Where the histories of jobs lie.
    pub history: Option<History>,
}

/// Where the histories of jobs lie.
#[derive(Clone, Debug)]
pub struct History {
    /// The host that has them, or from which HDFS is read.
    pub host: String,
    /// A folder there.
    pub folder: String,
    /// Whether it is one of HDFS.
    pub in_hdfs: bool,
    /// Only jobs whose files' names hold this, "" = all.
    pub job: String,
    /// The program `hadoop` on that host.
    pub hadoop: String,
    /// As whom HDFS is read, "" = root.
    pub user: String,
}

#[derive(Clone, Debug)]
struct Listed {
    name: String,
    files: BTreeMap<String, u64>,
    odd: u64,
    running: Vec<String>,
}

/// Counts of a host.
#[derive(Clone, Debug, Default)]
struct Fetched {
    files: usize,
    bytes: u64,
    /// Of these, what was here already.
    had: u64,
    problems: Vec<String>,
}

/// Collects from all hosts.
///
/// # Errors
/// If the capture's folder cannot be written.
pub fn collect(fleet: &Fleet, settings: &Settings) -> Result<Report> {
    make_folder(&settings.out).with_context(|| format!("{}", settings.out.display()))?;
    let mut report =
        Report { command: "collect", heads: vec!["folder", "files", "bytes", "here already"], ..Report::default() };
    let listed = fleet.each("list", |session| list(session, &settings.places));
    report.hosts = reports(fleet, &listed, |listed| listed.name.clone());
    report.problems = same_names(&report.hosts);
    if !report.problems.is_empty() {
        return Ok(report);
    }
    let total: u64 = listed.iter().flatten().flat_map(|listed| listed.files.values()).sum();
    let progress = bytes_bar(total);
    let fetched = fleet.each_with("collect", &listed, |session, listed| match listed {
        Ok(listed) => {
            let from = format!("{}/{}", settings.places.capture_dir, listed.name);
            fetch(session, &from, &listed.files, &settings.out.join(&listed.name), &progress)
        }
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
        if !listed.running.is_empty() {
            host.notes.push(format!(
                "{} still run: what they record from now on is not in the capture",
                listed.running.join(" and ")
            ));
        }
        if listed.odd > 0 {
            host.notes.push(format!("{} files have names that no agent gives: left there", listed.odd));
        }
    }
    if let Some(history) = &settings.history {
        histories(fleet, settings, history, &mut report);
    } else {
        report.notes.push(
            "the jobs' histories belong into the capture's job/ folder: --job-history HOST:FOLDER or --job-history-hdfs \
             HOST:FOLDER fetches them"
                .to_owned(),
        );
    }
    Ok(report)
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
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

fn list(session: &Session, places: &Places) -> Result<Listed, SshError> {
    let what = "list what was recorded";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let variables = [("PREFIX", places.prefix.as_str()), ("CAPTURE", places.capture_dir.as_str())];
    let printed = session.run(what, &variables, &[], scripts::LIST)?;
    let told = Told::parse("list", &printed).map_err(failed)?;
    let name = told.value("name").unwrap_or_default().to_owned();
    if !is_plain(&name) {
        return Err(failed(format!("its own name is \"{name}\": no folder can be called so")));
    }
    Ok(Listed {
        name,
        files: found(&told),
        odd: told.numbers("odd").first().copied().unwrap_or(0),
        running: told.all("runs").map(str::to_owned).collect(),
    })
}

fn found(told: &Told) -> BTreeMap<String, u64> {
    let line = |text: &str| {
        let (size, name) = text.split_once(' ')?;
        is_plain(name).then(|| Some((name.to_owned(), size.parse().ok()?)))?
    };
    told.all("found").filter_map(line).collect()
}

/// A name that stays in the folder where it is put, whatever a host says.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '-'])
        && name.len() <= 200
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._@:+%-".contains(c))
}

/// Whether a file is replaced as a whole by agents that run, and never grows: it comes as it is by then.
fn is_replaced(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "json")
}

/// A file that is to come.
struct Wanted<'a> {
    name: &'a str,
    size: u64,
    offset: u64,
    so_far: Running,
}

fn fetch(
    session: &Session,
    from: &str,
    files: &BTreeMap<String, u64>,
    to: &Path,
    progress: &ProgressBar,
) -> Result<Fetched, SshError> {
    let local = |path: &Path| {
        let what = path.display().to_string();
        move |source| SshError::Local { what, source }
    };
    make_folder(to).map_err(local(to))?;
    let mut fetched = Fetched::default();
    let mut again: BTreeMap<String, u64> = BTreeMap::new();
    for afresh in [false, true] {
        let files = if afresh { std::mem::take(&mut again) } else { files.clone() };
        let mut rest: Vec<(&String, &u64)> = files.iter().collect();
        while !rest.is_empty() {
            let mut batch = Vec::new();
            let mut bytes = 0;
            while let Some((name, size)) = rest.pop() {
                let wanted = begin(to, name, *size, afresh).map_err(local(&to.join(name)))?;
                progress.inc(wanted.offset);
                fetched.had += wanted.offset;
                bytes += size - wanted.offset;
                batch.push(wanted);
                if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                    break;
                }
            }
            for (name, size, came) in fetch_batch(session, from, to, batch, progress)? {
                match came {
                    Came::Whole => {
                        fetched.files += 1;
                        fetched.bytes += size;
                    }
                    Came::Other if !afresh => drop(again.insert(name, size)),
                    Came::Other => fetched.problems.push(format!(
                        "{name} came twice with another checksum than the host's: is a disk or memory bad there or here?"
                    )),
                    Came::Refused => fetched.problems.push(format!(
                        "{name} is no file of its own, or got shorter: left there (look who made it)"
                    )),
                }
            }
        }
    }
    Ok(fetched)
}

fn part(to: &Path, name: &str) -> PathBuf {
    to.join(format!("{name}.part"))
}

/// How much of a file is here, and its checksum so far.
fn begin<'a>(to: &Path, name: &'a str, size: u64, afresh: bool) -> io::Result<Wanted<'a>> {
    let part = part(to, name);
    let whole = to.join(name);
    if afresh || is_replaced(name) {
        let _ = fs::remove_file(&part);
    } else if !part.exists() && whole.exists() {
        // Collected before; the host may have more of it by now. Kept under its name if it is still the same.
        fs::rename(&whole, &part)?;
    }
    let mut offset = fs::metadata(&part).map(|about| about.len()).unwrap_or(0);
    if offset > size {
        fs::remove_file(&part)?;
        offset = 0;
    }
    let mut so_far = Running::default();
    if offset > 0 {
        let mut file = File::open(&part)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => so_far.add(&buffer[..n]),
            }
        }
    }
    Ok(Wanted { name, size, offset, so_far })
}

enum Came {
    Whole,
    Other,
    Refused,
}

fn fetch_batch(
    session: &Session,
    from: &str,
    to: &Path,
    batch: Vec<Wanted<'_>>,
    progress: &ProgressBar,
) -> Result<Vec<(String, u64, Came)>, SshError> {
    let arguments: Vec<String> = batch
        .iter()
        .flat_map(|wanted| [wanted.name.to_owned(), wanted.offset.to_string(), wanted.size.to_string()])
        .collect();
    let mut done = Vec::new();
    session.stream("collect", &[("FOLDER", from)], &arguments, scripts::FETCH, |stream| {
        let mut stream = BufReader::with_capacity(1 << 17, stream);
        for wanted in batch {
            let (name, size) = (wanted.name.to_owned(), wanted.size);
            let came = take(session, &mut stream, to, wanted, progress)?;
            done.push((name, size, came));
        }
        if line(&mut stream)? != "end\tfetch" {
            return Err(broken());
        }
        Ok(())
    })?;
    Ok(done)
}

fn broken() -> SshError {
    SshError::Failed { what: "collect".to_owned(), message: "the connection broke".to_owned() }
}

fn line(stream: &mut impl BufRead) -> Result<String, SshError> {
    let mut line = Vec::new();
    let limited = stream.take(4096).read_until(b'\n', &mut line);
    match limited {
        Ok(_) if line.ends_with(b"\n") => Ok(String::from_utf8_lossy(&line[..line.len() - 1]).into_owned()),
        _ => Err(broken()),
    }
}

fn take(
    session: &Session,
    stream: &mut impl BufRead,
    to: &Path,
    wanted: Wanted<'_>,
    progress: &ProgressBar,
) -> Result<Came, SshError> {
    let Wanted { name, size, offset, mut so_far } = wanted;
    let head = line(stream)?;
    if head == format!("refused\t{name}") {
        return Ok(Came::Refused);
    }
    let announced = head.strip_prefix("bytes\t").and_then(|rest| rest.strip_suffix(&format!(" {name}")));
    let mut left: u64 = announced.and_then(|bytes| bytes.parse().ok()).ok_or_else(broken)?;
    if left != size - offset && !is_replaced(name) {
        return Err(broken());
    }
    let path = part(to, name);
    let local = |source| SshError::Local { what: path.display().to_string(), source };
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(local)?;
    while left > 0 {
        if session.interrupted() {
            return Err(SshError::Interrupted);
        }
        let buffer = stream.fill_buf().map_err(|_| broken())?;
        if buffer.is_empty() {
            return Err(broken());
        }
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        file.write_all(&buffer[..n]).map_err(local)?;
        so_far.add(&buffer[..n]);
        stream.consume(n);
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        left -= n;
        progress.inc(n);
    }
    if !line(stream)?.is_empty() {
        return Err(broken());
    }
    let sum = line(stream)?;
    if sum != format!("sum\t{}", so_far.end()) {
        return Ok(Came::Other);
    }
    file.sync_all().map_err(local)?;
    fs::rename(&path, to.join(name)).map_err(local)?;
    Ok(Came::Whole)
}

/// Fetches the histories of jobs into the capture's `job/`.
fn histories(fleet: &Fleet, settings: &Settings, history: &History, report: &mut Report) {
    if !fleet.hosts.iter().any(|(host, _)| *host == history.host) {
        report
            .problems
            .push(format!("--job-history names {}, which is none of the hosts: add it with --also", history.host));
        return;
    }
    let outcomes = fleet.each("history", |session| {
        if session.host == history.host { fetch_history(session, settings, history).map(Some) } else { Ok(None) }
    });
    for outcome in outcomes {
        match outcome {
            Ok(Some(fetched)) if fetched.files == 0 => {
                report.problems.push(format!("{} on {} holds no job's files", history.folder, history.host));
            }
            Ok(Some(fetched)) => {
                report.notes.push(format!(
                    "{} files of jobs are in {}",
                    fetched.files,
                    settings.out.join("job").display()
                ));
                report.problems.extend(fetched.problems);
            }
            Err(reason) if !report.hosts.iter().any(|host| host.problems.contains(&reason)) => {
                report.problems.push(format!("the jobs' histories: {reason}"));
            }
            _ => {}
        }
    }
}

fn fetch_history(session: &Session, settings: &Settings, history: &History) -> Result<Fetched, SshError> {
    let what = "find the jobs' histories";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let variables = [
        ("KIND", if history.in_hdfs { "hdfs" } else { "local" }),
        ("FROM", history.folder.as_str()),
        ("HADOOP", history.hadoop.as_str()),
        ("OWNER", history.user.as_str()),
        ("JOB", history.job.as_str()),
    ];
    let printed = session.run(what, &variables, &[], scripts::HISTORY)?;
    let told = Told::parse("history", &printed).map_err(failed)?;
    let folder = told.value("folder").unwrap_or_default().to_owned();
    if !folder.contains("/hadoptic-history.") {
        return Err(failed("the host named no folder".to_owned()));
    }
    let fetched = fetch(session, &folder, &found(&told), &settings.out.join("job"), &ProgressBar::hidden());
    let _ = session.run("tidy up", &[], &[], &format!("rm -rf -- {}", quote::word(&folder)));
    fetched
}
