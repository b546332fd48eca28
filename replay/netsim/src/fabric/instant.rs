//! Instant by instant.

use crate::kernel::EventQueue;
use crate::network::Delivery;
use crate::time::SimTime;

/// What all fabrics' `advance` has in common: processes events up to the first instant, not later than `until`, at
/// which `process` delivers something, all events of that instant included.
pub(super) fn collect_instant<N, E: Copy>(
    network: &mut N,
    until: SimTime,
    deliveries: &mut Vec<Delivery>,
    queue: impl Fn(&mut N) -> &mut EventQueue<E>,
    mut process: impl FnMut(&mut N, SimTime, E, &mut Vec<Delivery>),
) -> SimTime {
    let before = deliveries.len();
    let mut until = until;
    while let Some((at, event)) = queue(network).pop_until(until) {
        process(network, at, event, deliveries);
        if deliveries.len() > before {
            until = at;
        }
    }
    deliveries[before..].sort_by_key(|delivery| delivery.token.0);
    until
}
