//! Number parsers for traces.

/// Parses an unsigned integer.
pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses seconds with up to nine decimals. Returns nanoseconds.
pub(super) fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = rest.len();
    if digits > 9 || rest.bytes().any(|byte| !byte.is_ascii_digit()) || seconds.is_empty() {
        return None;
    }
    let rest = if digits == 0 { 0 } else { whole(rest)? * 10u64.pow(9 - digits as u32) };
    whole(seconds)?.checked_mul(1_000_000_000)?.checked_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_keep_their_nanoseconds() {
        assert_eq!(seconds_ns("0.009507758"), Some(9_507_758));
        assert_eq!(seconds_ns("12.5"), Some(12_500_000_000));
        assert_eq!(seconds_ns("7"), Some(7_000_000_000));
        for text in ["", ".5", "1.0000000001", "-1.5", "1e9", "1.x", "99999999999999999999.0"] {
            assert_eq!(seconds_ns(text), None, "{text}");
        }
    }
}
