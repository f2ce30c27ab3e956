//! `latency.hlog`: an HdrHistogram log (version 1.3) with one tagged histogram for each class in
//! each interval. Existing tools for HdrHistogram logs can read the file.
//!
//! Values are whole nanoseconds from 1 ns to 1 h, with three significant digits. The tag `db3.read`
//! contains latencies from the intended start, and `db3.read.service` contains service times.
//! Histograms are merged; percentiles are never averaged.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, LogEntry, LogIteratorError, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

/// Largest latency that can be recorded: 1 h. Longer latencies are recorded as 1 h.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Number of significant decimal digits of a recorded value.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Creates an empty histogram with the range and precision that bundles use.
pub fn histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, LATENCY_NS_MAX, SIGNIFICANT_DIGITS) {
        Ok(histogram) => histogram,
        // The histogram crate accepts these constant bounds. The only argument of the fallback
        // `new` is the number of digits, and it cannot fail for 3 digits.
        Err(_) => unreachable!("1 to 1 h in 3 digits is a valid range"),
    }
}

/// Histogram of a class, for one interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Tag of the histogram, such as `db3.read` or `db3.read.service`.
    pub tag: String,
    /// Start of the interval, relative to the start of the run.
    pub start_ns: u64,
    /// Length of the interval.
    pub duration_ns: u64,
    /// Histogram of the values, which are in nanoseconds.
    pub histogram: Packed,
}

/// Histogram without its empty buckets. A run keeps hundreds of histograms for each class in memory
/// until it ends. Full tables take 270 KiB each, so they would exhaust the host's memory. Each
/// bucket consists of two integers in LEB128 (groups of seven bits, the lowest first). The first
/// integer is the difference between the bucket's value and the value of the previous bucket; the
/// second integer is the bucket's count. Most buckets therefore take 3 or 4 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl From<&Histogram<u64>> for Packed {
    fn from(histogram: &Histogram<u64>) -> Self {
        let buckets = histogram.iter_recorded();
        Self::from_buckets(buckets.map(|b| (b.value_iterated_to(), b.count_since_last_iteration())))
    }
}

fn push_leb128(bytes: &mut Vec<u8>, number: u64) {
    let mut left = number;
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
}

fn read_leb128(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

impl Packed {
    /// Creates a histogram from its buckets in ascending order. A bucket is given by its largest
    /// value and its count. The values must be bucket values of [`histogram`], and no count may be
    /// 0.
    #[must_use]
    pub fn from_buckets(buckets: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let (mut bytes, mut before) = (Vec::new(), 0);
        for (value, count) in buckets {
            push_leb128(&mut bytes, value.wrapping_sub(before));
            push_leb128(&mut bytes, count);
            before = value;
        }
        Self(bytes.into_boxed_slice())
    }

    /// Returns the buckets in ascending order. Each bucket is given by its largest value and its
    /// count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut bytes, mut value) = (self.0.iter(), 0u64);
        std::iter::from_fn(move || {
            value = value.wrapping_add(read_leb128(&mut bytes)?);
            Some((value, read_leb128(&mut bytes)?))
        })
    }

    /// Returns true if the histogram is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Expands the histogram to a full table. The count of each bucket does not change.
    #[must_use]
    pub fn unpack(&self) -> Histogram<u64> {
        let mut whole = histogram();
        self.add_to(&mut whole);
        whole
    }

    /// Adds the counts to `into`, whose buckets must be those of [`histogram`]. Unlike
    /// [`Self::unpack`], this function does not create another full table.
    pub fn add_to(&self, into: &mut Histogram<u64>) {
        for (value, count) in self.buckets() {
            into.saturating_record_n(value, count);
        }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
    }

    /// Returns the number of values that are in higher buckets than `value`. `value` must be the
    /// largest value of its bucket.
    #[must_use]
    pub fn count_beyond(&self, value: u64) -> u64 {
        let beyond = self.buckets().filter(|(largest, _)| *largest > value);
        beyond.map(|(_, count)| count).sum()
    }
}

/// The measured phase. Its start and end are rounded to the whole milliseconds of the log.
///
/// The log contains times in seconds with three decimals, but phases end at a nanosecond. The start
/// of an interval is therefore rounded in such a way that rounding never moves it into the phase or
/// out of the phase. Readers can then separate the measured phase from the warm-up before it and
/// the close phase after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    from_ns: u64,
    from_ms: u64,
    to_ns: u64,
    to_ms: u64,
}

impl Window {
    /// Creates the window that describes a phase.
    #[must_use]
    pub fn new(start_ns: u64, duration_ns: u64) -> Self {
        let to_ns = start_ns.saturating_add(duration_ns);
        let (from_ms, to_ms) = (start_ns.div_ceil(MS_NS), to_ns.div_ceil(MS_NS));
        Self { from_ns: start_ns, from_ms, to_ns, to_ms: to_ms.max(from_ms + 1) }
    }

    /// Rounds the start of an interval to the millisecond that is written to the log.
    fn round_to_ms(self, start_ns: u64) -> u64 {
        let near_ms = start_ns.saturating_add(MS_NS / 2) / MS_NS;
        if start_ns < self.from_ns {
            near_ms.min(self.from_ms.saturating_sub(2))
        } else if start_ns < self.to_ns {
            near_ms.clamp(self.from_ms, self.to_ms - 1)
        } else {
            near_ms.max(self.to_ms)
        }
    }

    /// Returns true if an interval belongs to the phase, according to the start of the interval in
    /// the log. Also works for logs of older versions, which rounded starts to the nearest
    /// millisecond.
    fn contains_written(self, written_ns: u64) -> bool {
        let ms = written_ns.saturating_add(MS_NS / 2) / MS_NS;
        ms * MS_NS + MS_NS / 2 >= self.from_ns && ms < self.to_ms
    }
}

const MS_NS: u64 = 1_000_000;

/// Writes the log. The starts of the intervals are relative to `started_unix_ns` on the wall clock.
/// `measured` is the measured phase; `None` if the run did not reach this phase.
///
/// # Errors
/// The writer fails, or a histogram cannot be encoded.
pub fn write(
    out: &mut impl Write,
    started_unix_ns: u64,
    intervals: &[Interval],
    measured: Option<Window>,
) -> Result<(), String> {
    let start: SystemTime = UNIX_EPOCH + Duration::from_nanos(started_unix_ns);
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("Plimsoll latencies: nanoseconds; TAG from the intended start, TAG.service")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1.0);
    let mut writer =
        builder.begin_log_with(out, &mut serializer).map_err(|error| error.to_string())?;
    for interval in intervals {
        let tag = Tag::new(&interval.tag)
            .ok_or_else(|| format!("{:?} cannot be a histogram's tag", interval.tag))?;
        let start = measured.map_or(Duration::from_nanos(interval.start_ns), |measured| {
            Duration::from_millis(measured.round_to_ms(interval.start_ns))
        });
        writer
            .write_histogram(
                &interval.histogram.unpack(),
                start,
                Duration::from_nanos(interval.duration_ns),
                Some(tag),
            )
            .map_err(|error| format!("{error:?}"))?;
    }
    Ok(())
}

/// Latency histograms of the measured phase.
#[derive(Clone, Debug, Default)]
pub struct MeasuredLatency {
    /// Histogram of each tag, merged over the phase.
    pub merged: BTreeMap<String, Histogram<u64>>,
    /// Histograms for each interval, for the tags that the caller requested.
    pub spans: Vec<Interval>,
}

/// Reads the intervals of the measured phase. For each tag, merges the histograms of all intervals.
/// For the tags that `keeps` accepts, also returns the histograms of the single intervals.
///
/// # Errors
/// Returns a text with the reason.
pub fn read_measured(
    text: &[u8],
    measured: Window,
    keeps: impl Fn(&str) -> bool,
) -> Result<MeasuredLatency, String> {
    let mut found = MeasuredLatency::default();
    read(text, |interval| {
        if measured.contains_written(interval.start_ns) {
            let into = found.merged.entry(interval.tag.clone()).or_insert_with(histogram);
            interval.histogram.add_to(into);
            if keeps(&interval.tag) {
                found.spans.push(interval);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads the log one interval at a time.
///
/// # Errors
/// Returns a text with the reason, or the error that `each` returns.
pub fn read(
    text: &[u8],
    mut each: impl FnMut(Interval) -> Result<(), String>,
) -> Result<(), String> {
    use hdrhistogram::serialization::interval_log::IntervalLogIterator;
    let mut deserializer = Deserializer::new();
    for entry in IntervalLogIterator::new(text) {
        let entry = entry.map_err(|error| match error {
            LogIteratorError::ParseError { offset } => {
                format!("it is not a histogram log at byte {offset}")
            }
        })?;
        let LogEntry::Interval(interval) = entry else { continue };
        let encoded = STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|error| format!("a histogram is not base 64: {error}"))?;
        let histogram: Histogram<u64> = deserializer
            .deserialize(&mut encoded.as_slice())
            .map_err(|error| format!("a histogram cannot be decoded: {error}"))?;
        each(Interval {
            tag: interval.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default(),
            start_ns: nanoseconds(interval.start_timestamp()),
            duration_ns: nanoseconds(interval.duration()),
            histogram: (&histogram).into(),
        })?;
    }
    Ok(())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(tag: &str, start_s: u64, values: &[u64]) -> Interval {
        let mut histogram = histogram();
        values.iter().for_each(|&value| histogram.record(value).unwrap());
        let second = 1_000_000_000;
        Interval {
            tag: tag.into(),
            start_ns: start_s * second,
            duration_ns: second,
            histogram: (&histogram).into(),
        }
    }

    #[test]
    fn merges_by_tag_within_the_window() {
        let intervals = [
            interval("db0.read", 0, &[5]),
            interval("db0.read", 10, &[1_000, 2_000_000]),
            interval("db0.read.service", 10, &[900]),
            interval("db0.read", 11, &[3_000_000_000]),
            interval("db0.read", 20, &[7]),
        ];
        let mut text = Vec::new();
        let window = Window::new(10_000_000_000, 10_000_000_000);
        write(&mut text, 1_700_000_000_123_456_789, &intervals, Some(window)).unwrap();
        let merged = read_measured(&text, window, |_| false).unwrap().merged;
        assert_eq!(merged.keys().collect::<Vec<_>>(), ["db0.read", "db0.read.service"]);
        let read = &merged["db0.read"];
        assert_eq!(read.len(), 3);
        assert!(read.equivalent(read.max(), 3_000_000_000));
        assert_eq!(read.min(), 1_000);
    }

    #[test]
    fn separates_intervals_at_phase_boundaries_to_the_nanosecond() {
        for (start_ns, duration_ns) in [
            (10_000_400_000, 1_000_000_000),
            (10_000_600_000, 999_999_999),
            (10_000_000_000, 1_000_000_000),
            (10_000_499_999, 300_000),
            (0, 1),
        ] {
            let window = Window::new(start_ns, duration_ns);
            let end_ns = start_ns + duration_ns;
            let starts_ns = [
                start_ns.checked_sub(1).map(|before| (before, 1)),
                Some((start_ns, 2)),
                Some((end_ns - 1, 3)),
                Some((end_ns, 4)),
                Some((end_ns + 400_000, 5)),
            ];
            let at = |(start_ns, value): (u64, u64)| Interval {
                start_ns,
                ..interval("db0.write", 0, &[value])
            };
            let intervals: Vec<Interval> = starts_ns.into_iter().flatten().map(at).collect();
            let mut text = Vec::new();
            write(&mut text, 0, &intervals, Some(window)).unwrap();
            let merged = read_measured(&text, window, |_| false).unwrap().merged;
            let values: Vec<u64> =
                merged["db0.write"].iter_recorded().map(|b| b.value_iterated_to()).collect();
            assert_eq!(values, [2, 3], "{start_ns} {duration_ns}");
        }
    }

    #[test]
    fn packing_keeps_every_bucket() {
        let mut whole = histogram();
        (0..50_000u64).for_each(|i| whole.record(1 + i * i * 7).unwrap());
        let packed = Packed::from(&whole);
        assert_eq!(packed.count(), 50_000);
        assert_eq!(packed.unpack(), whole);
        // The value and count of a bucket take 16 bytes. The packed form takes less than a third of
        // these bytes.
        let buckets = packed.buckets().count();
        assert!(packed.0.len() < buckets * 5, "{} bytes, {buckets} buckets", packed.0.len());
        let extremes = [(1, 1), (u64::MAX / 2, u64::MAX), (u64::MAX, 1)];
        assert!(Packed::from_buckets(extremes).buckets().eq(extremes));
        assert!(Packed::from_buckets([]).is_empty());
    }

    #[test]
    fn rejects_a_broken_log() {
        let window = Window::new(0, 9);
        assert!(read_measured(b"Tag=a,0.0,1.0,1.0,????\n", window, |_| false).is_err());
    }
}
