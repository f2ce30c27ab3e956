//! Why an arm is as fast as it is, in sentences made of a system's own statistics: where reads came from,
//! how busy the drives were, how much of a latency was queueing, and what is full first.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::inside::{Inside, Path};

use super::arm::ArmAnalysis;
use super::front::is_drive;
use super::{Input, Question};
use plimsoll_judge::figures::measured;
use plimsoll_judge::inside::{Contribution, Stations, bottleneck, contributions, shares, stations};

/// A place with less than this share of the reads or writes is not worth a word.
const SHARE_LEAST: f64 = 0.005;
/// A part of a latency that is worth a sentence.
const PART_LEAST: f64 = 0.05;
/// A change of a latency's part between two arms that is worth a sentence, over the latency before.
const CHANGE_LEAST: f64 = 0.03;

/// The operations whose way is input.
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

/// Where writes became durable.
fn landed(word: &str) -> String {
    match word {
        "zero" => "as nothing but a note that they are zeroes".to_owned(),
        "ssd" | "hdd" => format!("on {}", place(word)),
        _ => format!("in {}", place(word)),
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
    let shown = |path: &&Path| PATHS.contains(&path.operation.as_str());
    all.extend(inside.paths.iter().filter(shown).filter_map(path));
    all.extend(full_first(inside, window_ns));
    all
}

/// Where reads came from and writes went.
fn sources(inside: &Inside) -> Vec<String> {
    let from = |writes: bool| -> Vec<(String, f64)> {
        let all = shares(inside, writes).into_iter();
        all.filter(|(_, _, share)| *share >= SHARE_LEAST).map(|(at, _, s)| (at, s)).collect()
    };
    let mut all = Vec::new();
    let reads = from(false);
    let first = |share: f64, what: &str| match percent(share) {
        most if most == "100 %" => format!("All {what}"),
        part => format!("{part} of {what}"),
    };
    if let Some(((most, share), rest)) = reads.split_first() {
        let mut says = format!("{} came from {}", first(*share, "reads"), place(most));
        for (at, share) in rest {
            says.push_str(&format!(", {} from {}", percent(*share), place(at)));
        }
        let share = remote_share(inside);
        if share >= SHARE_LEAST {
            says.push_str(&format!("; {} needed another node", percent(share)));
        }
        all.push(format!("{says}."));
    }
    let writes = from(true);
    if let Some(((most, share), rest)) = writes.split_first() {
        let mut says = format!("{} became durable {}", first(*share, "writes"), landed(most));
        for (at, share) in rest {
            says.push_str(&format!(", {} {}", percent(*share), landed(at)));
        }
        all.push(format!("{says}."));
    }
    all
}

/// Share of reads that another node answered.
pub(super) fn remote_share(inside: &Inside) -> f64 {
    let remote: u64 = inside.nodes.iter().map(|node| node.remote_reads.ios).sum();
    let count: u64 = shares(inside, false).iter().map(|(_, tally, _)| tally.ios).sum();
    remote as f64 / count.max(1) as f64
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
    let queued = match percent(waited_ns / mean_ns) {
        none if none == "0 %" => "none".to_owned(),
        part => part,
    };
    Some(format!("A {} took {}, {queued} of it queueing{at}.", path.operation, ms(mean_ns)))
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

/// The arm that another is held against: the one before where each is a step from it, otherwise the one that a
/// question names, or the reference. Loads of two kinds are not held against each other.
fn base(input: &Input<'_>, at: usize) -> Option<usize> {
    let arms = &input.arms;
    // The points of a table are no steps from one to the next, and heroes no steps to their twins.
    if arms[at].expects.is_some() || !arms[at].group.is_empty() {
        return None;
    }
    let place = |name: &String| arms.iter().position(|arm| arm.name == *name);
    let asked = |question: &&Question| question.arm.as_ref() == Some(&arms[at].name);
    let over = input.questions.iter().filter(asked).find_map(|question| question.over.as_ref());
    let found = match input.cumulative {
        true => at.checked_sub(1),
        false => over.or(input.reference.as_ref()).and_then(place).or(at.checked_sub(1)),
    };
    let stores = |at: usize| Some(arms[at].runs.first()?.0.plan.workload.mailbox().is_some());
    found.filter(|other| {
        *other != at && arms[*other].group.is_empty() && stores(*other) == stores(at)
    })
}

/// Adds to each arm what changed against the arm that it is held against.
pub(super) fn against_others(input: &Input<'_>, arms: &mut [ArmAnalysis]) {
    let run = |at: usize| input.arms[at].runs.first().map(|run| run.0);
    for at in 0..arms.len() {
        let Some(now) = run(at).filter(|_| arms[at].group.is_empty()) else { continue };
        let same = |other: &usize| run(*other).is_some_and(|before| did_the_same(before, now));
        if let Some(other) = (0..at).find(same) {
            arms[at].mechanism = vec![format!(
                "The same I/Os as in arm {}, one by one: the two differ in what is required, not in \
                 what was done.",
                arms[other].name
            )];
            continue;
        }
        let Some(other) = base(input, at) else { continue };
        let Some(before) = run(other) else { continue };
        let name = arms[other].name.clone();
        leave_out_alike(before, now, &name, &mut arms[at].mechanism);
        arms[at].mechanism.extend(of_a_read(before, now, &name));
    }
}

/// What changed in a read against another arm, station by station.
fn of_a_read(before: &Bundle, now: &Bundle, before_name: &str) -> Option<String> {
    let read = |bundle: &Bundle| {
        let paths = &bundle.observed.inside.as_ref()?.paths;
        let path = paths.iter().find(|path| path.operation.contains("read") && path.traced > 0)?;
        Some((path.operation.clone(), contributions(path)))
    };
    let (name, (before_ns, before)) = read(before)?;
    let (_, (now_ns, now)) = read(now)?;
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
    let of_it = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let change = signed_ms(now_ns - before_ns);
    Some(format!("Against arm {before_name} a {name} takes {change}{of_it}."))
}

/// Whether two runs of a model were one and the same load.
fn did_the_same(before: &Bundle, now: &Bundle) -> bool {
    match (&before.observed.inside, &now.observed.inside) {
        (Some(a), Some(b)) => (a.events, &a.paths, &a.nodes) == (b.events, &b.paths, &b.nodes),
        _ => false,
    }
}

/// What takes as long as in the arm before, at the same places, is said in a sentence for all of it.
fn leave_out_alike(before: &Bundle, now: &Bundle, name: &str, mechanism: &mut Vec<String>) {
    let (Some(before), Some(now)) = (&before.observed.inside, &now.observed.inside) else { return };
    let mut alike: Vec<&str> = Vec::new();
    for of in now.paths.iter().filter(|of| PATHS[1..].contains(&of.operation.as_str())) {
        let Some(same) = before.paths.iter().find(|same| same.operation == of.operation) else {
            continue;
        };
        let ((before_ns, _), (now_ns, _)) = (contributions(same), contributions(of));
        let found = path(of).and_then(|says| mechanism.iter().position(|one| *one == says));
        if let Some(found) = found
            && same.traced > 0
            && (now_ns - before_ns).abs() < CHANGE_LEAST * before_ns
        {
            mechanism.remove(found);
            alike.push(&of.operation);
        }
    }
    if let Some(last) = alike.last() {
        let verb = if alike.len() > 1 { "take" } else { "takes" };
        let all = match alike.split_last() {
            Some((_, [])) | None => (*last).to_owned(),
            Some((last, rest)) => format!("{} and a {last}", rest.join(", a ")),
        };
        mechanism.push(format!("A {all} {verb} as long as in arm {name}."));
    }
}

/// Percent with as many digits as make sense.
pub(super) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if (0.05..9.95).contains(&value.abs()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::inside::{Node, Tally};

    #[test]
    fn places_are_told_with_their_shares_and_all_is_said_as_all() {
        let tally = |ios| Tally { ios, size_bytes: ios * 4096 };
        let of = |dram, hdd, remote| Inside {
            nodes: vec![Node {
                reads: [("dram".to_owned(), tally(dram)), ("hdd".to_owned(), tally(hdd))].into(),
                writes: [("log".to_owned(), tally(7))].into(),
                remote_reads: tally(remote),
                ..Node::default()
            }],
            ..Inside::default()
        };
        let says = sources(&of(12, 88, 40));
        let reads = "88 % of reads came from disks, 12 % from memory; 40 % needed another node.";
        assert_eq!(says, [reads, "All writes became durable in the write log."]);
        assert_eq!(sources(&of(0, 5, 0))[0], "All reads came from disks.");
        assert_eq!(sources(&Inside::default()), Vec::<String>::new());
    }

    #[test]
    fn percent_has_as_many_digits_as_make_sense() {
        let shown = [0.0, 0.0004, 0.0006, 0.094, 0.5, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "0 %", "0.1 %", "9.4 %", "50 %", "100 %"]);
    }
}
