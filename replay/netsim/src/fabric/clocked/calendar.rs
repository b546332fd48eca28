//! What arrives in which cycle, not too far ahead.

/// Things by cycle, in a ring of cycles.
pub(in crate::fabric) struct Calendar<T> {
    slots: Vec<Vec<T>>,
    waiting: usize,
}

impl<T> Calendar<T> {
    /// For things that arrive at most `ahead` cycles later.
    pub fn new(ahead: usize) -> Self {
        let slots = (ahead + 1).next_power_of_two();
        Self { slots: (0..slots).map(|_| Vec::new()).collect(), waiting: 0 }
    }

    /// How many cycles later things may arrive, at least.
    pub fn ahead(&self) -> usize {
        self.slots.len() - 1
    }

    #[inline]
    fn slot(&self, cycle: u64) -> usize {
        // There are less than 2^32 slots.
        (cycle as usize) & (self.slots.len() - 1)
    }

    /// Puts in what arrives in `cycle`.
    #[inline]
    pub fn put(&mut self, cycle: u64, thing: T) {
        let slot = self.slot(cycle);
        self.slots[slot].push(thing);
        self.waiting += 1;
    }

    /// Takes out all that arrives in `cycle`. What is handed back to [`Calendar::keep`] is used again.
    pub fn take(&mut self, cycle: u64) -> Vec<T> {
        let slot = self.slot(cycle);
        self.waiting -= self.slots[slot].len();
        std::mem::take(&mut self.slots[slot])
    }

    /// Gives the memory back that [`Calendar::take`] took out of `cycle`.
    pub fn keep(&mut self, cycle: u64, mut slot: Vec<T>) {
        slot.clear();
        let index = self.slot(cycle);
        if self.slots[index].is_empty() {
            self.slots[index] = slot;
        }
    }

    /// Puts back what [`Calendar::take`] took out of `cycle` and what was added to that; nothing was put there meanwhile.
    pub fn put_back(&mut self, cycle: u64, things: Vec<T>) {
        let slot = self.slot(cycle);
        self.waiting += things.len();
        self.slots[slot] = things;
    }

    /// The first cycle from `from` on in which something arrives.
    pub fn next(&self, from: u64) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        (from..from + self.slots.len() as u64).find(|cycle| !self.slots[self.slot(*cycle)].is_empty())
    }
}
