//! The hosts for which a topology is built.

/// Where a host of the workload stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPlace {
    /// The host's name.
    pub name: String,
    /// The name of its rack; hosts with the same name share a rack switch.
    pub rack: String,
}
