//! Why a capture cannot be merged at all. What can only partly be used is a counted loss instead.

use std::io;
use std::path::PathBuf;

/// An error that ends the merger.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file or folder cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The folder is no capture.
    #[error(
        "{path}: no host's folder in it; a capture holds HOST/packets-*.hpk, HOST/sockets.jsonl, HOST/jvm-*.jsonl, or \
         HOST/manifest.json that names files of other tools",
        path = path.display()
    )]
    NoHosts {
        /// Folder.
        path: PathBuf,
    },
    /// Nothing was recorded.
    #[error("no TCP packets in {captures}; were the interfaces recorded, and with the right filter?")]
    NoPackets {
        /// The folders, for people.
        captures: String,
    },
    /// A manifest written by a person is wrong.
    #[error("{path}: {reason}", path = path.display())]
    Manifest {
        /// File.
        path: PathBuf,
        /// What is wrong.
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
    /// One name, different addresses.
    #[error(
        "host {host} has no address in common in {first} ({first_addresses}) and {second} ({second_addresses}): these \
         are captures of different clusters; merge them one by one"
    )]
    SameName {
        /// Host name.
        host: String,
        /// Folder.
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
