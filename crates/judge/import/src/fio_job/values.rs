//! Parsers of fio's values.
//!
//! In sizes with `kb_base=1024`, the default, `k` and `kb` are 1024 and `kib` is 1000. This is the
//! reverse of the standards. `kb_base=1000` follows the standards. `ki` without a `b` equals `k`,
//! as in fio 3.33, but not in fio's manual. The case of letters does not matter. A time without a
//! unit is in seconds, unless the option has another default unit. The units of time are `d h m s
//! ms us`.

/// Maximum number of sizes that replace a range.
pub(super) const RANGE_SIZES_MAX: u64 = 64;

/// Parses a size in bytes. Returns `None` if it is not valid.
pub(crate) fn size(text: &str, kb_base: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().filter(|n| *n <= i64::MAX as u64);
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().ok()?;
    let (prefix, is_iec) = match (unit.strip_suffix("ib"), unit.strip_suffix(['b', 'i'])) {
        (Some(prefix), _) => (prefix, true),
        (None, Some(prefix)) => (prefix, false),
        (None, None) => (unit, false),
    };
    let power = match prefix {
        "" if matches!(unit, "" | "b") => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let base: u64 = if is_iec == (kb_base == 1000) { 1024 } else { 1000 };
    number.checked_mul(base.pow(power)).filter(|n| *n <= i64::MAX as u64)
}

/// Parses a time in nanoseconds. A number without a unit is multiplied by `default_ns`.
pub(super) fn time(text: &str, default_ns: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" => default_ns,
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        // fio treats every other unit, even `sec`, as microseconds (parse.c, get_mult_time).
        "s" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor).filter(|n| *n <= i64::MAX as u64)
}

/// Parses a flag. A flag without a value has the value `1`.
pub(super) fn flag(text: &str) -> bool {
    !matches!(text.trim(), "0" | "false")
}

/// Parses a percentage.
pub(super) fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.trim().trim_end_matches('%').parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// Parses `4k/10:64k/50:32k/40` into sizes and percentages. fio uses whole percentages, and treats 0
/// like an omitted percentage. The remainder is divided equally among sizes without a percentage.
/// If the sum is still below 100 %, the size with the largest percentage gets the difference: fio
/// sorts the sizes by percentage, and uses the last size if no other applies (options.c,
/// bssplit_ddir; io_u.c, get_next_buflen).
pub(super) fn split(text: &str, kb_base: u64) -> Option<Vec<(u64, f64)>> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (bytes, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.trim().is_empty() { 0.0 } else { percent(share)?.trunc() };
        parts.push((size(bytes, kb_base)?, Some(share).filter(|share| *share > 0.0)));
    }
    let stated: f64 = parts.iter().filter_map(|(_, share)| *share).sum();
    let blanks = parts.iter().filter(|(_, share)| share.is_none()).count();
    if stated > 100.0 {
        return None;
    }
    let rest = if blanks == 0 { 0.0 } else { ((100.0 - stated) / blanks as f64).floor() };
    let mut parts: Vec<(u64, f64)> =
        parts.into_iter().map(|(bytes, share)| (bytes, share.unwrap_or(rest))).collect();
    let missing = 100.0 - parts.iter().map(|(_, share)| share).sum::<f64>();
    if let Some((_, largest)) = parts.iter_mut().max_by(|a, b| a.1.total_cmp(&b.1)) {
        *largest += missing;
    }
    parts.retain(|(_, share)| *share > 0.0);
    Some(parts)
}

/// Parses `1k-4k` or `1k:4k` into sizes with their shares. fio adds a random number below the
/// largest size to the smallest size, rounds the sum down to a multiple of the smallest size, and
/// limits it to the largest size (io_u.c, get_next_buflen). Returns `None` if there are more than 64
/// sizes, or if the text is not a range.
pub(super) fn range(text: &str, kb_base: u64) -> Option<Vec<(u64, f64)>> {
    let (low, high) = text.split_once(['-', ':'])?;
    let (a, b) = (size(low, kb_base)?, size(high, kb_base)?);
    let (low, high) = (a.min(b), a.max(b));
    let count = high.checked_div(low)?;
    if count == 0 || count > RANGE_SIZES_MAX {
        return None;
    }
    let percent = |bytes: u64| bytes as f64 / high as f64 * 100.0;
    if low == high {
        return Some(vec![(low, 100.0)]);
    }
    let mut sizes: Vec<(u64, f64)> = (1..=count).map(|i| (i * low, percent(low))).collect();
    if high % low > 0 {
        sizes.push((high, percent(high % low)));
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that fio 3.33 computed, from tests/golden/fio-sizes.py.
    const GOLDEN: &str = include_str!("../../tests/golden/fio-3.33-sizes.csv");

    #[test]
    fn sizes_are_those_of_fio() {
        let mut seen = 0;
        for line in GOLDEN.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split(',').collect();
            let [text, base, bytes] = cells.as_slice() else { panic!("{line}") };
            // If a hexadecimal number has a unit, fio ignores the unit, but Plimsoll rejects the
            // number.
            let expected = if *text == "0x10k" { None } else { bytes.parse().ok() };
            assert_eq!(size(text, base.parse().expect("a base")), expected, "{line}");
            seen += 1;
        }
        assert!(seen > 60, "{seen}");
        for text in ["", "k", "4x", "-1", "1.5g", "9999999t", "i", "4i", "4ib"] {
            assert_eq!(size(text, 1024), None, "{text}");
        }
    }

    #[test]
    fn times_are_those_of_fios_manual() {
        assert_eq!(time("30", 1_000_000_000), Some(30_000_000_000));
        assert_eq!(time("10m", 1), Some(600_000_000_000));
        assert_eq!(time("2MSEC", 1), Some(2_000_000));
        assert_eq!(time("5", 1000), Some(5000));
        for text in ["1w", "3sec"] {
            assert_eq!(time(text, 1), None, "{text}");
        }
    }

    #[test]
    fn splits_fill_blanks_evenly() {
        let parts = split("4k/50:1k/:32k/", 1024);
        assert_eq!(parts, Some(vec![(4096, 50.0), (1024, 25.0), (32768, 25.0)]));
        assert_eq!(split("4k/60:8k/60", 1024), None);
        // fio 3.33 issues these sizes with 70 % and 30 %, and 4k-10k with 40 %, 40 % and 20 %.
        assert_eq!(split("4k/50:8k/30", 1024), Some(vec![(4096, 70.0), (8192, 30.0)]));
        assert_eq!(split("4k/50:8k/0", 1024), Some(vec![(4096, 50.0), (8192, 50.0)]));
        let parts = range("4k-10k", 1024);
        assert_eq!(parts, Some(vec![(4096, 40.0), (8192, 40.0), (10240, 20.0)]));
        assert_eq!(range("1k-4k", 1024).map(|r| r.len()), Some(4));
        assert_eq!(range("1-1m", 1024), None);
    }
}
