//! The page cache of one database. It contains frames, an index by page number, the order of last
//! use, and the order in which pages became dirty.
//!
//! A frame stores only the directory of a page, because all bytes of the page can be computed from
//! the directory. The frames form linked lists, in which they refer to each other by index. After
//! construction, the cache allocates no memory.

use plimsoll_sys::hint;
use plimsoll_sys::large::Large;

use super::page::Directory;

/// Index that stands for "no frame" or "no session".
pub(crate) const NONE: u32 = u32::MAX;

/// Number of neighbouring pages whose slots in the hash table are in the same one or two cache
/// lines of the CPU.
const NEIGHBOURS: u32 = 8;

/// Frame with one cached page. The fields that link the lists are in the first CPU cache line of
/// the frame.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Frame {
    lru: (u32, u32),
    dirt: (u32, u32),
    /// Sessions that wait for the page, as a queue.
    pub waiters: (u32, u32),
    /// Log position after the latest change of the page.
    pub page_lsn: u64,
    /// Log position before the first change that no completed write contains.
    pub rec_lsn: u64,
    pub page: u32,
    /// Generation of the latest write that was issued. Before the first write, this is the
    /// generation that was read from the target.
    pub generation: u32,
    pub dirty: bool,
    pub loading: bool,
    pub writing: bool,
    /// True if the frame must be freed when its write completes.
    pub evict: bool,
    pub directory: Directory,
}

impl Frame {
    const EMPTY: Self = Self {
        page: NONE,
        generation: 0,
        directory: Directory([0; 16]),
        page_lsn: 0,
        rec_lsn: 0,
        dirty: false,
        loading: false,
        writing: false,
        evict: false,
        waiters: (NONE, NONE),
        lru: (NONE, NONE),
        dirt: (NONE, NONE),
    };
}

/// First and last frame of a list.
type Ends = (u32, u32);

/// Page cache of one database.
#[derive(Debug)]
pub(crate) struct Cache {
    pub frames: Large<Frame>,
    /// Hash table from pages to frames. At most half of its slots are used. Collisions are handled
    /// by open addressing with linear probing (D. E. Knuth, "The Art of Computer Programming",
    /// volume 3, section 6.4, algorithms L and R).
    slots: Large<(u32, u32)>,
    free: Vec<u32>,
    /// List of frames in the order of their last use: (least recently used, most recently used).
    lru: Ends,
    /// List of dirty frames in the order in which they became dirty: (first, last).
    dirt: Ends,
    dirty_count: u32,
    /// Maximum number of frames that have been in use at the same time.
    filled: u32,
}

impl Cache {
    /// Creates a cache of `frames` frames.
    pub fn new(frames: u32) -> Self {
        let slots = (frames as usize * 2).max(2).next_power_of_two();
        Self {
            frames: Large::filled(Frame::EMPTY, frames as usize),
            slots: Large::filled((NONE, NONE), slots),
            free: (0..frames).rev().collect(),
            lru: (NONE, NONE),
            dirt: (NONE, NONE),
            dirty_count: 0,
            filled: 0,
        }
    }

    /// Returns the slot of the hash table at which the search for a page starts.
    fn home(&self, page: u32) -> usize {
        // Fibonacci hashing, which is applied to groups of neighbouring pages. Neighbouring pages
        // are usually looked up together.
        let hash = u64::from(page / NEIGHBOURS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let home = hash as usize * NEIGHBOURS as usize + (page % NEIGHBOURS) as usize;
        home & (self.slots.len() - 1)
    }

    /// Returns the slot of the hash table that contains the page. If no slot contains it, returns
    /// the free slot for the page.
    fn seek(&self, page: u32) -> usize {
        let mut at = self.home(page);
        while self.slots[at].1 != NONE && self.slots[at].0 != page {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    /// Returns the frame that contains a page, if the page is cached.
    #[inline(always)]
    pub fn find(&self, page: u32) -> Option<u32> {
        let (_, frame) = self.slots[self.seek(page)];
        (frame != NONE).then_some(frame)
    }

    /// Removes the slot of a page from the hash table, and closes the gap.
    fn forget(&mut self, page: u32) {
        let mask = self.slots.len() - 1;
        let mut hole = self.seek(page);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.slots[at].1 == NONE {
                break;
            }
            // A page must stay in its slot if the slot at which its search starts is cyclically in
            // (hole, at].
            let home = self.home(self.slots[at].0);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole] = (NONE, NONE);
    }

    /// Takes a free frame for a page that is not cached. The frame is in no list until
    /// [`Cache::touch`] is called.
    #[inline(always)]
    pub fn take(&mut self, page: u32) -> Option<u32> {
        let at = self.free.pop()?;
        self.frames[at as usize] = Frame { page, ..Frame::EMPTY };
        let slot = self.seek(page);
        self.slots[slot] = (page, at);
        self.filled = self.filled.max((self.frames.len() - self.free.len()) as u32);
        Some(at)
    }

    /// Frees a frame. The frame must be clean, and it must not be in a list.
    #[inline(always)]
    pub fn release(&mut self, at: u32) {
        self.forget(self.frames[at as usize].page);
        self.frames[at as usize] = Frame::EMPTY;
        self.free.push(at);
    }

    /// Moves a frame to the most recently used position. This also cancels the eviction of the
    /// frame.
    #[inline(always)]
    pub fn touch(&mut self, at: u32) {
        self.unlink_lru(at);
        let last = self.lru.1;
        self.frames[at as usize].lru = (last, NONE);
        match last {
            NONE => self.lru.0 = at,
            last => self.frames[last as usize].lru.1 = at,
        }
        self.lru.1 = at;
    }

    /// Removes a frame from the list of frames in the order of their last use.
    #[inline(always)]
    pub fn unlink_lru(&mut self, at: u32) {
        let (before, after) = self.frames[at as usize].lru;
        let linked = before != NONE || after != NONE || self.lru.0 == at;
        if !linked {
            return;
        }
        match before {
            NONE => self.lru.0 = after,
            before => self.frames[before as usize].lru.1 = after,
        }
        match after {
            NONE => self.lru.1 = before,
            after => self.frames[after as usize].lru.0 = before,
        }
        self.frames[at as usize].lru = (NONE, NONE);
    }

    /// Announces that a page will soon be looked up, and prefetches its slot.
    #[inline]
    pub fn hint(&self, page: u32) {
        hint::prefetch(&self.slots[self.home(page)]);
    }

    /// Announces that the least recently used frame will soon be freed. Prefetches this frame and
    /// the next frame in the list.
    #[inline]
    pub fn hint_oldest(&self) {
        if let Some(frame) = self.frames.get(self.lru.0 as usize) {
            self.hint(frame.page);
            if let Some(next) = self.frames.get(frame.lru.1 as usize) {
                hint::prefetch(next);
            }
        }
    }

    /// Announces that the frame that became dirty first will soon be written. Prefetches this frame
    /// and the next frame in the list.
    #[inline]
    pub fn hint_oldest_dirty(&self) {
        if let Some(frame) = self.frames.get(self.dirt.0 as usize) {
            self.hint(frame.page);
            if let Some(next) = self.frames.get(frame.dirt.1 as usize) {
                hint::prefetch(next);
            }
        }
    }

    /// Returns the least recently used frame.
    pub fn oldest(&self) -> Option<u32> {
        (self.lru.0 != NONE).then_some(self.lru.0)
    }

    /// Marks a frame as dirty. `rec_lsn` is the log position at which its first change starts.
    #[inline(always)]
    pub fn dirty(&mut self, at: u32, rec_lsn: u64) {
        let last = self.dirt.1;
        let frame = &mut self.frames[at as usize];
        if frame.dirty {
            return;
        }
        frame.dirty = true;
        frame.rec_lsn = rec_lsn;
        frame.dirt = (last, NONE);
        match last {
            NONE => self.dirt.0 = at,
            last => self.frames[last as usize].dirt.1 = at,
        }
        self.dirt.1 = at;
        self.dirty_count += 1;
    }

    /// Marks a frame as clean.
    #[inline(always)]
    pub fn clean(&mut self, at: u32) {
        if !self.frames[at as usize].dirty {
            return;
        }
        let (before, after) = self.frames[at as usize].dirt;
        match before {
            NONE => self.dirt.0 = after,
            before => self.frames[before as usize].dirt.1 = after,
        }
        match after {
            NONE => self.dirt.1 = before,
            after => self.frames[after as usize].dirt.0 = before,
        }
        let frame = &mut self.frames[at as usize];
        frame.dirt = (NONE, NONE);
        frame.dirty = false;
        self.dirty_count -= 1;
    }

    /// Returns the frame that became dirty before all other dirty frames.
    pub fn oldest_dirty(&self) -> Option<u32> {
        (self.dirt.0 != NONE).then_some(self.dirt.0)
    }

    /// Returns the next frame in the order in which frames became dirty.
    pub fn next_dirty(&self, at: u32) -> Option<u32> {
        let next = self.frames[at as usize].dirt.1;
        (next != NONE).then_some(next)
    }

    /// Returns the number of free frames.
    pub fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns the number of dirty frames. A frame is dirty if no issued write contains its latest
    /// change.
    pub fn dirty_count(&self) -> u32 {
        self.dirty_count
    }

    /// Returns the maximum number of frames that have been in use at the same time.
    pub fn filled(&self) -> u32 {
        self.filled
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Actions that the test performs on a cache: allocate, touch, unlink and free, make dirty,
    /// make clean.
    #[derive(Clone, Debug)]
    enum Act {
        Take(u32),
        Touch(u32),
        Drop(u32),
        Dirty(u32),
        Clean(u32),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = (0u8..5, 0u32..24).prop_map(|(what, page)| match what {
            0 => Act::Take(page),
            1 => Act::Touch(page),
            2 => Act::Drop(page),
            3 => Act::Dirty(page),
            _ => Act::Clean(page),
        });
        proptest::collection::vec(act, 1..200)
    }

    fn order(cache: &Cache) -> Vec<u32> {
        let mut at = cache.oldest();
        let mut pages = Vec::new();
        while let Some(frame) = at {
            pages.push(cache.frames[frame as usize].page);
            let next = cache.frames[frame as usize].lru.1;
            at = (next != NONE).then_some(next);
        }
        pages
    }

    fn dirt(cache: &Cache) -> Vec<u32> {
        let mut at = cache.oldest_dirty();
        let mut pages = Vec::new();
        while let Some(frame) = at {
            pages.push(cache.frames[frame as usize].page);
            at = cache.next_dirty(frame);
        }
        pages
    }

    proptest! {
        /// The cache behaves like two plain lists of pages.
        #[test]
        fn a_cache_is_two_lists(acts in acts()) {
            let mut cache = Cache::new(16);
            let (mut used, mut dirty) = (VecDeque::<u32>::new(), Vec::<u32>::new());
            for (lsn, act) in acts.into_iter().enumerate() {
                match act {
                    Act::Take(page) if cache.find(page).is_none() => {
                        let taken = cache.take(page);
                        prop_assert_eq!(taken.is_some(), used.len() < 16);
                        if let Some(at) = taken {
                            cache.touch(at);
                            used.push_back(page);
                        }
                    }
                    Act::Touch(page) => {
                        if let Some(at) = cache.find(page) {
                            cache.touch(at);
                            used.retain(|&p| p != page);
                            used.push_back(page);
                        }
                    }
                    Act::Drop(page) => {
                        if let Some(at) = cache.find(page).filter(|_| !dirty.contains(&page)) {
                            cache.unlink_lru(at);
                            cache.release(at);
                            used.retain(|&p| p != page);
                        }
                    }
                    Act::Dirty(page) => {
                        if let Some(at) = cache.find(page) {
                            cache.dirty(at, lsn as u64);
                            if !dirty.contains(&page) {
                                dirty.push(page);
                            }
                        }
                    }
                    Act::Clean(page) => {
                        if let Some(at) = cache.find(page) {
                            cache.clean(at);
                            dirty.retain(|&p| p != page);
                        }
                    }
                    Act::Take(_) => {}
                }
                prop_assert_eq!(order(&cache), used.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(dirt(&cache), dirty.clone());
                prop_assert_eq!(cache.dirty_count() as usize, dirty.len());
                prop_assert_eq!(cache.free_count() as usize, 16 - used.len());
                for page in 0..24 {
                    prop_assert_eq!(cache.find(page).is_some(), used.contains(&page));
                }
            }
        }
    }
}
