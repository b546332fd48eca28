//! Files from a host into a folder here: goes on where it was broken off, and believes no file that is not whole.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use crate::digest::Running;
use crate::scripts;
use crate::ssh::{Reader, Session, SshError};

/// Files and bytes asked for at once.
const BATCH_FILES: usize = 200;
const BATCH_BYTES: u64 = 64 << 20;
/// A manifest that is larger is none, bytes.
const MAX_JSON: u64 = 64 << 20;

/// A folder of a host, and how it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// Its path there.
    pub folder: &'a str,
    /// Whose files count, "" = anybody's.
    pub owner: &'a str,
    /// With whose rights.
    pub reader: Reader,
}

/// Counts of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetched {
    pub files: usize,
    pub bytes: u64,
    /// Of these, what was here already.
    pub had: u64,
    pub problems: Vec<String>,
}

impl Fetched {
    /// Takes in what came of another folder.
    pub(super) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.had = self.had.saturating_add(other.had);
        self.problems.extend(other.problems);
    }
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
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

pub(super) fn fetch(
    session: &Session,
    from: Source<'_>,
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
                fetched.had = fetched.had.saturating_add(wanted.offset);
                bytes = size.saturating_sub(wanted.offset).saturating_add(bytes);
                batch.push(wanted);
                if batch.len() >= BATCH_FILES || bytes >= BATCH_BYTES {
                    break;
                }
            }
            for (name, size, outcome) in fetch_batch(session, from, to, batch, progress)? {
                match outcome {
                    Came::Whole => {
                        fetched.files += 1;
                        fetched.bytes = fetched.bytes.saturating_add(size);
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
    from: Source<'_>,
    to: &Path,
    batch: Vec<Wanted<'_>>,
    progress: &ProgressBar,
) -> Result<Vec<(String, u64, Came)>, SshError> {
    let arguments: Vec<String> = batch
        .iter()
        .flat_map(|wanted| [wanted.name.to_owned(), wanted.offset.to_string(), wanted.size.to_string()])
        .collect();
    let mut done = Vec::new();
    let most = MAX_JSON.to_string();
    let variables = [("FOLDER", from.folder), ("OWNER", from.owner), ("MAX_JSON", &most)];
    session.stream(from.reader, "collect", &variables, &arguments, scripts::FETCH, |stream| {
        let mut stream = BufReader::with_capacity(1 << 17, stream);
        for wanted in batch {
            let (name, size) = (wanted.name.to_owned(), wanted.size);
            let outcome = take(session, &mut stream, to, wanted, progress)?;
            done.push((name, size, outcome));
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
    let fits = if is_replaced(name) { left <= MAX_JSON } else { left == size - offset };
    if !fits {
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
