//! Tampered results must have a finding at the changed field. True results must have no findings.
//!
//! The directory `results` contains results of fio 3.33 from a busy virtual machine. Results of
//! other tools are generated from a seed, with consistent figures. The seed is printed;
//! `PLIMSOLL_TAMPER_SEED` sets a different seed.

use std::path::Path;

use plimsoll_judge::conservation::study::audits;
use plimsoll_judge::conservation::{Audit, Credibility, DeclaredFacts};
use serde_json::{Value, json};

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

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        let index = self.below(all.len());
        &all[index]
    }
}

/// Files of a result: name and text of each.
type Files = Vec<(String, String)>;

/// Tampered result, with the kind of change and a part of the field name that the finding must
/// state.
struct Tampered {
    files: Files,
    what: String,
    field: String,
}

fn seed() -> u64 {
    let given = std::env::var("PLIMSOLL_TAMPER_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or(21)
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn fio(mode: &str) -> Files {
    let names = [".json", "_bw.1.log", "_bw.2.log"].map(|end| format!("{mode}{end}"));
    names.into_iter().map(|name| (name.clone(), fixture(&name))).collect()
}

/// Creates a consistent result of this kind.
fn whole(kind: usize, draw: &mut Draw) -> Files {
    match kind {
        0 => fio("randread"),
        1 => fio("randrw"),
        2 => vec![("terse.txt".into(), fixture("terse.txt"))],
        3 => vec![("text.txt".into(), fixture("text.txt"))],
        4 => table(draw),
        5 => io500(draw),
        6 => pgbench(draw),
        7 => warp(draw),
        _ => mlperf(draw),
    }
}

const KINDS: usize = 9;

/// Creates a table with one row: rate, size, bandwidth, latency and operations in flight.
fn table(draw: &mut Draw) -> Files {
    let size = *draw.of(&[4096.0, 8192.0, 65536.0]);
    let depth = *draw.of(&[1.0, 8.0, 32.0, 256.0]);
    let latency_us = draw.between(200.0, 9000.0).round();
    let rate = (depth / latency_us * 1e6 * draw.between(0.8, 0.99)).round();
    let bandwidth = rate * size / 1e6;
    let text = format!(
        "Block size (KiB),IOPS,MB/s,Mean latency (us),p99 (us),Total \
         outstanding\n{},{rate},{bandwidth:.3},{latency_us},{},{depth}\n",
        size / 1024.0,
        latency_us * 3.0,
    );
    vec![("table.csv".into(), text)]
}

/// Creates an IO500 result with the figures of each rank in a phase, and the output of another
/// phase.
fn io500(draw: &mut Draw) -> Files {
    let ranks = 4 + draw.below(12);
    let seconds = draw.between(300.0, 400.0);
    let each = draw.between(0.5e9, 2e9);
    let score = each * ranks as f64 / 1024f64.powi(3);
    let kiops = draw.between(10.0, 900.0);
    let result = format!(
        "[run]\nprocs = {ranks}\nversion = io500-sc20\n\n[ior-easy-write]\nscore = \
         {score:.6}\nt_delta = {seconds:.4}\n[mdtest-easy-stat]\nscore = {kiops:.6}\n[SCORE]\nMD = \
         1\n"
    );
    let mut csv =
        "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n"
            .to_owned();
    for rank in 0..ranks {
        csv.push_str(&format!("write,{rank},{seconds:e},{seconds:e},{each:e},{each:e}\n"));
    }
    let rate = kiops * 1e3;
    let mdtest = format!(
        "mdtest-3.4.0 was launched with {ranks} total task(s) on 2 node(s)\n{ranks} tasks, 16000 files\n\nSUMMARY rate: \
         (of 1 iterations)\n   Operation   Max  Min  Mean  Std Dev\n   File stat   {rate:.3}  {rate:.3}  {rate:.3}  0.000\n"
    );
    vec![
        ("result.txt".into(), result),
        ("ior-easy-write.csv".into(), csv),
        ("mdtest-easy-stat.txt".into(), mdtest),
    ]
}

/// Creates a pgbench report with its transaction log.
fn pgbench(draw: &mut Draw) -> Files {
    let (clients, count) = (1 + draw.below(8), 400 + draw.below(400));
    let us = 1_000 + draw.below(4_000);
    let mut log = String::new();
    for number in 1..=count {
        for client in 0..clients {
            let end = number * us;
            let (s, us_of_s) = (1_700_000_000 + end / 1_000_000, end % 1_000_000);
            log.push_str(&format!("{client} {number} {us} 0 {s} {us_of_s}\n"));
        }
    }
    let seconds = (count * us) as f64 / 1e6;
    let report = format!(
        "pgbench (15.4)\nnumber of clients: {clients}\nnumber of threads: 1\nnumber of transactions \
         actually processed: {}\nnumber of failed transactions: 0 (0.000%)\nlatency average = {:.3} \
         ms\ntps = {:.6} (without initial connection time)\n",
        count * clients,
        us as f64 / 1e3,
        (count * clients) as f64 / seconds
    );
    vec![("report.txt".into(), report), ("pgbench_log.77".into(), log)]
}

/// Segments.
fn warp(draw: &mut Draw) -> Files {
    let mut text = "index\top\thost\tduration_s\tobjects_per_op\tbytes\tfull_ops\tpartial_ops\tops_started\tops_ended\terrors\tmb_per_sec\tops_ended_per_sec\tobjs_per_sec\tstart_time\tend_time\n"
        .to_owned();
    for index in 0..(8 + draw.below(12)) {
        let ended = 100 + draw.below(4);
        let bytes = ended * 1_048_576;
        text.push_str(&format!(
            "{index}\tGET\t\t2\t1\t{bytes}\t{ended}\t0\t{ended}\t{ended}\t0\t{}\t{}\t{}\t2024-05-01 \
             10:00:00 +0000 UTC\t2024-05-01 10:00:02 +0000 UTC\n",
            bytes as f64 / 1_048_576.0 / 2.0,
            ended as f64 / 2.0,
            ended as f64 / 2.0
        ));
    }
    vec![("warp.csv".into(), text)]
}

/// Creates an MLPerf summary of several epochs.
fn mlperf(draw: &mut Draw) -> Files {
    let rates: Vec<f64> = (0..5).map(|_| draw.between(99.0, 101.0)).collect();
    let busy: Vec<f64> = (0..5).map(|_| draw.between(91.0, 92.0)).collect();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let metric = json!({
        "train_au_percentage": busy, "train_au_mean_percentage": mean(&busy),
        "train_throughput_samples_per_second": rates,
        "train_throughput_mean_samples_per_second": mean(&rates),
    });
    let summary = json!({
        "num_accelerators": 2, "num_files_train": 1000, "num_samples_per_file": 1, "metric": metric,
        "start": "2024-09-09T12:00:00", "end": "2024-09-09T12:10:00", "epochs": 5,
    });
    vec![("summary.json".into(), format!("{summary:#}\n"))]
}

/// Multiplies a number in the file's JSON.
fn scale(files: &mut Files, pointers: &[String], factor: f64) {
    let mut json: Value = serde_json::from_str(&files[0].1).unwrap();
    for pointer in pointers {
        let value = json.pointer_mut(pointer).unwrap();
        *value = match value.as_u64() {
            Some(whole) => json!((whole as f64 * factor).round() as u64),
            None => json!(value.as_f64().unwrap() * factor),
        };
    }
    files[0].1 = json.to_string();
}

fn swap(files: &mut Files, a: &str, b: &str) {
    let mut json: Value = serde_json::from_str(&files[0].1).unwrap();
    let (of_a, of_b) = (json.pointer(a).unwrap().clone(), json.pointer(b).unwrap().clone());
    *json.pointer_mut(a).unwrap() = of_b;
    *json.pointer_mut(b).unwrap() = of_a;
    files[0].1 = json.to_string();
}

/// Changes column `column` in the last line of a table.
fn cell(files: &mut Files, column: usize, of: impl Fn(f64) -> f64) {
    let (head, row) = files[0].1.trim_end().rsplit_once('\n').unwrap();
    let mut cells: Vec<String> = row.split(',').map(str::to_owned).collect();
    cells[column] = format!("{:.3}", of(cells[column].parse().unwrap()));
    files[0].1 = format!("{head}\n{}\n", cells.join(","));
}

/// Removes lines of a file.
fn drop_lines(files: &mut Files, file: usize, dropped: impl Fn(usize) -> bool) {
    let kept = files[file].1.lines().enumerate().filter(|(index, _)| !dropped(*index));
    files[file].1 = kept.map(|(_, line)| format!("{line}\n")).collect();
}

fn tamper(kind: usize, mut files: Files, draw: &mut Draw) -> Tampered {
    let done = |files: Files, what: &str, field: &str| Tampered {
        files,
        what: what.into(),
        field: field.into(),
    };
    match kind {
        0 | 1 => {
            let side = if kind == 0 { "read" } else { *draw.of(&["read", "write"]) };
            let job = draw.below(2);
            let at = |name: &str| format!("/jobs/{job}/{side}/{name}");
            let field = |name: &str| format!("jobs[{job}].{side}.{name}");
            match draw.below(6) {
                0 => {
                    let factor = *draw.of(&[8.0, 1000.0, 1024.0, 1.048576]);
                    scale(&mut files, &[at("bw_bytes")], factor);
                    done(files, "the bandwidth in another unit", &field("bw_bytes"))
                }
                1 => {
                    swap(&mut files, &at("iops"), &at("bw"));
                    done(files, "rate and bandwidth swapped", &field("iops"))
                }
                2 => {
                    let ms = draw.between(1.5, 9.0) * 6e9;
                    let mut json: Value = serde_json::from_str(&files[0].1).unwrap();
                    *json.pointer_mut(&at("lat_ns/max")).unwrap() = json!(ms as u64);
                    files[0].1 = json.to_string();
                    done(files, "a latency longer than the run", &field("lat_ns.max"))
                }
                3 => {
                    let factor = draw.between(1.2, 3.0);
                    scale(&mut files, &[at("bw_bytes"), at("bw"), at("iops")], factor);
                    done(files, "rate and bandwidth scaled", &field("bw_bytes"))
                }
                4 => {
                    scale(&mut files, &[at("lat_ns/mean")], *draw.of(&[1e-3, 1e3, 1e6]));
                    done(files, "the mean latency in another unit", &field("lat_ns.mean"))
                }
                _ => {
                    let log = 1 + job;
                    let lines = files[log].1.lines().count();
                    let keep = draw.below(lines / 2) + lines / 5;
                    drop_lines(&mut files, log, |index| index >= keep);
                    let name = format!("_bw.{log}.log");
                    done(files, "a log cut off", &name)
                }
            }
        }
        2 => {
            // In version 3, this field is the write bandwidth in KiB/s. It equals bytes divided by
            // time.
            let (index, what, field) = (48, "the bandwidth", "field 48 ");
            let mut cells: Vec<String> =
                files[0].1.trim_end().split(';').map(str::to_owned).collect();
            let value: f64 = cells[index - 1].parse().unwrap();
            cells[index - 1] = format!("{:.0}", value * draw.of(&[2.0, 8.0, 1000.0, 1024.0]));
            files[0].1 = cells.join(";") + "\n";
            done(files, &format!("{what} in another unit"), field)
        }
        3 => {
            let text = &files[0].1;
            let at = text.find("IOPS=").unwrap() + 5;
            let end = at + text[at..].find(|c: char| !c.is_ascii_digit()).unwrap();
            let value: f64 = text[at..end].parse().unwrap();
            let value = (value * draw.of(&[1.5, 2.0, 8.0, 10.0])).round();
            files[0].1 = format!("{}{value}{}", &text[..at], &text[end..]);
            done(files, "the rate scaled", "(iops)")
        }
        4 => match draw.below(4) {
            0 => {
                let factor = *draw.of(&[8.0, 1000.0, 0.125, 1.5]);
                cell(&mut files, 2, |value| value * factor);
                done(files, "the bandwidth in another unit", "MB/s")
            }
            1 => {
                cell(&mut files, 1, |value| value * 1.7);
                done(files, "the rate scaled", "IOPS")
            }
            2 => {
                cell(&mut files, 3, |value| value * 1000.0);
                done(files, "the latency in another unit", "Mean latency")
            }
            _ => {
                // Swaps the rate and the mean latency.
                let row = files[0].1.lines().last().unwrap().to_owned();
                let mut cells: Vec<&str> = row.split(',').collect();
                cells.swap(1, 3);
                files[0].1 = files[0].1.replace(&row, &cells.join(","));
                done(files, "rate and latency swapped", "IOPS")
            }
        },
        5 => match draw.below(2) {
            0 => {
                let lines = files[1].1.lines().count();
                let lost = 1 + draw.below(lines - 1);
                drop_lines(&mut files, 1, |index| index == lost);
                done(files, "a rank dropped", "procs")
            }
            _ => {
                let text = &files[0].1;
                let at = text.rfind("score = ").unwrap() + 8;
                let end = at + text[at..].find('\n').unwrap();
                let value: f64 = text[at..end].parse().unwrap();
                files[0].1 = format!("{}{:.6}{}", &text[..at], value * 1000.0, &text[end..]);
                done(files, "kIOPS taken for IOPS", "mdtest-easy-stat")
            }
        },
        6 => {
            if draw.below(2) == 0 {
                let lines = files[1].1.lines().count();
                let keep = draw.below(lines / 2) + lines / 4;
                drop_lines(&mut files, 1, |index| index >= keep);
                done(files, "a log cut off", "transactions")
            } else {
                let factor = *draw.of(&[10.0, 1000.0]);
                let text = &files[0].1;
                let at = text.find("latency average = ").unwrap() + 18;
                let end = at + text[at..].find(' ').unwrap();
                let value: f64 = text[at..end].parse().unwrap();
                files[0].1 = format!("{}{:.3}{}", &text[..at], value * factor, &text[end..]);
                done(files, "the mean latency in another unit", "latency average")
            }
        }
        7 => {
            let lines = files[0].1.lines().count();
            let (line, column) = (1 + draw.below(lines - 1), *draw.of(&[11usize, 12]));
            let factor = *draw.of(&[8.0, 1.048576, 1000.0]);
            let changed: Vec<String> = files[0]
                .1
                .lines()
                .enumerate()
                .map(|(index, text)| {
                    let mut cells: Vec<String> = text.split('\t').map(str::to_owned).collect();
                    if index == line {
                        cells[column] =
                            (cells[column].parse::<f64>().unwrap() * factor).to_string();
                    }
                    cells.join("\t")
                })
                .collect();
            files[0].1 = changed.join("\n") + "\n";
            let name = if column == 11 { "mb_per_sec" } else { "ops_ended_per_sec" };
            done(files, "a rate in another unit", &format!("line {} ({name})", line + 1))
        }
        _ => {
            let name =
                *draw.of(&["train_throughput_mean_samples_per_second", "train_au_mean_percentage"]);
            let factor = if name.contains("au") { 1.05 } else { draw.between(1.05, 4.0) };
            scale(&mut files, &[format!("/metric/{name}")], factor);
            done(files, "a mean scaled", name)
        }
    }
}

/// Returns the verdict of each result, and the rule and fields of each finding.
fn judged(files: &Files) -> Vec<(Credibility, Vec<(String, Vec<String>, String)>)> {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let study = plimsoll_import::read(&[home.path()]).unwrap();
    assert!(!study.results.is_empty(), "{:?}", study.unreadable);
    let results: Vec<_> = study.results.iter().collect();
    let of = |audit: Audit| {
        let all = audit.findings.into_iter().map(|f| (f.rule, f.fields, f.says));
        (audit.verdict, all.collect())
    };
    audits(&results, &DeclaredFacts::default()).into_iter().map(of).collect()
}

#[test]
fn detects_two_hundred_tampered_fields() {
    let seed = seed();
    println!("seed {seed}");
    let mut draw = Draw(seed);
    let mut missed = Vec::new();
    for number in 0..200 {
        let kind = number % KINDS;
        let files = whole(kind, &mut draw);
        let Tampered { files, what, field } = tamper(kind, files, &mut draw);
        let judged = judged(&files);
        let findings: Vec<_> = judged.iter().flat_map(|(_, findings)| findings).collect();
        let named = findings.iter().any(|(_, fields, _)| fields.iter().any(|f| f.contains(&field)));
        if !named {
            missed.push(format!("{number}, {}: {what} ({field}): {findings:?}", files[0].0));
        }
    }
    assert!(missed.is_empty(), "{} of 200, seed {seed}:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn two_hundred_true_copies_have_no_findings() {
    let seed = seed();
    println!("seed {seed}");
    let mut draw = Draw(seed ^ 0x7275_6574);
    let mut accused = Vec::new();
    for number in 0..200 {
        let mut files = whole(number % KINDS, &mut draw);
        // Changes the line endings, joins the JSON into one line, or removes the logs. The figures
        // stay the same.
        match draw.below(4) {
            0 => files.iter_mut().for_each(|(_, text)| *text = text.replace('\n', "\r\n")),
            1 if files[0].0.ends_with(".json") => {
                let json: Value = serde_json::from_str(&files[0].1).unwrap();
                files[0].1 = json.to_string();
            }
            2 => files.truncate(1),
            _ => {}
        }
        for (verdict, findings) in judged(&files) {
            // If nothing can be checked, no rule reports a finding.
            if verdict == Credibility::Impossible || !findings.is_empty() {
                accused.push(format!("{number}, {}: {verdict:?} {findings:?}", files[0].0));
            }
        }
    }
    assert!(accused.is_empty(), "{} of 200, seed {seed}:\n{}", accused.len(), accused.join("\n"));
}

/// Creates several runs of the same test at different rates. Also returns the rates.
fn repeats(draw: &mut Draw) -> (Files, Vec<f64>) {
    let (count, usual) = (3 + draw.below(8), draw.between(2_000.0, 90_000.0));
    let tool = draw.below(2);
    let (mut files, mut rates) = (Vec::new(), Vec::new());
    for number in 1..=count {
        // The rate is a whole number of transactions a minute.
        let rate = (usual * draw.between(0.85, 1.15) * 60.0).round() / 60.0;
        let text = if tool == 0 { dd(rate * 1e4) } else { pgbench_report(rate) };
        files.push((format!("sut/run-{number}/out.txt"), text));
        rates.push(if tool == 0 { rate * 1e4 } else { rate });
    }
    (files, rates)
}

fn dd(bytes_per_s: f64) -> String {
    let bytes = 4_294_967_296u64;
    let (seconds, mb) = (bytes as f64 / bytes_per_s, bytes_per_s / 1e6);
    format!(
        "4096+0 records in\n4096+0 records out\n{bytes} bytes (4.3 GB, 4.0 GiB) copied, {seconds:.5} s, {mb:.0} MB/s\n"
    )
}

fn pgbench_report(per_s: f64) -> String {
    let count = (per_s * 60.0).round();
    let (per_s, ms) = (count / 60.0, 8.0 / (count / 60.0) * 1e3);
    format!(
        "pgbench (15.4)\nscaling factor: 10\nnumber of clients: 8\nnumber of threads: 1\nduration: \
         60 s\nnumber of transactions actually processed: {count}\nnumber of failed transactions: 0 \
         (0.000%)\nlatency average = {ms:.3} ms\ntps = {per_s:.6} (without initial connection \
         time)\n"
    )
}

/// Adds a table with these figures in the parent directory of the repeats.
fn beside(files: &[(String, String)], figures: &[f64]) -> Files {
    let is_dd = files[0].1.contains("records in");
    let mut text =
        if is_dd { "Block size (KiB),MB/s\n" } else { "TPS,Mean latency (ms)\n" }.to_owned();
    for figure in figures {
        text.push_str(&if is_dd {
            format!("1024,{:.4}\n", figure / 1e6)
        } else {
            format!("{figure:.3},{:.3}\n", 8e3 / figure)
        });
    }
    [files, &[("sut/table.csv".to_owned(), text)]].concat()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn detects_two_hundred_selected_results_and_no_representative_one() {
    let seed = seed();
    println!("seed {seed}");
    let mut draw = Draw(seed ^ 0x6265_7374);
    let (mut missed, mut accused) = (Vec::new(), Vec::new());
    let rule = |files: &Files, rule: &str| {
        judged(files).iter().any(|(_, findings)| findings.iter().any(|(found, ..)| found == rule))
    };
    let mut tricked = 0;
    for number in 0..200 {
        let (files, rates) = repeats(&mut draw);
        let mut sorted = rates.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let middle = sorted.len() / 2;
        let whole = match draw.below(4) {
            0 => vec![mean(&rates)],
            1 => vec![f64::midpoint(sorted[middle], sorted[(sorted.len() - 1) / 2])],
            2 => vec![sorted[sorted.len() - 1]],
            // The table contains the rate of each repeat, or a figure that belongs to no repeat.
            _ if draw.below(2) == 0 => rates.clone(),
            _ => vec![mean(&rates) * 1.7],
        };
        let of_all = beside(&files, &whole);
        for (verdict, findings) in judged(&of_all) {
            if findings.iter().any(|(found, ..)| found.contains("repeats")) {
                accused.push(format!("{number}: {verdict:?} {findings:?}"));
            }
        }
        // The table contains the mean of only the best repeats. Cases in which this hardly differs
        // from the mean of all repeats are skipped.
        let best = 1 + draw.below((rates.len() / 2).max(1));
        let chosen = mean(&sorted[..best]);
        let middling = f64::midpoint(sorted[middle], sorted[(sorted.len() - 1) / 2]);
        let apart = (chosen / middling - 1.0).abs();
        if chosen / mean(&rates) < 1.015 || apart < 0.001 {
            continue;
        }
        tricked += 1;
        if !rule(&beside(&files, &[chosen]), "best-of-repeats") {
            missed.push(format!(
                "{number}: the best {best} of {}: {chosen} of {rates:?}",
                rates.len()
            ));
        }
        // Removes one of the repeats, but never the last repeat.
        let lost = draw.below(files.len() - 1);
        let mut fewer = files.clone();
        fewer.remove(lost);
        if fewer.len() > 2 && !rule(&fewer, "repeats-missing") {
            missed.push(format!("{number}: run-{} of {} taken away", lost + 1, files.len()));
        }
    }
    assert!(tricked > 150, "{tricked}");
    assert!(accused.is_empty(), "{} of 200, seed {seed}:\n{}", accused.len(), accused.join("\n"));
    assert!(
        missed.is_empty(),
        "{} of {tricked}, seed {seed}:\n{}",
        missed.len(),
        missed.join("\n")
    );
}
