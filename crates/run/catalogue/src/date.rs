//! Parses dates that users enter, such as `2026-11-23`. They are in UTC, like the times in reports.

use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Returns the start of a day in nanoseconds since 1970, or `None` if the text is not a valid date.
pub fn unix_ns_of(day: &str) -> Option<u64> {
    // The length is checked because the parser also accepts other forms of ISO 8601. All of these
    // forms have another length.
    let date: Date = day.parse().ok().filter(|_| day.len() == "2026-11-23".len())?;
    u64::try_from(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        assert_eq!(unix_ns_of("1970-01-01"), Some(0));
        assert_eq!(unix_ns_of("2000-03-01"), Some(951_868_800_000_000_000));
        assert_eq!(unix_ns_of("2026-11-23"), Some(1_795_392_000_000_000_000));
        for wrong in
            ["2026-02-29", "2026-13-01", "2026-11-00", "26-11-23", "2026-11", "1969-12-31", "x"]
        {
            assert_eq!(unix_ns_of(wrong), None, "{wrong}");
        }
    }
}
