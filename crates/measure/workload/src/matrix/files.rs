//! The directories (shares), files and regions that the operations of a stream access.

use crate::address::Region;

/// The files of a stream. File `f` of share `s` has the number `first_file + s * files_per_share +
/// f` in the file table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSet {
    /// Number of the stream's first file in the file table.
    pub first_file: u32,
    /// Number of shares: directories or exports that contain the files. It is at least 1.
    pub shares: u32,
    /// Number of files in each share. It is at least 1.
    pub files_per_share: u32,
    /// Size of each file (or of the device) in bytes.
    pub file_size_bytes: u64,
    /// Offset in each file at which the working set starts, in bytes.
    pub offset_bytes: u64,
    /// Size of the working set, summed over all files, in bytes. If it is `None`, operations access
    /// every file from the offset to the end of the file.
    pub working_set_bytes: Option<u64>,
}

impl FileSet {
    #[must_use]
    pub fn files(&self) -> u64 {
        u64::from(self.shares) * u64::from(self.files_per_share)
    }

    /// Returns the number in the file table of file `file` in share `share`.
    #[must_use]
    pub fn file(&self, share: u32, file: u32) -> u32 {
        let within = u64::from(share) * u64::from(self.files_per_share) + u64::from(file);
        self.first_file.saturating_add(u32::try_from(within).unwrap_or(u32::MAX))
    }

    /// Returns the regions of the files in a share. A transfer of `largest_bytes` fits in each
    /// region. The size of a region is a multiple of `grid_bytes`.
    ///
    /// The working set is distributed evenly over the files. The part in a file must not be smaller
    /// than a transfer. If it would be smaller, the working set uses only every n-th file.
    #[must_use]
    pub fn regions(&self, share: u32, largest_bytes: u64, grid_bytes: u64) -> Vec<Region> {
        let room = self.file_size_bytes.saturating_sub(self.offset_bytes);
        let files = self.files().max(1);
        let region = |file: u32, size_bytes| Region {
            file: self.file(share, file),
            offset_bytes: self.offset_bytes,
            size_bytes,
        };
        let Some(set) = self.working_set_bytes.filter(|set| set / files < room) else {
            return (0..self.files_per_share).map(|file| region(file, room)).collect();
        };
        let used = (set / largest_bytes.max(1)).clamp(1, files);
        let each = set / used;
        let grid = grid_bytes.max(1);
        let each = (each - each % grid).max(largest_bytes).min(room);
        let first = u64::from(share) * u64::from(self.files_per_share);
        (0..self.files_per_share)
            .filter(|file| {
                // The `used` files are evenly distributed among all files.
                let at = first + u64::from(*file);
                let step = |at: u64| u128::from(at) * u128::from(used) / u128::from(files);
                at == 0 || step(at) != step(at - 1)
            })
            .map(|file| region(file, each))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(working_set_bytes: Option<u64>) -> FileSet {
        FileSet {
            first_file: 10,
            shares: 4,
            files_per_share: 5,
            file_size_bytes: 1 << 30,
            offset_bytes: 4096,
            working_set_bytes,
        }
    }

    fn total(set: &FileSet) -> u64 {
        let shares = 0..set.shares;
        shares.flat_map(|s| set.regions(s, 65_536, 4096)).map(|r| r.size_bytes).sum()
    }

    #[test]
    fn without_a_working_set_everything_from_the_offset_on() {
        let all = set(None);
        let regions = all.regions(2, 65_536, 4096);
        assert_eq!(regions.len(), 5);
        assert_eq!(regions[0].file, 20);
        assert!(regions.iter().all(|r| r.offset_bytes == 4096 && r.size_bytes == (1 << 30) - 4096));
        assert_eq!(total(&set(Some(1 << 60))), 20 * ((1 << 30) - 4096));
    }

    #[test]
    fn a_working_set_is_met() {
        for required in [1u64 << 30, 300_000_000, 20 * 65_536, 65_536 * 3, 65_536] {
            let got = total(&set(Some(required)));
            assert!(got <= required && got + 20 * 4096 > required, "{required}: {got}");
        }
        let few = set(Some(3 * 65_536));
        let used: usize = (0..4).map(|s| few.regions(s, 65_536, 4096).len()).sum();
        assert_eq!(used, 3);
    }
}
