//! Model of fio's accounting. No rule may report a finding for a true result in any output format,
//! and falsified results must have findings.
//!
//! The model simulates jobs in virtual time and counts as fio 3.33 does (`io_u.c`, `stat.c`). A
//! ramp resets the counters while operations are in flight. Flushes and verification have separate
//! figures. Clones are listed or summed. Each run is printed as JSON, text and terse. The seed is
//! printed. `PLIMSOLL_FIO_MODEL_SEED` sets a different seed, and `PLIMSOLL_FIO_MODEL_RUNS` the
//! number of runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;

use plimsoll_judge::conservation::study::audits;
use plimsoll_judge::conservation::{Audit, Credibility, DeclaredFacts};

/// SplitMix64 (G. L. Steele et al., 2014).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[(self.next() % values.len() as u64) as usize]
    }

    /// Returns a time around `mean_ns`, with a long tail.
    fn time_ns(&mut self, mean_ns: f64) -> u64 {
        let (u, v) = (self.unit().max(1e-12), self.unit());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let tail = if self.unit() < 0.003 { 8.0 } else { 1.0 };
        (mean_ns * (0.4 * normal - 0.08).exp() * tail) as u64 + 1
    }
}

/// A job.
#[derive(Clone, Debug)]
struct Job {
    clones: u64,
    depth: usize,
    read_percent: u64,
    random: bool,
    size: u64,
    ramp_ns: u64,
    runtime_ns: u64,
    fsync_every: Option<u64>,
    verify: bool,
    grouped: bool,
    latency_ns: f64,
}

impl Job {
    fn draw(draw: &mut Draw) -> Self {
        let read_percent = draw.of(&[0, 0, 30, 50, 70, 100, 100]);
        let runtime_ns = draw.of(&[300, 700, 1000, 1500, 2600]) * 1_000_000;
        let (clones, depth) = (draw.of(&[1, 1, 2, 4]), draw.of(&[1, 1, 2, 4, 8, 16, 32, 64]));
        // The latency is high enough that a job has at most a few thousand operations.
        let least = runtime_ns as f64 * clones as f64 * depth as f64 / 6000.0;
        let verify = read_percent == 0 && draw.unit() < 0.4;
        Self {
            clones,
            depth,
            read_percent,
            random: draw.unit() < 0.6,
            size: draw.of(&[512, 4096, 8192, 16_384, 65_536, 131_072, 1 << 20]),
            ramp_ns: if verify { 0 } else { draw.of(&[0, 0, 300, 1000]) * 1_000_000 },
            runtime_ns,
            fsync_every: (read_percent < 100 && draw.unit() < 0.3).then(|| draw.of(&[1, 4, 32])),
            verify,
            grouped: draw.unit() < 0.5,
            latency_ns: least.max(60_000.0) * (1.0 + draw.unit()),
        }
    }

    fn rw(&self) -> String {
        let word = match self.read_percent {
            0 => "write",
            100 => "read",
            _ => "rw",
        };
        if self.random { format!("rand{word}") } else { word.to_owned() }
    }
}

/// Statistics of values, with the fields of `struct io_stat`.
#[derive(Clone, Debug, Default)]
struct Stat {
    values: Vec<u64>,
}

impl Stat {
    fn min(&self) -> u64 {
        self.values.iter().copied().min().unwrap_or(0)
    }
    fn max(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(0)
    }
    fn mean(&self) -> f64 {
        self.values.iter().map(|v| *v as f64).sum::<f64>() / (self.values.len().max(1) as f64)
    }
    fn deviation(&self) -> f64 {
        let (mean, count) = (self.mean(), self.values.len() as f64);
        if count < 2.0 {
            return 0.0;
        }
        let squares: f64 = self.values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
        (squares / (count - 1.0)).sqrt()
    }
    /// Returns percentiles as the middle of bins (`plat_val_to_idx`, `plat_idx_to_val`).
    fn percentiles(&self) -> Vec<(f64, u64)> {
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        for value in &self.values {
            let msb = 63 - value.max(&1).leading_zeros();
            let middle = match msb {
                0..=6 => *value,
                _ => {
                    let errors = msb - 6;
                    ((value >> errors) << errors) + (1 << errors) / 2
                }
            };
            *bins.entry(middle).or_default() += 1;
        }
        let all = self.values.len() as f64;
        let of = |percent: &f64| {
            let mut sum = 0;
            let found = bins.iter().find(|(_, count)| {
                sum += **count;
                sum as f64 >= percent / 100.0 * all
            });
            (*percent, found.or(bins.iter().next_back()).map_or(0, |(middle, _)| *middle))
        };
        PERCENTILES.iter().map(of).collect()
    }
}

const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Counters for reads or writes.
#[derive(Clone, Debug, Default)]
struct Counters {
    /// Number of operations that were issued since the last reset.
    issued: u64,
    /// Number of bytes that completed since the last reset.
    bytes: u64,
    runtime_ms: u64,
    submission: Stat,
    completion: Stat,
    total: Stat,
}

/// Counters of one clone, or the sum of all clones.
#[derive(Clone, Debug, Default)]
struct Account {
    clones: u64,
    directions: [Counters; 2],
    flushes: Stat,
}

impl Account {
    fn add(&mut self, other: &Account) {
        self.clones += other.clones;
        for (mine, theirs) in self.directions.iter_mut().zip(&other.directions) {
            mine.issued += theirs.issued;
            mine.bytes += theirs.bytes;
            mine.runtime_ms = mine.runtime_ms.max(theirs.runtime_ms);
            mine.submission.values.extend(&theirs.submission.values);
            mine.completion.values.extend(&theirs.completion.values);
            mine.total.values.extend(&theirs.total.values);
        }
        self.flushes.values.extend(&other.flushes.values);
    }
}

/// Operation in flight: completion time, direction, submission latency and completion latency.
type InFlight = Reverse<(u64, usize, u64, u64)>;

/// Simulates one clone of the job.
fn run(job: &Job, draw: &mut Draw) -> Account {
    let mut account = Account { clones: 1, ..Account::default() };
    let (end, mut ramp_ends) =
        (job.ramp_ns + job.runtime_ns, Some(job.ramp_ns).filter(|ns| *ns > 0));
    let mut began = 0;
    let writes = phase(job, draw, &mut account, &mut began, &mut ramp_ends, |issued, now, draw| {
        let _ = issued;
        (now < end).then(|| usize::from(draw.next() % 100 >= job.read_percent))
    });
    let ms = |ns: u64| ns.div_ceil(1_000_000).max(1);
    for direction in &mut account.directions {
        direction.runtime_ms = if direction.bytes > 0 { ms(writes - began) } else { 0 };
    }
    if job.verify {
        // Reads the written data, in a separate phase.
        let count = account.directions[1].issued;
        let (mut began, mut no_ramp) = (writes, None);
        let bare = Job { fsync_every: None, ..job.clone() };
        let done = phase(&bare, draw, &mut account, &mut began, &mut no_ramp, |issued, _, _| {
            (issued < count).then_some(0)
        });
        account.directions[0].runtime_ms = ms(done - began);
    }
    account
}

/// Issues operations until `next` returns `None`, and returns the time at which all have completed.
fn phase(
    job: &Job,
    draw: &mut Draw,
    account: &mut Account,
    began: &mut u64,
    ramp_ends: &mut Option<u64>,
    mut next: impl FnMut(u64, u64, &mut Draw) -> Option<usize>,
) -> u64 {
    let (mut now, mut issued, mut writes) = (*began, 0, 0u64);
    let mut in_flight: BinaryHeap<InFlight> = BinaryHeap::new();
    loop {
        if ramp_ends.is_some_and(|at| now >= at) {
            *account = Account { clones: 1, ..Account::default() };
            (*began, *ramp_ends) = (now, None);
        }
        let required = if in_flight.len() < job.depth { next(issued, now, draw) } else { None };
        if let Some(direction) = required {
            issued += 1;
            let submission =
                draw.time_ns(job.latency_ns.min(4_000_000.0) / 40.0 / job.depth as f64);
            let completion = draw.time_ns(job.latency_ns);
            now += submission;
            account.directions[direction].issued += 1;
            in_flight.push(Reverse((now + completion, direction, submission, completion)));
            writes += direction as u64;
            if direction == 1 && job.fsync_every.is_some_and(|every| writes % every == 0) {
                let flush = draw.time_ns(job.latency_ns * 0.7);
                now += flush;
                account.flushes.values.push(flush);
            }
            continue;
        }
        let Some(Reverse((at, direction, submission, completion))) = in_flight.pop() else {
            return now;
        };
        // The job notices a completion only when it checks for completions again.
        let seen = now.max(at);
        let completion = completion + (seen - at);
        now = seen;
        let counters = &mut account.directions[direction];
        counters.bytes += job.size;
        counters.submission.values.push(submission);
        counters.completion.values.push(completion);
        counters.total.values.push(submission + completion);
    }
}

/// Kind of change that falsifies a printed figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Times(f64),
    Zero,
    /// Swaps the figure with that of the other direction, or the minimum with the maximum.
    Swap,
}

/// Figure to falsify: its direction, its name and the kind of change.
#[derive(Clone, Copy, Debug)]
struct Falsification {
    direction: usize,
    figure: &'static str,
    change: Change,
}

/// Printed figures of one direction, by name.
type Printed = BTreeMap<&'static str, f64>;

/// Returns the figures of both directions. If `lie` is set, one figure is falsified.
fn figures(account: &Account, lie: Option<Falsification>) -> [Printed; 2] {
    let mut both = [0, 1].map(|index| {
        let counters = &account.directions[index];
        let seconds = counters.runtime_ms as f64 / 1e3;
        let per_s = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
        Printed::from([
            ("bytes", counters.bytes as f64),
            ("bandwidth", per_s(counters.bytes).floor()),
            ("rate", per_s(counters.issued)),
            ("runtime", counters.runtime_ms as f64),
            ("count", counters.issued as f64),
            ("mean", counters.total.mean()),
            ("min", counters.total.min() as f64),
            ("max", counters.total.max() as f64),
        ])
    });
    let Some(Falsification { direction, figure, change }) = lie else { return both };
    let (mine, other) = (both[direction][figure], both[1 - direction][figure]);
    match change {
        Change::Times(factor) => {
            both[direction].insert(figure, mine * factor);
        }
        Change::Zero => {
            both[direction].insert(figure, 0.0);
        }
        Change::Swap if figure == "min" => {
            let max = both[direction]["max"];
            both[direction].insert("max", mine);
            both[direction].insert("min", max);
        }
        Change::Swap => {
            both[direction].insert(figure, other);
            both[1 - direction].insert(figure, mine);
        }
    }
    both
}

const SIDES: [&str; 2] = ["read", "write"];

fn json(job: &Job, accounts: &[Account], lie: Option<Falsification>) -> String {
    let stat = |stat: &Stat| {
        serde_json::json!({"min": stat.min(), "max": stat.max(), "mean": stat.mean(),
            "stddev": stat.deviation(), "N": stat.values.len()})
    };
    let mut options = serde_json::json!({"name": "j", "rw": job.rw(), "bs": job.size.to_string(),
        "ioengine": "libaio", "iodepth": job.depth.to_string(), "numjobs": job.clones.to_string(),
        "rwmixread": job.read_percent.to_string(), "direct": "1", "size": "1g",
        "runtime": format!("{}ms", job.runtime_ns / 1_000_000), "directory": "/mnt/x"});
    let mut state = |name: &str, value: String| options[name] = value.into();
    if job.ramp_ns > 0 {
        state("ramp_time", format!("{}ms", job.ramp_ns / 1_000_000));
    }
    if let Some(every) = job.fsync_every {
        state("fsync", every.to_string());
    }
    if job.verify {
        state("verify", "crc32c".to_owned());
    }
    if job.grouped {
        state("group_reporting", String::new());
    }
    let jobs = accounts.iter().enumerate().map(|(index, account)| {
        let printed = figures(account, lie.filter(|_| index == 0));
        let mut entry = serde_json::json!({"jobname": "j", "groupid": 0, "error": 0,
            "job options": options, "usr_cpu": 4.0, "sys_cpu": 9.0,
            "sync": {"total_ios": 0, "lat_ns": stat(&account.flushes)},
            "job_runtime": account.clones
                * account.directions.iter().map(|d| d.runtime_ms).max().unwrap_or(0)});
        for (index, side) in SIDES.into_iter().enumerate() {
            let (counters, printed) = (&account.directions[index], &printed[index]);
            let whole = |name: &str| printed[name] as u64;
            let mut total = stat(&counters.total);
            (total["min"], total["max"]) = (whole("min").into(), whole("max").into());
            total["mean"] = printed["mean"].into();
            let mut completion = stat(&counters.completion);
            if !counters.completion.values.is_empty() {
                let percentiles = counters.completion.percentiles().into_iter();
                completion["percentile"] = percentiles
                    .map(|(p, ns)| (format!("{p:.6}"), ns.into()))
                    .collect::<serde_json::Map<_, _>>()
                    .into();
            }
            entry[side] = serde_json::json!({"io_bytes": whole("bytes"),
                "io_kbytes": counters.bytes >> 10, "bw_bytes": whole("bandwidth"),
                "bw": (counters.bytes * 1000).checked_div(counters.runtime_ms).unwrap_or(0) >> 10,
                "iops": (printed["rate"] * 1e6).round() / 1e6, "runtime": whole("runtime"),
                "total_ios": whole("count"), "short_ios": 0, "drop_ios": 0,
                "slat_ns": stat(&counters.submission), "clat_ns": completion, "lat_ns": total});
        }
        entry
    });
    let jobs: Vec<_> = jobs.collect();
    let root = serde_json::json!({"fio version": "fio-3.33", "timestamp": 1_700_000_000,
        "jobs": jobs, "disk_util": []});
    format!("{root:#}\n")
}

/// fio's `num2str`.
fn shortened(number: f64, digits: usize, binary: bool, unit: &str) -> String {
    let (thousand, mut number, mut index, mut rest) =
        (if binary { 1024 } else { 1000 }, number as u64, 0, None);
    while number.to_string().len() > digits {
        rest = Some(number % thousand);
        number /= thousand;
        index += 1;
    }
    let prefix =
        [["", "k", "M", "G", "T"], ["", "Ki", "Mi", "Gi", "Ti"]][usize::from(binary)][index];
    let room = digits as i64 - number.to_string().len() as i64;
    match rest {
        None => format!("{number}{prefix}{unit}"),
        Some(rest) if room <= 1 => {
            let carry = u64::from(rest >= thousand / 2);
            format!("{}{prefix}{unit}", number + carry)
        }
        Some(rest) => {
            let value = number as f64 + rest as f64 / thousand as f64;
            format!("{value:.*}{prefix}{unit}", room as usize - 1)
        }
    }
}

/// fio's `display_lat`.
fn latency_line(word: &str, min: f64, mean: f64, max: f64, deviation: f64) -> String {
    let (unit, divisor) = if min > 2e6 && max > 99_999_999.0 && deviation > 1e6 {
        ("msec", 1e6)
    } else if min > 2e3 && max > 99_999.0 && deviation > 1e3 {
        ("usec", 1e3)
    } else {
        ("nsec", 1.0)
    };
    let extreme = |ns: f64| shortened((ns / divisor).floor(), 6, false, "");
    format!(
        "    {word} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}\n",
        extreme(min),
        extreme(max),
        mean / divisor,
        deviation / divisor
    )
}

fn text(job: &Job, accounts: &[Account], lie: Option<Falsification>) -> String {
    let size = job.size;
    let mut text = format!(
        "j: (g=0): rw={}, bs=(R) {size}B-{size}B, (W) {size}B-{size}B, (T) {size}B-{size}B, \
         ioengine=libaio, iodepth={}\nfio-3.33\nStarting {} processes\n\n",
        job.rw(),
        job.depth,
        job.clones
    );
    let mut write = |words: String| text.push_str(&words);
    for (index, account) in accounts.iter().enumerate() {
        let printed = figures(account, lie.filter(|_| index == 0));
        write(format!(
            "j: (groupid=0, jobs={}): err= 0: pid={}: Wed Nov 25 22:28:31 2026\n",
            account.clones,
            100 + index
        ));
        for (index, side) in SIDES.into_iter().enumerate() {
            let (counters, printed) = (&account.directions[index], &printed[index]);
            if counters.runtime_ms == 0 {
                continue;
            }
            write(format!(
                "  {side}: IOPS={}, BW={} ({})({}/{}msec)\n",
                shortened(printed["rate"], 4, false, ""),
                shortened(printed["bandwidth"], 4, true, "B/s"),
                shortened(printed["bandwidth"], 4, false, "B/s"),
                shortened(printed["bytes"], 4, true, "B"),
                printed["runtime"] as u64
            ));
            let stages = [("slat", &counters.submission), ("clat", &counters.completion)];
            for (word, stat) in stages {
                let (min, max) = (stat.min() as f64, stat.max() as f64);
                write(latency_line(word, min, stat.mean(), max, stat.deviation()));
            }
            let deviation = counters.total.deviation();
            write(latency_line(" lat", printed["min"], printed["mean"], printed["max"], deviation));
            write("    clat percentiles (nsec):\n".to_owned());
            for (percent, ns) in counters.completion.percentiles() {
                write(format!("     | {percent:5.2}th=[{ns:5}],\n"));
            }
        }
        if !account.flushes.values.is_empty() {
            let flushes = &account.flushes;
            write("  fsync/fdatasync/sync_file_range:\n".to_owned());
            let (min, max) = (flushes.min() as f64, flushes.max() as f64);
            write(latency_line("sync", min, flushes.mean(), max, flushes.deviation()));
        }
        write(format!(
            "  cpu          : usr=4.00%, sys=9.00%, ctx=1, majf=0, minf=1\n     issued rwts: \
             total={},{},0,{} short=0,0,0,0 dropped=0,0,0,0\n",
            printed[0]["count"] as u64,
            printed[1]["count"] as u64,
            account.flushes.values.len()
        ));
    }
    text
}

fn terse(accounts: &[Account], lie: Option<Falsification>) -> String {
    let mut text = String::new();
    for (index, account) in accounts.iter().enumerate() {
        let printed = figures(account, lie.filter(|_| index == 0));
        text.push_str("3;fio-3.33;j;0;0");
        for (counters, printed) in account.directions.iter().zip(&printed) {
            let us = |ns: f64| (ns / 1e3) as u64;
            let _ = write!(
                text,
                ";{};{};{};{}",
                printed["bytes"] as u64 >> 10,
                printed["bandwidth"] as u64 >> 10,
                printed["rate"] as u64,
                printed["runtime"] as u64
            );
            for stat in [&counters.submission, &counters.completion] {
                let (min, max) = (us(stat.min() as f64), us(stat.max() as f64));
                let _ = write!(
                    text,
                    ";{min};{max};{:.6};{:.6}",
                    stat.mean() / 1e3,
                    stat.deviation() / 1e3
                );
            }
            let percentiles = counters.completion.percentiles();
            for index in 0..20 {
                let _ = match percentiles.get(index).filter(|_| counters.bytes > 0) {
                    Some((percent, ns)) => write!(text, ";{percent:.6}%={}", ns / 1000),
                    None => write!(text, ";0%=0"),
                };
            }
            let _ = write!(
                text,
                ";{};{};{:.6};{:.6};0;0;0.000000%;0.000000;0.000000",
                us(printed["min"]),
                us(printed["max"]),
                printed["mean"] / 1e3,
                counters.total.deviation() / 1e3
            );
        }
        text.push_str(";4.000000%;9.000000%;1;0;1");
        text.push_str(&";0.0%".repeat(7));
        text.push_str(&";0.00%".repeat(22));
        text.push('\n');
    }
    text
}

fn audit(form: &str, text: &str) -> Audit {
    let study = plimsoll_import::read_text(form, text);
    assert!(study.unreadable.is_empty(), "{form}: {:?}\n{text}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    let mut audits = audits(&results, &DeclaredFacts::default());
    assert_eq!(audits.len(), 1, "{form}\n{text}");
    audits.remove(0)
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Returns the accounts that fio prints.
fn accounts(job: &Job, draw: &mut Draw) -> Vec<Account> {
    let clones: Vec<Account> = (0..job.clones).map(|_| run(job, draw)).collect();
    if !job.grouped {
        return clones;
    }
    let mut sum = Account::default();
    clones.iter().for_each(|account| sum.add(account));
    vec![sum]
}

/// Returns true if the printed figures can refute the change. The change must be larger than the
/// error with which other figures determine the changed figure.
fn refutable(form: &str, lie: &Falsification, job: &Job, account: &Account) -> bool {
    let counters = &account.directions[lie.direction];
    let other = &account.directions[1 - lie.direction];
    if counters.bytes == 0 {
        return false;
    }
    // In many output formats zero means "not measured", so no rule may treat zero as a figure.
    if lie.change == Change::Zero {
        return matches!((form, lie.figure), ("json" | "text", "count") | ("json", "bytes"));
    }
    let apart = |a: f64, b: f64| (a - b).abs() > 0.02 * a.max(b);
    if lie.change == Change::Swap {
        let seconds = |c: &Counters| c.runtime_ms as f64 / 1e3;
        return match lie.figure {
            "min" => counters.total.min() < counters.total.max(),
            "bytes" | "bandwidth" => {
                other.bytes > 0 && apart(counters.bytes as f64, other.bytes as f64)
            }
            "rate" => {
                let rate = |c: &Counters| c.issued as f64 / seconds(c);
                other.bytes > 0 && form != "terse" && apart(rate(counters), rate(other))
            }
            _ => false,
        };
    }
    // When a ramp ends, only some counters include the operations that are in flight.
    let edge = job.depth as u64 * account.clones * 4;
    let certain = job.ramp_ns == 0 || counters.issued > edge;
    match lie.figure {
        // The bandwidth is the bytes divided by the runtime.
        "bytes" | "bandwidth" | "runtime" => true,
        // The terse output contains neither the number of operations nor their size.
        "rate" | "count" => form != "terse" && certain,
        // The total latency is the sum of submission and completion latency.
        "mean" => true,
        _ => false,
    }
}

const LIES: [(&str, Change); 16] = [
    ("bytes", Change::Times(10.0)),
    ("bytes", Change::Times(1.5)),
    ("bytes", Change::Zero),
    ("bytes", Change::Swap),
    ("bandwidth", Change::Times(10.0)),
    ("bandwidth", Change::Times(1.5)),
    ("bandwidth", Change::Swap),
    ("rate", Change::Times(10.0)),
    ("rate", Change::Times(1.5)),
    ("rate", Change::Swap),
    ("runtime", Change::Times(1.5)),
    ("count", Change::Times(1.5)),
    ("count", Change::Zero),
    ("mean", Change::Times(10.0)),
    ("mean", Change::Times(1.5)),
    ("min", Change::Swap),
];

#[test]
fn honest_runs_are_accused_in_no_form_and_false_figures_are() {
    let seed = variable("PLIMSOLL_FIO_MODEL_SEED", 20_261_125);
    let runs = variable("PLIMSOLL_FIO_MODEL_RUNS", 60);
    println!("seed {seed}, {runs} runs");
    let mut faults = Vec::new();
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for number in 0..runs {
        let mut draw = Draw(seed.wrapping_add(number << 32));
        let job = Job::draw(&mut draw);
        let accounts = accounts(&job, &mut draw);
        let forms = |lie| {
            [
                ("json", json(&job, &accounts, lie)),
                ("text", text(&job, &accounts, lie)),
                ("terse", terse(&accounts, lie)),
            ]
        };
        for (form, text) in forms(None) {
            let audit = audit(form, &text);
            if audit.verdict != Credibility::Consistent {
                faults.push(format!("run {number}, {form}: {} {job:?}", audit.reason));
            }
        }
        let lies = LIES.into_iter().flat_map(|(figure, change)| {
            [0, 1].map(|direction| Falsification { direction, figure, change })
        });
        for lie in lies.filter(|_| draw.unit() < 0.25) {
            for (form, text) in forms(Some(lie)) {
                if refutable(form, &lie, &job, &accounts[0]) {
                    let audit = audit(form, &text);
                    let kind = format!("{form} {} {:?}", lie.figure, lie.change);
                    let (found, all) = kinds.entry(kind).or_default();
                    *all += 1;
                    *found += usize::from(audit.verdict != Credibility::Consistent);
                }
            }
        }
    }
    let (found, all) = kinds.values().fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    for (kind, (found, all)) in &kinds {
        println!("{kind}: {found} of {all}");
    }
    println!(
        "honest: {} of {} accused; falsified: {found} of {all} accused",
        faults.len(),
        runs * 3
    );
    assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n"));
    assert!(all > 100 && found * 100 >= all * 95, "seed {seed}: {found} of {all}");
}
