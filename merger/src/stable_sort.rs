//! Sorting of large records in place.

/// Sorts by a key; items with the same key stay in their order. Takes four bytes an item, where the standard library's stable sort takes half
/// of the items once more. Takes 2^32 items at most.
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    let mut sources: Vec<u32> = (0..=u32::MAX).take(items.len()).collect();
    sources.sort_unstable_by_key(|source| (key(&items[*source as usize]), *source));
    // Cycle by cycle: a place gets what belongs there, and what lay there goes where that came from.
    for first in 0..sources.len() {
        let mut place = first;
        loop {
            let source = std::mem::replace(&mut sources[place], place as u32) as usize;
            if source == first {
                break;
            }
            items.swap(place, source);
            place = source;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library(items in prop::collection::vec((0u8..10, any::<u8>()), 0..200)) {
            let (mut ours, mut theirs) = (items.clone(), items);
            sort_by_key(&mut ours, |item| item.0);
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(ours, theirs);
        }
    }
}
