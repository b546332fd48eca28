//! The choice among several links by the room that each has.

use crate::topology::LinkId;

/// The position of the link with the most `room` among `links`, of which there is one at least; of several the one that `drawn` says, each as
/// likely as the other.
#[inline(always)]
pub(super) fn most_room(links: &[LinkId], mut room: impl FnMut(LinkId) -> i64, drawn: impl FnOnce() -> u64) -> usize {
    // Those with the most so far, a bit each: the first 64, which are all as a rule.
    let (mut most, mut several, mut bits) = (i64::MIN, 0u64, 0u64);
    for (place, link) in links.iter().enumerate() {
        let free = room(*link);
        if free < most {
            continue;
        }
        if free > most {
            (most, several, bits) = (free, 0, 0);
        }
        several += 1;
        bits |= if place < 64 { 1 << place } else { 0 };
    }
    let mut position = if several > 1 { remainder(drawn(), several) } else { 0 };
    if links.len() <= 64 {
        (0..position).for_each(|_| bits &= bits - 1);
        return bits.trailing_zeros() as usize;
    }
    let among = |link: &LinkId| {
        let is_most = room(*link) == most;
        let is_taken = is_most && position == 0;
        position -= u64::from(is_most && !is_taken);
        is_taken
    };
    links.iter().position(among).unwrap_or(0)
}

/// `number` modulo `of`, which mostly is a power of two: a division takes longer than all the rest.
#[inline(always)]
pub(super) const fn remainder(number: u64, of: u64) -> u64 {
    if of.is_power_of_two() { number & (of - 1) } else { number % of }
}
