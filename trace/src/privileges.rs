//! Going on with few rights once everything is open: as another user, or as the same one with few capabilities.
//!
//! Behind feature `agent`. Capabilities belong to a thread: this has to happen before an agent starts others.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag};
use nix::sys::prctl::set_keepcaps;
use nix::unistd::{Gid, Uid, User, fchownat, geteuid, initgroups, setresgid, setresuid};

use crate::capabilities::{Capability, has, keep_only_with, pass_on};

/// The user that agents of root go on as, where there is one of that name and nobody says otherwise.
pub const SERVICE_USER: &str = "hadoptic";

/// What becomes of the rights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunAs {
    /// They are kept, all.
    Keep,
    /// The user stays; of the capabilities only few are left.
    #[default]
    FewCapabilities,
    /// Another user goes on, with few capabilities; the folder becomes its own.
    User(String),
}

impl RunAs {
    /// As `--user` and `--keep-rights` say; without either an agent of root goes on as [`SERVICE_USER`] if there is one.
    #[must_use]
    pub fn from_options(user: Option<&str>, keep_rights: bool) -> Self {
        match user {
            Some(user) => Self::User(user.to_owned()),
            None if keep_rights => Self::Keep,
            None if may_change_user() && matches!(User::from_name(SERVICE_USER), Ok(Some(_))) => {
                Self::User(SERVICE_USER.to_owned())
            }
            None => Self::FewCapabilities,
        }
    }

    /// The user that goes on, by number.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn uid(&self) -> Result<u32, PrivilegeError> {
        match self {
            Self::User(name) => Ok(user_named(name)?.uid.as_raw()),
            _ => Ok(geteuid().as_raw()),
        }
    }
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
        /// The file that the error is about.
        path: PathBuf,
        /// The system's error.
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

/// The capabilities that are kept, of those that the process has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptCapabilities {
    /// In effect.
    pub in_effect: Vec<Capability>,
    /// Out of effect until [`crate::capabilities::with_reserve`] calls for one.
    pub reserve: Vec<Capability>,
    /// Whether programs that are started have those in effect as well.
    pub passes_on: bool,
}

/// Gives up rights, and returns what is left, by the names of capabilities(7); "all" if nothing was given up. With another
/// user `folder` becomes its own, and of the files in it those whose names are the agent's (`is_own`).
///
/// # Errors
/// If the user is unknown or the kernel refuses.
pub fn give_up(
    run_as: &RunAs,
    folder: &Path,
    is_own: impl Fn(&str) -> bool,
    kept: &KeptCapabilities,
) -> Result<Vec<String>, PrivilegeError> {
    match run_as {
        RunAs::Keep => return Ok(vec!["all".to_owned()]),
        RunAs::FewCapabilities => {}
        RunAs::User(name) => become_user(&user_named(name)?, folder, is_own)?,
    }
    let names = keep_only_with(&kept.in_effect, &kept.reserve).map_err(refused("capabilities"))?;
    if kept.passes_on {
        pass_on().map_err(refused("capabilities of programs that are started"))?;
    }
    Ok(names)
}

/// Whether the folder's owner, who is us, may write it, and anybody, or the owner, may pass through those above it: root
/// without capabilities is an ordinary user called 0.
#[must_use]
pub fn is_reached_by_ownership(folder: &Path) -> bool {
    let me = geteuid().as_raw();
    let Ok(path) = folder.canonicalize() else { return false };
    let passable = |above: &Path| {
        fs::metadata(above)
            .is_ok_and(|about| about.mode() & 0o001 != 0 || about.uid() == me && about.mode() & 0o100 != 0)
    };
    let is_ours = fs::metadata(&path).is_ok_and(|about| about.uid() == me && about.mode() & 0o300 == 0o300);
    is_ours && path.ancestors().skip(1).all(passable)
}

/// Root, unless it was started with fewer capabilities than that needs, as by a unit of systemd's.
fn may_change_user() -> bool {
    let needed = [Capability::CAP_SETUID, Capability::CAP_SETGID, Capability::CAP_CHOWN];
    geteuid().is_root() && needed.into_iter().all(has)
}

fn user_named(name: &str) -> Result<User, PrivilegeError> {
    User::from_name(name)
        .map_err(refused("looking up the user"))?
        .ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))
}

fn become_user(user: &User, folder: &Path, is_own: impl Fn(&str) -> bool) -> Result<(), PrivilegeError> {
    if user.uid == geteuid() {
        return Ok(());
    }
    hand_over(folder, is_own, user.uid, user.gid).map_err(|(path, source)| PrivilegeError::Folder { path, source })?;
    let name = std::ffi::CString::new(user.name.as_str()).map_err(refused("the user's name"))?;
    // The kernel clears all capabilities with the last uid that is 0, unless it is told not to.
    set_keepcaps(true).map_err(refused("keeping capabilities"))?;
    initgroups(&name, user.gid).map_err(refused("initgroups"))?;
    setresgid(user.gid, user.gid, user.gid).map_err(refused("setresgid"))?;
    setresuid(user.uid, user.uid, user.uid).map_err(refused("setresuid"))?;
    set_keepcaps(false).map_err(refused("keeping capabilities"))
}

/// The folder, and our own files of earlier runs in it.
fn hand_over(folder: &Path, is_own: impl Fn(&str) -> bool, uid: Uid, gid: Gid) -> Result<(), (PathBuf, io::Error)> {
    let about = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    give(folder, uid, gid).map_err(about(folder))?;
    for entry in fs::read_dir(folder).map_err(about(folder))?.flatten() {
        if is_own(&entry.file_name().to_string_lossy()) {
            give(&entry.path(), uid, gid).map_err(about(&entry.path()))?;
        }
    }
    Ok(())
}

/// A folder, or a file with one name only that was made by us or by whom it is given to: a second name of somebody else's
/// file, or a link, is left as it is.
fn give(path: &Path, uid: Uid, gid: Gid) -> io::Result<()> {
    let flags = (OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    let is_ours = about.uid() == geteuid().as_raw() || about.uid() == uid.as_raw();
    if about.is_dir() || about.is_file() && about.nlink() == 1 && is_ours {
        fchownat(&file, "", Some(uid), Some(gid), AtFlags::AT_EMPTY_PATH)?;
    }
    Ok(())
}
