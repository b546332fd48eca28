//! What is root's on the hosts, before and after: nothing of it may have come, gone or changed by a user's doing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Context, Result};

use super::{HOME, UID};
use crate::files::{Files, differences, read_below};
use crate::layout::root;
use crate::plan::Plan;

/// Where root's programs write while they run, beside the folder of captures: logs and what runs.
const LIVELY: [&str; 2] = ["log", "run"];

/// Root's files on all hosts at one time.
#[derive(Debug)]
pub struct Guard {
    lively: Vec<PathBuf>,
    before: BTreeMap<String, Files>,
}

impl Guard {
    /// Looks at them: all that the hosts have of their own but the user's, some folders, and what root's programs write below
    /// `prefix` while they run.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn look(plan: &Plan, run: &Path, without: &[&str], prefix: &str) -> Result<Self> {
        let lively = LIVELY.map(|folder| Path::new(prefix).join(folder));
        let lively = without.iter().map(PathBuf::from).chain(lively).collect();
        let mut guard = Self { lively, before: BTreeMap::new() };
        guard.before = guard.files(plan, run)?;
        Ok(guard)
    }

    /// What of root's has changed since, and what of root's lies where only the user writes.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn complaints(&self, plan: &Plan, run: &Path, capture: &str) -> Result<Vec<String>> {
        let mut complaints = Vec::new();
        for (host, after) in self.files(plan, run)? {
            let before = self.before.get(&host).cloned().unwrap_or_default();
            let differ = differences(&before, &after);
            complaints.extend(differ.iter().map(|(path, how)| format!("{} on {host} {how}", path.display())));
        }
        for host in &plan.hosts {
            let root = root(run, host);
            let on_host = |path: &str| root.join(path.trim_start_matches('/'));
            let mut places = vec![on_host(HOME).join("conf"), on_host(HOME).join("own")];
            let records = on_host(capture).join("jvm");
            places.extend([UID.to_string(), format!("{UID}.1")].map(|own| records.join(own)));
            for place in places.iter().filter(|place| place.symlink_metadata().is_ok_and(|there| there.is_dir())) {
                let foreign = not_of(UID, place)?;
                complaints.extend(
                    foreign.iter().map(|path| format!("{} on {} is not the user's", path.display(), host.name)),
                );
            }
        }
        Ok(complaints)
    }

    fn files(&self, plan: &Plan, run: &Path) -> Result<BTreeMap<String, Files>> {
        let skip =
            |path: &Path, about: &fs::Metadata| about.uid() == UID || self.lively.iter().any(|lively| path == lively);
        let mut all = BTreeMap::new();
        for host in &plan.hosts {
            let mut files = Files::new();
            read_below(&root(run, host), &root(run, host), &skip, &mut files)?;
            all.insert(host.name.clone(), files);
        }
        Ok(all)
    }
}

/// What below a folder belongs to others than a user.
fn not_of(uid: u32, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut foreign = Vec::new();
    for entry in fs::read_dir(folder).at("cannot read", folder)? {
        let path = entry.at("cannot read", folder)?.path();
        // He may take it away just now.
        let Ok(about) = path.symlink_metadata() else { continue };
        if about.uid() != uid {
            foreign.push(path.clone());
        }
        if about.is_dir() {
            foreign.extend(not_of(uid, &path)?);
        }
    }
    Ok(foreign)
}
