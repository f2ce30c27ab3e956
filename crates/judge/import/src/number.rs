//! Parses printed numbers and the precision of their digits.

use plimsoll_evidence::tool_result::Figure;

/// A number, and the place value of its last digit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    pub value: f64,
    /// Place value of the last printed digit: 0.01 for `1.25`, 1 for `125`.
    pub step: f64,
}

/// Maximum number of digits. A text with more digits is not a figure.
const DIGITS_MAX: usize = 64;

/// Parses a number that consists of a sign, digits, a point and an exponent. Returns `None` for any
/// other text.
#[must_use]
pub fn plain(text: &str) -> Option<Number> {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > DIGITS_MAX {
        return None;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], unsigned[at + 1..].parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let step = 10f64.powi(exponent.saturating_sub(fraction.len() as i32));
    Some(Number { value, step })
}

/// Meaning of commas in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commas {
    /// A comma separates thousands, as in `1,000,000`.
    #[default]
    Thousands,
    /// A comma is the decimal separator, as in `0,8`. A point or a space may separate thousands.
    Decimal,
}

/// Parses a number with thousands separators. Returns `None` if the number is invalid or ambiguous.
/// For example, `1,5` is invalid if commas separate thousands, and `1.500` is ambiguous if commas
/// are decimal.
#[must_use]
pub fn grouped(text: &str, commas: Commas) -> Option<Number> {
    let text = text.trim();
    let spaced = text.contains([' ', '\u{a0}', '\u{202f}', '\'', '_']);
    let joined: String = if spaced {
        ungroup(text, &[' ', '\u{a0}', '\u{202f}', '\'', '_'], '.')?
    } else {
        text.to_owned()
    };
    match commas {
        Commas::Thousands if joined.contains(',') => plain(&ungroup(&joined, &[','], '.')?),
        Commas::Thousands => plain(&joined),
        Commas::Decimal if joined.contains(',') => with_swapped_marks(&joined),
        Commas::Decimal => {
            // `1.500` may mean 1.5 or 1500.
            let fraction = joined.rsplit_once('.').map(|(_, fraction)| fraction.len());
            if fraction == Some(3) { None } else { plain(&joined) }
        }
    }
}

/// Parses a number in which points separate thousands and a comma is the decimal separator. Returns
/// `None` if the number is invalid in this convention.
#[must_use]
pub fn with_swapped_marks(text: &str) -> Option<Number> {
    let whole = ungroup(text.trim(), &['.'], ',')?;
    plain(&whole.replacen(',', ".", 1))
}

/// Removes thousands separators. They must separate groups of three digits in the integer part, and
/// must not occur elsewhere.
fn ungroup(text: &str, separators: &[char], decimal: char) -> Option<String> {
    let (whole, fraction) = match text.split_once(decimal) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let mut groups = whole.split(|c| separators.contains(&c));
    let first = groups.next()?;
    let length = first.trim_start_matches(['-', '+']).len();
    let mut joined = first.to_owned();
    let mut grouped = false;
    for group in groups {
        if group.len() != 3 || !group.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        grouped = true;
        joined.push_str(group);
    }
    let zero = first.trim_start_matches(['-', '+']).starts_with('0');
    if grouped && (zero || !(1..=3).contains(&length)) {
        return None;
    }
    if let Some(fraction) = fraction {
        joined.push(decimal);
        joined.push_str(fraction);
    }
    Some(joined)
}

/// Estimates the rounding of a figure that a person wrote. It is the place value of the last
/// non-zero digit, but at most a tenth of the figure, and at least the place value of the last
/// digit. `400,000` therefore represents 380,000 to 420,000. `409,600` is precise to a hundred, and
/// `0.001` may be 0.00052.
#[must_use]
pub fn rounded_by_people(number: Number) -> Number {
    const SHARE_MAX: f64 = 0.1;
    let mut step = number.step;
    if number.step >= 1.0 && number.value != 0.0 {
        while (number.value / (step * 10.0)).fract() == 0.0 && step < number.value.abs() {
            step *= 10.0;
        }
    }
    let coarsest = number.value.abs() * SHARE_MAX;
    // The only known digit of `1e6` is the first digit. The exponent, in the same way as zeroes,
    // does not show how the number was rounded.
    let printed = number.step.min(1.0);
    Number {
        value: number.value,
        step: if number.value == 0.0 { step } else { step.min(coarsest).max(printed) },
    }
}

/// Quantity of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// Nanoseconds.
    Time,
    /// Number of operations, or their rate.
    Count,
    /// Percentage.
    Percent,
}

/// A unit. It has a quantity, and a size in base units in each of two conventions. For example,
/// `MB/s` is 1,000,000 bytes per second in some tools, and 1,048,576 bytes per second in other
/// tools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Quantity.
    pub measure: Measure,
    /// Number of base units (bytes, ns, operations) in this unit.
    pub factor: f64,
    /// Number of base units in the other convention. It equals `factor` if the unit has only one
    /// meaning.
    pub other: f64,
}

const KIB: f64 = 1024.0;

/// Returns the unit with this name. Upper and lower case matter only for `b` (bits) and `B` (bytes)
/// in a bandwidth.
#[must_use]
pub fn unit(name: &str) -> Option<Unit> {
    let name = name.trim();
    let name = name.strip_suffix('.').unwrap_or(name);
    time(name).or_else(|| bandwidth(name)).or_else(|| size(name)).or_else(|| count(name))
}

fn time(name: &str) -> Option<Unit> {
    let factor = match name.to_lowercase().as_str() {
        "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1.0,
        "us" | "usec" | "µs" | "μs" | "microsecond" | "microseconds" | "µsec" | "usecs" => 1e3,
        "ms" | "msec" | "millisecond" | "milliseconds" | "msecs" => 1e6,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e9,
        "min" | "mins" | "minute" | "minutes" => 60e9,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600e9,
        _ => return None,
    };
    Some(Unit { measure: Measure::Time, factor, other: factor })
}

fn bandwidth(name: &str) -> Option<Unit> {
    let base = ["/second", "/sec", "/s", "ps"].iter().find_map(|end| {
        let cut = name.len().checked_sub(end.len())?;
        name.get(cut..)?.eq_ignore_ascii_case(end).then(|| &name[..cut])
    })?;
    let lower = base.to_lowercase();
    // In `Gbit/s`, `Gb/s` and `Gbps`, the lower-case b after the prefix represents bits.
    let bits = lower.ends_with("bit") || lower.ends_with("bits") || base.ends_with('b');
    if bits {
        let prefix = lower.trim_end_matches("bits").trim_end_matches("bit").trim_end_matches('b');
        let factor = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            "ki" => KIB,
            "mi" => KIB.powi(2),
            "gi" => KIB.powi(3),
            _ => return None,
        };
        let factor = factor / 8.0;
        return Some(Unit { measure: Measure::BytesPerS, factor, other: factor });
    }
    let Unit { factor, other, .. } = size(base).filter(|_| lower.contains('b'))?;
    Some(Unit { measure: Measure::BytesPerS, factor, other })
}

fn size(name: &str) -> Option<Unit> {
    let lower = name.to_lowercase();
    let lower = match lower.as_str() {
        "byte" | "bytes" | "b" => "b",
        other => other,
    };
    let (power, binary) = match lower {
        "b" => (0, true),
        "kib" => (1, true),
        "mib" => (2, true),
        "gib" => (3, true),
        "tib" => (4, true),
        "pib" => (5, true),
        "kb" | "kbyte" | "kbytes" => (1, false),
        "mb" | "mbyte" | "mbytes" => (2, false),
        "gb" | "gbyte" | "gbytes" => (3, false),
        "tb" | "tbyte" | "tbytes" => (4, false),
        "pb" => (5, false),
        _ => return None,
    };
    let (two, ten) = (KIB.powi(power), 1000f64.powi(power));
    let (factor, other) = if binary { (two, two) } else { (ten, two) };
    Some(Unit { measure: Measure::Bytes, factor, other })
}

fn count(name: &str) -> Option<Unit> {
    let lower = name.to_lowercase();
    let bare = ["iops", "ops/s", "ops/sec", "ops", "io/s", "ios/s", "obj/s", "req/s", "tps", "/s"];
    let prefix = bare.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    let factor = match prefix.trim() {
        "" if lower.is_empty() => return None,
        "" => 1.0,
        "%" | "percent" | "pct" => {
            return Some(Unit { measure: Measure::Percent, factor: 1.0, other: 1.0 });
        }
        "k" => 1e3,
        "m" => 1e6,
        "g" | "b" if prefix.len() != lower.len() => 1e9,
        "g" => 1e9,
        _ => return None,
    };
    Some(Unit { measure: Measure::Count, factor, other: factor })
}

/// Splits a text such as `25Gb/s`, `1,000 IOPS` or `4 KiB` into the number and the unit. The unit
/// may be empty.
#[must_use]
pub fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let is_part = |(at, c): (usize, char)| {
        c.is_ascii_digit()
            || matches!(c, '.' | ',' | '\'' | '_' | '\u{a0}' | '\u{202f}')
            || matches!(c, '-' | '+') && (at == 0 || exponent_before(text, at))
            || matches!(c, 'e' | 'E') && exponent_at(text, at)
            || c == ' ' && text[at..].trim_start().starts_with(|c: char| c.is_ascii_digit())
    };
    let end = text.char_indices().find(|x| !is_part(*x)).map_or(text.len(), |(at, _)| at);
    (text[..end].trim_end(), text[end..].trim())
}

fn exponent_at(text: &str, at: usize) -> bool {
    let before = text[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let after = text[at + 1..].trim_start_matches(['-', '+']);
    before && after.starts_with(|c: char| c.is_ascii_digit())
}

fn exponent_before(text: &str, at: usize) -> bool {
    text[..at].ends_with(['e', 'E']) && exponent_at(text, at - 1)
}

/// Converts a number and its unit to base units. If the unit is ambiguous, the range of the figure
/// includes both conventions.
#[must_use]
pub fn figure(number: Number, unit: Unit, field: impl Into<String>) -> Figure {
    let one = Figure::rounded(number.value, number.step, field).scaled(unit.factor);
    if unit.other == unit.factor {
        return one;
    }
    let ratio = unit.other / unit.factor;
    Figure { least: one.least.min(one.least * ratio), most: one.most.max(one.most * ratio), ..one }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn digits_say_how_precise_a_number_is() {
        for (text, value, step) in [
            ("1.25", 1.25, 0.01),
            ("125", 125.0, 1.0),
            ("-0.5", -0.5, 0.1),
            ("1e6", 1e6, 1e6),
            ("3.8660612798e+02", 386.60612798, 1e-8),
            (".5", 0.5, 0.1),
            ("5.", 5.0, 1.0),
        ] {
            let number = plain(text).unwrap();
            assert!((number.value - value).abs() < 1e-9, "{text}");
            assert!((number.step / step - 1.0).abs() < 1e-9, "{text}: {}", number.step);
        }
        for text in
            ["", "-", ".", "1,5", "1 5", "0x5", "1e", "nan", "inf", "1.2.3", &"9".repeat(99)]
        {
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[test]
    fn thousands_and_decimal_commas_are_not_mixed_up() {
        let us = |text: &str| grouped(text, Commas::Thousands).map(|n| n.value);
        let de = |text: &str| grouped(text, Commas::Decimal).map(|n| n.value);
        assert_eq!(us("1,000,000"), Some(1e6));
        assert_eq!(us("1 000 000.5"), Some(1000000.5));
        assert_eq!(us("12,5"), None);
        assert_eq!(us("1,0000"), None);
        assert_eq!((us("0,320"), de("0,320")), (None, Some(0.32)));
        assert_eq!(us("1234,567"), None);
        assert_eq!(de("12,5"), Some(12.5));
        assert_eq!(de("1.234.567,8"), Some(1234567.8));
        assert_eq!(de("1.500"), None);
        assert_eq!(de("1.5"), Some(1.5));
        assert_eq!(de("1,2,3"), None);
    }

    #[test]
    fn numbers_and_units_come_apart() {
        for (text, number, name) in [
            ("25Gb/s", "25", "Gb/s"),
            ("1,000 IOPS", "1,000", "IOPS"),
            ("1e6", "1e6", ""),
            ("1e-3s", "1e-3", "s"),
            ("4 KiB", "4", "KiB"),
            ("1 000 000 ops/s", "1 000 000", "ops/s"),
            ("5 e", "5", "e"),
            ("-3%", "-3", "%"),
            ("fast", "", "fast"),
        ] {
            assert_eq!(split_unit(text), (number, name), "{text}");
        }
    }

    #[test]
    fn units_are_known_with_their_two_readings() {
        let read = |name: &str| unit(name).map(|u| (u.measure, u.factor, u.other));
        assert_eq!(read("Gb/s"), Some((Measure::BytesPerS, 125e6, 125e6)));
        assert_eq!(read("Gbps"), Some((Measure::BytesPerS, 125e6, 125e6)));
        assert_eq!(read("MB/s"), Some((Measure::BytesPerS, 1e6, 1048576.0)));
        assert_eq!(read("MiB/sec"), Some((Measure::BytesPerS, 1048576.0, 1048576.0)));
        assert_eq!(read("GBps"), Some((Measure::BytesPerS, 1e9, KIB.powi(3))));
        assert_eq!(read("µs"), Some((Measure::Time, 1e3, 1e3)));
        assert_eq!(read("KIOPS"), Some((Measure::Count, 1e3, 1e3)));
        assert_eq!(read("M"), Some((Measure::Count, 1e6, 1e6)));
        assert_eq!(read("KiB"), Some((Measure::Bytes, 1024.0, 1024.0)));
        assert_eq!(read("%"), Some((Measure::Percent, 1.0, 1.0)));
        for name in ["", "furlongs", "s/op", "Kib", "x/s"] {
            assert!(read(name).is_none_or(|(m, ..)| m != Measure::BytesPerS), "{name}");
        }
    }

    #[test]
    fn people_round_to_the_last_digit_that_is_not_zero() {
        let step = |text: &str| rounded_by_people(plain(text).unwrap()).step;
        assert_eq!(step("409600"), 100.0);
        assert_eq!(step("400000"), 40_000.0);
        assert_eq!(step("1638.4"), 0.1);
        assert_eq!(step("1e6"), 1e5);
        for (text, printed) in [("0.8", 0.1), ("0.001", 0.001), ("7", 1.0), ("1", 1.0)] {
            assert!((step(text) / printed - 1.0).abs() < 1e-9, "{text}");
        }
    }
}
