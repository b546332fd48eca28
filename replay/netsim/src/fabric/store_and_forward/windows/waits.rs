//! Queues of which most are empty, and few have more than one item: linked, all items in one list.

/// No item.
const NONE: u32 = u32::MAX;

/// Queues of items, first in, first out.
pub(super) struct Waits<T> {
    /// The first and the last item of each queue.
    ends: Vec<[u32; 2]>,
    /// Each item, and the one behind it.
    items: Vec<(T, u32)>,
    spare: Vec<u32>,
}

impl<T: Copy> Waits<T> {
    /// `queues` empty queues.
    pub fn new(queues: usize) -> Self {
        Self { ends: vec![[NONE; 2]; queues], items: Vec::new(), spare: Vec::new() }
    }

    /// The first item of a queue.
    #[inline]
    pub fn first(&self, queue: usize) -> Option<&T> {
        Some(&self.items.get(self.ends[queue][0] as usize)?.0)
    }

    /// Changes the first item of a queue that has one.
    #[inline]
    pub fn set_first(&mut self, queue: usize, item: T) {
        if let Some(first) = self.items.get_mut(self.ends[queue][0] as usize) {
            first.0 = item;
        }
    }

    /// Takes the first item out of a queue that has one.
    #[inline]
    pub fn pop(&mut self, queue: usize) {
        let first = self.ends[queue][0];
        if let Some((_, behind)) = self.items.get(first as usize) {
            self.ends[queue][0] = *behind;
            self.spare.push(first);
        }
    }

    /// Puts an item behind those of a queue.
    #[inline]
    pub fn push(&mut self, queue: usize, item: T) {
        let number = self.number(item);
        let [first, last] = &mut self.ends[queue];
        if *first == NONE {
            *first = number;
        } else {
            self.items[*last as usize].1 = number;
        }
        *last = number;
    }

    /// Where an item lies that has none behind it.
    fn number(&mut self, item: T) -> u32 {
        if let Some(number) = self.spare.pop() {
            self.items[number as usize] = (item, NONE);
            return number;
        }
        self.items.push((item, NONE));
        u32::try_from(self.items.len() - 1).unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn each_queue_gives_back_what_was_put_in_in_order(steps in prop::collection::vec((0usize..4, any::<bool>()), 0..200)) {
            let (mut waits, mut plain) = (Waits::new(4), [const { VecDeque::new() }; 4]);
            for (step, (queue, push)) in steps.into_iter().enumerate() {
                if push {
                    waits.push(queue, step);
                    plain[queue].push_back(step);
                } else {
                    waits.set_first(queue, step);
                    if let Some(first) = plain[queue].front_mut() {
                        *first = step;
                    }
                    prop_assert_eq!(waits.first(queue), plain[queue].front());
                    waits.pop(queue);
                    plain[queue].pop_front();
                }
                for (queue, plain) in plain.iter().enumerate() {
                    prop_assert_eq!(waits.first(queue), plain.front());
                }
            }
        }
    }
}
