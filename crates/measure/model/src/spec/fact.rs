//! A number in a model file, with its unit and source.

use std::fmt;

/// Source of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provenance {
    /// The data sheet or manual of the maker.
    Datasheet,
    /// Other documentation by the maker of the system.
    Documented,
    /// A fit to measured rows. The note describes these rows.
    Fitted,
    /// An assumption: the value is plausible, but not known.
    Assumed,
    /// A choice of the user, such as a count or a size. Such a value cannot be wrong.
    Chosen,
}

impl Provenance {
    /// All sources, with their keywords in a model file.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("datasheet", Self::Datasheet),
        ("documented", Self::Documented),
        ("fitted", Self::Fitted),
        ("assumed", Self::Assumed),
        ("chosen", Self::Chosen),
    ];
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, p)| p == self).map_or("", |(w, _)| w);
        f.write_str(word)
    }
}

/// A numeric parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The value, in the unit that the suffix of the field's name specifies.
    pub value: f64,
    /// Kind of the source.
    pub from: Provenance,
    /// Description of the source, such as the name of a data sheet, a document, or measured rows.
    pub note: String,
    /// Bounds within which a fit may change the value; `None` if the value is fixed.
    pub free: Option<(f64, f64)>,
}

/// Returns the unit that the field's name specifies, in words. The unit is empty for counts and
/// ratios.
pub fn unit_of(field: &str) -> &'static str {
    // Longer suffixes are tried first, so that `_bytes_per_s` is not taken for `_per_s`.
    const ENDINGS: [(&str, &str); 13] = [
        ("_bytes_per_s", "B/s"),
        ("_ns_per_byte", "ns/B"),
        ("_per_s", "1/s"),
        ("_bytes", "B"),
        ("_rpm", "1/min"),
        ("_ns", "ns"),
        ("_us", "us"),
        ("_ms", "ms"),
        ("_percent", "%"),
        ("_ghz", "GHz"),
        ("_s", "s"),
        ("_share", ""),
        ("_ratio", ""),
    ];
    let named = |word: &str| {
        // In a name like `seek_ms_min`, the unit is not at the end, because the name of a statistic
        // follows the unit.
        let field = field.trim_end_matches("_min").trim_end_matches("_max");
        field.trim_end_matches("_mean").trim_end_matches("_full").ends_with(word)
    };
    ENDINGS.iter().find(|(word, _)| named(word)).map_or("", |(_, unit)| unit)
}

/// Parses a number with a unit of bytes, bits or rates, such as `32KiB`, `4 TB`, `1.25 GB/s` or `10
/// Gbit/s`.
pub(crate) fn parse_bytes(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..split].trim().parse().ok()?;
    let unit = text[split..].trim();
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let factor = match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        "Mbit" => 125e3,
        "Gbit" => 125e6,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_from_names() {
        assert_eq!(unit_of("rate_bytes_per_s"), "B/s");
        assert_eq!(unit_of("seek_ms_mean"), "ms");
        assert_eq!(unit_of("arrivals_per_s"), "1/s");
        assert_eq!(unit_of("record_bytes"), "B");
        assert_eq!(unit_of("cores"), "");
        assert_eq!(unit_of("checksum_ns_per_byte"), "ns/B");
    }

    #[test]
    fn sizes_have_their_own_units() {
        assert_eq!(parse_bytes("32KiB"), Some(32768.0));
        assert_eq!(parse_bytes("10 Gbit/s"), Some(1.25e9));
        assert_eq!(parse_bytes("4 TB"), Some(4e12));
        assert_eq!(parse_bytes("32k"), None);
        assert_eq!(parse_bytes("x"), None);
    }
}
