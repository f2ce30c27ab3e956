//! Parsing of counts.

/// Parses a count: `10000`, `10,000`, `10k`, `1.5k`, `2M`.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text} is not a count: use 10000, 10,000 or 10k");
    let (number, times) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1_000.0),
        None => match text.strip_suffix(['m', 'M']) {
            Some(number) => (number, 1_000_000.0),
            None => (text, 1.0),
        },
    };
    let mut groups = number.split(',');
    let first = groups.next().unwrap_or_default();
    let grouped = number.contains(',');
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit());
    if grouped && (!(1..=3).contains(&first.len()) || !groups.all(is_group)) {
        return Err(wrong());
    }
    let plain = number.replace(',', "");
    if !plain.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let value = plain.parse::<f64>().map_err(|_| wrong())? * times;
    // A float represents every whole number up to 2^53 exactly.
    let whole = value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value);
    if whole { Ok(value as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_understood_as_people_write_them_or_refused_in_words() {
        for (text, value) in [
            ("10000", 10_000),
            ("10,000", 10_000),
            ("10k", 10_000),
            ("1.5k", 1_500),
            ("2M", 2_000_000),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["10,00", "1,0000", ",000", "-1", "1.5", "10 k", "", "k", "1e3", "ten", "10kk"]
        {
            assert!(count(text).is_err_and(|says| says.contains("10,000 or 10k")), "{text}");
        }
    }
}
