//! Landlock: which files may be read and written at all.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::needs::Needs;

/// What newer kernels can deny in addition is not asked for: it was not tried.
const KNOWN: ABI = ABI::V6;

/// Restricts this thread. An answer other than `None`: what an older kernel does not deny.
pub fn restrict(needs: &Needs) -> Result<Option<String>, String> {
    let status = restrict_to(needs).map_err(|error| error.to_string())?;
    match status {
        RulesetStatus::FullyEnforced => Ok(None),
        RulesetStatus::PartiallyEnforced => {
            Ok(Some("sandbox: this kernel's landlock is older and denies less (Linux 6.12 denies all)".to_owned()))
        }
        RulesetStatus::NotEnforced => Err("this kernel has none (Linux 5.13 and later may have)".to_owned()),
    }
}

fn restrict_to(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // Neither programs nor device files, pipes and sockets are made or started there.
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir;
    for (paths, access) in [(&needs.reads, read), (&needs.writes, write)] {
        for path in paths {
            let there = nearest(path);
            let Ok(opened) = PathFd::new(&there) else { continue };
            let access = if there.is_dir() { access } else { access & AccessFs::from_file(KNOWN) };
            rules = rules.add_rule(PathBeneath::new(opened, access))?;
        }
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// The path, or the nearest folder above it that is there.
fn nearest(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/")).to_owned()
}
