//! Ports and flows, of which a part of the network has some.

use crate::count::count;
use std::ops::{Index, IndexMut};

const NOWHERE: u32 = u32::MAX;

/// Things by the numbers that they have in the whole network.
pub struct Numbered<T> {
    things: Vec<T>,
    /// Of a part's things: by number, where each lies, or [`NOWHERE`].
    places: Option<Vec<u32>>,
}

impl<T> Numbered<T> {
    /// All things of a network.
    pub const fn all(things: Vec<T>) -> Self {
        Self { things, places: None }
    }

    /// Those of a part, which has none yet.
    pub const fn of_part() -> Self {
        Self { things: Vec::new(), places: Some(Vec::new()) }
    }

    /// How many there are here.
    pub const fn len(&self) -> usize {
        self.things.len()
    }

    /// Puts in `thing`, whose number is `number`: of a whole network's the next one.
    pub fn insert(&mut self, number: u32, thing: T) {
        if let Some(places) = &mut self.places {
            let index = number as usize;
            if index >= places.len() {
                places.resize(index + 1, NOWHERE);
            }
            places[index] = count(self.things.len());
        }
        self.things.push(thing);
    }

    /// Where thing `number` lies; somewhere beyond the others if it is not here.
    #[inline]
    fn place(&self, number: u32) -> usize {
        match &self.places {
            None => number as usize,
            Some(places) => places.get(number as usize).map_or(usize::MAX, |place| *place as usize),
        }
    }

    /// The thing with `number`, if it is here.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.things.get(self.place(number))
    }

    /// The things that are here, in the order in which they were put in.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.things.iter()
    }
}

impl<T> Index<u32> for Numbered<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.things[self.place(number)]
    }
}

impl<T> IndexMut<u32> for Numbered<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        let place = self.place(number);
        &mut self.things[place]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_part_finds_its_own_by_the_numbers_of_the_whole() {
        let mut part = Numbered::of_part();
        for number in [7, 2, 9] {
            part.insert(number, number * 10);
        }
        part[2] += 1;
        assert_eq!([7, 2, 9].map(|number| part[number]), [70, 21, 90]);
        assert_eq!([0, 3, 8, 10, u32::MAX].map(|number| part.get(number)), [None; 5]);
        let whole = Numbered::all(vec![5, 6]);
        assert_eq!((whole[1], whole.get(2), whole.len()), (6, None, 2));
    }
}
