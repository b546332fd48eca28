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
    keep_only_with(wanted, &[])
}

/// Keeps `wanted` in effect and `reserve` out of effect: [`with_reserve`] makes use of the latter.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_only_with(wanted: &[Capability], reserve: &[Capability]) -> io::Result<Vec<String>> {
    let has = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let of = |some: &[Capability]| -> CapsHashSet { some.iter().copied().filter(|one| has.contains(one)).collect() };
    let in_effect = of(wanted);
    let keep: CapsHashSet = in_effect.union(&of(reserve)).copied().collect();
    // What is not in the bounding set cannot come back with a program that is started. Only CAP_SETPCAP may do that.
    if has.contains(&Capability::CAP_SETPCAP) {
        caps::raise(None, CapSet::Effective, Capability::CAP_SETPCAP).map_err(io::Error::other)?;
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
    caps::set(None, CapSet::Effective, &in_effect).map_err(io::Error::other)?;
    caps::set(None, CapSet::Permitted, &keep).map_err(io::Error::other)?;
    nix::sys::prctl::set_no_new_privs()?;
    let mut names: Vec<String> = keep.iter().map(ToString::to_string).collect();
    names.sort();
    Ok(names)
}

/// Whether this thread has a capability in effect.
#[must_use]
pub fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false)
}

/// Gives programs that are started what is in effect here (the ambient set, Linux 4.3).
///
/// # Errors
/// If the kernel refuses.
pub fn pass_on() -> io::Result<()> {
    let in_effect = caps::read(None, CapSet::Effective).map_err(io::Error::other)?;
    for set in [CapSet::Inheritable, CapSet::Ambient] {
        caps::set(None, set, &in_effect).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Does something with a capability that this thread has in reserve, and puts it back afterwards.
///
/// # Errors
/// If this thread does not have it, or the kernel refuses.
pub fn with_reserve<T>(capability: Capability, work: impl FnOnce() -> T) -> io::Result<T> {
    if caps::has_cap(None, CapSet::Effective, capability).map_err(io::Error::other)? {
        return Ok(work());
    }
    caps::raise(None, CapSet::Effective, capability).map_err(io::Error::other)?;
    let result = work();
    caps::drop(None, CapSet::Effective, capability).map_err(io::Error::other)?;
    Ok(result)
}
