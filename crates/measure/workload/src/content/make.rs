//! Generates the content of units.

use plimsoll_sys::simd::{Kernels, SECTOR_BYTES, STAMP_BYTES, Shape};

use super::duplicates::DuplicateContent;
use super::{ContentError, ContentSpec, Density, Duplicates, is_unit};
use crate::stamp::{Origin, Stamp, filler_of, key_of};

/// Content of all targets of a run. It is read-only, so threads can share or clone it.
#[derive(Clone, Debug)]
pub struct Content {
    kernels: Kernels,
    key: [u64; 2],
    run: u64,
    unit_bytes: u32,
    /// Number of bytes at the end of a unit that do not fill a whole sector.
    tail_bytes: u32,
    density: Density,
    /// Shapes of units. Units with the first shape have the minimum number of incompressible parts.
    /// Units with the second shape have one more part.
    shapes: [Shape; 2],
    duplicates: Option<Duplicates>,
    stamps: bool,
}

impl Content {
    /// Creates the content that `spec` specifies. Uses the fastest instructions of this processor.
    ///
    /// # Errors
    /// Returns a [`ContentError`] that contains the invalid number.
    pub fn new(spec: &ContentSpec) -> Result<Self, ContentError> {
        Self::with_kernels(spec, Kernels::best())
    }

    /// Creates the content that `spec` specifies. Uses the given instructions, which do not affect
    /// the bytes.
    ///
    /// # Errors
    /// See [`Content::new`].
    pub fn with_kernels(spec: &ContentSpec, kernels: Kernels) -> Result<Self, ContentError> {
        let unit_bytes = spec.unit_bytes;
        let bad_unit = ContentError::Unit { unit_bytes };
        let sector_bytes = SECTOR_BYTES as u32;
        let tail_bytes = unit_bytes % sector_bytes;
        let is_plain = spec.compressibility <= 1.0 && spec.duplicate_share == 0.0;
        if !is_unit(unit_bytes) || tail_bytes > 0 && !is_plain {
            return Err(bad_unit);
        }
        let whole_bytes = unit_bytes - tail_bytes;
        let density = Density::new(spec.compressibility, whole_bytes)?;
        let filler = filler_of(spec.run);
        let shape = |more: u8| {
            let most = whole_bytes / 32;
            let parts = (u32::from(density.parts_min()) + u32::from(more)).min(most);
            Shape::new(whole_bytes as usize / SECTOR_BYTES, parts as usize, filler).ok_or(bad_unit)
        };
        Ok(Self {
            kernels,
            key: key_of(spec.run),
            run: spec.run,
            unit_bytes,
            tail_bytes,
            density,
            shapes: [shape(0)?, shape(1)?],
            duplicates: Duplicates::new(
                spec.duplicate_share,
                spec.space_bytes,
                unit_bytes,
                spec.run,
            )?,
            stamps: spec.stamps,
        })
    }

    /// Returns the size of a unit in bytes.
    #[must_use]
    #[inline]
    pub fn unit_bytes(&self) -> usize {
        self.unit_bytes as usize
    }

    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Returns true if units have stamps.
    #[must_use]
    pub fn has_stamps(&self) -> bool {
        self.stamps
    }

    /// Returns the number of the unit that starts at the byte offset `offset_bytes` of a target.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the offset or the size is not a multiple of the unit size.
    #[inline]
    pub fn first_unit(&self, offset_bytes: u64, size_bytes: usize) -> Result<u64, ContentError> {
        let unit_bytes = u64::from(self.unit_bytes);
        let whole = offset_bytes.is_multiple_of(unit_bytes)
            && (size_bytes as u64).is_multiple_of(unit_bytes);
        if whole {
            Ok(offset_bytes / unit_bytes)
        } else {
            let unit_bytes = self.unit_bytes;
            Err(ContentError::Misaligned { offset_bytes, size_bytes, unit_bytes })
        }
    }

    /// Fills the buffer of a write to `target` at `offset_bytes`. Calls `generation` for each unit
    /// in order, with the number of the unit in the target. `generation` must return how often the
    /// run has written the unit, including this write.
    ///
    /// # Errors
    /// [`ContentError::Misaligned`] if the offset or the size is not a multiple of the unit size.
    /// The buffer is then unchanged.
    #[inline]
    pub fn fill(
        &self,
        target: u32,
        offset_bytes: u64,
        mut generation: impl FnMut(u64) -> u32,
        out: &mut [u8],
    ) -> Result<(), ContentError> {
        let first = self.first_unit(offset_bytes, out.len())?;
        let mut cursor = self.cursor(target);
        for (unit, bytes) in (first..).zip(out.chunks_exact_mut(self.unit_bytes())) {
            let stamp = cursor.stamp(unit, generation(unit));
            self.make(&stamp, bytes);
        }
        Ok(())
    }

    #[must_use]
    pub fn stamp(&self, target: u32, unit: u64, generation: u32) -> Stamp {
        self.cursor(target).stamp(unit, generation)
    }

    /// Returns a cursor over the units of a target.
    #[must_use]
    #[inline]
    pub fn cursor(&self, target: u32) -> Cursor<'_> {
        Cursor { content: self, target, extent: u64::MAX, shared: None }
    }

    /// Returns the stamp of a unit in this run. `origin` states where the content of the unit comes
    /// from.
    pub(crate) fn stamp_of(&self, target: u32, generation: u32, origin: Origin) -> Stamp {
        let number = match origin {
            Origin::Place(offset_bytes) => offset_bytes / u64::from(self.unit_bytes),
            Origin::Shared(id) => id,
        };
        Stamp {
            run: self.run,
            target,
            generation,
            origin,
            sectors: (self.unit_bytes / 512) as u8,
            random_parts: self.density.parts(number),
        }
    }

    #[inline]
    fn shape(&self, stamp: &Stamp) -> &Shape {
        &self.shapes[usize::from(stamp.random_parts > self.density.parts_min())]
    }

    /// Returns the first bytes of a unit. They are its stamp or, if units have no stamps, content.
    #[inline]
    fn head(&self, stamp: &Stamp) -> [u8; STAMP_BYTES] {
        if self.stamps {
            return stamp.encode(self.kernels);
        }
        let mut head = [0; STAMP_BYTES];
        let (high, low) = stamp.counter();
        self.kernels.fill_at(self.key, high, low, &mut head);
        head
    }

    #[inline]
    fn make(&self, stamp: &Stamp, out: &mut [u8]) {
        let head = self.head(stamp);
        let out = match self.tail_bytes {
            0 => out,
            tail_bytes => {
                let whole_bytes = out.len().saturating_sub(tail_bytes as usize);
                let (sectors, tail) = out.split_at_mut(whole_bytes);
                stamp.fill_tail(self.kernels, tail);
                sectors
            }
        };
        let made = self.kernels.make_unit(self.key, stamp.counter(), self.shape(stamp), &head, out);
        // The caller has split `out` into units. Each unit has exactly the length of this shape.
        debug_assert!(made);
    }

    /// Returns true if `bytes` are exactly the unit that this stamp describes.
    #[inline]
    pub(crate) fn is_unit(&self, stamp: &Stamp, bytes: &[u8]) -> bool {
        let head = self.head(stamp);
        let (bytes, tail) = bytes.split_at(bytes.len().saturating_sub(self.tail_bytes as usize));
        stamp.has_tail(self.kernels, tail)
            && self.kernels.is_unit(self.key, stamp.counter(), self.shape(stamp), &head, bytes)
    }
}

/// Iterator over the units of a target. It caches the content of the extent that contains the
/// current unit.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    content: &'a Content,
    target: u32,
    extent: u64,
    shared: Option<DuplicateContent>,
}

impl Cursor<'_> {
    #[inline]
    pub fn stamp(&mut self, unit: u64, generation: u32) -> Stamp {
        let content = self.content;
        let place = Origin::Place(unit.wrapping_mul(u64::from(content.unit_bytes)));
        let Some(duplicates) = &content.duplicates else {
            return content.stamp_of(self.target, generation, place);
        };
        let units = duplicates.units_per_extent();
        let extent = unit / units;
        if extent != self.extent {
            (self.extent, self.shared) = (extent, duplicates.of_extent(extent));
        }
        match self.shared {
            None => content.stamp_of(self.target, generation, place),
            Some(shared) => {
                let id = shared.first_id + unit % units;
                let turn = generation.wrapping_add(shared.phase) & 1;
                content.stamp_of(self.target, turn, Origin::Shared(id))
            }
        }
    }
}
