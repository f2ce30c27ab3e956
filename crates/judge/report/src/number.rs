//! Formatting of numbers: three to four significant digits with a unit, `n/a` if there is no value.
//!
//! Each value has a [`Unit`] and is in base units (nanoseconds, bytes, per second), as in a bundle.
//! For example, a latency of 8,570,000 ns is `8.57 ms` in a report and `8570000` in CSV.

/// Kind of a number, which determines its base unit, scaling and display unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds: a latency, printed as ns, µs, ms or s.
    Latency,
    /// Nanoseconds: the length of a phase or the time since a start, printed as s, min and h.
    Elapsed,
    /// Operations or I/Os per second.
    Rate,
    /// Bytes per second, printed in powers of 1,000, as usual for storage (MB/s).
    Bandwidth,
    /// Bytes, printed in powers of 1,024 (GiB).
    Size,
    /// A fraction, printed in percent.
    Share,
    /// A count, printed as a whole number.
    Count,
    /// A number without a unit.
    Plain,
}

/// Character set of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Letters {
    /// Any Unicode character.
    #[default]
    Unicode,
    /// ASCII only: `us` for `µs`, `+-` for `±`.
    Ascii,
}

impl Unit {
    /// Returns the unit at the end of a figure's name, and the name without this unit. A name
    /// without a unit gets [`Unit::Plain`].
    pub fn of_name(name: &str) -> (Self, &str) {
        // `_bytes_per_s` also ends in `_per_s`, so it is checked first.
        const ENDINGS: [(&str, Unit); 5] = [
            ("_bytes_per_s", Unit::Bandwidth),
            ("_per_s", Unit::Rate),
            ("_bytes", Unit::Size),
            ("_ns", Unit::Latency),
            ("_share", Unit::Share),
        ];
        let known = |(ending, unit): &(&str, Self)| Some((*unit, name.strip_suffix(ending)?));
        ENDINGS.iter().find_map(known).unwrap_or((Self::Plain, name))
    }

    /// Formats the number with its unit, such as `8.57 ms` or `331.8/s`. Numbers that are not
    /// finite print as `n/a`.
    pub fn show(self, base: f64, letters: Letters) -> String {
        if !base.is_finite() {
            return "n/a".to_owned();
        }
        if self == Self::Elapsed {
            return elapsed(base);
        }
        let (divisor, suffix) = self.scale_for(base, letters);
        let number = self.digits(base / divisor);
        match suffix {
            "" => number,
            "/s" => format!("{number}{suffix}"),
            _ => format!("{number} {suffix}"),
        }
    }

    /// Like [`Unit::show`], but removes trailing zeroes. Used for limits and other round numbers.
    pub fn show_round(self, base: f64, letters: Letters) -> String {
        let text = self.show(base, letters);
        let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
        let split = text.find(|c| !is_digit(c)).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        format!("{}{unit}", trim_zeros(number.to_owned()))
    }

    /// Formats the number without its unit for a table column. `divisor` is a result of
    /// [`Unit::scale_for`], and `places` (the number of decimals) a result of [`Unit::places_for`].
    pub fn show_scaled(self, base: f64, divisor: f64, places: Option<usize>) -> String {
        match places {
            _ if !base.is_finite() => "n/a".to_owned(),
            Some(places) => group_thousands(&format!("{:.places$}", base / divisor)),
            None => self.digits(base / divisor),
        }
    }

    /// Returns the number of decimals for a column. The arguments are the column's smallest
    /// non-zero and its largest number, already divided. With these decimals, the largest number
    /// has four digits, and the smallest has at least two. Returns `None` if no number of decimals
    /// achieves this.
    pub fn places_for(self, least: f64, largest: f64) -> Option<usize> {
        if self == Self::Count {
            return Some(0);
        }
        if largest <= 0.0 {
            return None;
        }
        let exponent = |x: f64| x.log10().floor() as i32;
        let of_largest = (3 - exponent(largest)).clamp(0, 3);
        let of_least = (1 - exponent(least)).clamp(0, 9);
        (of_least <= of_largest + 1).then_some(of_largest.max(of_least) as usize)
    }

    /// Returns the display unit for a number of this size, as divisor and name.
    pub fn scale_for(self, base: f64, letters: Letters) -> (f64, &'static str) {
        let size = base.abs();
        let steps: &[(f64, &'static str)] = match (self, letters) {
            (Self::Latency, Letters::Unicode) => {
                &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]
            }
            (Self::Latency, Letters::Ascii) => &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
            (Self::Elapsed, _) => &[(3.6e12, "h"), (6e10, "min"), (1e9, "s")],
            (Self::Rate, _) => &[(1.0, "/s")],
            (Self::Bandwidth, _) => &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
            (Self::Size, _) => &[
                (1_125_899_906_842_624.0, "PiB"),
                (1_099_511_627_776.0, "TiB"),
                (1_073_741_824.0, "GiB"),
                (1_048_576.0, "MiB"),
                (1_024.0, "KiB"),
                (1.0, "B"),
            ],
            (Self::Share, _) => &[(0.01, "%")],
            (Self::Count | Self::Plain, _) => &[(1.0, "")],
        };
        let last = steps[steps.len() - 1];
        // 999.6 µs would be printed as "1000 µs", so the next larger unit is used.
        steps.iter().copied().find(|(divisor, _)| size >= divisor * 0.9995).unwrap_or(last)
    }

    fn digits(self, number: f64) -> String {
        match self {
            Self::Count => group_thousands(&format!("{:.0}", number)),
            Self::Plain if number.fract() == 0.0 => group_thousands(&format!("{number:.0}")),
            Self::Rate | Self::Plain if number.abs() < 1.0 => trim_zeros(significant(number, 3)),
            Self::Rate | Self::Plain => significant(number, 4),
            // Sizes are mostly round numbers: print 2 GiB, not 2.000 GiB.
            Self::Size => trim_zeros(significant(number, 4)),
            Self::Share if number.abs() < 0.05 && number != 0.0 => significant(number, 2),
            Self::Share if number.abs() < 99.95 => format!("{number:.1}"),
            Self::Share => group_thousands(&format!("{number:.0}")),
            Self::Latency | Self::Bandwidth | Self::Elapsed => significant(number, 3),
        }
    }
}

/// Formats a number with `digits` significant digits and without exponent: 0.012346 → `0.01235`,
/// 12,345.6 → `12,346`. Digits before the point are never rounded.
pub fn significant(number: f64, digits: usize) -> String {
    if !number.is_finite() {
        return "n/a".to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    let places = |x: f64| digits as i32 - 1 - x.abs().log10().floor() as i32;
    let first = places(number).clamp(0, 12);
    // Rounding can add a digit (9.996 → 10.00), so the number of decimals is computed again from
    // the rounded number.
    let power = 10f64.powi(first);
    let rounded = (number * power).round() / power;
    let last = if rounded == 0.0 { first } else { places(rounded).clamp(0, 12) };
    group_thousands(&format!("{number:.*}", last as usize))
}

fn trim_zeros(text: String) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Separates groups of three digits before the point by commas.
pub fn group_thousands(number: &str) -> String {
    let (sign, rest) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (whole, fraction) = match rest.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (rest, None),
    };
    let mut out = String::with_capacity(number.len() + number.len() / 3);
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    let zero = out.chars().all(|c| matches!(c, '0' | '.'));
    if zero { out } else { format!("{sign}{out}") }
}

/// If one of these words precedes a number, the number is an identifier.
const NAMES: [&str; 9] =
    ["process", "pid", "port", "run", "no.", "line", "seed", "user", "version"];

/// If one of these words follows a number, the number is a count.
const COUNTED: [&str; 6] = ["I/Os", "reads", "writes", "operations", "pages", "blocks"];

/// Separates groups of three digits in a sentence: in rates, and in whole numbers of five or more
/// digits. A number of four digits may be a year, so its digits are grouped only if one of the
/// words in `COUNTED` follows. Identifiers do not change: numbers after `process`, `port` and the
/// like, and numbers in brackets after a name.
pub fn group_counts(sentence: &str) -> String {
    let mut out = String::with_capacity(sentence.len() + 8);
    let mut before = "";
    let mut words = sentence.split_inclusive(' ').peekable();
    while let Some(word) = words.next() {
        let after = words.peek().map_or("", |word| word.trim_end());
        let opened = word.trim_start_matches('(');
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = opened.split_at(digits(opened));
        let fraction = rest.strip_prefix('.').map_or(0, |rest| 1 + digits(rest));
        let is_rate = rest[fraction..].starts_with("/s");
        let rest_of = if is_rate { &rest[fraction + 2..] } else { rest };
        let closed = rest_of.trim_end_matches(' ').trim_end_matches(['.', ',', ';', ':', ')']);
        let digits_min = if is_rate || COUNTED.contains(&after) { 4 } else { 5 };
        let is_count = number.len() >= digits_min && closed.is_empty() && !number.starts_with('0');
        let is_bracketed = opened.len() < word.len() && rest.starts_with(')');
        let is_name = NAMES.contains(&before.to_lowercase().as_str())
            || is_bracketed && !COUNTED.contains(&before);
        match is_count && !is_name {
            true => {
                out.push_str(&word[..word.len() - opened.len()]);
                out.push_str(&group_thousands(number));
                out.push_str(rest);
            }
            false => out.push_str(word),
        }
        before = word.trim_end_matches(' ');
    }
    out
}

/// Formats a duration in its two largest units: `62.3 s`, `2 min 5 s`, `2 h 30 min`.
pub fn elapsed(ns: f64) -> String {
    if !ns.is_finite() {
        return "n/a".to_owned();
    }
    let s = ns / 1e9;
    let sign = if s < 0.0 { "-" } else { "" };
    let s = s.abs();
    let pair = |large: u64, unit: &str, small: u64, small_unit: &str| {
        if small == 0 {
            format!("{sign}{large} {unit}")
        } else {
            format!("{sign}{large} {unit} {small} {small_unit}")
        }
    };
    if s == 0.0 {
        return "0 s".to_owned();
    }
    if s < 0.9995 {
        return Unit::Latency.show(ns, Letters::Unicode);
    }
    if s < 119.95 {
        return format!("{sign}{} s", trim_zeros(significant(s, 3)));
    }
    let whole = s.round() as u64;
    if whole < 3_600 {
        return pair(whole / 60, "min", whole % 60, "s");
    }
    let minutes = (s / 60.0).round() as u64;
    if minutes < 2_880 {
        return pair(minutes / 60, "h", minutes % 60, "min");
    }
    let hours = (s / 3_600.0).round() as u64;
    pair(hours / 24, "d", hours % 24, "h")
}

/// Formats a limit with up to six digits: a limit of 135.5 µs must not print as 136 µs.
pub fn show_limit(unit: Unit, base: f64, letters: Letters) -> String {
    let (divisor, suffix) = unit.scale_for(base, letters);
    let six = trim_zeros(significant(base / divisor, 6));
    let round = unit.show_round(base, letters);
    if unit == Unit::Elapsed || !base.is_finite() || round.len() >= six.len() + suffix.len() {
        return round;
    }
    let gap = if matches!(suffix, "" | "/s") { "" } else { " " };
    format!("{six}{gap}{suffix}")
}

/// Formats a measured value so that it differs from its limit: a read latency of 20.004 ms must not
/// print as `20.0 ms` next to a ceiling of 20 ms and FAIL. Unless both values are equal, up to six
/// digits are used.
pub fn show_against(unit: Unit, base: f64, limit: f64, letters: Letters) -> String {
    let plain = unit.show(base, letters);
    if base == limit || !base.is_finite() || plain != unit.show(limit, letters) {
        return plain;
    }
    let (divisor, suffix) = unit.scale_for(base, letters);
    let differs = |text: &String| text.replace(',', "").parse() != Ok(limit / divisor);
    let text = (4..=9)
        .map(|digits| significant(base / divisor, digits))
        .find(differs)
        .unwrap_or_else(|| significant(base / divisor, 9));
    let gap = if matches!(suffix, "" | "/s") { "" } else { " " };
    format!("{text}{gap}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const U: Letters = Letters::Unicode;

    #[test]
    fn latencies_take_the_unit_that_fits() {
        let shown = |ns: f64| Unit::Latency.show(ns, U);
        assert_eq!(shown(0.0), "0 ns");
        assert_eq!(shown(83.0), "83.0 ns");
        assert_eq!(shown(8_570.0), "8.57 µs");
        assert_eq!(shown(999_600.0), "1.00 ms");
        assert_eq!(shown(8_570_000.0), "8.57 ms");
        assert_eq!(shown(100_000_000.0), "100 ms");
        assert_eq!(shown(1_250_000_000.0), "1.25 s");
        assert_eq!(shown(f64::NAN), "n/a");
        assert_eq!(Unit::Latency.show(8_570.0, Letters::Ascii), "8.57 us");
    }

    #[test]
    fn sizes_are_binary_and_bandwidths_decimal() {
        assert_eq!(Unit::Size.show(2_147_483_648.0, U), "2 GiB");
        assert_eq!(Unit::Size.show(512.0, U), "512 B");
        assert_eq!(Unit::Size.show(1_023_999.0, U), "1,000 KiB");
        assert_eq!(Unit::Bandwidth.show(412_345_678.0, U), "412 MB/s");
    }

    #[test]
    fn limits_keep_their_digits() {
        assert_eq!(show_limit(Unit::Latency, 135_500.0, U), "135.5 µs");
        assert_eq!(show_limit(Unit::Latency, 20_000_000.0, U), "20 ms");
        assert_eq!(show_limit(Unit::Rate, 43_700.5, U), "43,700.5/s");
        assert_eq!(show_limit(Unit::Rate, 1_000.0, U), "1,000/s");
        assert_eq!(show_limit(Unit::Bandwidth, 178_782_208.0, U), "178.782 MB/s");
        assert_eq!(show_limit(Unit::Count, 0.0, U), "0");
        assert_eq!(show_limit(Unit::Size, 2_147_483_648.0, U), "2 GiB");
    }

    #[test]
    fn rates_keep_their_whole_digits() {
        assert_eq!(Unit::Rate.show(331.84, U), "331.8/s");
        assert_eq!(Unit::Rate.show(123_456.7, U), "123,457/s");
        assert_eq!(Unit::Share.show(0.6594, U), "65.9 %");
        assert_eq!(Unit::Share.show(0.00012, U), "0.012 %");
        assert_eq!(Unit::Share.show(-0.031, U), "-3.1 %");
        assert_eq!(Unit::Count.show(7_200_000.0, U), "7,200,000");
    }

    #[test]
    fn rounding_up_does_not_add_a_digit() {
        assert_eq!(significant(9.996, 3), "10.0");
        assert_eq!(significant(99.96, 3), "100");
        assert_eq!(significant(-0.0, 3), "0");
        assert_eq!(significant(0.012_346, 4), "0.01235");
        assert_eq!(group_thousands("-0.00"), "0.00");
    }

    #[test]
    fn counts_in_sentences_have_commas_and_names_have_none() {
        for (given, shown) in [
            (
                "12345 of 1234567 reads (98765) failed, 54321.",
                "12,345 of 1,234,567 reads (98,765) failed, 54,321.",
            ),
            ("1234 reads in 2026", "1,234 reads in 2026"),
            ("4283 I/Os per second of 2291 hosts", "4,283 I/Os per second of 2291 hosts"),
            ("2019.5/s is below 50000/s; 999.5/s", "2,019.5/s is below 50,000/s; 999.5/s"),
            ("its server (plimsoll (11840)) moved", "its server (plimsoll (11840)) moved"),
            (
                "Process 12345 and port 65000: /dev/sda12345 at 12345.678 or 0012345",
                "Process 12345 and port 65000: /dev/sda12345 at 12345.678 or 0012345",
            ),
            ("no. 12345  of 20261123-101112-p", "no. 12345  of 20261123-101112-p"),
            ("", ""),
        ] {
            assert_eq!(group_counts(given), shown);
        }
    }

    #[test]
    fn lengths_of_time_use_two_units() {
        assert_eq!(elapsed(250e6), "250 ms");
        assert_eq!(elapsed(60e9), "60 s");
        assert_eq!(elapsed(62.34e9), "62.3 s");
        assert_eq!(elapsed(125e9), "2 min 5 s");
        assert_eq!(elapsed(0.0), "0 s");
        assert_eq!(elapsed(3_901e9), "1 h 5 min");
        assert_eq!(elapsed(7_200e9), "2 h");
        assert_eq!(elapsed(9_000e9), "2 h 30 min");
        assert_eq!(elapsed(86_400e9 * 3.0), "3 d");
    }

    #[test]
    fn a_value_just_over_its_limit_does_not_print_like_it() {
        let against = |a, b| show_against(Unit::Latency, a, b, U);
        assert_eq!(against(20_004_000.0, 20_000_000.0), "20.004 ms");
        assert_eq!(against(20_000_000.0, 20_000_000.0), "20.0 ms");
        assert_eq!(against(8_570_000.0, 20_000_000.0), "8.57 ms");
        assert_eq!(show_against(Unit::Rate, 199.996, 200.0, U), "199.996/s");
    }
}
