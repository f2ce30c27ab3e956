//! Why an arm is as fast as it is, in sentences made of a system's own statistics: where reads came from,
//! how busy the drives were, how much of a latency was queueing, and what is full first.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::inside::{Inside, Path};
use plimsoll_plan::TargetKind;

use super::Told;
use super::arm::ArmStory;
use super::front::is_drive;
use crate::figures::{Pick, Sums, measured, stretches};
use crate::inside::{Contribution, Stations, bottleneck, contributions, shares, stations};

/// A place with less than this share of the reads or writes is not worth a word.
const SHARE_LEAST: f64 = 0.005;
/// A part of a latency that is worth a sentence.
const PART_LEAST: f64 = 0.05;
/// A change of a latency's part between two arms that is worth a sentence, over the latency before.
const CHANGE_LEAST: f64 = 0.03;

/// The operations whose way is told.
const PATHS: [&str; 3] = ["read", "write", "log write"];

/// Like stations in words, where their names are those that models give them.
fn called(station: &str) -> String {
    let last = station.trim_end_matches(".*").rsplit('.').next().unwrap_or(station);
    match last {
        "hdd" => "the disks".to_owned(),
        "ssd" | "flash" | "drive" => "the flash drives".to_owned(),
        "cpu" => "the controllers' CPUs".to_owned(),
        "vcpu" => "the guest's CPUs".to_owned(),
        "serial" => "what only one thread can do at a time".to_owned(),
        "flight" | "nic" | "net" => "the network".to_owned(),
        "out*" | "in*" => "the network's ports".to_owned(),
        "writes*" => "the queues of writes before the disk groups".to_owned(),
        "arrivals" => "records that were on their way into the cache already".to_owned(),
        _ => station.to_owned(),
    }
}

/// What a place of reads or writes is called.
pub(super) fn place(word: &str) -> &str {
    match word {
        "zero" => "holes and zeroes",
        "dram" => "memory",
        "log" => "the write log",
        "ssd" => "flash",
        "hdd" => "disks",
        other => other,
    }
}

/// The sentences of one run; empty where the system's inside is not known.
pub(super) fn sentences(bundle: &Bundle) -> Vec<String> {
    let Some(measure) = measured(bundle) else { return Vec::new() };
    let Some(inside) = &bundle.observed.inside else { return outside(bundle) };
    let window_ns = measure.duration_ns;
    let mut all = Vec::new();
    all.extend(sources(inside));
    all.extend(drives(inside, window_ns));
    let told = |path: &&Path| PATHS.contains(&path.operation.as_str());
    all.extend(inside.paths.iter().filter(told).filter_map(path));
    all.extend(full_first(inside, window_ns));
    all.extend(failed_in_mid_run(bundle));
    all
}

/// The parameters of a model that say when nodes fail, and how many.
const FAILING: [&str; 2] = ["model.failing_at_s", "model.failing_nodes"];

/// What the load carried before and after a node failed, where the plan has one fail while it measures.
fn failed_in_mid_run(bundle: &Bundle) -> Option<String> {
    let target = bundle.plan.targets.first()?;
    let TargetKind::Model { set, .. } = &target.kind else { return None };
    let number = |name: &str| set.get(name)?.parse::<f64>().ok();
    let (at_s, nodes) = (number(FAILING[0])?, number(FAILING[1])?);
    let measure = measured(bundle)?;
    let interval_ns = bundle.plan.evidence.interval_ns.max(1);
    let before = ((1e9 * at_s) as u64).checked_sub(measure.start_ns)? / interval_ns;
    let stretches = |pick: Pick| stretches(bundle, pick, interval_ns);
    let (all, reads) = (stretches(Pick::Transactional), stretches(Pick::DatabaseReads(None)));
    let before = before as usize;
    if nodes < 1.0 || before == 0 || before >= all.len() {
        return None;
    }
    let rate = |of: &[Sums]| {
        let count: u64 = of.iter().map(|sums| sums.count).sum();
        count as f64 * 1e9 / (of.len().max(1) as u64 * interval_ns) as f64
    };
    let latency = |of: &[Sums]| {
        let (count, ns) = of.iter().fold((0, 0), |(c, n), s| (c + s.count, n + s.latency_ns));
        ms(ns as f64 / u64::max(count, 1) as f64)
    };
    let (earlier, later) = (rate(&all[..before]), rate(&all[before..]));
    Some(format!(
        "{nodes:.0} of the nodes failed {:.0} s into the measured phase: {earlier:.1} I/Os per second and \
         reads of {} before, {later:.1} ({:.2} times) and {} after.",
        before as f64 * interval_ns as f64 / 1e9,
        latency(&reads[..before]),
        later / earlier.max(1e-9),
        latency(&reads[before..])
    ))
}

/// Where reads came from and writes went.
fn sources(inside: &Inside) -> Vec<String> {
    let told = |writes: bool| {
        let shares =
            shares(inside, writes).into_iter().filter(|(_, _, share)| *share >= SHARE_LEAST);
        let parts: Vec<String> =
            shares.map(|(word, _, share)| format!("{} {}", percent(share), place(&word))).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let mut all = Vec::new();
    if let Some(reads) = told(false) {
        let remote: u64 = inside.nodes.iter().map(|node| node.remote_reads.ios).sum();
        let count: u64 = shares(inside, false).iter().map(|(_, tally, _)| tally.ios).sum();
        let share = remote as f64 / count.max(1) as f64;
        let beyond = if share >= SHARE_LEAST {
            format!("; {} needed another node", percent(share))
        } else {
            String::new()
        };
        all.push(format!("Reads came from {reads}{beyond}."));
    }
    if let Some(writes) = told(true) {
        all.push(format!("Writes were made durable in {writes}."));
    }
    all
}

/// How busy the drives were, each kind for itself.
fn drives(inside: &Inside, window_ns: u64) -> Vec<String> {
    let worth =
        |group: &Stations| is_drive(&group.name) && group.utilisation.is_some_and(|u| u >= 0.01);
    let one = |group: Stations| {
        let mean = group.utilisation.unwrap_or(0.0);
        let most = group.utilisation_max.unwrap_or(mean);
        let busiest = if most - mean >= 0.02 {
            format!(" (the busiest {})", percent(most))
        } else {
            String::new()
        };
        let background = if group.background_share >= 0.02 {
            format!("; {} of their I/Os were background work", percent(group.background_share))
        } else {
            String::new()
        };
        let name = called(&group.name);
        let name = name.trim_start_matches("the ");
        format!("The {} {name} were {} busy{busiest}{background}.", group.stations, percent(mean))
    };
    stations(inside, window_ns).into_iter().filter(worth).map(one).collect()
}

/// Where the time of one kind of operation goes: queueing and service at what has most of it.
fn path(path: &Path) -> Option<String> {
    let (mean_ns, parts) = contributions(path);
    if path.traced == 0 || mean_ns <= 0.0 {
        return None;
    }
    let waited_ns: f64 = parts.iter().map(|part| part.waited_ns).sum();
    let mut largest: Vec<&Contribution> = parts.iter().filter(|p| p.share >= PART_LEAST).collect();
    largest.sort_by(|a, b| b.share.total_cmp(&a.share));
    let shown: Vec<String> = largest
        .iter()
        .take(3)
        .map(|part| format!("{} at {}", ms(part.waited_ns + part.served_ns), called(&part.station)))
        .collect();
    let at = if shown.is_empty() { String::new() } else { format!(": {}", shown.join(", ")) };
    Some(format!(
        "Queueing was {} of {} latency, {}{at}.",
        percent(waited_ns / mean_ns),
        path.operation,
        ms(mean_ns),
    ))
}

/// The utilisation law: what is full first, and at which multiple of this load.
fn full_first(inside: &Inside, window_ns: u64) -> Option<String> {
    let most = bottleneck(inside, window_ns)?;
    let utilisation = most.utilisation_max.filter(|u| *u > 0.0)?;
    Some(format!(
        "What is full first is {}, now {} busy: at {:.2} times this load.",
        most.busiest,
        percent(utilisation),
        1.0 / utilisation
    ))
}

/// What this host saw of a real system beneath.
fn outside(bundle: &Bundle) -> Vec<String> {
    let mut all = Vec::new();
    for device in bundle.observed.devices.iter().filter(|device| device.top) {
        let Some(measure) = measured(bundle) else { continue };
        let busy = device.busy_ns as f64 / measure.duration_ns as f64;
        let ios = device.reads + device.writes;
        all.push(format!(
            "The device {} was {} busy with {ios} I/Os, {} of them reads.",
            device.name,
            percent(busy.min(1.0)),
            percent(device.reads as f64 / ios.max(1) as f64)
        ));
    }
    if let Some(busy) = bundle.observed.cpu.busy_avg {
        all.push(format!("The CPUs of this host were {} busy.", percent(busy)));
    }
    all
}

/// Adds to each arm what changed in a read against the arm before it, station by station.
pub(super) fn against_before(told: &Told<'_>, arms: &mut [ArmStory]) {
    let read = |at: usize| {
        let (bundle, _) = told.arms[at].runs.first()?;
        let paths = &bundle.observed.inside.as_ref()?.paths;
        let path = paths.iter().find(|path| path.operation.contains("read") && path.traced > 0)?;
        Some((path.operation.clone(), contributions(path)))
    };
    for at in 1..arms.len() {
        // The points of a table are no steps from one to the next.
        if told.arms[at].group != told.arms[at - 1].group || !told.arms[at].group.is_empty() {
            continue;
        }
        let (Some((name, (before_ns, before))), Some((_, (now_ns, now)))) =
            (read(at - 1), read(at))
        else {
            continue;
        };
        let of = |parts: &[Contribution], station: &str| {
            let found = parts.iter().find(|part| part.station == station);
            found.map_or((0.0, 0.0), |part| (part.waited_ns, part.served_ns))
        };
        let mut changes: Vec<(f64, String)> = Vec::new();
        let mut names: Vec<&str> = before.iter().chain(&now).map(|p| p.station.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for station in names {
            let (waited, served) = (of(&now, station), of(&before, station));
            let queued = waited.0 - served.0;
            let service = waited.1 - served.1;
            changes.push((queued, format!("queueing at {}", called(station))));
            changes.push((service, format!("service at {}", called(station))));
        }
        changes.retain(|(ns, _)| ns.abs() >= CHANGE_LEAST * before_ns);
        changes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let parts: Vec<String> =
            changes.iter().take(3).map(|(ns, what)| format!("{} {what}", signed_ms(*ns))).collect();
        let of_it =
            if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        let before_name = arms[at - 1].name.clone();
        arms[at].mechanism.push(format!(
            "Against {before_name} a {name} takes {}{of_it}.",
            signed_ms(now_ns - before_ns)
        ));
    }
}

/// Percent with as many digits as make sense.
pub(super) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if value != 0.0 && value.abs() < 9.95 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A latency in milliseconds.
pub(super) fn ms(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 0.0995 => format!("{:.1} µs", ns / 1e3),
        ms if ms < 0.995 => format!("{ms:.2} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

fn signed_ms(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "+" };
    format!("{sign}{}", ms(ns.abs()))
}
