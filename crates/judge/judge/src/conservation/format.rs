//! Formatting of figures for sentences.

/// Function that formats a value in one unit.
pub type ValueFormatter = fn(f64) -> String;

/// Formats a number with about four significant digits, and with commas as thousands separators.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "no number".into();
    }
    if size >= 1e15 {
        return format!("{value:.3e}");
    }
    if size >= 1000.0 {
        return grouped(value);
    }
    let digits = match size {
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 => 3,
        s if s >= 0.01 => 4,
        s if s > 0.0 => return format!("{value:.3e}"),
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut grouped = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = units.iter().find(|(factor, _)| value.abs() >= *factor);
    match fits.or(units.last()) {
        Some((factor, unit)) => format!("{} {unit}", number(value / factor)),
        None => number(value),
    }
}

/// Formats a time that is given in ns, with a suitable unit.
pub fn time(ns: f64) -> String {
    scaled(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

/// Formats bytes.
pub fn bytes(bytes: f64) -> String {
    let units = [(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")];
    scaled(bytes, &units)
}

/// Formats bytes per second.
pub fn bytes_per_s(rate: f64) -> String {
    let units =
        [(1e15, "PB/s"), (1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")];
    scaled(rate, &units)
}

/// Formats the size of a transfer, in MiB or KiB if it is a whole multiple of that unit, otherwise
/// in bytes.
pub fn transfer(bytes: f64) -> String {
    for (factor, unit) in [(1048576.0, "MiB"), (1024.0, "KiB")] {
        if bytes >= factor && (bytes / factor).fract() == 0.0 {
            return format!("{} {unit}", number(bytes / factor));
        }
    }
    format!("{} bytes", number(bytes))
}

/// Formats a share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// Formats a quantile by its usual name, such as `p99.9`.
pub fn quantile(quantile: f64) -> String {
    let percent = (quantile * 100.0 * 1e6).round() / 1e6;
    format!("p{percent}")
}

/// Formats a ratio, such as `1.64 times`.
pub fn times(ratio: f64) -> String {
    format!("{} times", number((ratio * 1000.0).round() / 1000.0))
}

/// Formats two different values with enough digits to distinguish them.
pub fn distinct(format_value: ValueFormatter, values: [f64; 2]) -> [String; 2] {
    let texts = values.map(format_value);
    if texts[0] != texts[1] || values[0] == values[1] {
        return texts;
    }
    let is_digit = |c: char| c.is_ascii_digit() || "-.,".contains(c);
    let end = texts[0].find(|c| !is_digit(c)).unwrap_or(texts[0].len());
    let (digits, unit) = texts[0].split_at(end);
    let Ok(shown) = digits.replace(',', "").parse::<f64>() else { return texts };
    // Each unit is a power of ten.
    let factor = 10f64.powf((values[0] / shown).log10().round());
    let precise =
        |decimals: usize| values.map(|value| format!("{:.decimals$}{unit}", value / factor));
    (0..=9).map(precise).find(|texts| texts[0] != texts[1]).unwrap_or(texts)
}

/// Formats the ratio of two values, which is at least 1, such as `1.64 times apart` or `0.003 %
/// apart`.
pub fn apart(ratio: f64) -> String {
    match (ratio - 1.0) * 100.0 {
        percent if percent < 0.001 => "less than 0.001 % apart".into(),
        percent if percent < 0.1 => format!("{percent:.3} % apart"),
        _ => format!("{} apart", times(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_values_are_printed_differently() {
        let per_s = |rate| format!("{}/s", number(rate));
        assert_eq!(distinct(per_s, [222.13, 222.06]), ["222.13/s", "222.06/s"]);
        assert_eq!(distinct(per_s, [269_106.2, 269_105.8]), ["269106.2/s", "269105.8/s"]);
        assert_eq!(distinct(time, [66.868e6, 66.871e6]), ["66.868 ms", "66.871 ms"]);
        assert_eq!(distinct(bytes, [4096.0, 8192.0]), ["4.096 kB", "8.192 kB"]);
        assert_eq!(distinct(number, [7.0, 7.0]), ["7", "7"]);
        assert_eq!(apart(1.000_04), "0.004 % apart");
        assert_eq!(apart(1.000_000_4), "less than 0.001 % apart");
        assert_eq!(apart(1.64), "1.64 times apart");
    }

    #[test]
    fn figures_read_as_an_engineer_writes_them() {
        assert_eq!(time(492_674_639_163.0), "492.7 s");
        assert_eq!(time(250_000.0), "250 us");
        assert_eq!(time(0.4), "0.4 ns");
        assert_eq!(bytes_per_s(407_579_272.0), "407.6 MB/s");
        assert_eq!(number(1_000_000.0), "1,000,000");
        assert_eq!(number(7.99), "7.99");
        assert_eq!(transfer(4096.0), "4 KiB");
        assert_eq!(transfer(47008.0), "47,008 bytes");
        assert_eq!(quantile(0.999), "p99.9");
        assert_eq!(percent(0.185), "18.5 %");
        assert_eq!(number(f64::NAN), "no number");
    }
}
