//! Values in numbered slots. Free slots are reused.

use std::ops::{Index, IndexMut};

/// Stores values in slots with stable numbers. The memory of freed slots is reused, so memory is
/// allocated only when more slots are in use than ever before.
#[derive(Clone, Debug)]
pub(crate) struct Places<T> {
    values: Vec<T>,
    /// The first `free_len` entries are the numbers of free slots. This list is always as long as
    /// the vector of values, so freeing a slot never has to extend the list.
    free: Vec<u32>,
    free_len: usize,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new(), free_len: 0 }
    }
}

impl<T> Places<T> {
    /// Creates an empty list with memory for `capacity` values.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { values: Vec::with_capacity(capacity), ..Self::default() }
    }

    /// Stores a value in the slot that was freed last, and returns the number of the slot.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: T) -> u32 {
        if self.free_len == 0 {
            return self.widen(value);
        }
        let place = self.take();
        self.values[place as usize] = value;
        place
    }

    /// Returns the index of a free slot, whose old contents are kept. If no slot is free, adds a
    /// slot with the value that `make` returns.
    #[inline(always)]
    pub(crate) fn reuse(&mut self, make: impl FnOnce() -> T) -> u32 {
        if self.free_len == 0 { self.widen(make()) } else { self.take() }
    }

    #[inline(always)]
    fn take(&mut self) -> u32 {
        self.free_len -= 1;
        self.free[self.free_len]
    }

    /// This code is in a separate function so that the frequently executed code stays short.
    #[cold]
    #[inline(never)]
    fn widen(&mut self, value: T) -> u32 {
        self.values.push(value);
        self.free.push(0);
        self.values.len() as u32 - 1
    }

    /// Frees a slot. The slot keeps its contents until it is reused.
    #[inline(always)]
    pub(crate) fn free(&mut self, place: u32) {
        self.free[self.free_len] = place;
        self.free_len += 1;
    }

    /// Returns the value of a slot, if the slot exists.
    #[inline(always)]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.values.get(place as usize)
    }

    /// Returns the number of used slots.
    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free_len
    }

    /// Returns the used values, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().zip(self.used()).filter(|(_, used)| *used).map(|(value, _)| value)
    }

    /// Returns mutable references to the used values.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let used = self.used();
        self.values.iter_mut().zip(used).filter(|(_, used)| *used).map(|(value, _)| value)
    }

    /// Returns one value for each slot: true if the slot is in use.
    fn used(&self) -> Vec<bool> {
        let mut used = vec![true; self.values.len()];
        for &place in &self.free[..self.free_len] {
            used[place as usize] = false;
        }
        used
    }
}

impl<T> Index<u32> for Places<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, place: u32) -> &T {
        &self.values[place as usize]
    }
}

impl<T> IndexMut<u32> for Places<T> {
    #[inline(always)]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.values[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_keep_their_numbers() {
        let mut places = Places::with_capacity(2);
        assert_eq!((places.put('a'), places.put('b'), places.put('c')), (0, 1, 2));
        places.free(1);
        assert_eq!((places.len(), places.iter().collect::<String>()), (2, "ac".into()));
        assert_eq!(
            (places.reuse(|| 'x'), places[1], places.reuse(|| 'd'), places[3]),
            (1, 'b', 3, 'd')
        );
        places[1] = 'e';
        places.free(0);
        assert_eq!((places.put('f'), places[0], places.get(4)), (0, 'f', None));
        assert_eq!(places.iter().collect::<String>(), "fecd");
        places.free(2);
        places.iter_mut().for_each(|value| *value = 'z');
        assert_eq!((places[1], places[2]), ('z', 'c'));
    }
}
