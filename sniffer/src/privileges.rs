//! What the sniffer keeps of its rights once its sockets are open.

use std::path::Path;

use trace::capabilities::Capability;
use trace::manifest::SnifferManifest;
use trace::privileges::{KeptCapabilities, is_reached_by_ownership};
pub use trace::privileges::{PrivilegeError, RunAs};

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
    let kept = KeptCapabilities {
        in_effect: if *run_as == RunAs::FewCapabilities {
            folder_capabilities(folder, needs.reads_others)
        } else {
            Vec::new()
        },
        reserve: if needs.opens_again { vec![Capability::CAP_NET_RAW] } else { Vec::new() },
        passes_on: false,
    };
    let is_own = |name: &str| name.starts_with("packets-") || name == SnifferManifest::FILE;
    trace::privileges::give_up(run_as, folder, is_own, &kept)
}

/// Root without capabilities is an ordinary user called 0: it cannot write into the folder of another user, nor read
/// the 0600 files of container users there.
fn folder_capabilities(folder: &Path, reads_others: bool) -> Vec<Capability> {
    let mut few = Vec::new();
    if !is_reached_by_ownership(folder) {
        few.push(Capability::CAP_DAC_OVERRIDE);
    }
    if reads_others {
        few.push(Capability::CAP_DAC_READ_SEARCH);
    }
    few
}
