//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use super::{UnitError, decimal, serde_as_text};

/// Names of units, and the sizes of the units in bytes. The binary units are defined by IEC
/// 80000-13, and the decimal units by SI.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A size in bytes, at most 2^63 - 1. In a plan, a size is a text such as `"4KiB"`, `"1.5GiB"`,
/// `"20GB"` or `"512B"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SizeBytes(pub u64);

impl SizeBytes {
    /// Creates a size from a number of KiB (1,024 bytes).
    #[must_use]
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// Creates a size from a number of MiB (1,048,576 bytes).
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }
}

impl SizeBytes {
    /// Returns the size with a binary unit, rounded to four digits (`122.1 TiB`). [`fmt::Display`]
    /// prints the exact size.
    #[must_use]
    pub fn about(self) -> String {
        const NAMES: [&str; 6] = ["PiB", "TiB", "GiB", "MiB", "KiB", "B"];
        let unit = |i: usize| 1u64 << (10 * (NAMES.len() - 1 - i));
        let at = (0..NAMES.len()).find(|&i| self.0 >= unit(i)).unwrap_or(NAMES.len() - 1);
        let number = self.0 as f64 / unit(at) as f64;
        let places = if number >= 1000.0 {
            0
        } else if number >= 100.0 {
            1
        } else {
            2
        };
        let text = format!("{number:.places$}");
        let text = match text.split_once('.') {
            Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            None => text,
        };
        format!("{text} {}", NAMES[at])
    }
}

impl FromStr for SizeBytes {
    type Err = UnitError;

    /// # Errors
    /// The error states the problem and the expected form.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = decimal::split(text, "\"32KiB\"")?;
        match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => number.times(*factor, text, "bytes").map(Self),
            None => Err(unknown_unit(text, unit)),
        }
    }
}

/// Parses the sizes in a flag, such as `4KiB,64KiB` or `4KiB..128KiB`. In a range, each size is
/// twice the previous size.
///
/// # Errors
/// A size is not valid, or repeated doubling of the first size does not result in the last size.
pub fn sizes_from_text(text: &str) -> Result<Vec<SizeBytes>, UnitError> {
    let Some((first, last)) = text.split_once("..") else {
        return text.split(',').map(|size| size.trim().parse()).collect();
    };
    let (first, last): (SizeBytes, SizeBytes) = (first.trim().parse()?, last.trim().parse()?);
    let steps = last.0.checked_div(first.0).filter(|n| n.is_power_of_two());
    match steps.filter(|n| n * first.0 == last.0) {
        Some(ratio) => Ok((0..=ratio.trailing_zeros()).map(|i| SizeBytes(first.0 << i)).collect()),
        None => Err(UnitError::new(
            format!("repeated doubling of \"{first}\" does not result in \"{last}\""),
            "write a range such as \"4KiB..128KiB\", or list the sizes",
        )),
    }
}

fn unknown_unit(text: &str, unit: &str) -> UnitError {
    let number = text.trim_end_matches(unit).trim_end();
    if unit.is_empty() {
        return UnitError::new(
            format!("\"{text}\" has no unit"),
            format!("write \"{number}B\" for bytes, or use KiB/MiB/GiB/TiB or kB/MB/GB/TB"),
        );
    }
    let prefix = unit.chars().next().map(|c| c.to_ascii_uppercase());
    match prefix.filter(|p| "KMGT".contains(*p)) {
        Some(p) => {
            let bare = unit.len() == 1;
            let what = if bare {
                "is ambiguous: it may mean a power of 1000 or of 1024"
            } else {
                "is not a unit"
            };
            let decimal = if p == 'K' { 'k' } else { p };
            UnitError::new(
                format!("\"{unit}\" in \"{text}\" {what}"),
                format!(
                    "write \"{number}{p}iB\" (powers of 1024) or \"{number}{decimal}B\" (powers of \
                     1000)"
                ),
            )
        }
        None => UnitError::new(
            format!("\"{unit}\" in \"{text}\" is not a unit of size"),
            "write B, KiB/MiB/GiB/TiB (powers of 1024) or kB/MB/GB/TB (powers of 1000)".to_owned(),
        ),
    }
}

impl fmt::Display for SizeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&decimal::shortest(self.0, &UNITS))
    }
}

serde_as_text!(SizeBytes);
