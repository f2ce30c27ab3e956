//! Figures in words.

/// Formats a rate with thousands separators.
pub(super) fn per_second(value: f64) -> String {
    if value < 1_000.0 {
        return format!("{value:.1}/s");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text}/s")
}

/// Formats a percentage with a suitable number of digits.
pub(super) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if (0.05..9.95).contains(&value.abs()) {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// Formats a latency in milliseconds.
pub(super) fn ms(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 0.0995 => format!("{:.1} µs", ns / 1e3),
        ms if ms < 0.995 => format!("{ms:.2} ms"),
        ms => format!("{ms:.1} ms"),
    }
}
