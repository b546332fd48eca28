//! Which hosts: Hadoop's own `workers` (3.x) or `slaves` (1.x, 2.x) files.

use std::collections::BTreeSet;
use std::path::Path;

use trace::folder::read_named;

/// The largest file, bytes.
const MAX_FILE: u64 = 16 << 20;

/// Why a list of hosts cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HostsError {
    /// The file cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file that the error is about.
        path: String,
        /// What is wrong with it, as a clause.
        reason: String,
    },
    /// A line holds no host.
    #[error("{place}: \"{text}\" is no host name: expected one name or address a line, # begins a comment")]
    NoHost {
        /// File and line, or option.
        place: String,
        /// What stands there.
        text: String,
    },
    /// There is none.
    #[error("no hosts: name Hadoop's file of workers with --workers, or single hosts with --also")]
    None,
}

/// Reads a file of hosts as Hadoop's scripts do: a host a line, `#` begins a comment, blank lines count for nothing.
///
/// # Errors
/// If the file cannot be read, or a line holds no host; the message says which.
pub fn read(path: &Path) -> Result<Vec<String>, HostsError> {
    let unreadable = |reason: String| HostsError::Unreadable { path: path.display().to_string(), reason };
    let bytes = read_named(path, MAX_FILE).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
    parse(&text, &path.display().to_string())
}

/// The hosts of such a file's text; `place` is its name in messages.
///
/// # Errors
/// If a line holds no host.
pub fn parse(text: &str, place: &str) -> Result<Vec<String>, HostsError> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let host = line.split('#').next().unwrap_or_default().trim();
        if !host.is_empty() {
            hosts.push(host_name(host, &format!("{place}:{}", number + 1))?);
        }
    }
    Ok(hosts)
}

/// A host name or address as it may be handed to ssh: nothing that it could take for an option, or a shell for more.
///
/// # Errors
/// If it is none.
pub fn host_name(text: &str, place: &str) -> Result<String, HostsError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._:-%".contains(c);
    if text.starts_with('-') || text.len() > 253 || text.is_empty() || !text.chars().all(fits) {
        return Err(HostsError::NoHost { place: place.to_owned(), text: text.to_owned() });
    }
    Ok(text.to_owned())
}

/// All hosts in the order in which they were named, each once.
///
/// # Errors
/// If there is none, or one is no host.
pub fn all(workers: Option<&Path>, also: &[String]) -> Result<Vec<String>, HostsError> {
    let mut hosts = workers.map(read).transpose()?.unwrap_or_default();
    for host in also {
        hosts.push(host_name(host, "--also")?);
    }
    let mut seen = BTreeSet::new();
    hosts.retain(|host| seen.insert(host.clone()));
    if hosts.is_empty() { Err(HostsError::None) } else { Ok(hosts) }
}
