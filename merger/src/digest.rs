//! The first pass over a capture by itself: of each host's folder a digest, from which a merge makes the same trace.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;
use trace::folder::{Folder, Kind};

use crate::capture::agents;
use crate::capture::digest::{self, DigestError};
use crate::capture::layout::{DIGEST, FileKind, HostFolder, hosts_of};
use crate::capture::reading::Reading;
use crate::error::MergeError;
use crate::file_copy;
use crate::history;
use crate::left_out::{self, LEFT_OUT};
use crate::progress::{Progress, Unit};

/// The folder of job histories in a capture.
const JOB: &str = "job";

/// What `merger digest` did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Digests {
    /// The folder of the digests.
    pub out: PathBuf,
    /// Each host, by name.
    pub hosts: Vec<HostDigest>,
    /// Files of jobs that were copied.
    pub job_files: u64,
    /// What was left out, each with the reason.
    pub refused: Vec<String>,
}

/// A host's digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostDigest {
    /// The host.
    pub host: String,
    /// The digest.
    pub file: PathBuf,
    /// Packets in it.
    pub packets: u64,
    /// Bytes of the files that it was made of.
    pub capture_bytes: u64,
    /// Bytes of the digest.
    pub digest_bytes: u64,
    /// What of the host's files could not be used, in words; it stands in the digest as well.
    pub losses: Vec<String>,
}

/// Writes a digest of each host of `capture` to `out`/HOST, and copies the histories of jobs to `out`/job: a capture for
/// [`merge`](crate::build::merge). Packets take no more than `packet_bytes` of memory.
///
/// # Errors
/// If `capture` is none or holds digests already, or `out` holds something, or something cannot be read or written.
pub fn digest(capture: &Path, out: &Path, packet_bytes: u64, progress: &impl Progress) -> Result<Digests, MergeError> {
    let (hosts, skipped) = hosts_of(capture)?;
    if let Some(host) = hosts.iter().find(|host| host.find(&FileKind::Digest).is_some()) {
        let path = host.folder.path().join(DIGEST);
        return Err(MergeError::Refused { path, reason: "it is a digest already".into() });
    }
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        let reason = "is there already and not empty; choose another folder".into();
        return Err(MergeError::Refused { path: out.into(), reason });
    }
    progress.step("making digests", hosts.iter().map(HostFolder::bytes).sum(), Unit::Bytes);
    let done = |bytes: u64| progress.done(bytes);
    let limit = packet_bytes / hosts.len().max(1) as u64;
    let of_hosts: Result<Vec<HostDigest>, MergeError> = hosts
        .par_iter()
        .map(|folder| of_host(folder, out, &Reading { number: 0, limit, keeps_all: true, done: &done }))
        .collect();
    let mut digests = Digests { out: out.into(), hosts: of_hosts?, ..Digests::default() };
    let refused = skipped.iter().map(|(name, reason)| format!("{}: {reason}", capture.join(name).display()));
    digests.refused.extend(refused);
    left_out::write(out, &skipped).map_err(MergeError::io(out.join(LEFT_OUT)))?;
    if hosts.first().is_some_and(|host| host.folder.path() != capture) {
        copy_jobs(capture, out, &mut digests)?;
    }
    Ok(digests)
}

fn of_host(folder: &HostFolder, out: &Path, reading: &Reading<'_>) -> Result<HostDigest, MergeError> {
    let host = agents::read_folder(folder, reading)?;
    let to = out.join(&folder.name);
    fs::create_dir_all(&to).map_err(MergeError::io(&to))?;
    let file = to.join(DIGEST);
    // It appears whole or not at all.
    let mut part = tempfile::NamedTempFile::new_in(&to).map_err(MergeError::io(&to))?;
    match digest::write(&host, part.as_file_mut()) {
        Ok(()) => {}
        Err(DigestError::Io(error)) => return Err(MergeError::io(&file)(error)),
        Err(error) => return Err(MergeError::Refused { path: file, reason: error.to_string() }),
    }
    part.flush().map_err(MergeError::io(&file))?;
    let part = part.persist_noclobber(&file).map_err(|error| MergeError::io(&file)(error.error))?;
    let digest_bytes = part.metadata().map_err(MergeError::io(&file))?.len();
    Ok(HostDigest {
        host: host.name,
        file,
        packets: host.packets.count,
        capture_bytes: folder.all_bytes(),
        digest_bytes,
        losses: host.losses.iter().map(ToString::to_string).collect(),
    })
}

fn copy_jobs(capture: &Path, out: &Path, digests: &mut Digests) -> Result<(), MergeError> {
    let root = Folder::open(capture).map_err(MergeError::io(capture))?;
    let from = capture.join(JOB);
    if root.kind(JOB).map_err(MergeError::io(&from))? != Some(Kind::Folder) {
        return Ok(());
    }
    let (job, to) = (root.folder(JOB).map_err(MergeError::io(&from))?, out.join(JOB));
    fs::create_dir_all(&to).map_err(MergeError::io(&to))?;
    let mut reasons = left_out::read(&job).map_err(MergeError::io(from.join(LEFT_OUT)))?;
    for name in job.names().map_err(MergeError::io(&from))?.names {
        let (path, copy) = (from.join(&name), to.join(&name));
        if name == LEFT_OUT {
            continue;
        }
        let kind = job.kind(&name).map_err(MergeError::io(&path))?;
        let is_of_job = history::is_of_job(&name);
        match job.file(&name) {
            Ok(input) => {
                file_copy::copy(input, &copy).map_err(MergeError::io(&copy))?;
                digests.job_files += 1;
            }
            Err(error) if kind == Some(Kind::File) => return Err(MergeError::io(&path)(error)),
            Err(error) if is_of_job || kind == Some(Kind::Link) => {
                digests.refused.push(format!("{}: {error}", path.display()));
                reasons.extend(is_of_job.then(|| (name, error.to_string())));
            }
            Err(_) => {}
        }
    }
    left_out::write(&to, &reasons).map_err(MergeError::io(to.join(LEFT_OUT)))
}
