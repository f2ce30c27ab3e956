//! Forgeries of a bundle: figures, words and files.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::Forgery;
use crate::forger::Forger;

/// Returns all forgeries of a bundle.
pub fn forgeries() -> Vec<Forgery> {
    let mut all: Vec<Forgery> = contradictions().to_vec();
    all.extend(sealed_again());
    all.extend(taken_away());
    all.extend(files());
    all
}

/// Returns forgeries after which the forger adjusts all other files, so that only a contradiction
/// within the evidence shows the forgery.
fn contradictions() -> [Forgery; 21] {
    [
        ("counts of the totals times 20", |f| {
            classes(f, |class| times(class, "count", 20));
            f.whole();
        }),
        ("counts and bytes of totals and phases times 20", |f| {
            more_in_totals(f);
            f.whole();
        }),
        ("totals, series and phases times 20, not the histograms", |f| {
            more_in_totals(f);
            classes(f, |class| {
                times(class, "latency_ns_sum", 20);
                times(class, "service_ns_sum", 20);
            });
            rows(f, |row| (4..7).for_each(|column| row[column] *= 20));
            f.whole();
        }),
        ("latencies of the totals by 20", |f| {
            quicker_totals(f);
            f.whole();
        }),
        ("latencies of totals and series by 20", |f| {
            quicker_totals(f);
            rows(f, |row| [5, 7].into_iter().for_each(|column| row[column] /= 20));
            f.whole();
        }),
        ("the slowest row taken out of the series", |f| {
            without_slowest_row(f);
            f.whole();
        }),
        ("a histogram of the measurement taken out", |f| {
            without_last_histogram(f);
            f.whole();
        }),
        ("the histograms of another run", |f| {
            fs::copy(f.second.join("latency.hlog"), f.at("latency.hlog")).unwrap();
            f.whole();
        }),
        ("the series of another run", |f| {
            fs::copy(f.second.join("series.csv"), f.at("series.csv")).unwrap();
            f.whole();
        }),
        ("the measurement half as long", |f| {
            measure(f, |phase| halve(phase, "duration_ns"));
            f.whole();
        }),
        ("another tool's run", |f| {
            f.json("run.json", |run| run["driver"] = "foreign".into());
            f.whole();
        }),
        ("the access profile times 20", |f| {
            f.json("observed.json", |seen| times(&mut seen["workload"], "reads", 20));
            f.whole();
        }),
        ("the device's reads times 20", |f| {
            f.json("observed.json", |seen| {
                times(&mut seen["devices"][0], "reads", 20);
                times(&mut seen["devices"][0], "read_bytes", 20);
            });
            f.whole();
        }),
        ("the store's reads times 20", |f| {
            f.json("run.json", |run| times(&mut run["counters"], "database_reads", 20));
            f.whole();
        }),
        ("a class taken out of the totals", |f| {
            f.json("run.json", |run| {
                run["classes"].as_array_mut().unwrap().remove(0);
            });
            f.whole();
        }),
        ("a class twice in the totals", |f| {
            f.json("run.json", |run| {
                let classes = run["classes"].as_array_mut().unwrap();
                classes.push(classes[0].clone());
            });
            f.whole();
        }),
        ("I/Os said to have drained", |f| {
            classes(f, |class| class["drained"] = (class["count"].as_u64().unwrap() / 2).into());
            f.whole();
        }),
        ("another name of the plan", |f| {
            f.json("run.json", |run| run["name"] = "larger".into());
            f.whole();
        }),
        ("a lower requirement in the plan as given", |f| {
            f.text("plan.toml", lower);
            f.whole();
        }),
        ("a key twice", |f| {
            f.text("run.json", |run| run.replacen('{', "{\n  \"name\": \"first\",", 1));
            f.whole();
        }),
        ("a field that is not read", |f| {
            f.json("run.json", |run| run["verdict"] = "PASS".into());
            f.whole();
        }),
    ]
}

/// Returns forgeries after which the forger seals and derives the files again. The evidence does
/// not contradict them, but the ledger is unchanged.
fn sealed_again() -> [Forgery; 10] {
    [
        ("sealed again: counts times 20", |f| {
            classes(f, |class| times(class, "count", 20));
            f.seal();
        }),
        ("sealed and derived again: counts times 20", |f| {
            more_in_totals(f);
            f.seal();
            f.derive();
        }),
        ("sealed again: a lower requirement in the plan as given", |f| {
            f.text("plan.toml", lower);
            f.seal();
            f.derive();
        }),
        ("sealed again: a lower requirement, and its hash", |f| {
            lower_requirement(f);
            f.seal();
            f.derive();
        }),
        ("a lower requirement without its hash, whole", |f| {
            f.text("resolved.toml", lower);
            f.whole();
        }),
        ("sealed again: another host", |f| {
            other_host(f);
            f.seal();
            f.derive();
        }),
        ("sealed again: entered in no ledger", |f| {
            f.json("run.json", |run| run["ledger"] = Value::Null);
            f.seal();
            f.derive();
        }),
        ("sealed again: caches that were never dropped", |f| {
            f.json("observed.json", |seen| {
                let dropped = &mut seen["page_cache"]["system_dropped"];
                *dropped = (!dropped.as_bool().unwrap_or(false)).into();
            });
            f.seal();
            f.derive();
        }),
        ("sealed again: started a day later", |f| {
            f.json("run.json", |run| {
                let ns = run["started_unix_ns"].as_u64().unwrap();
                run["started_unix_ns"] = (ns + 86_400_000_000_000).into();
            });
            f.seal();
            f.derive();
        }),
        ("the other run's bundle in its place", |f| {
            for name in crate::support::names(&f.second) {
                fs::copy(f.second.join(&name), f.at(&name)).unwrap();
            }
        }),
    ]
}

/// Returns forgeries after which the forger seals and derives the files again. The ledger is not
/// available.
fn taken_away() -> [Forgery; 6] {
    [
        ("taken away: counts times 20", |f| {
            more_in_totals(f);
            away(f);
        }),
        ("taken away: latencies by 20", |f| {
            quicker_totals(f);
            away(f);
        }),
        ("taken away: the slowest row taken out", |f| {
            without_slowest_row(f);
            away(f);
        }),
        ("taken away: a histogram taken out", |f| {
            without_last_histogram(f);
            away(f);
        }),
        ("taken away: verdict swapped", |f| {
            swap_verdict(f);
            f.take_away();
        }),
        ("taken away: not sealed again", |f| {
            other_host(f);
            f.take_away();
        }),
    ]
}

/// Returns forgeries that change, add or exchange files.
fn files() -> [Forgery; 10] {
    [
        ("verdict swapped", |f| swap_verdict(f)),
        ("verdict swapped, and entered so", |f| {
            swap_verdict(f);
            f.enter();
            f.fit_later();
        }),
        ("a figure of the report changed", |f| f.text("report.html", another_digit)),
        ("a figure of the report changed, and entered so", |f| {
            f.text("report.html", another_digit);
            f.enter();
            f.fit_later();
        }),
        ("the report of another run", |f| {
            fs::copy(f.second.join("report.html"), f.at("report.html")).unwrap();
        }),
        ("the report a link", |f| {
            let elsewhere = f.sandbox.path("report.html");
            fs::rename(f.at("report.html"), &elsewhere).unwrap();
            symlink(elsewhere, f.at("report.html")).unwrap();
        }),
        ("a file added and sealed", |f| {
            fs::write(f.at("README"), "PASS\n").unwrap();
            f.whole();
        }),
        ("a hidden file added", |f| fs::write(f.at(".notes"), "PASS\n").unwrap()),
        ("no seal", |f| fs::remove_file(f.at("SHA256SUMS")).unwrap()),
        ("a signature that is none", |f| {
            f.json("run.json", |run| run["signed_by"] = "RWQ0".into());
            fs::write(f.at("SHA256SUMS.minisig"), "untrusted comment: x\n").unwrap();
            f.whole();
        }),
    ]
}

fn away(f: &mut Forger) {
    f.seal();
    f.derive();
    f.take_away();
}

fn classes(f: &Forger, change: impl Fn(&mut Value)) {
    f.json("run.json", |run| run["classes"].as_array_mut().unwrap().iter_mut().for_each(change));
}

fn measure(f: &Forger, change: impl Fn(&mut Value)) {
    f.json("run.json", |run| {
        let phases = run["phases"].as_array_mut().unwrap();
        phases.iter_mut().filter(|phase| phase["kind"] == "measure").for_each(change);
    });
}

fn times(value: &mut Value, field: &str, factor: u64) {
    value[field] = (value[field].as_u64().unwrap() * factor).into();
}

fn halve(value: &mut Value, field: &str) {
    value[field] = (value[field].as_u64().unwrap() / 2).into();
}

/// Multiplies the number of I/Os by twenty everywhere in `run.json`.
fn more_in_totals(f: &Forger) {
    classes(f, |class| {
        times(class, "count", 20);
        times(class, "size_bytes", 20);
    });
    measure(f, |phase| {
        times(phase, "read_bytes", 20);
        times(phase, "written_bytes", 20);
    });
}

fn quicker_totals(f: &Forger) {
    classes(f, |class| {
        for field in ["latency_ns_sum", "latency_ns_max", "service_ns_sum", "service_ns_max"] {
            class[field] = (class[field].as_u64().unwrap() / 20).into();
        }
    });
}

/// Returns the index of the measured phase in the series.
fn measured(f: &Forger) -> usize {
    let run = crate::support::json(&f.at("run.json"));
    let phases = run["phases"].as_array().unwrap();
    phases.iter().position(|phase| phase["kind"] == "measure").unwrap()
}

/// Returns true if a row belongs to a class in the measured phase. Columns are counted from 0:
/// `count` is column 4.
fn is_measured(row: &[&str], phase: usize) -> bool {
    row[0].parse() == Ok(phase) && !row[4].is_empty()
}

fn rows(f: &Forger, change: impl Fn(&mut Vec<u64>)) {
    let phase = measured(f);
    f.text("series.csv", |text| {
        let changed = text.lines().map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            if !is_measured(&fields, phase) {
                return format!("{line}\n");
            }
            let mut row: Vec<u64> = fields.iter().map(|text| text.parse().unwrap_or(0)).collect();
            change(&mut row);
            let [_, _, _, _, count, sum_ns, bytes, max_ns, _] = row[..] else { unreachable!() };
            format!("{},{count},{sum_ns},{bytes},{max_ns},\n", fields[..4].join(","))
        });
        changed.collect()
    });
}

fn without_slowest_row(f: &Forger) {
    let phase = measured(f);
    f.text("series.csv", |text| {
        let max_ns = |line: &&str| {
            let fields: Vec<&str> = line.split(',').collect();
            is_measured(&fields, phase).then(|| fields[7].parse::<u64>().unwrap())
        };
        let slowest = text.lines().max_by_key(max_ns).unwrap();
        text.replacen(&format!("{slowest}\n"), "", 1)
    });
}

fn without_last_histogram(f: &Forger) {
    // The test removes a histogram of the measurement, for a class that every run has.
    let start_s = {
        let run = crate::support::json(&f.at("run.json"));
        run["phases"][measured(f)]["start_ns"].as_u64().unwrap() as f64 / 1e9
    };
    f.text("latency.hlog", |text| {
        let of = |line: &&str| {
            let mut fields = line.split(',');
            fields.next() == Some("Tag=db0.read")
                && fields.next().is_some_and(|at| at.parse::<f64>().unwrap() >= start_s)
        };
        let line = text.lines().find(of).unwrap();
        text.replacen(&format!("{line}\n"), "", 1)
    });
}

/// Lowers the requirement in the text of a given plan or of a resolved plan.
fn lower(plan: &str) -> String {
    plan.replace("iops_per_mailbox = 0.2", "iops_per_mailbox = 0.1")
        .replace("iops_per_mailbox_per_s = 0.2", "iops_per_mailbox_per_s = 0.1")
}

fn lower_requirement(f: &Forger) {
    f.text("resolved.toml", lower);
    let sum = plimsoll_evidence::seal::sha256_hex(&fs::read(f.at("resolved.toml")).unwrap());
    f.json("run.json", |run| run["plan_sha256"] = sum.into());
}

/// Changes text about the environment that no figure contradicts.
pub fn other_host(f: &Forger) {
    f.text("environment.json", |text| {
        let environment: Value = serde_json::from_str(text).unwrap();
        let kernel = environment["kernel"].as_str().unwrap();
        text.replace(kernel, "9.9.9")
    });
}

fn swap_verdict(f: &Forger) {
    f.text("verdict.json", |text| {
        let verdict: Value = serde_json::from_str(text).unwrap();
        let is = verdict["verdict"].as_str().unwrap();
        let other = if is == "PASS" { "FAIL" } else { "PASS" };
        text.replacen(&format!("\"verdict\": \"{is}\""), &format!("\"verdict\": \"{other}\""), 1)
    });
}

/// Replaces the first digit after the text `I/Os`.
fn another_digit(text: &str) -> String {
    let at = text.find("I/Os").unwrap();
    let digit = text[at..].find(|c: char| c.is_ascii_digit()).unwrap() + at;
    let other = if &text[digit..=digit] == "9" { "8" } else { "9" };
    format!("{}{other}{}", &text[..digit], &text[digit + 1..])
}
