//! Rows of the comparison: the jobs of each side and the bounds of the ratio.

use crate::Options;

/// Metric of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Rate,
    Bytes,
    UserCpu,
    Cpu,
    P50,
    P99,
}

impl Metric {
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::Rate | Self::Bytes)
    }
}

/// Requirement for a ratio.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// Minimum or maximum, depending on the metric's direction.
    Bound(f64),
    /// The bound is reached, and the whole interval is on the better side of 1.
    BoundAndInterval(f64),
    /// Part of the interval is on the better side of 1.
    NotWorse,
    /// No requirement: only print the ratio.
    Nothing,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    pub metric: Metric,
    pub to_default: Want,
    pub to_best: Want,
}

/// One workload, run by both sides.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: &'static str,
    pub ours: Vec<String>,
    pub fio: Vec<String>,
    /// fio variants; the fastest is "fio best".
    pub best: Vec<Vec<String>>,
    pub lines: Vec<Line>,
    pub pairs_min: usize,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn line(metric: Metric, to_default: Want, to_best: Want) -> Line {
    Line { metric, to_default, to_best }
}

/// Sizes of the file on disk, of the cached file, and of the file in tmpfs.
pub const DISK_BYTES: u64 = 2 << 30;
pub const CACHED_BYTES: u64 = 512 << 20;
pub const SHM_BYTES: u64 = 256 << 20;

fn best_variants(depth: u32) -> Vec<Vec<String>> {
    [1, 8, 32]
        .iter()
        .map(|min| {
            words(&format!(
                "--fixedbufs=1 --registerfiles=1 --iodepth_batch_submit=32 \
                 --iodepth_batch_complete_min={min} --iodepth_batch_complete_max={depth}"
            ))
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Disk<'a> {
    name: &'static str,
    depth: u32,
    path: &'a str,
    direct: bool,
}

fn ring_row(disk: Disk<'_>, rw: &str, size: u64, ours: &str, lines: Vec<Line>) -> Row {
    let Disk { name, depth, path, direct } = disk;
    let direct = u8::from(direct);
    Row {
        name,
        ours: words(&format!("ring {path} {ours} --depth {depth} --direct {direct}")),
        fio: words(&format!(
            "--ioengine=io_uring --iodepth={depth} --filename={path} --rw={rw} --bs=4k --size={size} \
             --norandommap --randrepeat=0 --direct={direct} --invalidate=0"
        )),
        best: best_variants(depth),
        lines,
        pairs_min: 5,
    }
}

/// Returns all rows.
pub fn rows(options: &Options) -> Vec<Row> {
    let disk = options.dir.join("disk").display().to_string();
    let cached = options.dir.join("cached").display().to_string();
    let shm = options.shm.join("shm").display().to_string();
    let mut rows = devices();
    rows.extend(files(&disk, &cached));
    rows.extend(null());
    rows.extend(memory(&shm));
    rows
}

fn devices() -> Vec<Row> {
    use Metric::{Rate, UserCpu};
    use Want::Bound;
    let lines =
        || vec![line(Rate, Bound(1.9), Bound(1.15)), line(UserCpu, Bound(0.45), Bound(0.75))];
    let device = |name, path| Disk { name, depth: 32, path, direct: false };
    let (null, zero) =
        (device("/dev/null writes", "/dev/null"), device("/dev/zero reads", "/dev/zero"));
    vec![
        ring_row(null, "randwrite", 1 << 30, "write", lines()),
        ring_row(zero, "randread", 1 << 30, "read", lines()[..1].to_vec()),
    ]
}

fn files(disk: &str, cached: &str) -> Vec<Row> {
    use Metric::{Cpu, P50, P99, Rate};
    use Want::{Bound, BoundAndInterval, NotWorse, Nothing};
    let file = |name, path, depth, direct| Disk { name, depth, path, direct };
    let cpu = || vec![line(Cpu, Bound(0.75), BoundAndInterval(0.95)), line(Rate, Nothing, Nothing)];
    let mut rows = vec![
        Row {
            pairs_min: 9,
            ..ring_row(
                file("page-cached reads", cached, 32, false),
                "randread",
                CACHED_BYTES,
                "read",
                vec![line(Rate, Bound(1.3), BoundAndInterval(1.04))],
            )
        },
        Row {
            pairs_min: 9,
            ..ring_row(
                file("direct reads, depth 32", disk, 32, true),
                "randread",
                DISK_BYTES,
                "read",
                cpu(),
            )
        },
        Row {
            pairs_min: 9,
            ..ring_row(
                file("direct reads, depth 128", disk, 128, true),
                "randread",
                DISK_BYTES,
                "read",
                cpu(),
            )
        },
    ];
    let latency = vec![line(P50, Bound(1.03), Nothing), line(P99, NotWorse, Nothing)];
    let one = file("direct reads, depth 1", disk, 1, true);
    let mut one = ring_row(one, "randread", DISK_BYTES, "read", latency);
    one.fio.push("--lat_percentiles=1".to_owned());
    (one.best, one.pairs_min) = (Vec::new(), 15);
    rows.push(one);
    rows
}

fn null() -> Vec<Row> {
    let row = |name, ours: &str, fio: &str| Row {
        name,
        ours: words(&format!("null {ours} --depth 32")),
        fio: words(&format!(
            "--ioengine=null --iodepth=32 --size=1T --norandommap --randrepeat=0 {fio}"
        )),
        best: Vec::new(),
        lines: vec![line(Metric::Rate, Want::Bound(4.0), Want::Nothing)],
        pairs_min: 5,
    };
    vec![
        row("null, random", "read", "--rw=randread --bs=4k"),
        row(
            "null, 70/30, four sizes, Zipf",
            "mix",
            "--rw=randrw --rwmixread=70 --bssplit=4k/40:8k/30:16k/20:32k/10 \
             --random_distribution=zipf:1.1",
        ),
    ]
}

fn memory(shm: &str) -> Vec<Row> {
    let row = |name, ours: String, fio: String, metric, bound| Row {
        name,
        ours: words(&ours),
        fio: words(&fio),
        best: Vec::new(),
        lines: vec![line(metric, Want::Bound(bound), Want::Nothing)],
        pairs_min: 5,
    };
    let make = "--ioengine=null --iodepth=1 --size=1T --rw=write --refill_buffers=1";
    let half = "--buffer_compress_percentage=50 --dedupe_percentage=30";
    vec![
        row(
            "tmpfs, synchronous reads",
            format!("inline {shm} read --depth 1"),
            format!(
                "--ioengine=psync --filename={shm} --rw=randread --bs=4k --size={SHM_BYTES} \
                 --norandommap --randrepeat=0 --invalidate=0"
            ),
            Metric::Rate,
            1.05,
        ),
        row(
            "content, new and stamped, 4 KiB",
            "null content --size 4096 --depth 1".into(),
            format!("{make} --bs=4k"),
            Metric::Bytes,
            2.0,
        ),
        row(
            "content, new and stamped, 1 MiB",
            "null content --size 1048576 --depth 1".into(),
            format!("{make} --bs=1m"),
            Metric::Bytes,
            2.0,
        ),
        row(
            "content, half + 30 % dup, 4 KiB",
            "null half --size 4096 --depth 1".into(),
            format!("{make} {half} --bs=4k"),
            Metric::Bytes,
            1.1,
        ),
        row(
            "content, half + 30 % dup, 1 MiB",
            "null half --size 1048576 --depth 1".into(),
            format!("{make} {half} --bs=1m"),
            Metric::Bytes,
            1.1,
        ),
        row(
            "checked reads, tmpfs, 1 MiB",
            format!("inline {shm}-ours verify --depth 1"),
            format!(
                "--ioengine=psync --filename={shm}-fio --rw=read --bs=1m --size={SHM_BYTES} \
                 --verify=crc32c --invalidate=0"
            ),
            Metric::Bytes,
            1.25,
        ),
    ]
}
