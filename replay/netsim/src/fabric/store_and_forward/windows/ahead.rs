//! Windows of time that lie ahead: those that are near have a slot each, what lies beyond waits by epochs.

use std::collections::BTreeMap;

/// Windows of an epoch. Those of the present epoch and of the next one are near.
const EPOCH: u64 = 64;

/// Slots, of a near window each.
pub(super) const SLOTS: usize = 2 * EPOCH as usize;
const _: () = assert!(SLOTS == u128::BITS as usize, "a bit for each slot");

/// Which windows have items, and those of windows that are not near. Windows are numbered from the start of the simulation on.
pub(super) struct Ahead<T> {
    /// A bit for each near window, by slot: whether it may have items.
    used: u128,
    /// The first window that is not near.
    end: u64,
    far: BTreeMap<u64, Vec<(u64, T)>>,
}

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Self { used: 0, end: 2 * EPOCH, far: BTreeMap::new() }
    }
}

impl<T> Ahead<T> {
    /// The slot of a near window.
    #[inline]
    pub const fn slot(window: u64) -> usize {
        (window % (2 * EPOCH)) as usize
    }

    /// Whether `window`, which is not over, has a slot.
    #[inline]
    pub const fn is_near(&self, window: u64) -> bool {
        window < self.end
    }

    /// `window`, which is near, has items from now on.
    #[inline]
    pub const fn mark(&mut self, window: u64) {
        self.used |= 1 << Self::slot(window);
    }

    /// Keeps an item of a window that is not near.
    #[cold]
    pub fn keep(&mut self, window: u64, item: T) {
        self.far.entry(window / EPOCH).or_default().push((window, item));
    }

    /// The first window from `from` on, the present one, that has items.
    pub fn next_window(&self, from: u64) -> Option<u64> {
        let near = (from..self.end).find(|window| self.used >> Self::slot(*window) & 1 == 1);
        let far = || self.far.values().next()?.iter().map(|(window, _)| *window).min();
        near.or_else(far)
    }

    /// The near windows behind `window`, the present one or a later one, that have items.
    pub fn near_behind(&self, window: u64) -> impl Iterator<Item = u64> {
        let used = self.used;
        (window + 1..self.end).filter(move |window| used >> Self::slot(*window) & 1 == 1)
    }

    /// The items of windows behind `window` that are not near.
    pub fn far_behind(&self, window: u64) -> impl Iterator<Item = &T> {
        self.far.values().flatten().filter(move |(of, _)| *of > window).map(|(_, item)| item)
    }

    /// All items of `window`, which is near, are about to be taken.
    pub const fn take(&mut self, window: u64) {
        self.used &= !(1 << Self::slot(window));
    }

    /// Makes `window` the present one: those before it are over, and empty. Returns the items of the epochs that have become near, to be put in again.
    pub fn turn_to(&mut self, window: u64) -> Vec<(u64, T)> {
        self.end = self.end.max((window / EPOCH + 2) * EPOCH);
        let mut items = Vec::new();
        while let Some(first) = self.far.first_entry().filter(|first| *first.key() * EPOCH < self.end) {
            items.extend(first.remove());
        }
        items
    }
}
