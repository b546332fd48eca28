//! Giving up capabilities that an agent no longer needs.
//!
//! Behind feature `agent`. Capabilities belong to a thread: this has to happen before an agent starts others.

use std::io;

pub use caps::Capability;
use caps::{CapSet, CapsHashSet};

/// Keeps only these capabilities, of those that the process has, here and in whatever it starts; returns the names of
/// those that are left, as capabilities(7) has them.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_only(wanted: &[Capability]) -> io::Result<Vec<String>> {
    let has = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let keep: CapsHashSet = wanted.iter().copied().filter(|capability| has.contains(capability)).collect();
    // What is not in the bounding set cannot come back with a program that is started. Only CAP_SETPCAP may do that.
    if has.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all() {
            if !keep.contains(&capability) {
                // One that this kernel does not know is not there.
                let _ = caps::drop(None, CapSet::Bounding, capability);
            }
        }
    }
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    caps::set(None, CapSet::Effective, &keep).map_err(io::Error::other)?;
    caps::set(None, CapSet::Permitted, &keep).map_err(io::Error::other)?;
    nix::sys::prctl::set_no_new_privs()?;
    let mut names: Vec<String> = keep.iter().map(ToString::to_string).collect();
    names.sort();
    Ok(names)
}
