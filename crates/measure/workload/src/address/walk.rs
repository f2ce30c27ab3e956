//! Computes the sequence of addresses that a client accesses in a space.

use super::hash::{mix, unit_open};
use plimsoll_plan::Pattern;

use super::{AddressError, Indices, Place, Region, Slots, Space};

/// Space and pattern that all clients of a stream share. If the stream is sequential and its
/// transfers have several sizes, the clients also share a cursor. All other mutable state is only a
/// cache.
#[derive(Clone, Debug)]
pub struct AddressWalks {
    space: Space,
    slots: Slots,
    order: Order,
    align_bytes: u64,
    /// Size of all transfers; `None` if transfers have several sizes.
    one_size: Option<u64>,
    shared_cursor: u64,
    /// For a pattern that skips slots: the mean number of skipped slots, and the seed from which
    /// the skips are computed.
    skip: (f64, u64),
}

/// How the address of an operation depends on the previous address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    None,
    Own,
    Skipping,
    Shared,
}

/// State of one client: how far it is in its sequence of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    indices: Indices,
    cursor: u64,
}

/// Constant that is mixed into the seed of the skips. Because of it, this seed differs from the
/// seeds of slots.
const SKIPS: u64 = 0x5E1F;

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl AddressWalks {
    /// Creates a pattern over `regions` for transfers of the given sizes. Offsets from the start of
    /// a region are multiples of `align_bytes`. If `align_bytes` is 0, they are multiples of the
    /// size of the transfer. Regions smaller than the largest transfer are omitted.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn new(
        pattern: &Pattern,
        regions: &[Region],
        sizes_bytes: &[u64],
        align_bytes: u64,
        seed: u64,
    ) -> Result<Self, AddressError> {
        super::pattern::check(pattern)?;
        let smallest = sizes_bytes.iter().copied().min().unwrap_or(0);
        let largest = sizes_bytes.iter().copied().max().unwrap_or(0);
        if smallest == 0 {
            return Err(AddressError::NoGrid);
        }
        let one_size = (smallest == largest).then_some(smallest);
        let order = match pattern {
            Pattern::Sequential => Order::Own,
            Pattern::SequentialShared => Order::Shared,
            Pattern::Skipping { .. } => Order::Skipping,
            _ => Order::None,
        };
        let grid = match (align_bytes, one_size) {
            (0, _) => sizes_bytes.iter().copied().fold(0, gcd),
            (align, Some(size)) if order != Order::None => {
                size.checked_next_multiple_of(align).ok_or(AddressError::TooLarge)?
            }
            (align, _) => align,
        };
        let room = |region: &&Region| region.size_bytes >= largest;
        let roomy: Vec<Region> = regions.iter().filter(room).copied().collect();
        if !roomy.is_empty() && roomy.iter().all(|region| region.size_bytes < align_bytes) {
            return Err(AddressError::OneAddress { align_bytes });
        }
        let space = Space::new(&roomy, grid, smallest).map_err(|error| match error {
            AddressError::NoRoom { .. } => AddressError::NoRoom { transfer_bytes: largest },
            other => other,
        })?;
        let slots = Slots::new(pattern, space.slots(), grid, seed);
        let skip = match pattern {
            Pattern::Skipping { density } => 1.0 / density - 1.0,
            _ => 0.0,
        };
        let skip = (skip, mix(seed, SKIPS));
        Ok(Self { space, slots, order, align_bytes, one_size, shared_cursor: 0, skip })
    }

    /// Returns the position at which client number `client` starts. There are `clients` clients.
    /// The clients of a stream execute its operations in rotation, so the stream is the same for
    /// any distribution of clients over threads.
    #[must_use]
    pub fn walk(&self, client: u64, clients: u64) -> Walk {
        let clients = clients.max(1);
        let cursor = u128::from(self.space.slots()) * u128::from(client % clients);
        Walk {
            indices: Indices::new(client, clients),
            cursor: (cursor / u128::from(clients)) as u64,
        }
    }

    /// Returns the address of the client's next transfer. `size_bytes` is one of the sizes that
    /// were given at creation.
    #[inline]
    pub fn next(&mut self, walk: &mut Walk, size_bytes: u64) -> Place {
        match (self.order, self.one_size) {
            (Order::None, Some(_)) => self.space.place(self.slots.at(walk.indices.take())),
            (Order::None, None) => {
                let slot = self.slots.at(walk.indices.take());
                let align = if self.align_bytes == 0 { size_bytes } else { self.align_bytes };
                let place = self.space.place_of(slot, size_bytes, align);
                // In every region, a transfer of the largest size fits. `None` therefore means that
                // the size was not one of the sizes from the creation.
                place.unwrap_or_else(|| self.space.place(slot))
            }
            (Order::Own, _) => {
                let (at, next) = self.after(walk.cursor, size_bytes);
                walk.cursor = next;
                self.space.place(at)
            }
            (Order::Skipping, _) => {
                // The gaps have an exponential distribution and are rounded to whole slots. The
                // accessed slots are therefore independent of each other, and have the required
                // density.
                let (mean_slots, seed) = self.skip;
                let drawn = -libm::log(unit_open(mix(seed, walk.indices.take())));
                let skip = (drawn * mean_slots + 0.5) as u64;
                let cursor = walk.cursor.saturating_add(skip) % self.space.slots().max(1);
                let (at, next) = self.after(cursor, size_bytes);
                walk.cursor = next;
                self.space.place(at)
            }
            (Order::Shared, Some(_)) => {
                let index = walk.indices.take();
                self.space.place(self.slots.at(index))
            }
            (Order::Shared, None) => {
                let (at, next) = self.after(self.shared_cursor, size_bytes);
                self.shared_cursor = next;
                self.space.place(at)
            }
        }
    }

    /// Starting at `cursor`, returns the first slot from which the transfer fits into the rest of
    /// the region. Also returns the next cursor.
    #[inline]
    fn after(&self, cursor: u64, size_bytes: u64) -> (u64, u64) {
        let mut at = if cursor < self.space.slots() { cursor } else { 0 };
        if self.one_size.is_none() && self.space.room_bytes(at) < size_bytes {
            at = self.space.next_region(at);
        }
        (at, at + size_bytes.div_ceil(self.space.slot_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(size_bytes: u64) -> [Region; 1] {
        [Region { file: 0, offset_bytes: 0, size_bytes }]
    }

    fn offsets(walks: &mut AddressWalks, walk: &mut Walk, size: u64, n: usize) -> Vec<u64> {
        (0..n).map(|_| walks.next(walk, size).offset_bytes).collect()
    }

    #[test]
    fn an_alignment_larger_than_every_region_is_refused() {
        let walks = |align| AddressWalks::new(&Pattern::Random, &one(1 << 22), &[4096], align, 1);
        assert!(walks(1 << 22).is_ok());
        let align_bytes = (1 << 22) + 512;
        assert_eq!(walks(align_bytes).err(), Some(AddressError::OneAddress { align_bytes }));
    }

    #[test]
    fn sequential_clients_start_apart_and_wrap() {
        let mut walks =
            AddressWalks::new(&Pattern::Sequential, &one(10 * 4096), &[4096], 0, 1).unwrap();
        let (mut a, mut b) = (walks.walk(0, 2), walks.walk(1, 2));
        let blocks = |offsets: Vec<u64>| offsets.iter().map(|o| o / 4096).collect::<Vec<_>>();
        assert_eq!(blocks(offsets(&mut walks, &mut a, 4096, 4)), [0, 1, 2, 3]);
        assert_eq!(blocks(offsets(&mut walks, &mut b, 4096, 7)), [5, 6, 7, 8, 9, 0, 1]);
    }

    #[test]
    fn skipping_clients_go_on_and_touch_as_much_of_the_space_as_asked() {
        let slots = 1u64 << 20;
        let pattern = Pattern::Skipping { density: 0.1 };
        let mut walks = AddressWalks::new(&pattern, &one(slots * 4096), &[4096], 0, 1).unwrap();
        let mut walk = walks.walk(1, 2);
        // The second of the two clients starts in the middle of the space. It therefore reaches the
        // end after half of a pass.
        let steps = slots as usize / 20;
        let seen: Vec<u64> =
            offsets(&mut walks, &mut walk, 4096, steps).iter().map(|o| o / 4096).collect();
        assert!(seen[0] >= slots / 2 && seen[0] < slots / 2 + 200);
        let turns = seen.windows(2).filter(|pair| pair[1] <= pair[0]).count();
        assert!(turns <= 1, "{turns} steps back");
        let gaps = seen.windows(2).filter(|p| p[1] > p[0]).map(|p| (p[1] - p[0]) as f64);
        let (sum, squares) = gaps.fold((0.0, 0.0), |(s, q), gap| (s + gap, q + gap * gap));
        let n = steps as f64;
        let mean = sum / n;
        assert!((mean - 10.0).abs() < 0.2, "mean gap {mean}");
        // A gap without the accessed slot itself has an exponential distribution. Its standard
        // deviation is therefore equal to its mean.
        let deviation = (squares / n - mean * mean).sqrt();
        assert!((deviation - 9.0).abs() < 0.4, "{deviation}");
        let mut again = AddressWalks::new(&pattern, &one(slots * 4096), &[4096], 0, 1).unwrap();
        let mut walk = again.walk(1, 2);
        assert!(
            offsets(&mut again, &mut walk, 4096, 50)
                .iter()
                .map(|o| o / 4096)
                .eq(seen[..50].iter().copied())
        );
        let dense = Pattern::Skipping { density: 1.0 };
        let mut walks = AddressWalks::new(&dense, &one(10 * 4096), &[4096], 0, 1).unwrap();
        let mut walk = walks.walk(0, 1);
        assert!(
            offsets(&mut walks, &mut walk, 4096, 12)
                .iter()
                .copied()
                .eq((0..12).map(|i| i % 10 * 4096))
        );
        for density in [0.0, 1.5, f64::NAN] {
            let bad = Pattern::Skipping { density };
            assert!(AddressWalks::new(&bad, &one(40_960), &[4096], 0, 1).is_err());
        }
    }

    #[test]
    fn a_shared_cursor_is_the_same_for_any_number_of_parts() {
        for parts in [1u64, 2, 3, 7] {
            let mut walks =
                AddressWalks::new(&Pattern::SequentialShared, &one(100 * 4096), &[4096], 0, 1)
                    .unwrap();
            let mut each: Vec<Walk> = (0..parts).map(|p| walks.walk(p, parts)).collect();
            let got: Vec<u64> = (0..250)
                .map(|i| walks.next(&mut each[(i % parts) as usize], 4096).offset_bytes / 4096)
                .collect();
            assert!(got.iter().copied().eq((0..250).map(|i| i % 100)), "{parts}");
        }
    }

    #[test]
    fn random_places_do_not_depend_on_the_number_of_parts() {
        let regions: Vec<Region> = (0..5)
            .map(|file| Region { file, offset_bytes: 0, size_bytes: 1 << (22 + file % 2) })
            .collect();
        let run = |parts: u64| {
            let mut walks =
                AddressWalks::new(&Pattern::Zipf { exponent: 1.0 }, &regions, &[8192], 4096, 1)
                    .unwrap();
            let mut each: Vec<Walk> = (0..parts).map(|p| walks.walk(p, parts)).collect();
            (0..1000).map(|i| walks.next(&mut each[(i % parts) as usize], 8192)).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(4));
        assert_eq!(run(1), run(9));
    }

    #[test]
    fn mixed_sizes_are_aligned_and_inside() {
        let regions = [
            Region { file: 0, offset_bytes: 4096, size_bytes: 300_000 },
            Region { file: 1, offset_bytes: 0, size_bytes: 100_000 },
            Region { file: 2, offset_bytes: 0, size_bytes: 65_535 },
        ];
        let sizes = [512u64, 4096, 65_536];
        for pattern in [Pattern::Random, Pattern::Sequential, Pattern::SequentialShared] {
            for align in [0u64, 512, 4096] {
                let mut walks = AddressWalks::new(&pattern, &regions, &sizes, align, 1).unwrap();
                let mut walk = walks.walk(1, 3);
                let mut seen = [0; 3];
                for i in 0..2_000 {
                    let size = sizes[i % 3];
                    let place = walks.next(&mut walk, size);
                    let region = regions[place.file as usize];
                    let within = place.offset_bytes - region.offset_bytes;
                    assert!(within + size <= region.size_bytes, "{pattern:?} {align} {size}");
                    let by = match (pattern, align) {
                        (Pattern::Random, 0) => size,
                        (_, 0) => 512,
                        (_, align) => align,
                    };
                    assert_eq!(within % by, 0, "{pattern:?} {align} {size}");
                    seen[place.file as usize] += 1;
                }
                assert!(seen[0] > 0 && seen[1] > 0 && seen[2] == 0, "{seen:?}");
            }
        }
    }

    #[test]
    fn transfers_at_a_finer_grid_reach_every_start() {
        let mut walks = AddressWalks::new(&Pattern::Random, &one(16_384), &[8192], 512, 1).unwrap();
        let mut walk = walks.walk(0, 1);
        let mut starts = offsets(&mut walks, &mut walk, 8192, 2_000);
        starts.sort_unstable();
        starts.dedup();
        assert!(starts.into_iter().eq((0..=16).map(|i| i * 512)));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let no =
            |size| AddressWalks::new(&Pattern::Random, &one(4096), &[512, size], 0, 1).map(|_| ());
        assert_eq!(no(8192), Err(AddressError::NoRoom { transfer_bytes: 8192 }));
        assert_eq!(no(0), Err(AddressError::NoGrid));
        let bad = Pattern::Zipf { exponent: -1.0 };
        assert!(AddressWalks::new(&bad, &one(4096), &[4096], 0, 1).is_err());
    }
}
