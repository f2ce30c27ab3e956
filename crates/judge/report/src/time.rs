//! Formats wall-clock times in UTC.

use jiff::Timestamp;

/// Formats nanoseconds since 1970 as `2026-11-21 00:44:11 UTC`.
pub fn utc(unix_ns: u64) -> String {
    // The largest 64-bit count of nanoseconds is a time in 2554, which a `Timestamp` can represent.
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        // The expected texts were printed by GNU `date -u -d @N`.
        let at = |s: u64| utc(s * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_827_696), "2000-02-29 12:34:56 UTC");
        assert_eq!(at(1_795_221_851), "2026-11-21 00:44:11 UTC");
        assert_eq!(at(4_107_542_399), "2100-02-28 23:59:59 UTC");
    }
}
