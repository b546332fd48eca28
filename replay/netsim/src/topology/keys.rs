//! What the keys of several shapes have in common.

use super::TopologyError;

/// Refuses a number of hosts that the shape does not have.
pub(super) fn check_nodes(given: Option<u32>, places: u32, what: &str) -> Result<(), TopologyError> {
    match given {
        Some(nodes) if nodes != places => Err(TopologyError::value(
            "nodes",
            nodes,
            format!("{what} has {places} hosts; leave the key out or give {places}"),
        )),
        _ => Ok(()),
    }
}

/// Numbers as a configuration writes them.
pub(super) fn listed(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("[{}]", words.join(", "))
}
