//! Numbered places that are used again.

use typed_index_collections::TiVec;

/// Things by number; numbers of things that were removed are given out again.
pub struct Slab<I, T> {
    things: TiVec<I, T>,
    free: Vec<I>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self { things: TiVec::new(), free: Vec::new() }
    }
}

impl<I: Copy + From<usize>, T: Copy> Slab<I, T>
where
    usize: From<I>,
{
    /// Puts in `thing`. Returns its number.
    #[inline]
    pub fn insert(&mut self, thing: T) -> I {
        match self.free.pop() {
            Some(id) => {
                self.things[id] = thing;
                id
            }
            None => self.things.push_and_get_key(thing),
        }
    }

    /// The thing with number `id`.
    #[inline]
    pub fn get(&self, id: I) -> &T {
        &self.things[id]
    }

    /// The thing with number `id`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> &mut T {
        &mut self.things[id]
    }

    /// Takes out the thing with number `id`.
    #[inline]
    pub fn remove(&mut self, id: I) -> T {
        self.free.push(id);
        self.things[id]
    }
}
