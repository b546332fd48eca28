//! A capture without what its packets carried, to hand on.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use trace::files::{self, Packing};
use trace::folder::{Folder, Kind};
use trace::packet::{self, PacketFileError};

use crate::capture::host::is_damage;
use crate::capture::layout::{DIGEST, FileKind, HostFolder, hosts_of, plain_name};
use crate::error::MergeError;
use crate::file_copy;

/// What dumpingd told the sniffer: addresses, ports, roles.
const PORTS: &str = trace::ports::FILE;

/// What `merger strip` did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stripped {
    /// Where the stripped capture is.
    pub out: PathBuf,
    /// Hosts.
    pub hosts: u64,
    /// Packets whose headers were copied.
    pub packets: u64,
    /// Payload bytes that were left out.
    pub payload_bytes: u64,
    /// Records that could not be read and were left out.
    pub unreadable_records: u64,
    /// Files that were left out: it is not known what is in them.
    pub left_out: Vec<PathBuf>,
    /// What was not read, each with the reason: links above all, which may lead to files that are not for others.
    pub refused: Vec<String>,
}

/// Why a capture cannot be stripped.
#[derive(Debug, thiserror::Error)]
pub enum StripError {
    /// It cannot be read as a capture, or the copy cannot be written.
    #[error(transparent)]
    Capture(#[from] MergeError),
    /// A packet file cannot be read on, or is of a newer version.
    #[error("{path}: {source}", path = path.display())]
    Packets {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong with it.
        source: PacketFileError,
    },
    /// A manifest that tells how much payload there is cannot be read.
    #[error("{path}: {source}; without it, nothing would say that the payload was left out", path = path.display())]
    Manifest {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The folder is taken.
    #[error("{path}: is there already and not empty; choose another folder", path = path.display())]
    Occupied {
        /// The folder that the error is about.
        path: PathBuf,
    },
    /// Packets that are packed away.
    #[error("{path}: holds payload in its own form; strip the capture, and make digests of what is left", path = path.display())]
    Digest {
        /// The digest.
        path: PathBuf,
    },
    /// Packets of other tools.
    #[error(
        "{path}: names captures of other tools, which are not rewritten here; cut their packets with editcap -s 66, and \
         copy the rest",
        path = path.display()
    )]
    Foreign {
        /// Manifest.
        path: PathBuf,
    },
}

/// Copies a capture to the folder `out` without payload. What is known to hold none is copied as it is (sockets, JVMs'
/// records, manifests, job history); packet files lose theirs, record by record; any other file is left out. Files stay
/// as readable or private as they were. Below `capture` no link is followed, and only regular files are read.
///
/// # Errors
/// If `capture` is none, names captures of other tools, or something cannot be read or written. What was written until
/// then stays.
pub fn strip(capture: &Path, out: &Path) -> Result<Stripped, StripError> {
    let (hosts, skipped) = hosts_of(capture)?;
    let single = hosts.first().is_some_and(|host| host.folder.path() == capture);
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(StripError::Occupied { path: out.into() });
    }
    if let Some(host) = hosts.iter().find(|host| host.find(&FileKind::ForeignManifest).is_some()) {
        return Err(StripError::Foreign { path: host.folder.path().join("manifest.json") });
    }
    if let Some(host) = hosts.iter().find(|host| host.find(&FileKind::Digest).is_some()) {
        return Err(StripError::Digest { path: host.folder.path().join(DIGEST) });
    }
    let mut stripped = Stripped { out: out.to_owned(), hosts: hosts.len() as u64, ..Stripped::default() };
    stripped.refused.extend(skipped.iter().map(|(name, reason)| format!("{}: {reason}", capture.join(name).display())));
    for host in &hosts {
        let to = if single { out.to_owned() } else { out.join(&host.name) };
        of_host(host, &to, &mut stripped)?;
    }
    if !single {
        let root = Folder::open(capture).map_err(MergeError::io(capture))?;
        of_folder(&root, out, |name| name == "truth.json", &mut stripped)?;
        if root.kind("job").map_err(MergeError::io(capture))? == Some(Kind::Folder) {
            let job = root.folder("job").map_err(MergeError::io(capture.join("job")))?;
            of_folder(&job, &out.join("job"), |_| true, &mut stripped)?;
        }
    }
    Ok(stripped)
}

/// Copies the files of a host to the folder `out`.
fn of_host(host: &HostFolder, out: &Path, stripped: &mut Stripped) -> Result<(), StripError> {
    fs::create_dir_all(out).map_err(MergeError::io(out))?;
    stripped.refused.extend(host.left_out.iter().map(|(what, reason)| format!("{what}: {reason}")));
    for file in &host.files {
        let from = host.folder.path().join(file.path());
        let known = match file.kind {
            FileKind::Unknown if file.name == PORTS => true,
            FileKind::Unknown => false,
            _ => true,
        };
        if !known {
            match host.folder.kind(&file.name) {
                Ok(Some(Kind::Folder)) => {}
                _ => stripped.left_out.push(from),
            }
            continue;
        }
        let input = match host.open(file) {
            Ok(input) => input,
            Err(error) if is_damage(&error) => {
                stripped.refused.push(format!("{}: {error}", from.display()));
                continue;
            }
            Err(error) => return Err(MergeError::io(from)(error).into()),
        };
        let to = out.join(file.path());
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(MergeError::io(folder))?;
        }
        match file.kind {
            FileKind::Packets(_) => packets(input, &from, &to, stripped)?,
            FileKind::SnifferManifest => manifest(input, &from, &to)?,
            _ => file_copy::copy(input, &to).map_err(MergeError::io(to))?,
        }
    }
    Ok(())
}

/// Copies those files of a folder that are `known` to hold nothing of the packets.
fn of_folder(
    folder: &Folder,
    out: &Path,
    known: impl Fn(&str) -> bool,
    stripped: &mut Stripped,
) -> Result<(), StripError> {
    fs::create_dir_all(out).map_err(MergeError::io(out))?;
    for name in folder.names().map_err(MergeError::io(folder.path()))?.names {
        let from = folder.path().join(&name);
        match folder.kind(&name).map_err(MergeError::io(&from))? {
            Some(Kind::File) if known(&name) => {
                let input = folder.file(&name).map_err(MergeError::io(&from))?;
                let to = out.join(&name);
                file_copy::copy(input, &to).map_err(MergeError::io(to))?;
            }
            Some(Kind::File | Kind::Other) => stripped.left_out.push(from),
            // Links in the outer folder were told of already.
            Some(Kind::Link) if !stripped.refused.iter().any(|link| link.starts_with(&*from.to_string_lossy())) => {
                stripped.refused.push(format!("{}: it is a link", from.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Copies a packet file; one that was packed with zstd is packed again, any other one is not, and loses its ending.
fn packets(mut input: File, from: &Path, to: &Path, stripped: &mut Stripped) -> Result<(), StripError> {
    let mut head = [0; 6];
    let got = io::Read::read(&mut input, &mut head).map_err(MergeError::io(from))?;
    let packed = Packing::of(&head[..got]) == Packing::Zstd;
    io::Seek::rewind(&mut input).map_err(MergeError::io(from))?;
    let to = if packed { to.to_owned() } else { to.with_file_name(plain_name(&file_name(to))) };
    let file = BufWriter::new(file_copy::create(&input, &to).map_err(MergeError::io(&to))?);
    let mut input = files::unpacked(input).map_err(MergeError::io(from))?;
    let done = if packed {
        let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(MergeError::io(&to))?;
        let done = packet::strip(&mut input, &mut encoder);
        encoder.finish().and_then(|mut file| file.flush()).map_err(MergeError::io(&to))?;
        done
    } else {
        packet::strip(&mut input, file)
    };
    let done = match done {
        Ok(done) => done,
        Err(source) if is_only_begun(&source) => {
            fs::remove_file(&to).map_err(MergeError::io(&to))?;
            stripped.refused.push(format!("{}: {source}", from.display()));
            return Ok(());
        }
        Err(source) => return Err(StripError::Packets { path: from.to_owned(), source }),
    };
    stripped.packets += done.packets;
    stripped.payload_bytes += done.payload_bytes;
    let cut_off = done.losses.truncated_bytes > 0 || done.losses.broken_off;
    stripped.unreadable_records += done.losses.malformed_records + u64::from(cut_off);
    Ok(())
}

/// Whether a file is one that an agent left which was killed before it had written a header.
fn is_only_begun(error: &PacketFileError) -> bool {
    match error {
        PacketFileError::NotAPacketFile { found } => packet::MAGIC.starts_with(found),
        PacketFileError::Header { .. } => true,
        _ => false,
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Copies the sniffer's manifest; it says from now on that no payload was kept.
fn manifest(input: File, from: &Path, to: &Path) -> Result<(), StripError> {
    let unreadable = |source| StripError::Manifest { path: from.to_owned(), source };
    let mut file = file_copy::create(&input, to).map_err(MergeError::io(to))?;
    let text = files::read_whole(input).map_err(MergeError::io(from))?;
    let mut manifest: Value = serde_json::from_slice(&text).map_err(unreadable)?;
    forget_payload(&mut manifest);
    let text = serde_json::to_vec_pretty(&manifest).map_err(unreadable)?;
    file.write_all(&text).map_err(MergeError::io(to))?;
    Ok(())
}

fn forget_payload(manifest: &mut Value) {
    for key in ["payload_bytes", "full_payload_bytes"] {
        if let Some(kept) = manifest.get_mut(key) {
            *kept = Value::from(0);
        }
    }
    for run in manifest.get_mut("earlier_runs").and_then(Value::as_array_mut).into_iter().flatten() {
        forget_payload(run);
    }
}
