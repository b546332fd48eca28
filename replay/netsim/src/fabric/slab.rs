//! Numbered places that are used again.

/// Things by number; numbers of things that were removed are given out again.
pub struct Slab<T> {
    things: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    /// Puts in `thing`. Returns its number.
    pub fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.things[id as usize] = thing;
                id
            }
            None => {
                self.things.push(thing);
                crate::count::count(self.things.len() - 1)
            }
        }
    }

    /// The thing with number `id`.
    pub fn get(&self, id: u32) -> &T {
        &self.things[id as usize]
    }

    /// The thing with number `id`, to be changed.
    pub fn get_mut(&mut self, id: u32) -> &mut T {
        &mut self.things[id as usize]
    }

    /// Takes out the thing with number `id`.
    pub fn remove(&mut self, id: u32) -> T {
        self.free.push(id);
        self.things[id as usize]
    }
}
