//! Giving up what is no longer needed once the sockets are open: another user, or the same one with few capabilities.
//!
//! Capabilities belong to a thread: this has to happen before the threads of the interfaces start.

use std::io;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Path, PathBuf};

use nix::sys::prctl::set_keepcaps;
use nix::unistd::{Gid, Uid, User, geteuid, initgroups, setresgid, setresuid};
use trace::rights::{Capability, keep_only_with};

/// What becomes of the rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunAs {
    /// They are kept, all.
    Keep,
    /// The user stays; of the capabilities only what reading the files of others needs is left.
    #[default]
    FewCapabilities,
    /// Another user without any capability goes on; the folder becomes its own.
    User(String),
}

/// Why rights cannot be given up.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// There is no such user.
    #[error("there is no user \"{0}\" on this host to go on as")]
    NoUser(String),
    /// The folder cannot be handed over.
    #[error("{path} cannot be given to the user that goes on: {source}", path = path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel does not let us.
    #[error("rights cannot be given up ({what}): {reason}; --keep-rights goes on with all")]
    Refused {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        reason: String,
    },
}

fn refused<E: ToString>(what: &'static str) -> impl Fn(E) -> PrivilegeError {
    move |error| PrivilegeError::Refused { what, reason: error.to_string() }
}

/// What will have to be done later on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files that other users made are read.
    pub reads_others: bool,
    /// Interfaces are opened again: CAP_NET_RAW is kept, but in reserve, where it is of no use until it is called for.
    pub opens_again: bool,
}

/// Gives up rights, and returns what is left, by the names of capabilities(7); "all" if nothing was given up.
///
/// # Errors
/// If the user is unknown or the kernel refuses.
pub fn give_up(run_as: &RunAs, folder: &Path, needs: Needs) -> Result<Vec<String>, PrivilegeError> {
    let reserve: &[Capability] = if needs.opens_again { &[Capability::CAP_NET_RAW] } else { &[] };
    match run_as {
        RunAs::Keep => Ok(vec!["all".to_owned()]),
        RunAs::FewCapabilities => {
            keep_only_with(&few(folder, needs.reads_others), reserve).map_err(refused("capabilities"))
        }
        RunAs::User(name) => {
            let user = User::from_name(name).map_err(refused("looking up the user"))?;
            // The kernel clears all capabilities with the last uid that is 0, unless it is told not to.
            set_keepcaps(needs.opens_again).map_err(refused("keeping capabilities"))?;
            become_user(&user.ok_or_else(|| PrivilegeError::NoUser(name.clone()))?, folder)?;
            set_keepcaps(false).map_err(refused("keeping capabilities"))?;
            keep_only_with(&[], reserve).map_err(refused("capabilities"))
        }
    }
}

/// Root without capabilities is an ordinary user called 0: it cannot write into the folder of another user, nor read
/// the 0600 files of container users there.
fn few(folder: &Path, reads_others: bool) -> Vec<Capability> {
    let mut few = Vec::new();
    if !is_reached_by_ownership(folder) {
        few.push(Capability::CAP_DAC_OVERRIDE);
    }
    if reads_others {
        few.push(Capability::CAP_DAC_READ_SEARCH);
    }
    few
}

/// Whether its owner may write the folder and anybody, or the owner, may pass through those above it.
fn is_reached_by_ownership(folder: &Path) -> bool {
    let me = geteuid().as_raw();
    let Ok(path) = folder.canonicalize() else { return false };
    let passable = |above: &Path| {
        std::fs::metadata(above)
            .is_ok_and(|about| about.mode() & 0o001 != 0 || about.uid() == me && about.mode() & 0o100 != 0)
    };
    let is_ours = std::fs::metadata(&path).is_ok_and(|about| about.uid() == me && about.mode() & 0o300 == 0o300);
    is_ours && path.ancestors().skip(1).all(passable)
}

fn become_user(user: &User, folder: &Path) -> Result<(), PrivilegeError> {
    if user.uid == geteuid() {
        return Ok(());
    }
    hand_over(folder, user.uid, user.gid).map_err(|(path, source)| PrivilegeError::Folder { path, source })?;
    let name = std::ffi::CString::new(user.name.as_str()).map_err(refused("the user's name"))?;
    initgroups(&name, user.gid).map_err(refused("initgroups"))?;
    setresgid(user.gid, user.gid, user.gid).map_err(refused("setresgid"))?;
    setresuid(user.uid, user.uid, user.uid).map_err(refused("setresuid"))
}

/// The folder and our own files of earlier runs in it; those of other agents stay theirs.
fn hand_over(folder: &Path, uid: Uid, gid: Gid) -> Result<(), (PathBuf, io::Error)> {
    let give =
        |path: &Path| lchown(path, Some(uid.as_raw()), Some(gid.as_raw())).map_err(|error| (path.to_owned(), error));
    give(folder)?;
    for entry in std::fs::read_dir(folder).map_err(|error| (folder.to_owned(), error))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("packets-") || name == crate::agent::MANIFEST {
            give(&entry.path())?;
        }
    }
    Ok(())
}
