//! Items that nearly all come in their order, as packets do by sequence number: one after the other in it, without sorting them.

/// An item: what it is ordered by, and a time.
pub(crate) type Timed<K> = (K, u64);

/// Those of `items` that come behind a greater one, in their order.
pub(crate) fn late<K: Ord + Copy>(items: impl Iterator<Item = Timed<K>>) -> Vec<Timed<K>> {
    let (mut reached, mut late) = (None, Vec::new());
    for item in items {
        if reached.is_some_and(|reached| item.0 < reached) {
            late.push(item);
        } else {
            reached = Some(item.0);
        }
    }
    // Those of one key stay as they came.
    late.sort_by_key(|(key, _)| *key);
    late
}

/// All items in their order; those of one key as they came.
#[derive(Clone, Debug)]
pub(crate) struct NearlySorted<'l, I, K> {
    items: I,
    /// The next of those that come in their order.
    next: Option<Timed<K>>,
    late: &'l [Timed<K>],
}

impl<'l, I: Iterator<Item = Timed<K>>, K: Ord + Copy> NearlySorted<'l, I, K> {
    /// Of items and those of them that are [`late`].
    pub fn new(mut items: I, late: &'l [Timed<K>]) -> Self {
        Self { next: items.next(), items, late }
    }

    /// The next one.
    #[inline]
    pub fn peek(&self) -> Option<Timed<K>> {
        match (self.next, self.late.first()) {
            (Some(next), Some(late)) if late.0 < next.0 => Some(*late),
            (None, late) => late.copied(),
            (next, _) => next,
        }
    }

    /// Takes the next one if it has this key.
    #[inline]
    pub fn next_of(&mut self, key: K) -> Option<Timed<K>> {
        if self.peek()?.0 == key { self.next() } else { None }
    }
}

impl<I: Iterator<Item = Timed<K>>, K: Ord + Copy> Iterator for NearlySorted<'_, I, K> {
    type Item = Timed<K>;

    #[inline]
    fn next(&mut self) -> Option<Timed<K>> {
        if let Some((first, behind)) = self.late.split_first()
            && self.next.is_none_or(|next| first.0 < next.0)
        {
            self.late = behind;
            return Some(*first);
        }
        let taken = self.next?;
        self.next = self.items.find(|item| item.0 >= taken.0);
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_come_as_a_stable_sort_puts_them(items in prop::collection::vec((0u32..20, any::<u64>()), 0..40)) {
            let late = late(items.iter().copied());
            let mut sorted = items.clone();
            sorted.sort_by_key(|(key, _)| *key);
            let mut all = NearlySorted::new(items.into_iter(), &late);
            prop_assert_eq!(all.peek(), sorted.first().copied());
            if let Some((key, _)) = sorted.first() {
                prop_assert!(all.clone().next_of(*key) == all.peek() && all.next_of(key + 1).is_none());
            }
            prop_assert_eq!(all.collect::<Vec<_>>(), sorted);
        }

        #[test]
        fn what_is_in_order_is_not_late(mut keys in prop::collection::vec(0u32..20, 0..40)) {
            keys.sort_unstable();
            prop_assert!(late(keys.into_iter().map(|key| (key, 0))).is_empty());
        }
    }
}
