//! Counts and durations in words.

/// Formats a count with its noun: `1 run`, `3 runs`.
pub(crate) fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Formats a duration with its two largest units: `9 min 40 s`. It is rounded up to whole seconds,
/// or below 10 s to tenths.
pub(crate) fn span(ns: u64) -> String {
    let tenths = ns.div_ceil(100_000_000);
    if tenths < 100 && !tenths.is_multiple_of(10) {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let s = ns.div_ceil(1_000_000_000);
    let of = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match s {
        0..120 => format!("{s} s"),
        120..3_600 => of(s / 60, "min", s % 60, "s"),
        3_600..172_800 => of(s / 3_600, "h", s % 3_600 / 60, "min"),
        _ => of(s / 86_400, "days", s % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural_and_no_wait_is_told_too_short() {
        assert_eq!((many(1, "run"), many(0, "run")), ("1 run".to_owned(), "0 runs".to_owned()));
        let of = |s: u64| span(s * 1_000_000_000);
        assert_eq!(
            [of(119), of(580), of(600), of(5_400)],
            ["119 s", "9 min 40 s", "10 min", "1 h 30 min"]
        );
        assert_eq!(
            [span(1_500_000_000), span(100_000_000), span(9_910_000_000)],
            ["1.5 s", "0.1 s", "10 s"]
        );
        assert_eq!(of(200_000), "2 days 7 h");
    }
}
