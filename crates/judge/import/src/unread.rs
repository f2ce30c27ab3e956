//! Describes files that Plimsoll cannot read. It determines the probable format, a command to use
//! instead, and whether the file looks like a result.

use crate::{text, trace};

/// Function that tests the start of a file's text.
type Is = fn(&str) -> bool;

/// Tools whose results Plimsoll cannot read. Each has words that no other tool prints.
const TOOLS: &[(&str, Is)] = &[
    ("rados bench", |t| {
        t.contains("Total time run:") && t.contains("made:") || t.contains("\"total_writes_made\"")
    }),
    ("rbd bench", |t| t.contains(" io_size ") && t.contains(" io_threads ")),
    ("iozone -t", |t| t.contains("Children see throughput for")),
    ("s3-benchmark", |t| t.contains("Wasabi benchmark program")),
    ("s3bench", |t| t.contains("Results Summary for ") && t.contains("Total Throughput:")),
    ("etcd benchmark or hey", |t| {
        ["Slowest:", "Fastest:", "Requests/sec:"].iter().all(|name| t.contains(name))
    }),
    ("gsutil perfdiag", |t| t.contains("DIAGNOSTIC RESULTS") && t.contains("hroughput")),
    ("ApacheBench", |t| t.contains("This is ApacheBench")),
    ("wrk", |t| t.contains("Thread Stats") && t.contains("Requests/sec:")),
    ("pveperf", |t| t.contains("FSYNCS/SECOND:") && t.contains("BUFFERED READS:")),
    ("YCSB", |t| t.contains("[OVERALL], ")),
    ("bonnie++", |t| {
        t.contains("+++++,+++") || t.contains("------Sequential Output------") || is_bonnie_csv(t)
    }),
    ("CrystalDiskMark", |t| t.contains("CrystalDiskMark")),
    ("ATTO Disk Benchmark", |t| t.contains("ATTO Disk Benchmark")),
    ("AS SSD Benchmark", |t| t.contains("AS SSD Benchmark")),
    ("hdparm", |t| t.contains("Timing buffered disk reads") || t.contains("Timing cached reads")),
    ("db_bench (RocksDB)", |t| t.contains(" micros/op ") && t.contains(" ops/sec")),
    ("filebench", |t| t.contains("IO Summary:") && t.contains(" ops/s")),
    ("SPDK's perf", |t| t.contains("Device Information") && t.contains("MiB/s")),
    ("fs_mark", |t| t.contains("FSUse%") && t.contains("Files/sec")),
    ("dbench", |t| t.contains("max_latency=") && t.contains("Throughput ")),
    ("dbench for Kubernetes (a summary of fio)", |t| t.contains("= Dbench Summary =")),
    ("COSBench", |t| t.contains("Op-Count") && t.contains("Succ-Ratio")),
    ("memtier_benchmark", |t| t.contains("ALL STATS") && t.contains("Ops/sec")),
    ("stress-ng", |t| t.contains("stress-ng: ") && t.contains("bogo")),
    ("HammerDB", |t| t.contains(" NOPM from ")),
    ("TestDFSIO", |t| t.contains("----- TestDFSIO -----")),
    ("iometer", |t| t.contains("'Test Type,Test Description") || t.contains("Iometer Version")),
    ("nvme-cli or smartctl", |t| t.contains("percentage_used") && t.contains("power_on_hours")),
];

/// Files that are not results of a load, such as output of monitors, job files and logs.
const OTHERS: &[(Is, &str)] = &[
    (
        is_job,
        "it is a fio job, not a result; to convert the job to a plan, run `plimsoll plan import \
         FILE`",
    ),
    (
        |t| t.contains("%util") && (t.contains("r/s") || t.contains("rkB/s")),
        "it seems to be output of iostat, not a result; run the load with `plimsoll observe`, which \
         reads the same counters",
    ),
    (
        |t| t.contains("\"sysstat\"") || t.contains("\"disk_device\""),
        "it is JSON of iostat, not a result; run the load with `plimsoll observe`, which reads the \
         same counters",
    ),
    (
        |t| t.contains("\"peak_bandwidth\"") || t.contains("\"peak_iops\""),
        "it describes a system (for MLPerf Storage), but contains no result",
    ),
    (
        |t| t.contains("-----memory----------") && t.contains("---swap--"),
        "it seems to be output of vmstat, not a result; run the load with `plimsoll observe`",
    ),
    (
        |t| t.lines().any(|l| l.starts_with("# HELP ") || l.starts_with("# TYPE ")),
        "it seems to contain Prometheus metrics, not a result; add the endpoint to a plan \
         (`[[observe.metrics]]`)",
    ),
    (
        |t| t.lines().any(|l| l.starts_with("fio: ")),
        "it contains only messages of a failed fio run; run fio again with --output-format=json \
         --output=FILE",
    ),
];

/// Formats of binary files, which are recognised by their first bytes.
const BINARIES: &[(&[u8], &str)] = &[
    (
        &[0x28, 0xb5, 0x2f, 0xfd],
        "it is compressed with zstd (like warp's file of operations): unpack it with zstd -d, or \
         run `warp analyze --json FILE`",
    ),
    (b"\xfd7zXZ\0", "it is compressed with xz: unpack it with xz -d"),
    (b"BZh", "it is compressed with bzip2: unpack it with bzip2 -d"),
    (b"7z\xbc\xaf", "it is a 7-Zip archive: unpack it with 7z x"),
    (
        b"\x07tae",
        "it is a binary trace of blktrace, not a result: run `blkparse -i FILE` and replay its output with `plimsoll run --trace`",
    ),
    (b"%PDF", "it is a PDF: copy its figures into a table (CSV)"),
    (b"\x89PNG", "it is an image: copy its figures into a table (CSV)"),
    (b"\xff\xd8\xff", "it is an image: copy its figures into a table (CSV)"),
    (b"SQLite format 3", "it is a SQLite database: export its results as CSV"),
];

/// Words that occur in the names of figures in a result.
const FIGURES: [&str; 8] = [
    "throughput",
    "bandwidth",
    "latency",
    "iops",
    "_per_sec",
    "ops/sec",
    "mb/s",
    "partial_failure",
];

/// Returns the probable format of a file that cannot be read, and a hint. Returns `None` if the
/// format is unknown.
#[must_use]
pub fn refusal(head: &[u8]) -> Option<String> {
    if let Some((_, says)) = BINARIES.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some((*says).to_owned());
    }
    if trace::opens(head) {
        let says = "it is a block trace, not a result: replay it with `plimsoll run --trace FILE`";
        return Some(says.to_owned());
    }
    let text = text::decode(head)?;
    let text = text.as_ref();
    if text.trim().is_empty() {
        return Some("it is empty, so the tool wrote no result".to_owned());
    }
    if let Some(says) = known_tool(text) {
        return Some(says);
    }
    if let Some((_, says)) = OTHERS.iter().find(|(is, _)| is(text)) {
        return Some((*says).to_owned());
    }
    (is_structured(text) && has_figures(text)).then(|| {
        "it looks like a result, but its format is unknown; copy its figures into a table (CSV with \
         columns such as IOPS, block size, MB/s, latency), or enter them with `plimsoll audit \
         --iops N --size 4KiB --latency 1ms`"
            .to_owned()
    })
}

/// Returns the reason and a hint if the text is output of a tool that Plimsoll cannot read.
#[must_use]
pub fn known_tool(text: &str) -> Option<String> {
    let (name, _) = TOOLS.iter().find(|(_, is)| is(text))?;
    Some(format!(
        "it seems to be output of {name}, which Plimsoll cannot read; run the load with fio \
         (--output-format=json), or enter the figures in a table (CSV) or with `plimsoll audit \
         --iops N --size 4KiB --latency 1ms --depth N`"
    ))
}

/// Returns true if a line has the versions and figures of bonnie++'s CSV (1.97 to 2.0, 48 cells or
/// more).
fn is_bonnie_csv(text: &str) -> bool {
    let of_version = |line: &str| line.starts_with("1.9") || line.starts_with("2.0");
    text.lines().any(|line| of_version(line) && line.matches(',').count() >= 40)
}

/// Returns true if the text is the output of a benchmark, or data with the names of figures. It
/// returns false for jobs, traces, logs and web pages.
#[must_use]
pub fn looks_like_result(head: &[u8]) -> bool {
    let Some(text) = text::decode(head) else { return false };
    let text = text.as_ref();
    let other = || OTHERS.iter().any(|(is, _)| is(text));
    let tool = TOOLS.iter().any(|(_, is)| is(text));
    tool || is_structured(text) && has_figures(text) && !other()
}

fn is_job(text: &str) -> bool {
    let lines = || text.lines().map(str::trim);
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    lines().any(|line| line.starts_with('[') && line.ends_with(']'))
        && lines().any(|line| {
            line.contains('=') && matches!(key(line).as_str(), "rw" | "readwrite" | "ioengine")
        })
}

/// Returns true if the text is JSON, XML, YAML or a table with headings.
fn is_structured(text: &str) -> bool {
    let text = text.trim_start();
    let list = |rest: &str| rest.trim_start().starts_with(['{', '[', '"']);
    (text.starts_with('{') || text.strip_prefix('[').is_some_and(list)) && text.contains('"')
        || text.starts_with("<?xml")
        || is_yaml(text)
        || is_csv(text)
}

/// Returns true if each line is a name with a value, or a list item.
fn is_yaml(text: &str) -> bool {
    let plain = |line: &str| {
        let line = line.trim().trim_start_matches("- ");
        let Some((name, _)) = line.split_once(':') else { return line == "---" };
        let of_name = |c: char| c.is_ascii_alphanumeric() || "_- ".contains(c);
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(of_name)
    };
    let mut lines =
        text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
    text.lines().any(|line| line.trim_end().ends_with(':')) && lines.all(plain)
}

/// Returns true if the heading names at least two figures, and the next lines contain the same
/// number of commas as the heading.
fn is_csv(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(heading) = lines.next() else { return false };
    let cells = |line: &str| line.matches(',').count();
    let figures = heading.split(',').filter(|cell| has_figures(cell)).count();
    let rows: Vec<&str> = lines.take(2).collect();
    figures >= 2 && !rows.is_empty() && rows.iter().all(|row| cells(row) == cells(heading))
}

fn has_figures(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    FIGURES.iter().any(|name| lower.contains(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn output_of_other_tools_is_named_and_looks_like_a_result() {
        for (name, text) in [
            ("rados bench", "Total time run:         10.2\nTotal writes made:      512\n"),
            ("YCSB", "[OVERALL], RunTime(ms), 10110\n[READ], Operations, 500\n"),
            ("hdparm", " Timing buffered disk reads: 1620 MB in  3.00 seconds = 539.80 MB/sec\n"),
            ("db_bench", "fillseq : 1.531 micros/op 653167 ops/sec; 72.3 MB/s\n"),
            ("SPDK", "Device Information : IOPS MiB/s Average min max\n"),
            (
                "CrystalDiskMark",
                "CrystalDiskMark 8.0.4 x64\n  SEQ 1MiB (Q=  8, T= 1): 3558.6 MB/s\n",
            ),
            ("rados bench", "{\"bandwidth\": 190.5, \"total_writes_made\": 1438}"),
            ("rbd bench", "bench  type write io_size 4096 io_threads 16 bytes 1073741824\n"),
            (
                "iozone -t",
                "\tChildren see throughput for  4 initial writers \t=  400000.00 kB/sec\n",
            ),
            ("s3-benchmark", "Wasabi benchmark program v2.0\nLoop 1: PUT time 60.1 secs\n"),
            ("s3bench", "Results Summary for Write Operation(s)\nTotal Throughput:  50.00 MB/s\n"),
            (
                "etcd",
                "Summary:\n  Slowest:\t0.05 secs.\n  Fastest:\t0.001 secs.\n  Requests/sec:\t9.5\n",
            ),
            ("gsutil", "   DIAGNOSTIC RESULTS\nWrite throughput: 25.56 Mibit/s.\n"),
            ("ApacheBench", "This is ApacheBench, Version 2.3\n"),
            ("wrk", "  Thread Stats   Avg      Stdev     Max\nRequests/sec:  748.9\n"),
            ("pveperf", "BUFFERED READS:    450.10 MB/sec\nFSYNCS/SECOND:     2500.50\n"),
            (
                "COSBench",
                "Timestamp,Op-Count,,Throughput,,Succ-Ratio,\n,read,write,read,write,read,write\n",
            ),
            ("fs_mark", "FSUse%        Count         Size    Files/sec     App Overhead\n"),
            ("table", "[{\"name\": \"randread\", \"iops\": 100000}]"),
            ("table", "benchmark: mine\nresults:\n  - name: randread\n    iops: 100000\n"),
            ("table", "phase,read_throughput,read_latency_p9\nrun,1,2\n"),
        ] {
            assert!(looks_like_result(text.as_bytes()), "{text}");
            let says = refusal(text.as_bytes()).unwrap();
            assert!(says.contains(name) && says.contains("plimsoll audit"), "{text}: {says}");
        }
    }

    #[test]
    fn tables_of_other_tools_are_named() {
        let bonnie = format!("1.97,1.97,host,1,1566123456,16G{}\n", ",99".repeat(42));
        let cosbench = "Stage,Op-Type,Op-Count,Avg-ResTime,Throughput,Bandwidth,Succ-Ratio\n\
                        w1,write,12000,23.5,200.5,2005000,100%\n";
        for (name, text) in [("bonnie++", bonnie.as_str()), ("COSBench", cosbench)] {
            let study = crate::read_text("r.csv", text);
            assert!(study.unreadable[0].says.contains(name), "{:?}", study.unreadable);
        }
    }

    #[test]
    fn jobs_monitors_logs_and_pages_are_no_results() {
        for (name, text) in [
            ("plan import", "; comment\n[job1]\nreadwrite = randread\nbs=4k\n"),
            ("observe", "Device  r/s  rkB/s  w/s  %util\nsda 1.0 40.0 2.0 0.1\n"),
            ("observe", "procs -----------memory---------- ---swap-- -----io----\n"),
            (
                "iostat",
                "{\"sysstat\": {\"hosts\": [{\"disk\": [{\"disk_device\": \"vda\", \"rMB/s\": 9}]}]}}",
            ),
            ("describes a system", "{\"storage_system\": {\"peak_iops\": 90000}}"),
            ("metrics", "# HELP x y\nnode_disk_reads_completed_total 1\n"),
            ("failed", "fio: engine libaio not loadable\nfio: pid=0, err=2\n"),
            ("empty", " \n"),
            ("blkparse", "\x07tae...."),
            ("xz -d", "\u{0}"),
        ] {
            let head = if name == "xz -d" { b"\xfd7zXZ\0\0" } else { text.as_bytes() };
            assert!(!looks_like_result(head), "{text}");
            assert!(refusal(head).unwrap().contains(name), "{text}");
        }
        for text in [
            "# Results\n\nThe latency is 5 ms, and bandwidth: 3 GB/s.\n",
            "[INFO] 2024-01-01T10:00:00 Training I/O Throughput (MB/second): 344\n",
            "{\"name\": \"disk\", \"model\": \"x\"}",
            "[mysqld]\nsocket = \"s\"\n# tuned for throughput and latency\n",
            "host: a\nmemory:\n  size: 5\n",
            "name,size\na,1\n",
        ] {
            assert!(!looks_like_result(text.as_bytes()), "{text}");
            assert_eq!(refusal(text.as_bytes()), None, "{text}");
        }
    }
}
