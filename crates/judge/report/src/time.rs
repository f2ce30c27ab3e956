//! Formats wall-clock times in UTC.

/// Formats nanoseconds since 1970 as `2026-11-21 00:44:11 UTC`. Days to dates: H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms" (2013), `civil_from_days`.
pub fn utc(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        // From GNU `date -u -d @N`.
        let at = |s: u64| utc(s * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_827_696), "2000-02-29 12:34:56 UTC");
        assert_eq!(at(1_795_221_851), "2026-11-21 00:44:11 UTC");
        assert_eq!(at(4_107_542_399), "2100-02-28 23:59:59 UTC");
    }
}
