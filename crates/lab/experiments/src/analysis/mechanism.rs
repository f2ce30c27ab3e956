//! Explains the performance of an arm of the experiment with statistics of the system: sources of
//! reads, utilisation of the drives, share of queueing in the latency, and the first bottleneck.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::model_statistics::{ModelStatistics, Path};
use plimsoll_judge::figures::measured;
use plimsoll_judge::model_figures::{
    Contribution, Stations, bottleneck, contributions, shares, stations,
};

use super::drives::{is_drive, remote_share};
use super::words::{ms, percent};

/// A sentence mentions a source of reads or a destination of writes only if its share is at least
/// this.
const SHARE_LEAST: f64 = 0.005;
/// A sentence mentions a station only if its share of the latency is at least this.
const PART_LEAST: f64 = 0.05;

/// Operations whose path through the system is described.
pub(super) const PATHS: [&str; 3] = ["read", "write", "log write"];

/// Returns the display name of stations. Names from shipped models are replaced by descriptions.
pub(super) fn called(station: &str) -> String {
    let last = station.trim_end_matches(".*").rsplit('.').next().unwrap_or(station);
    match last {
        "hdd" => "the disks".to_owned(),
        "ssd" | "flash" | "drive" => "the flash drives".to_owned(),
        "cpu" => "the controllers' CPUs".to_owned(),
        "vcpu" => "the guest's CPUs".to_owned(),
        "serial" => "the serial section".to_owned(),
        "flight" | "nic" | "net" => "the network".to_owned(),
        "out*" | "in*" => "the network's ports".to_owned(),
        "writes*" => "the write queues of the disk groups".to_owned(),
        "arrivals" => "the wait for records that were already being read into the cache".to_owned(),
        _ => station.to_owned(),
    }
}

/// Returns the display name of a source of reads or a destination of writes.
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

/// Returns the words for a destination of writes.
fn landed(word: &str) -> String {
    match word {
        "zero" => "as a zero marker without data".to_owned(),
        "ssd" | "hdd" => format!("on {}", place(word)),
        _ => format!("in {}", place(word)),
    }
}

/// Returns sentences about one run; empty if no internal statistics of the system are known.
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

/// Returns sentences about the sources of reads and the destinations of writes.
fn sources(inside: &ModelStatistics) -> Vec<String> {
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
            says.push_str(&format!("; another node served {} of the reads", percent(share)));
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

/// Returns a sentence about the utilisation of each kind of drive.
fn drives(inside: &ModelStatistics, window_ns: u64) -> Vec<String> {
    let worth =
        |group: &Stations| is_drive(&group.name) && group.utilisation.is_some_and(|u| u >= 0.01);
    let one = |group: Stations| {
        let mean = group.utilisation.unwrap_or(0.0);
        let most = group.utilisation_max.unwrap_or(mean);
        let busiest = if most - mean >= 0.02 {
            format!(" (the busiest one {})", percent(most))
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

/// Returns a sentence about the time of one kind of operation: its queueing and service time at the
/// stations that contribute most.
pub(super) fn path(path: &Path) -> Option<String> {
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
    Some(format!("A {} took {}, of which {queued} was queueing{at}.", path.operation, ms(mean_ns)))
}

/// Returns a sentence that names the station which saturates first, and the load at which it
/// saturates as a multiple of the measured load (utilisation law).
fn full_first(inside: &ModelStatistics, window_ns: u64) -> Option<String> {
    let most = bottleneck(inside, window_ns)?;
    let utilisation = most.utilisation_max.filter(|u| *u > 0.0)?;
    Some(format!(
        "The first bottleneck is {}. It is now {} busy, and saturates at {:.2} times this load.",
        most.busiest,
        percent(utilisation),
        1.0 / utilisation
    ))
}

/// Returns sentences about the utilisation of devices and CPUs on this host, for runs on real
/// storage.
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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::model_statistics::{Node, Tally};

    #[test]
    fn places_are_told_with_their_shares_and_all_is_said_as_all() {
        let tally = |ios| Tally { ios, size_bytes: ios * 4096 };
        let of = |dram, hdd, remote| ModelStatistics {
            nodes: vec![Node {
                reads: [("dram".to_owned(), tally(dram)), ("hdd".to_owned(), tally(hdd))].into(),
                writes: [("log".to_owned(), tally(7))].into(),
                remote_reads: tally(remote),
                ..Node::default()
            }],
            ..ModelStatistics::default()
        };
        let says = sources(&of(12, 88, 40));
        let reads = "88 % of reads came from disks, 12 % from memory; another node served 40 % of \
                     the reads.";
        assert_eq!(says, [reads, "All writes became durable in the write log."]);
        assert_eq!(sources(&of(0, 5, 0))[0], "All reads came from disks.");
        assert_eq!(sources(&ModelStatistics::default()), Vec::<String>::new());
    }

    #[test]
    fn percent_has_as_many_digits_as_make_sense() {
        let shown = [0.0, 0.0004, 0.0006, 0.094, 0.5, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "0 %", "0.1 %", "9.4 %", "50 %", "100 %"]);
    }
}
