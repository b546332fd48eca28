//! What files a host has of its own, so that before and after can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Context, Result};

/// What a file is, and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    mode: u32,
    owner: (u32, u32),
    contents: Vec<u8>,
}

impl Entry {
    /// Something of which only that it is there is known.
    #[must_use]
    pub const fn there() -> Self {
        Self { mode: 0, owner: (0, 0), contents: Vec::new() }
    }
}

/// A host's own files by their paths on it.
pub type Files = BTreeMap<PathBuf, Entry>;

/// Reads all files below a folder. Their paths are those on the host, of which `root` is the root. What `skip` says of is left
/// out, with all below.
///
/// # Errors
/// If something cannot be read.
pub fn read_below(
    root: &Path,
    folder: &Path,
    skip: &dyn Fn(&Path, &fs::Metadata) -> bool,
    files: &mut Files,
) -> Result<()> {
    for entry in fs::read_dir(folder).at("cannot read", folder)? {
        let path = entry.at("cannot read", folder)?.path();
        let about = path.symlink_metadata().at("cannot look at", &path)?;
        let on_host = Path::new("/").join(path.strip_prefix(root).unwrap_or(&path));
        if skip(&on_host, &about) {
            continue;
        }
        let contents = if about.is_symlink() {
            fs::read_link(&path).at("cannot read", &path)?.to_string_lossy().into_owned().into_bytes()
        } else if about.is_file() {
            fs::read(&path).at("cannot read", &path)?
        } else {
            Vec::new()
        };
        files.insert(on_host, Entry { mode: about.mode(), owner: (about.uid(), about.gid()), contents });
        if about.is_dir() {
            read_below(root, &path, skip, files)?;
        }
    }
    Ok(())
}

/// What is not as it was: each path, and how it differs.
#[must_use]
pub fn differences(before: &Files, after: &Files) -> Vec<(PathBuf, &'static str)> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differs = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let how = |path: &PathBuf| match (before.get(path), after.get(path)) {
        (None, _) => "was left there",
        (_, None) => "is gone",
        (Some(was), Some(is)) if was.contents == is.contents => "has other rights or another owner",
        _ => "is not as it was",
    };
    differs.map(|path| (path.clone(), how(path))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_changed_byte_a_changed_right_and_a_left_file_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let conf = folder.path().join("etc");
        fs::create_dir_all(&conf).unwrap();
        fs::write(conf.join("a"), "1").unwrap();
        let read = || {
            let mut files = Files::new();
            read_below(folder.path(), folder.path(), &|path, _| path.ends_with("skipped"), &mut files).unwrap();
            files
        };
        let before = read();
        assert_eq!(before, read());
        assert!(before.contains_key(Path::new("/etc/a")));
        fs::write(conf.join("skipped"), "").unwrap();
        assert_eq!(before, read());
        fs::write(conf.join("a"), "2").unwrap();
        assert_eq!(differences(&before, &read()), [("/etc/a".into(), "is not as it was")]);
        fs::write(conf.join("a"), "1").unwrap();
        assert_eq!(before, read());
        fs::set_permissions(conf.join("a"), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(differences(&before, &read()), [("/etc/a".into(), "has other rights or another owner")]);
        let before = read();
        fs::write(conf.join("left"), "").unwrap();
        assert_eq!(differences(&before, &read()), [("/etc/left".into(), "was left there")]);
        fs::remove_file(conf.join("a")).unwrap();
        assert!(differences(&before, &read()).contains(&("/etc/a".into(), "is gone")));
    }
}
