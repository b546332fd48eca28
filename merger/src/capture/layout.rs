//! Which file of a capture is what: the hosts' folders, and in them the files of our agents.
//!
//! ```text
//! CAPTURE/HOST/  sniffer.json packets-*.hpk dumpingd.json sockets*.jsonl manifest.json jvm-*.jsonl
//! CAPTURE/HOST/  digest.hdg.zst       in place of all that
//! CAPTURE/HOST/jvm/  jvm-*.jsonl  UID/jvm-*.jsonl
//! ```
//!
//! JVMs belong to users, who may put anything into their folders: below the folder that a person named no link is followed,
//! and only regular files are opened.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use trace::folder::{Folder, Kind};

use crate::error::MergeError;
use crate::left_out::{self, LEFT_OUT, Reasons};

/// A host's digest.
pub(crate) const DIGEST: &str = "digest.hdg.zst";
/// The folder of JVM records in a host's folder.
const JVM_FOLDER: &str = "jvm";
/// JVM records of a host that are read, at most: a JVM for each second of a day.
const MAX_JVM_FILES: usize = 86_400;

/// What a file is, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// `packets-IFACE.hpk`, `packets-IFACE.NNNNNN.hpk`: of this interface.
    Packets(String),
    /// `sockets.NNNNNN.jsonl`, and `sockets.jsonl`, which comes last (`u64::MAX`).
    Sockets(u64),
    /// `jvm-PID-STARTTICKS.jsonl`.
    Jvm {
        /// Process id, as the JVM sees itself.
        pid: u32,
        /// Start time, clock ticks since boot.
        start_ticks: u64,
        /// The user in whose folder it lies, if it lies in one.
        user: Option<u32>,
    },
    /// `sniffer.json`.
    SnifferManifest,
    /// `dumpingd.json`.
    DumpingdManifest,
    /// `manifest.json`: captures of other tools.
    ForeignManifest,
    /// `digest.hdg.zst`: what `merger digest` made of all that.
    Digest,
    /// Anything else.
    Unknown,
}

impl FileKind {
    fn of(name: &str, user: Option<u32>) -> Self {
        let plain = plain_name(name);
        match name {
            "sniffer.json" => return Self::SnifferManifest,
            "dumpingd.json" => return Self::DumpingdManifest,
            "manifest.json" => return Self::ForeignManifest,
            DIGEST => return Self::Digest,
            _ => {}
        }
        if let Some(interface) = interface_of(plain) {
            Self::Packets(interface.to_owned())
        } else if let Some(number) = sockets_number(plain) {
            Self::Sockets(number)
        } else if let Some((pid, start_ticks)) = jvm_name(plain) {
            Self::Jvm { pid, start_ticks, user }
        } else {
            Self::Unknown
        }
    }
}

/// A file of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostFile {
    /// What it is.
    pub kind: FileKind,
    /// Its name.
    pub name: String,
    /// The folders in which it lies, from the host's folder on.
    pub below: Vec<String>,
    /// Whether `below` begins beside the host's folder instead.
    beside: bool,
}

impl HostFile {
    /// Its path from the host's folder on.
    pub fn path(&self) -> PathBuf {
        self.below.iter().chain([&self.name]).collect()
    }
}

/// Names and why they were left out.
pub(crate) type LeftOut = Vec<(String, String)>;

/// The folder of a host.
#[derive(Debug)]
pub(crate) struct HostFolder {
    /// The host's name: that of the folder.
    pub name: String,
    /// The folder.
    pub folder: Folder,
    /// The folder in which it lies, where JVM records lie there: a host's agents leave them so.
    outer: Option<Folder>,
    /// Its files, in the order in which they are to be read.
    pub files: Vec<HostFile>,
    /// What was left out, and why: HOST/NAME and a reason.
    pub left_out: LeftOut,
}

impl HostFolder {
    /// Opens one of its files.
    ///
    /// # Errors
    /// If it is no regular file any more, or cannot be read.
    pub fn open(&self, file: &HostFile) -> io::Result<File> {
        let root = self.outer.as_ref().filter(|_| file.beside).unwrap_or(&self.folder);
        let Some((first, deeper)) = file.below.split_first() else { return root.file(&file.name) };
        let mut folder = root.folder(first)?;
        for name in deeper {
            folder = folder.folder(name)?;
        }
        let input = folder.file(&file.name)?;
        if matches!(file.kind, FileKind::Jvm { user: Some(_), .. }) {
            let about = input.metadata()?;
            if about.uid() != folder.owner()? || about.nlink() != 1 {
                let reason = "it has several names, or another owner than its folder";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
        }
        Ok(input)
    }

    /// Bytes of its packet files and of what other tools wrote, as they lie on the disk.
    pub fn bytes(&self) -> u64 {
        let counted = self
            .files
            .iter()
            .filter(|file| matches!(file.kind, FileKind::Packets(_) | FileKind::Digest | FileKind::Unknown));
        counted.filter_map(|file| Some(self.open(file).ok()?.metadata().ok()?.len())).sum()
    }

    /// Bytes of all its files, as they lie on the disk.
    pub fn all_bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| Some(self.open(file).ok()?.metadata().ok()?.len())).sum()
    }

    /// How a file is called in what people read: HOST/NAME.
    pub fn shown(&self, file: &HostFile) -> String {
        format!("{}/{}", self.name, file.path().display())
    }

    /// The first file of a kind.
    pub fn find(&self, kind: &FileKind) -> Option<&HostFile> {
        self.files.iter().find(|file| file.kind == *kind)
    }

    fn of(name: String, folder: Folder) -> Result<Self, MergeError> {
        let mut host = Self { name, folder, outer: None, files: Vec::new(), left_out: Vec::new() };
        let names = host.folder.names().map_err(MergeError::io(host.folder.path()))?;
        host.skipped("", names.left_out);
        host.take(&names.names, &[], None, false);
        if names.names.iter().any(|name| name == JVM_FOLDER) {
            host.take_jvms(false);
        }
        host.files.sort_by_cached_key(|file| {
            let number = if let FileKind::Sockets(number) = file.kind { number } else { 0 };
            (file.below.clone(), number, file.name.clone())
        });
        Ok(host)
    }

    /// Takes the files with these names in a folder; one that is packed beside itself counts once.
    fn take(&mut self, names: &[String], below: &[String], user: Option<u32>, beside: bool) {
        for name in names {
            let plain = plain_name(name);
            if plain != name && names.binary_search_by(|other| other.as_str().cmp(plain)).is_ok() {
                self.left_out.push((self.display_path(below, name), format!("{plain} is there too")));
                continue;
            }
            let kind = FileKind::of(name, user);
            if below.is_empty() || matches!(kind, FileKind::Jvm { .. }) {
                self.files.push(HostFile { kind, name: name.clone(), below: below.to_vec(), beside });
            }
        }
    }

    /// Takes the JVM records in `jvm/` and in the users' folders in it.
    fn take_jvms(&mut self, beside: bool) {
        let root = self.outer.as_ref().filter(|_| beside).unwrap_or(&self.folder);
        let mut found = Vec::new();
        let mut left_out = Vec::new();
        match root.folder(JVM_FOLDER).and_then(|jvms| Ok((jvms.names()?, jvms))) {
            Err(error) => left_out.push((vec![], JVM_FOLDER.to_owned(), unusable(&error))),
            Ok((names, jvms)) => {
                for name in &names.names {
                    let below = vec![JVM_FOLDER.to_owned(), name.clone()];
                    match jvms.kind(name) {
                        Ok(Some(Kind::Folder)) => match jvms.folder(name).and_then(|folder| folder.names()) {
                            Ok(names) => found.push((names, below, user_of(name))),
                            Err(error) => left_out.push((vec![JVM_FOLDER.into()], name.clone(), unusable(&error))),
                        },
                        Ok(Some(Kind::Link)) => {
                            left_out.push((vec![JVM_FOLDER.into()], name.clone(), "it is a link".into()));
                        }
                        _ => {}
                    }
                }
                found.push((names, vec![JVM_FOLDER.to_owned()], None));
            }
        }
        for (below, name, reason) in left_out {
            self.left_out.push((self.display_path(&below, &name), reason));
        }
        for (names, below, user) in found {
            self.skipped(&below.join("/"), names.left_out);
            let before = self.files.len();
            self.take(&names.names, &below, user, beside);
            let jvms = self.files.iter().filter(|file| matches!(file.kind, FileKind::Jvm { .. })).count();
            let too_many = jvms.saturating_sub(MAX_JVM_FILES).min(self.files.len() - before);
            if too_many > 0 {
                self.files.truncate(self.files.len() - too_many);
                let reason = format!("{too_many} JVM files beyond the {MAX_JVM_FILES} that are read of a host");
                self.left_out.push((self.display_path(&[], &below.join("/")), reason));
            }
        }
    }

    fn skipped(&mut self, below: &str, names: u64) {
        if names > 0 {
            self.left_out.push((self.display_path(&[], below), format!("{names} names that are no text, or too many")));
        }
    }

    fn display_path(&self, below: &[String], name: &str) -> String {
        let path: PathBuf = below.iter().map(String::as_str).chain([name]).collect();
        format!("{}/{}", self.name, path.display())
    }
}

fn unusable(error: &io::Error) -> String {
    match error.kind() {
        // What a link gives where a folder is wanted.
        io::ErrorKind::NotADirectory => "it is no folder, or a link to one".to_owned(),
        _ => error.to_string(),
    }
}

/// The user of a folder `UID` or `UID.N`.
fn user_of(name: &str) -> Option<u32> {
    name.split_once('.').map_or(name, |(uid, _)| uid).parse().ok()
}

/// The hosts' folders of a capture, by name: its folders, or itself if it is one host's. Says also what was left out.
pub(crate) fn hosts_of(capture: &Path) -> Result<(Vec<HostFolder>, Reasons), MergeError> {
    let root = Folder::open(capture).map_err(MergeError::io(capture))?;
    let names = root.names().map_err(MergeError::io(capture))?.names;
    if holds_records(&names) {
        return Ok((vec![HostFolder::of(name_of(capture)?, root)?], Reasons::new()));
    }
    let mut hosts = Vec::new();
    let mut left_out = left_out::read(&root).map_err(MergeError::io(capture.join(LEFT_OUT)))?;
    for name in &names {
        match root.kind(name) {
            Ok(Some(Kind::Folder)) => {
                let inner = root.folder(name).map_err(MergeError::io(capture.join(name)))?;
                let inside = inner.names().map_err(MergeError::io(inner.path()))?.names;
                if holds_records(&inside) || (name != JVM_FOLDER && inside.iter().any(|name| name == JVM_FOLDER)) {
                    hosts.push(HostFolder::of(name.clone(), inner)?);
                }
            }
            Ok(Some(Kind::Link)) => {
                left_out.insert(name.clone(), "it is a link; name the folder itself".to_owned());
            }
            _ => {}
        }
    }
    let has_jvms = names.iter().any(|name| name == JVM_FOLDER);
    if hosts.is_empty() && has_jvms {
        return Ok((vec![HostFolder::of(name_of(capture)?, root)?], left_out));
    }
    if let [host] = hosts.as_mut_slice()
        && has_jvms
        && host.name != JVM_FOLDER
    {
        // The folder as it is on a host: JVM records lie beside what the agents wrote.
        host.outer = Some(root);
        host.take_jvms(true);
    } else if has_jvms && !hosts.iter().any(|host| host.name == JVM_FOLDER) {
        left_out.insert(JVM_FOLDER.to_owned(), "it is not told which host's JVMs these are".to_owned());
    }
    if hosts.is_empty() { Err(MergeError::NoHosts { path: capture.into() }) } else { Ok((hosts, left_out)) }
}

fn name_of(capture: &Path) -> Result<String, MergeError> {
    let real = || capture.canonicalize().map_err(MergeError::io(capture));
    let name = match capture.file_name() {
        Some(name) => Some(name.to_owned()),
        None => real()?.file_name().map(ToOwned::to_owned),
    };
    Ok(name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

/// Whether the names are those of a host's folder.
fn holds_records(names: &[String]) -> bool {
    let ours = |name: &String| {
        name.starts_with("packets-")
            || (name.starts_with("sockets.") && plain_name(name).ends_with(".jsonl"))
            || name.starts_with("jvm-")
            || name == "sniffer.json"
            || name == "dumpingd.json"
            || name == DIGEST
    };
    // A trace has a manifest.json as well, beside its tables.
    let foreign = names.contains(&"manifest.json".to_owned()) && !names.iter().any(|name| name.ends_with(".parquet"));
    names.iter().any(ours) || foreign
}

/// A file's name without what tells how it is packed.
pub(crate) fn plain_name(name: &str) -> &str {
    [".zst", ".gz", ".xz"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(name)
}

/// The interface in `packets-IFACE.hpk` and `packets-IFACE.NNNNNN.hpk`.
fn interface_of(name: &str) -> Option<&str> {
    let stem = name.strip_prefix("packets-")?.strip_suffix(".hpk")?;
    Some(match stem.rsplit_once('.') {
        Some((interface, number)) if number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()) => interface,
        _ => stem,
    })
}

/// The number in `sockets.NNNNNN.jsonl`; `sockets.jsonl` comes behind all.
fn sockets_number(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("sockets.")?;
    if rest == "jsonl" {
        return Some(u64::MAX);
    }
    let number = rest.strip_suffix(".jsonl")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

/// The process in `jvm-PID-STARTTICKS.jsonl`.
fn jvm_name(name: &str) -> Option<(u32, u64)> {
    let (pid, ticks) = name.strip_prefix("jvm-")?.strip_suffix(".jsonl")?.split_once('-')?;
    Some((pid.parse().ok()?, ticks.parse().ok()?))
}
