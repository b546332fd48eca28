//! A capture without what its packets carried, to hand on.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use trace::files::{self, Packing};
use trace::packet;

use crate::capture::{host_folders, names_in, plain_name};
use crate::error::MergeError;

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
}

/// Why a capture cannot be stripped.
#[derive(Debug, thiserror::Error)]
pub enum StripError {
    /// It cannot be read as a capture, or the copy cannot be written.
    #[error(transparent)]
    Capture(#[from] MergeError),
    /// A packet file is none.
    #[error("{path}: {source}", path = path.display())]
    Packets {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        source: packet::PacketFileError,
    },
    /// A manifest that tells how much payload there is cannot be read.
    #[error("{path}: {source}; without it, nothing would say that the payload was left out", path = path.display())]
    Manifest {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The folder is taken.
    #[error("{path}: is there already and not empty; choose another folder", path = path.display())]
    Occupied {
        /// Folder.
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
/// as readable or private as they were.
///
/// # Errors
/// If `capture` is none, names captures of other tools, or something cannot be read or written. What was written until
/// then stays.
pub fn strip(capture: &Path, out: &Path) -> Result<Stripped, StripError> {
    let mut folders = host_folders(capture)?;
    let single = folders.first().is_some_and(|folder| folder == capture);
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(StripError::Occupied { path: out.into() });
    }
    if let Some(folder) = folders.iter().find(|folder| folder.join("manifest.json").exists()) {
        return Err(StripError::Foreign { path: folder.join("manifest.json") });
    }
    let mut stripped = Stripped { out: out.to_owned(), hosts: folders.len() as u64, ..Stripped::default() };
    if !single {
        folders.push(capture.to_owned());
        folders.push(capture.join("job"));
    }
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let below = folder.strip_prefix(capture).unwrap_or(Path::new(""));
        let to = out.join(below);
        fs::create_dir_all(&to).map_err(MergeError::io(&to))?;
        let in_job = below.as_os_str() == "job";
        for name in names_in(folder)? {
            let (from, to) = (folder.join(&name), to.join(&name));
            if from.is_dir() {
                continue;
            }
            match plain_name(&name) {
                plain if plain.starts_with("packets-") && plain.ends_with(".hpk") => {
                    packets(&from, &to, &mut stripped)?;
                }
                "sniffer.json" => manifest(&from, &to)?,
                plain if in_job || is_known(plain) => {
                    fs::copy(&from, &to).map_err(MergeError::io(&from))?;
                }
                _ => stripped.left_out.push(from),
            }
        }
    }
    Ok(stripped)
}

/// Files of agents and labs that hold nothing of the packets.
fn is_known(plain: &str) -> bool {
    matches!(plain, "sockets.jsonl" | "dumpingd.json" | "ports.json" | "truth.json")
        || (plain.starts_with("jvm-") && plain.ends_with(".jsonl"))
}

/// Copies a packet file; one that was packed with zstd is packed again, any other one is not, and loses its ending.
fn packets(from: &Path, to: &Path, stripped: &mut Stripped) -> Result<(), StripError> {
    let mut input = files::open(from).map_err(MergeError::io(from))?;
    let packed = packing(from)? == Packing::Zstd;
    let to = if packed { to.to_owned() } else { to.with_file_name(plain_name(&file_name(to))) };
    let file = File::create(&to).map_err(MergeError::io(&to))?;
    let rights = fs::metadata(from).map_err(MergeError::io(from))?.permissions();
    file.set_permissions(rights).map_err(MergeError::io(&to))?;
    let file = BufWriter::new(file);
    let wrong = |source| StripError::Packets { path: from.to_owned(), source };
    let done = if packed {
        let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(MergeError::io(&to))?;
        let done = packet::strip(&mut input, &mut encoder).map_err(wrong)?;
        encoder.finish().and_then(|mut file| file.flush()).map_err(MergeError::io(&to))?;
        done
    } else {
        packet::strip(&mut input, file).map_err(wrong)?
    };
    stripped.packets += done.packets;
    stripped.payload_bytes += done.payload_bytes;
    stripped.unreadable_records += done.losses.malformed_records + u64::from(done.losses.truncated_bytes > 0);
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn packing(path: &Path) -> Result<Packing, MergeError> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(MergeError::io(path))?;
    io::Read::read_to_end(&mut io::Read::take(file, 8), &mut head).map_err(MergeError::io(path))?;
    Ok(Packing::of(&head))
}

/// Copies the sniffer's manifest; it says from now on that no payload was kept.
fn manifest(from: &Path, to: &Path) -> Result<(), StripError> {
    let text = fs::read(from).map_err(MergeError::io(from))?;
    let unreadable = |source| StripError::Manifest { path: from.to_owned(), source };
    let mut manifest: Value = serde_json::from_slice(&text).map_err(unreadable)?;
    forget_payload(&mut manifest);
    let text = serde_json::to_vec_pretty(&manifest).map_err(unreadable)?;
    fs::copy(from, to).map_err(MergeError::io(from))?;
    fs::write(to, text).map_err(MergeError::io(to))?;
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
