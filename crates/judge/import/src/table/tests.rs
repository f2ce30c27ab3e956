#![allow(clippy::unwrap_used)]
use super::*;

fn one(text: &str) -> ToolResult {
    assert!(is(text), "{text}");
    read(text, "t").unwrap().remove(0)
}

#[test]
fn usual_headings_and_units_are_known() {
    for text in [
        "Block size,IOPS,BW (MB/s),Avg latency (ms),p99 (us),Queue depth\n4KiB,\"100,000\",409.6,0.32,900,32\n",
        "bs;iops;bw_mb/s;lat_ms;99th latency us;qd\n4k;100k;409,6;0,32;900;32\n",
        "| bs | IOPS | MB/s | lat avg (us) | lat p99 (ms) | iodepth |\n|---|---:|---|---|---|---|\n| 4K | 100k | 409.6 | 320 | 0.9 | 32 |\n",
        "bs\tIOPS\tThroughput\tlatency\tp99\tQD\n4KiB\t100K\t409.6MB/s\t320us\t0.9ms\t32\n",
    ] {
        let part = &one(text).parts[0];
        let all = &part.operations[0];
        assert_eq!((all.kind.clone(), all.rate_per_s[0].value), (Kind::All, 100_000.0), "{text}");
        assert_eq!(all.size_bytes.as_ref().unwrap().value, 4096.0, "{text}");
        assert!((all.bandwidth_per_s[0].value - 409.6e6).abs() < 1.0, "{text}");
        let latency = &all.latencies[0];
        assert!((latency.mean_ns.as_ref().unwrap().value - 320e3).abs() < 1e-3, "{text}");
        assert!((latency.percentiles[0].ns.value - 900e3).abs() < 1e-3, "{text}");
        assert_eq!(latency.percentiles[0].quantile, 0.99);
        assert_eq!(part.setting.outstanding_of_each.as_ref().unwrap().value, 32.0, "{text}");
    }
}

#[test]
fn depths_are_of_each_issuer_or_of_all() {
    let of = |text: &str| one(text).parts[0].setting.outstanding.as_ref().map(|o| o.most.value);
    assert_eq!(of("iops,lat (ms),qd,clients\n10k,1,8,4\n"), Some(32.0));
    assert_eq!(of("iops,lat (ms),outstanding\n10k,1,8\n"), Some(8.0));
    assert_eq!(of("iops,lat (ms),iodepth\n10k,1,8\n"), None);
}

#[test]
fn distinguishes_reads_writes_and_flag_bits() {
    let text =
        "test,read iops,write iops,read bw (Gb/s),write latency (ms)\nrandrw,1M,500k,32.8,1.5\n";
    let part = &one(text).parts[0];
    let kinds: Vec<&str> = part.operations.iter().map(|o| o.kind.word()).collect();
    assert_eq!(kinds, ["read", "write"]);
    assert!((part.operations[0].bandwidth_per_s[0].value - 4.1e9).abs() < 1.0);
    assert_eq!(part.setting.pattern, Some(Pattern::Random));
    assert_eq!(part.setting.read_percent, None);
}

#[test]
fn ambiguous_units_and_metadata_totals_have_no_findings() {
    let text = "io_kib,ops_per_s,bandwidth_mb_per_s,read_ops_per_s,write_ops_per_s,read_percent\n8,150283,1157,71379,71402,50\n";
    let part = &one(text).parts[0];
    let kinds: Vec<&str> = part.operations.iter().map(|o| o.kind.word()).collect();
    assert_eq!(kinds, ["all", "read", "write"]);
    assert_eq!(part.operations[0].size_bytes, None);
    assert_eq!(part.operations[1].size_bytes.as_ref().unwrap().value, 8192.0);
    assert_eq!(part.setting.read_percent.as_ref().unwrap().value, 50.0);
    let bandwidth = &part.operations[0].bandwidth_per_s[0];
    assert_eq!(bandwidth.value, 1157e6);
    assert!(bandwidth.least < 1157e6 / 7.9);
    let text = "block size,bandwidth MB/s,IOPS,read IOPS,write IOPS\n4 KiB,999.6,10000,7000,3000\n";
    let size = one(text).parts[0].operations[0].size_bytes.clone();
    assert_eq!(size.map(|size| size.value), Some(4096.0), "reads and writes are the whole total");
}

#[test]
fn ignores_tables_without_results() {
    for text in [
        "a,b\n1,2\n",
        "name,price\nx,3\n",
        "time,iops,lat (ms)\n1,5,3\n",
        "words, and more words\n",
        "",
        "iops\n5\n",
    ] {
        assert!(!is(text), "{text}");
    }
    assert!(read("iops,latency (ms)\nnone,none\n", "x").is_err());
    let both = "iops,latency (ms)\n\"1.000,5\",\"1,000.5\"\n";
    assert!(read(both, "x").unwrap_err().contains("ambiguous"));
}

#[test]
fn numbers_that_may_be_german_are_refused() {
    let of =
        |text: &str| read(text, "t").map(|rows| rows[0].parts[0].operations[0].rate_per_s[0].value);
    for text in [
        "bs;iops;MB/s\n4k;1.500;6,144\n4k;2.000;8,192\n",
        "bs;iops;MB/s\n4k;1500;6,144\n",
        "| bs | iops | MB/s |\n|---|---|---|\n| 4k | 1.500 | 6,144 |\n",
    ] {
        assert!(of(text).unwrap_err().contains("6,144"), "{text}");
    }
    // The format of one number determines the decimal separator of the table.
    for text in [
        "bs;iops;MB/s\n4k;1500;6,144\n4k;2000;8,19\n",
        "bs;iops;MB/s\n4k;1,500;6.144\n4k;2,000;8.19\n",
        "bs;iops;MB/s\n4k;1,500;6.1\n",
        "bs,iops,MB/s\n4k,\"1,500\",6\n",
        "bs;iops;MB/s\n4k;1500;0,614\n",
    ] {
        assert_eq!(of(text), Ok(1500.0), "{text}");
    }
}

fn audited(text: &str) -> Vec<String> {
    use plimsoll_judge::conservation::{DeclaredFacts, audit};
    let audit = audit(&one(text), &DeclaredFacts::default());
    audit.findings.into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn one_digit_may_be_half_a_digit_off() {
    let none: [String; 0] = [];
    // fio printed 0.78 us.
    assert_eq!(audited("bs,iops,lat ms,iodepth,numjobs\n4k,1099591,0.001,1,1\n"), none);
    assert_eq!(audited("bs,iops,GB/s\n4k,361234,1\n"), none);
    assert_eq!(audited("bs,iops,lat ms,iodepth,numjobs\n4k,66123,0.03,1,1\n"), ["littles-law"]);
    assert_eq!(audited("bs,iops,GB/s\n4k,361234,1.0\n"), ["rate-size-bandwidth"]);
}

#[test]
fn a_warm_up_may_have_left_out_operations_in_flight() {
    let none: [String; 0] = [];
    let row = |mb: &str, seconds: &str| {
        format!("bs,iops,bw MB/s,iodepth,hosts,runtime s\n64k,17063,{mb},64,4,{seconds}\n")
    };
    assert_eq!(audited(&row("1120.3", "8")), none);
    assert_eq!(audited(&row("1122.3", "8")), ["rate-size-bandwidth"], "more than 256 operations");
    // Without the queue depth and the run time, the number of operations in flight is unknown.
    assert_eq!(audited("bs,iops,bw MB/s\n64k,17063,1120.3\n"), none);
    assert_eq!(audited("bs,iops,bw MB/s\n64k,17063,1145.0\n"), ["rate-size-bandwidth"]);
}

#[test]
fn deviations_and_extremes_do_not_repeat_a_rate() {
    let rates = |text: &str| -> Vec<(String, f64)> {
        let reported = one(text);
        let all = reported.parts[0].operations.iter();
        all.flat_map(|o| o.rate_per_s.iter().chain(&o.bandwidth_per_s))
            .map(|figure| (figure.field.clone(), figure.value))
            .collect()
    };
    let text = "bs,Read IOPS,Read IOPS Stddev,Read IOPS min,Read lat (ms)\n4k,699,86.4,500,1\n";
    assert_eq!(rates(text), [("line 2 (Read IOPS)".to_owned(), 699.0)]);
    // Rates with and without a cache belong to different systems. The same rate in two units is one
    // figure.
    let two = "name,Disk Read (MB/s),Cache Disk Read (MB/s),lat (ms),qd\nx,41.89,39.02,3,1\n";
    assert!(rates(two).is_empty());
    let units = "bs,read MB/s,read MiB/s\n4k,104.9,100\n";
    assert_eq!(rates(units).len(), 2);
    assert!(!is("Label,Phase,RuntimeMS,Rank,Done%,MiB/s,IOPS\n,WRITE,5001,Total,0,7838,7838\n"));
}

#[test]
fn means_of_samples_may_lie_a_little_apart() {
    let part =
        &one("blocksize,read-iops-mean,read-bw-mean(KiB/s)\n4M,237.139123,1020445.98\n").parts[0];
    let read = &part.operations[0];
    let (rate, bandwidth) = (&read.rate_per_s[0], &read.bandwidth_per_s[0]);
    let size = read.size_bytes.as_ref().unwrap().value;
    assert!(rate.most * size > bandwidth.least && rate.value * size < bandwidth.value);
    assert!(rate.most < rate.value * 1.06);
}

#[test]
fn a_table_of_zeroes_says_that_nothing_was_measured() {
    let zeroes = "bs,iops,lat ms\n4k,0,0\n8k,0.0,0\n";
    assert!(read(zeroes, "t").unwrap_err().contains("nothing was measured"));
    assert_eq!(read("bs,iops,lat ms\n4k,0,0\n8k,900,1\n", "t").unwrap().len(), 1);
    assert!(read("bs,iops,lat ms\n4k,-,-\n", "t").unwrap_err().contains("contains a figure"));
}

#[test]
fn rows_of_adjacent_tables_are_read_once_and_dashes_may_divide_rows() {
    let table = "| bs | IOPS |\n|---|---|\n| 4K | 1000 |\n";
    let rates = |text: &str| -> Vec<f64> {
        let results = read(text, "t").unwrap();
        results.iter().map(|r| r.parts[0].operations[0].rate_per_s[0].value).collect()
    };
    assert_eq!(rates(&table.repeat(3)), [1000.0; 3]);
    let divided = format!("{table}|---|---|\n| 8K | 900 |\n");
    assert_eq!(rates(&divided), [1000.0, 900.0]);
    // In an earlier version, each line of dashes started a table with all rows below it: 27 KB of
    // text took 1 GB of memory.
    let dashes = format!("| bs | IOPS |\n{}| 4K | 1000 |\n", "|---|---|\n".repeat(2000));
    assert_eq!(blocks(&dashes).iter().map(|block| block.rows.len()).sum::<usize>(), 2000);
}

#[test]
fn ratios_are_other_quantities() {
    let rates = |text: &str| one(text).parts[0].operations[0].rate_per_s.len();
    for heading in [
        "TPS/$",
        "TPS per dollar",
        "IOPS per core",
        "IOPS/GB",
        "ops_per_s_per_client",
        "IOPS (normalised)",
        "IOPS speedup",
        "IOPS %",
        "IOPS vs baseline",
        "ops per minute",
    ] {
        assert_eq!(rates(&format!("IOPS,{heading},lat (ms)\n5000,3.7,1\n")), 1, "{heading}");
    }
    for heading in ["Ops/sec", "ops_per_s", "IOPS (70% random)", "read/write IOPS"] {
        assert_eq!(rates(&format!("{heading},lat (ms)\n5000,1\n")), 1, "{heading}");
    }
}

#[test]
fn bytes_per_operation_are_a_size() {
    for heading in ["bytes/io", "Bytes/IO", "bytes per request", "avg bytes/I/O"] {
        let all = &one(&format!("rate,MB/sec,{heading}\n30,0.1172,4096\n")).parts[0].operations[0];
        assert_eq!(all.rate_per_s.len(), 1, "{heading}");
        assert_eq!(all.size_bytes.as_ref().unwrap().value, 4096.0, "{heading}");
    }
    let of_one = one("iops,latency per op (us)\n10k,100\n");
    let latency = &of_one.parts[0].operations[0].latencies[0];
    assert_eq!(latency.mean_ns.as_ref().unwrap().value, 100e3);
}

fn sizes(heading: &str, cell: &str) -> Option<f64> {
    let text = format!("{heading},IOPS,MB/s\n{cell},50000,409.6\n");
    one(&text).parts[0].operations[0].size_bytes.as_ref().map(|size| size.value)
}

#[test]
fn only_sizes_of_operations_are_sizes() {
    for heading in [
        "Block size",
        "bs",
        "IO size",
        "I/O size",
        "Xfer size",
        "Transfer size",
        "Record size",
        "Object size",
        "Request size",
        "Size",
        "Avg request size",
        "Block size (KiB)",
    ] {
        let cell = if heading.contains('(') { "8" } else { "8KiB" };
        assert_eq!(sizes(heading, cell), Some(8192.0), "{heading}");
    }
    for heading in [
        "Disk size",
        "Volume size",
        "Pool size",
        "Working set size",
        "Test size",
        "Stripe size",
        "Chunk size",
        "Total size",
        "Instance size",
        "Total IO",
        "IO (MiB)",
        "Rate (MiB)",
        "Records (M)",
    ] {
        assert_eq!(sizes(heading, "8"), None, "{heading}");
        assert_eq!(sizes(heading, "8MiB"), None, "{heading}");
    }
    assert_eq!(sizes("Size", "4TiB"), None, "no operation has this size");
    assert_eq!(sizes("Test size (GiB),Block size", "100,8KiB"), Some(8192.0));
    assert_eq!(sizes("Block size,IO size", "4KiB,8KiB"), None, "ambiguous");
    assert_eq!(sizes("Block size,IO size", "8KiB,8KiB"), Some(8192.0));
}

#[test]
fn latencies_with_unknown_words_are_ignored_and_named() {
    let latency = |heading: &str| {
        let text = format!("iops,Latency (us),{heading}\n100000,319,900\n");
        let reported = one(&text);
        let latency = reported.parts[0].operations[0].latencies[0].clone();
        assert_eq!(latency.mean_ns.as_ref().unwrap().value, 319e3, "{heading}");
        (latency, reported.remarks)
    };
    for (heading, quantile) in [
        ("Latency 99 percentile (us)", 0.99),
        ("TP99 latency (us)", 0.99),
        ("99%ile latency (us)", 0.99),
        ("Latency 99.9%ile (us)", 0.999),
        ("lat_p99_9_us", 0.999),
        ("latency p10 (us)", 0.1),
        ("Lat(us) 99%", 0.99),
    ] {
        let (latency, remarks) = latency(heading);
        assert_eq!(latency.percentiles[0].quantile, quantile, "{heading}");
        assert!(remarks.is_empty(), "{heading}");
    }
    let figures = |l: Latency| [l.min_ns, l.max_ns, l.stddev_ns].map(|f| f.map(|f| f.value));
    for (heading, expected) in [
        ("latency p100 (us)", [None, Some(900e3), None]),
        ("Lat(us) Max", [None, Some(900e3), None]),
        ("Latency SD (us)", [None, None, Some(900e3)]),
        ("lat us min", [None; 3]),
    ] {
        assert_eq!(figures(latency(heading).0), expected, "{heading}");
    }
    for heading in [
        "Latency 95 (us)",
        "Latency variance (us)",
        "Latency target (ms)",
        "Submission latency (us)",
        "Max submission latency (us)",
    ] {
        let (latency, remarks) = latency(heading);
        assert_eq!((latency.percentiles.len(), figures(latency)), (0, [None; 3]), "{heading}");
        assert!(remarks[0].contains(heading), "{remarks:?}");
    }
    for heading in ["clat (us)", "Completion latency (us)"] {
        latency(heading);
    }
    assert_eq!(
        one("iops,clat (us),lat (us)\n9,1,319\n").parts[0].operations[0].latencies[0]
            .mean_ns
            .as_ref()
            .unwrap()
            .value,
        319e3
    );
    let apart = "iops,Random latency (us),Sequential latency (us)\n9,1,319\n";
    assert!(!is(apart), "latencies of two runs");
}

#[test]
fn all_issuers_of_a_row_are_multiplied() {
    let of = |text: &str| {
        let setting = &one(text).parts[0].setting;
        let total = setting.outstanding.as_ref().map(|o| o.most.value);
        (total, setting.outstanding_of_each.as_ref().map(|each| each.value))
    };
    let row = |headings: &str, cells: &str| of(&format!("iops,lat ms,{headings}\n10k,1,{cells}\n"));
    assert_eq!(row("VMs,Threads,Queue depth", "4,8,16"), (Some(512.0), None));
    assert_eq!(row("hosts,numjobs,iodepth", "2,4,32"), (Some(256.0), None));
    assert_eq!(row("Total threads,iodepth", "4,32"), (Some(128.0), None));
    // Other hosts may have run the same jobs.
    assert_eq!(row("numjobs,iodepth", "128,1"), (None, Some(128.0)));
    assert_eq!(row("Outstanding IOs per target", "16"), (None, Some(16.0)));
    assert_eq!(row("Outstanding per disk,Disks", "16,8"), (Some(128.0), None));
    assert_eq!(row("Outstanding IO", "64"), (Some(64.0), None));
    assert_eq!(row("IO depth,IO threads", "64,2"), (None, Some(128.0)));
    assert_eq!(row("Avg queue length", "64"), (None, None));
}

#[test]
fn numbers_of_operations_are_not_rates() {
    let rates = |heading: &str| {
        let text = format!("{heading},MB/s,Block size\n6000,409.6,4KiB\n");
        one(&text).parts[0].operations[0].rate_per_s.len()
    };
    for heading in [
        "Ops",
        "IOs",
        "Operations",
        "Records (M)",
        "Reads",
        "IO threads",
        "Cache hit rate",
        "Target IOPS",
        "Error rate",
    ] {
        assert_eq!(rates(heading), 0, "{heading}");
    }
    for heading in ["IOPS (k)", "kops", "IO/s", "Ops per second", "QPS", "RPS", "IO rate"] {
        assert_eq!(rates(heading), 1, "{heading}");
    }
}

#[test]
fn times_of_operations_are_not_run_times() {
    let of = |heading: &str| {
        let part = &one(&format!("iops,bs,{heading}\n500,4k,2\n")).parts[0];
        let mean = part.operations[0].latencies.first().and_then(|l| l.mean_ns.as_ref());
        (part.window_ns.as_ref().map(|time| time.value), mean.map(|mean| mean.value))
    };
    for heading in ["Avg service time (ms)", "Average wait time (ms)", "Avg time (ms)"] {
        assert_eq!(of(heading), (None, None), "{heading}");
    }
    assert_eq!(of("Avg time (us)"), (None, Some(2e3)));
    assert_eq!(of("Response time (ms)"), (None, Some(2e6)));
    for heading in ["Run time (s)", "time s", "runtime", "Duration(s)"] {
        assert_eq!(of(heading), (Some(2e9), None), "{heading}");
    }
}

#[test]
fn rows_of_other_lengths_are_padded_or_reported() {
    let of = |text: &str| {
        let all = read(text, "t").unwrap();
        let rate = |r: &ToolResult| r.parts[0].operations[0].rate_per_s[0].value;
        (all.iter().map(rate).collect::<Vec<_>>(), all[0].remarks.clone())
    };
    let table = "|test|bs|iops|MB/s|note|\n|---|---|---|---|---|\n|a|4k|1000|4.096|ok|\n";
    let rows = "|b|4k|2000|9.999||\n|c|4k|3000|9.999\n|d|4k|4000|9.999|\n";
    assert_eq!(of(&format!("{table}{rows}")), (vec![1e3, 2e3, 3e3, 4e3], Vec::new()));
    let lead = "||bs|iops|MB/s|\n|---|---|---|---|\n|a|4k|1000|4.096|\n";
    assert_eq!(of(lead).0, [1e3]);
    let (rates, remarks) = of("test,bs,iops,MB/s\nsmall,4k,900,3.7\nbig,4k,1,234,5.05\n");
    assert_eq!(rates, [900.0]);
    assert!(remarks[0].contains("line 3"), "{remarks:?}");
    assert!(read("bs,iops,MB/s\n4k,1,234,5\n", "t").unwrap_err().contains("line 2"));
}
