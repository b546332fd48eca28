//! Why a capture cannot be merged at all. What can only partly be used is a counted loss instead.

use std::io;
use std::path::PathBuf;

use crate::history::HistoryError;
use crate::volume::Volume;

/// Why there may be no packets where none was left out.
const NOTHING_RECORDED: &str = "were the interfaces recorded, and with the right filter?";

/// An error that ends the merger.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file or folder cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// What does not fit into memory can neither be written nor read again.
    #[error(
        "packets do not fit into memory, and the folder for temporary files ({folder}) does not take them: {0}; free some room \
         in it, name another one with TMPDIR, or allow more with --memory",
        folder = std::env::temp_dir().display()
    )]
    Spill(io::Error),
    /// The folder is no capture.
    #[error(
        "{path}: no host's folder in it; {}",
        if path.join("hosts.parquet").is_file() {
            "it is a trace: merger check, characterise and export and replay run take it as it is"
        } else {
            "a capture holds HOST/packets-*.hpk, HOST/sockets.jsonl, HOST/jvm-*.jsonl, or HOST/manifest.json that names files \
             of other tools"
        },
        path = path.display()
    )]
    NoHosts {
        /// The folder that the error is about.
        path: PathBuf,
    },
    /// A job history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// Nothing was recorded.
    #[error("no TCP packets in {captures}; {}", if reasons.is_empty() { NOTHING_RECORDED } else { reasons.as_str() })]
    NoPackets {
        /// The folders, for people.
        captures: String,
        /// What was left out and why, for people; "" = nothing was.
        reasons: String,
    },
    /// The captures tell of no such job.
    #[error(
        "{job}: no history of this job in the captures' job/ folders; there are {}",
        if jobs.is_empty() { "none" } else { jobs.as_str() }
    )]
    NoJob {
        /// The job, by id.
        job: String,
        /// Those that there are, for people.
        jobs: String,
    },
    /// A manifest written by a person is wrong.
    #[error("{path}: {reason}", path = path.display())]
    Manifest {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A digest that is none, or not whole.
    #[error("{path}: {reason}; make it again (merger digest CAPTURE --out DIGESTS)", path = path.display())]
    Digest {
        /// The file that the error is about.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing can be made of it, or at that place.
    #[error("{path}: {reason}", path = path.display())]
    Refused {
        /// The file or folder that the error is about.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Two hosts say that they have the same address.
    #[error(
        "hosts {first} and {second} both have address {address}: these are captures of different clusters; merge them \
         one by one"
    )]
    Clash {
        /// One host.
        first: String,
        /// The other.
        second: String,
        /// The address.
        address: String,
    },
    /// It would take more memory than it may.
    #[error(
        "this takes up to {needed} of memory, more than the {limit} that it may: {packets} packets of {connections} \
         connections with {kept_bytes} bytes of payload, {jvm_records} records of JVMs, {socket_records} of sockets; the most, \
         {part}, is for {file}; allow more with --memory {needed}, or merge fewer hosts or a shorter capture",
        packets = volume.packets,
        connections = volume.connections,
        kept_bytes = volume.kept_bytes,
        jvm_records = volume.jvm_records,
        socket_records = volume.socket_records
    )]
    Memory {
        /// What the captures hold.
        volume: Box<Volume>,
        /// What it takes, for people; `--memory` reads it.
        needed: String,
        /// What it may take.
        limit: String,
        /// The file that takes most of it.
        file: String,
        /// What that takes.
        part: String,
    },
    /// Its temporary files would take more room than there is.
    #[error(
        "this takes up to {needed} of room for temporary files, and {folder} has {free}: free some, name another folder with \
         TMPDIR, or merge fewer hosts or a shorter capture",
        folder = folder.display()
    )]
    DiskSpace {
        /// What it takes, for people.
        needed: String,
        /// What is free.
        free: String,
        /// Where temporary files lie.
        folder: PathBuf,
    },
    /// One name, different addresses.
    #[error(
        "host {host} has no address in common in {first} ({first_addresses}) and {second} ({second_addresses}): these \
         are captures of different clusters; merge them one by one"
    )]
    SameName {
        /// Host name.
        host: String,
        /// The folder that the error is about.
        first: PathBuf,
        /// Its addresses.
        first_addresses: String,
        /// Other folder.
        second: PathBuf,
        /// Its addresses.
        second_addresses: String,
    },
}

impl MergeError {
    /// For `map_err`: an input or output error of `path`.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
