//! Dates as users write them: `2026-11-23`, in UTC like the times in reports.

const DAY_NS: i64 = 86_400_000_000_000;

/// Returns the start of a day in nanoseconds since 1970, or `None` if the text is not a valid date.
pub fn unix_ns_of(day: &str) -> Option<u64> {
    let mut parts = day.splitn(3, '-');
    let mut part = |digits: usize| {
        let text =
            parts.next().filter(|t| t.len() == digits && t.bytes().all(|b| b.is_ascii_digit()));
        text?.parse::<i64>().ok()
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *days.get(usize::try_from(month - 1).ok()?)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    let before = year - 1;
    let years = 365 * before + before / 4 - before / 100 + before / 400;
    let months: i64 = days.iter().take(usize::try_from(month - 1).ok()?).sum();
    // 1970-01-01 is day 719,162 of that count.
    u64::try_from((years + months + day - 1 - 719_162).checked_mul(DAY_NS)?).ok()
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
