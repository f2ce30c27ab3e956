//! Quantities: accepted and rejected texts, their messages, and round trips.

use plimsoll_plan::{BytesPerS, DurationNs, OpsPerS, Percent, Share, SizeBytes};
use proptest::prelude::*;

#[test]
fn sizes_are_exact() {
    for (text, bytes) in [
        ("0B", 0),
        ("512B", 512),
        ("4KiB", 4096),
        ("4 KiB", 4096),
        ("1.5GiB", 3 << 29),
        ("2.4TB", 2_400_000_000_000),
        ("20kB", 20_000),
        ("0.5KiB", 512),
        ("8388607TiB", 8_388_607 << 40),
        ("9223372036854775807B", i64::MAX as u64),
    ] {
        assert_eq!(text.parse(), Ok(SizeBytes(bytes)), "{text}");
    }
}

#[test]
fn durations_are_exact() {
    for (text, ns) in [
        ("0s", 0),
        ("1ns", 1),
        ("20us", 20_000),
        ("20µs", 20_000),
        ("100ms", 100_000_000),
        ("1.5s", 1_500_000_000),
        ("90m", 5_400_000_000_000),
        ("10min", 600_000_000_000),
        ("2h", 7_200_000_000_000),
    ] {
        assert_eq!(text.parse(), Ok(DurationNs(ns)), "{text}");
    }
}

#[test]
fn rates_and_shares_are_read() {
    assert_eq!("500/s".parse(), Ok(OpsPerS(500.0)));
    assert_eq!("0.2/s".parse(), Ok(OpsPerS(0.2)));
    assert_eq!("10MiB/s".parse(), Ok(BytesPerS(10 << 20)));
    assert_eq!("70%".parse(), Ok(Share(0.7)));
    assert_eq!("12.3%".parse(), Ok(Share(0.123)));
    assert_eq!("12.5%".parse(), Ok(Percent(12.5)));
}

#[test]
fn errors_state_what_to_write() {
    let mut said = String::new();
    let mut say = |what: &str, text: &str, error: Option<plimsoll_plan::UnitError>| {
        let error = error.unwrap_or_else(|| panic!("{what} {text:?} was taken"));
        said.push_str(&format!("{what} {text:?}: {}; {}\n", error.message, error.help));
    };
    for text in [
        "",
        "1",
        "1k",
        "1K",
        "1m",
        "4KB",
        "4kib",
        "1GIB",
        "1.3B",
        "1 . 5GiB",
        "1  KiB",
        " 1KiB",
        "1KiB ",
        "-1KiB",
        "1e3B",
        "KiB",
        "1KiB/s",
        "1..5KiB",
        ".5KiB",
        "5.KiB",
        "9223372036854775808B",
        "99999999999999999999TiB",
        "1parsec",
        "1\u{0}KiB",
        "١KiB",
    ] {
        say("size", text, text.parse::<SizeBytes>().err());
    }
    for text in ["20", "20S", "1h30m", "2hours", "1.5ns", "999999999h", "-1s", "s"] {
        say("duration", text, text.parse::<DurationNs>().err());
    }
    for text in ["500", "500/m", "10MiB", "/s"] {
        say("rate", text, text.parse::<OpsPerS>().err());
    }
    for text in ["10", "10k/s", "10MiB", "500/s"] {
        say("byte rate", text, text.parse::<BytesPerS>().err());
    }
    for text in ["101%", "70", "-1%", "x%"] {
        say("percentage", text, text.parse::<Percent>().err());
    }
    insta::assert_snapshot!(said);
}

#[test]
fn formats_the_shortest_exact_text() {
    for (bytes, text) in [
        (0, "0B"),
        (1, "1B"),
        (1000, "1kB"),
        (1024, "1KiB"),
        (1536, "1536B"),
        (1_000_000_000_000, "1TB"),
        (256 << 10, "256KiB"),
        (20 << 20, "20MiB"),
        (3 << 29, "1536MiB"),
    ] {
        assert_eq!(SizeBytes(bytes).to_string(), text);
    }
    for (ns, text) in [
        (0, "0ns"),
        (1_500_000_000, "1500ms"),
        (60_000_000_000, "1m"),
        (7_200_000_000_000, "2h"),
        (90_000_000_000, "90s"),
    ] {
        assert_eq!(DurationNs(ns).to_string(), text);
    }
    assert_eq!(format!("{:>8}|", SizeBytes(4096)), "    4KiB|");
}

#[test]
fn serde_goes_by_text() {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Both {
        size: SizeBytes,
        wait: DurationNs,
    }
    let both = Both { size: SizeBytes(4096), wait: DurationNs(20_000_000) };
    let text = toml::to_string(&both).expect("writable");
    assert_eq!(text, "size = \"4KiB\"\nwait = \"20ms\"\n");
    assert_eq!(toml::from_str::<Both>(&text).expect("readable"), both);
    let error = toml::from_str::<Both>("size = \"1k\"\nwait = \"1s\"").expect_err("a bare k");
    assert!(error.to_string().contains("may mean a power of 1000 or of 1024"), "{error}");
}

proptest! {
    #[test]
    fn sizes_round_trip(bytes in 0..=i64::MAX as u64) {
        prop_assert_eq!(SizeBytes(bytes).to_string().parse(), Ok(SizeBytes(bytes)));
    }

    #[test]
    fn round_sizes_round_trip(count in 0u64..1 << 20, shift in 0u32..40, tens in 0u32..10) {
        for bytes in [count << shift, count * 10u64.pow(tens)] {
            prop_assert_eq!(SizeBytes(bytes).to_string().parse(), Ok(SizeBytes(bytes)));
        }
    }

    #[test]
    fn durations_round_trip(ns in 0..=i64::MAX as u64, unit in 0usize..5) {
        let factor = [1u64, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000][unit];
        let ns = ns / factor * factor;
        prop_assert_eq!(DurationNs(ns).to_string().parse(), Ok(DurationNs(ns)));
    }

    #[test]
    fn byte_rates_round_trip(bytes in 0..=i64::MAX as u64) {
        prop_assert_eq!(BytesPerS(bytes).to_string().parse(), Ok(BytesPerS(bytes)));
    }

    #[test]
    fn decimal_sizes_agree_with_integers(whole in 0u64..1 << 20, eighths in 0u64..8) {
        // n/8 GiB has at most three decimals and is a whole number of bytes.
        let text = format!("{whole}.{:03}GiB", eighths * 125);
        prop_assert_eq!(text.parse(), Ok(SizeBytes((whole << 30) + (eighths << 27))));
    }

    #[test]
    fn rates_round_trip(rate in 0u64..1 << 40, part in 0u32..1000) {
        let rate = OpsPerS(rate as f64 + f64::from(part) / 1000.0);
        prop_assert_eq!(rate.to_string().parse(), Ok(rate));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}|[0-9.]{0,24}[a-zA-Zµ%/ ]{0,6}") {
        let _ = text.parse::<SizeBytes>();
        let _ = text.parse::<DurationNs>();
        let _ = text.parse::<OpsPerS>();
        let _ = text.parse::<BytesPerS>();
        let _ = text.parse::<Percent>();
        let _ = text.parse::<Share>();
    }
}
