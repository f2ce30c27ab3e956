//! Figures of one direction (reads, writes, trims) or device in fio's JSON.

use plimsoll_evidence::tool_result::{
    Bin, DeviceCounts, Figure, Kind, Latency, Operation, Percentile, Point, Quantity,
    SampleStatistics, Series, Stage,
};

use crate::json::JsonNode;

/// Number of bytes in a KiB. fio's `bw` is in KiB/s (`bw_bytes >> 10`).
const KIB: f64 = 1024.0;
const NS_PER_MS: f64 = 1e6;
const SECTOR_BYTES: f64 = 512.0;
/// Number of histogram bins in an octave. fio prints the middle of a bin as the percentile. The
/// width of a bin is 1/64 of the next lower power of two (`FIO_IO_U_PLAT_BITS`).
const BINS_PER_OCTAVE: f64 = 64.0;
/// Approximate start of the last histogram bin. It contains all longer latencies, so percentiles in
/// this bin are lower bounds. `FIO_IO_U_PLAT_GROUP_NR` is 29 octaves of ns in version 3, and 19
/// octaves of us in earlier versions.
const LAST_BIN_NS: f64 = 16_700_000_000.0;
/// Represents "no upper bound" in a figure, which must be finite.
const UNBOUNDED_NS: f64 = 1e18;

/// Reads the flushes. Some versions print a `total_ios` of 0 together with a histogram of flushes.
/// The count is then the `N` of the histogram.
pub(super) fn flushes(sync: &JsonNode<'_, '_>) -> Option<Operation> {
    let mut operation = Operation::of(Kind::Sync);
    operation.latencies.extend(latency(sync, "lat", Stage::Total));
    let counted = |figure: &Figure| figure.value > 0.0;
    let timed = operation.latencies.first().and_then(|latency| latency.count.clone());
    let count = sync.key("total_ios").exact().filter(counted).or(timed.filter(counted))?;
    operation.count.push(count);
    Some(operation)
}

pub(super) fn direction(side: &JsonNode<'_, '_>, kind: Kind) -> Operation {
    let mut operation = Operation::of(kind);
    let mut take = |to: fn(&mut Operation) -> &mut Vec<Figure>, figure: Option<Figure>| {
        to(&mut operation).extend(figure);
    };
    take(|o| &mut o.count, side.key("total_ios").exact());
    // Before version 3.0 `io_bytes` was in KiB.
    match side.key("io_kbytes").truncated() {
        Some(kib) => {
            take(|o| &mut o.bytes, side.key("io_bytes").exact());
            take(|o| &mut o.bytes, Some(kib.scaled(KIB)));
        }
        None => {
            // Some results lack fields. If the remaining fields do not identify the version, it is
            // unknown.
            let any = |names: &[&str]| names.iter().any(|name| side.key(name).exists());
            let bytes = if any(&["bw_bytes", "slat_ns", "clat_ns", "lat_ns"]) {
                side.key("io_bytes").exact()
            } else if any(&["slat", "clat", "lat"]) {
                side.key("io_bytes").truncated().map(|kib| kib.scaled(KIB))
            } else {
                None
            };
            take(|o| &mut o.bytes, bytes);
        }
    }
    take(|o| &mut o.bandwidth_per_s, side.key("bw_bytes").truncated());
    take(|o| &mut o.bandwidth_per_s, side.key("bw").truncated().map(|kib| kib.scaled(KIB)));
    take(|o| &mut o.rate_per_s, side.key("iops").rounded());
    operation.window_ns = side.key("runtime").exact().map(|ms| ms.scaled(NS_PER_MS));
    operation.short = side.key("short_ios").exact();
    operation.errors = side.key("drop_ios").exact();
    for (name, stage) in
        [("slat", Stage::Submission), ("clat", Stage::Completion), ("lat", Stage::Total)]
    {
        operation.latencies.extend(latency(side, name, stage));
    }
    operation.bandwidth_sampled = sampled(side, "bw", "bw_dev", KIB);
    operation.rate_sampled = sampled(side, "iops", "iops_stddev", 1.0);
    operation
}

/// Reads the latencies of a direction. They are in ns since version 3.0 (`clat_ns`), and in us in
/// earlier versions (`clat`).
fn latency(side: &JsonNode<'_, '_>, name: &str, stage: Stage) -> Option<Latency> {
    let now = side.key(&format!("{name}_ns"));
    let (at, unit) = if now.exists() { (now, 1.0) } else { (side.key(name), 1e3) };
    if !at.exists() {
        return None;
    }
    let scaled = |figure: Option<Figure>| figure.map(|figure| figure.scaled(unit));
    let whole = |name: &str| {
        let figure = at.key(name);
        scaled(if unit == 1.0 { figure.exact() } else { figure.truncated() })
    };
    let mut latency = Latency {
        stage,
        count: at.key("N").exact(),
        min_ns: whole("min"),
        mean_ns: scaled(at.key("mean").rounded()),
        max_ns: whole("max"),
        stddev_ns: scaled(at.key("stddev").rounded()),
        ..Latency::default()
    };
    for (name, value) in at.key("percentile").entries() {
        let quantile = name.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        if let Some((percent, ns)) = quantile.zip(value.exact()) {
            latency
                .percentiles
                .push(Percentile { quantile: percent / 100.0, ns: binned(ns, unit) });
        }
    }
    latency.bins = bins(&at.key("bins"), unit);
    // fio prints zero for latencies that it did not measure (`gtod_reduce`, `disable_clat`).
    let nothing =
        |figure: &Option<Figure>| figure.as_ref().is_none_or(|figure| figure.value == 0.0);
    let measured =
        !nothing(&latency.mean_ns) || !nothing(&latency.max_ns) || !latency.bins.is_empty();
    measured.then_some(latency)
}

/// Widens the range of a percentile to its bin, because the printed value is the middle of the bin.
fn binned(figure: Figure, unit: f64) -> Figure {
    let octave = if figure.value >= 1.0 { figure.value.log2().floor().exp2() } else { 1.0 };
    let width = (octave / BINS_PER_OCTAVE).max(1.0);
    let mut figure =
        Figure { least: (figure.value - width).max(0.0), most: figure.value + width, ..figure }
            .scaled(unit);
    if figure.value >= LAST_BIN_NS {
        figure.most = UNBOUNDED_NS;
    }
    figure
}

fn bins(at: &JsonNode<'_, '_>, unit: f64) -> Vec<Bin> {
    let mut bins: Vec<Bin> = at
        .entries()
        .filter_map(|(name, count)| {
            let value = Figure::exact(name.parse::<f64>().ok()?, "");
            let span = binned(value, unit);
            let count = count.number().filter(|count| *count > 0.0)?;
            Some(Bin { from_ns: span.least, to_ns: span.most, count })
        })
        .collect();
    bins.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    bins
}

fn sampled(
    side: &JsonNode<'_, '_>,
    name: &str,
    stddev: &str,
    unit: f64,
) -> Option<SampleStatistics> {
    let at = |end: &str| side.key(&format!("{name}_{end}"));
    let scaled = |figure: Option<Figure>| figure.map(|figure| figure.scaled(unit));
    // fio prints zeroes if there are no samples.
    let samples = at("samples").exact();
    let max = scaled(at("max").truncated()).filter(|max| max.value > 0.0)?;
    Some(SampleStatistics {
        min: scaled(at("min").truncated()),
        mean: scaled(at("mean").rounded()),
        max: Some(max),
        stddev: scaled(side.key(stddev).rounded()),
        samples: samples.filter(|samples| samples.value > 0.0),
    })
}

pub(super) fn device(at: &JsonNode<'_, '_>) -> DeviceCounts {
    let bytes = |name: &str| at.key(name).exact().map(|sectors| sectors.scaled(SECTOR_BYTES));
    DeviceCounts {
        name: at.key("name").text().unwrap_or_default().to_owned(),
        reads: at.key("read_ios").exact(),
        writes: at.key("write_ios").exact(),
        read_merges: at.key("read_merges").exact(),
        write_merges: at.key("write_merges").exact(),
        read_bytes: bytes("read_sectors"),
        written_bytes: bytes("write_sectors"),
        busy_share: at.key("util").rounded().map(|percent| percent.scaled(0.01)),
    }
}

/// Reads the values that fio lists for each second of a job that ran until its rate was steady.
pub(super) fn steady_state(job: &JsonNode<'_, '_>) -> Vec<Series> {
    let data = job.key("steadystate").key("data");
    let of = |name: &str, quantity: Quantity, unit: f64| {
        let at = data.key(name);
        let value = |(index, item): (usize, JsonNode<'_, '_>)| {
            item.number().map(|value| Point { at_s: (index + 1) as f64, value: value * unit })
        };
        let points: Vec<Point> = at.items().enumerate().filter_map(value).collect();
        let field = at.path().to_owned();
        let (kind, stage) = (Kind::All, Stage::Total);
        (points.len() > 1).then_some(Series {
            quantity,
            kind,
            stage,
            field,
            interval_s: Some(1.0),
            points,
            // These values are from only the steady window, not from the whole run.
            partial: true,
            understates: true,
        })
    };
    let rate = of("iops", Quantity::RatePerS, 1.0);
    // The values are in bytes, unlike other `bw` values (`steadystate_alloc` and
    // `steadystate_check` in fio's steadystate.c).
    let bandwidth = of("bw", Quantity::BandwidthPerS, 1.0);
    rate.into_iter().chain(bandwidth).collect()
}
