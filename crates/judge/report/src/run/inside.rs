//! Section about a modelled system: sources of reads, stations, and the time that operations spent
//! at each station.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::model_statistics::{ErrorBand, ModelStatistics};
use plimsoll_judge::figures::measured;
use plimsoll_judge::model_figures::{
    Stations, bottleneck, contributions, describe_bottleneck, shares, spending, stations,
};
use serde_json::{Value, json};

use super::{empty_section, sentence};
use crate::document::{Block, Depth, Section};
use crate::number::Unit;
use crate::table::{Cell, Column, Table, Tone};

/// Maximum number of rows of stations. Similar stations share a row, so this is enough for all
/// stations of a system.
const STATIONS_MAX: usize = 40;
/// In every open queueing network, a station with a higher utilisation has long queues.
const BUSY: f64 = 0.75;

/// Returns the sentence for the terminal's summary.
pub(super) fn brief(bundle: &Bundle) -> Section {
    let Some((inside, window_ns)) = known(bundle) else { return empty_section() };
    let title = format!("Inside the model {}", inside.model);
    Section::terminal("inside-brief", &title)
        .with(Block::Words(sentence(&describe_bottleneck(inside, window_ns))))
        .with(Block::List(errors(bundle, inside)))
}

/// Describes how far the model's figures differ from published figures, and in which conditions the
/// model was never compared with published systems.
fn errors(bundle: &Bundle, inside: &ModelStatistics) -> Vec<String> {
    let Some(record) = &inside.record else {
        return vec![
            "This model was never compared with a published system: its error is unknown."
                .to_owned(),
        ];
    };
    let band = |(kind, band): (&String, &ErrorBand)| {
        let (least, largest) = (band.least, band.largest);
        format!("{} {least:.2} to {largest:.2} ({})", kind.replace('_', " "), band.figures)
    };
    let bands: Vec<String> = record.bands.iter().map(band).collect();
    let mut says = vec![format!(
        "Modelled figures divided by published figures (smallest to largest ratio, with the number \
         of figures in parentheses): {}.",
        bands.join("; ")
    )];
    says.extend(record.unchecked(bundle.plan.workload.kind(), &inside.set));
    says
}

/// Returns the section for the full report.
pub(super) fn section(bundle: &Bundle) -> Section {
    explain(bundle, Depth::Full)
}

/// Returns the complete section. `depth` selects the outputs that show it.
pub fn explain(bundle: &Bundle, depth: Depth) -> Section {
    let Some((inside, window_ns)) = known(bundle) else { return empty_section() };
    let title = format!("Inside the model {}", inside.model);
    let mut section = Section { depth, ..Section::brief("inside", &title) };
    section = section.with(Block::Words(sentence(&describe_bottleneck(inside, window_ns))));
    if let Some(most) = bottleneck(inside, window_ns) {
        section = section.with(Block::Words(limit(&most)));
        if let Some(says) = longest_wait(inside, &most) {
            section = section.with(Block::Words(says));
        }
    }
    if let Some(bucket) = spending(inside, window_ns) {
        section = section.with(Block::Words(format!(
            "{} spends credit {:.2} times as fast as credit accumulates: this rate cannot be \
             sustained.",
            bucket.busiest,
            bucket.utilisation_max.unwrap_or(0.0)
        )));
    }
    section = section.with(Block::List(errors(bundle, inside)));
    section = section.with(Block::Table(places(inside)));
    for path in &inside.paths {
        section = section.with(Block::Table(path_table(path)));
    }
    section.with(Block::Table(station_table(inside, window_ns)))
}

fn known(bundle: &Bundle) -> Option<(&ModelStatistics, u64)> {
    let window_ns = measured(bundle)?.duration_ns;
    bundle.observed.inside.as_ref().map(|inside| (inside, window_ns))
}

fn limit(most: &Stations) -> String {
    let utilisation = most.utilisation_max.unwrap_or(0.0);
    if utilisation <= 0.0 {
        return "No station (device, link or CPU) was busy.".to_owned();
    }
    // Utilisation law: at a utilisation of 0.25, the station would be saturated at 4 times this
    // load.
    format!(
        "The bottleneck is {}: it would be saturated at {:.2} times this load with the same mix of \
         operations.",
        most.busiest,
        1.0 / utilisation
    )
}

/// Names the station at which operations wait for more than half of their latency, if it is not the
/// bottleneck. A gate has no utilisation, so it cannot be the bottleneck.
fn longest_wait(inside: &ModelStatistics, most: &Stations) -> Option<String> {
    let parts = inside.paths.iter().flat_map(|path| path.parts.iter().map(move |p| (path, p)));
    let (path, part) = parts.max_by_key(|(_, part)| part.waited_ns_sum)?;
    let share = part.waited_ns_sum as f64 / path.latency_ns_sum.max(1) as f64;
    (share > 0.5 && part.station != most.name).then(|| {
        format!(
            "Operations wait longest at {}: {:.0} % of the mean latency of {}.",
            part.station,
            100.0 * share,
            one_of(&path.operation)
        )
    })
}

fn places(inside: &ModelStatistics) -> Table {
    let mut table = Table::new(
        "Locations from which data was read and to which it was written",
        vec![
            Column::words("location", "place"),
            Column::of(Unit::Count, "reads", "reads"),
            Column::of(Unit::Share, "share", "read_share"),
            Column::of(Unit::Count, "writes", "writes"),
            Column::of(Unit::Share, "share", "write_share"),
        ],
    );
    let (reads, writes) = (shares(inside, false), shares(inside, true));
    let names = [
        ("zero", "holes and zeros"),
        ("dram", "cache in memory"),
        ("log", "write log"),
        ("ssd", "flash"),
        ("hdd", "disk"),
    ];
    for (word, name) in names {
        let of = |all: &[(String, plimsoll_evidence::model_statistics::Tally, f64)]| {
            let found = all.iter().find(|(place, ..)| place == word);
            match found {
                Some((_, tally, share)) => {
                    [Cell::count(tally.ios), Cell::number(Unit::Share, *share)]
                }
                None => [Cell::empty(), Cell::empty()],
            }
        };
        let (read, write) = (of(&reads), of(&writes));
        if read[0] == Cell::empty() && write[0] == Cell::empty() {
            continue;
        }
        let mut row = vec![Cell::text(name)];
        row.extend(read);
        row.extend(write);
        table.rows.push(row);
    }
    let remote: u64 = inside.nodes.iter().map(|node| node.remote_reads.ios).sum();
    if remote > 0 {
        let all: u64 = reads.iter().map(|(_, tally, _)| tally.ios).sum();
        let share = 100.0 * remote as f64 / all.max(1) as f64;
        table.note = format!("{share:.1} % of the reads needed data from another node");
    }
    table
}

fn path_table(path: &plimsoll_evidence::model_statistics::Path) -> Table {
    let (mean_ns, parts) = contributions(path);
    let mut table = Table::new(
        &format!("Time breakdown of {}", one_of(&path.operation)),
        vec![
            Column::words("station", "station"),
            Column::of(Unit::Latency, "waiting", "waited_ns"),
            Column::of(Unit::Latency, "in service", "served_ns"),
            Column::of(Unit::Share, "share", "share"),
        ],
    );
    for part in parts.iter().filter(|part| part.share >= 0.005) {
        table.rows.push(vec![
            Cell::text(part.station.clone()),
            Cell::number(Unit::Latency, part.waited_ns),
            Cell::number(Unit::Latency, part.served_ns),
            Cell::number(Unit::Share, part.share),
        ]);
    }
    table.note = format!(
        "mean latency {}, from the critical paths of {} operations; the table omits stations with a \
         share below 0.5 %",
        Unit::Latency.show(mean_ns, Default::default()),
        path.traced
    );
    table
}

/// Returns an operation with its article.
fn one_of(operation: &str) -> String {
    match operation {
        "other" => "other operations".to_owned(),
        "metadata" => "a metadata operation".to_owned(),
        kind if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn station_table(inside: &ModelStatistics, window_ns: u64) -> Table {
    let mut table = Table::new(
        "Stations, grouped by kind",
        vec![
            Column::words("station", "station"),
            Column::numbers("number", "stations"),
            Column::numbers("servers", "servers"),
            Column::of(Unit::Share, "mean", "utilisation").under("utilisation"),
            Column::of(Unit::Share, "busiest", "utilisation_max").under("utilisation"),
            Column::numbers("customers", "customers"),
            Column::of(Unit::Rate, "visits", "visits_per_s"),
            Column::of(Unit::Latency, "time per visit", "time_ns"),
        ],
    );
    for group in stations(inside, window_ns).into_iter().take(STATIONS_MAX) {
        let busy = group.utilisation_max.is_some_and(|most| most >= BUSY);
        let tone = if busy { Tone::Warn } else { Tone::Plain };
        table.rows.push(vec![
            Cell::text(group.name),
            Cell::count(group.stations),
            Cell::count(group.servers.into()),
            Cell::maybe(Unit::Share, group.utilisation),
            Cell::maybe(Unit::Share, group.utilisation_max).tone(tone),
            Cell::number(Unit::Plain, group.customers),
            Cell::number(Unit::Rate, group.visits_per_s),
            Cell::maybe(Unit::Latency, group.time_ns),
        ]);
    }
    table
}

/// Returns the model's internal figures as JSON; `null` if the run did not use a model.
pub fn explained_json(evidence: &Bundle) -> Value {
    let Some(inside) = &evidence.observed.inside else { return Value::Null };
    let window_ns = evidence.run.measure().map_or(0, |phase| phase.duration_ns);
    let share = |writes| -> Value {
        shares(inside, writes).into_iter().map(|(place, _, share)| (place, json!(share))).collect()
    };
    let station = |group: &Stations| {
        json!({
            "name": group.name, "stations": group.stations, "servers": group.servers,
            "utilisation": group.utilisation, "utilisation_max": group.utilisation_max,
            "busiest": group.busiest, "customers": group.customers,
            "visits_per_s": group.visits_per_s, "time_ns": group.time_ns,
        })
    };
    let path = |path: &plimsoll_evidence::model_statistics::Path| {
        let (latency_ns, parts) = contributions(path);
        let parts: Vec<Value> = parts
            .iter()
            .map(|part| {
                json!({"station": part.station, "waited_ns": part.waited_ns,
                    "served_ns": part.served_ns, "share": part.share})
            })
            .collect();
        json!({"operation": path.operation, "traced": path.traced, "latency_ns": latency_ns,
            "parts": parts})
    };
    json!({
        "model": inside.model,
        "bottleneck": bottleneck(inside, window_ns).as_ref().map(station),
        "reads_from": share(false),
        "writes_to": share(true),
        "paths": inside.paths.iter().map(path).collect::<Vec<_>>(),
        "stations": stations(inside, window_ns).iter().map(station).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_evidence::model_statistics::{Part, Path};

    #[test]
    fn a_gate_at_which_operations_wait_is_named() {
        let part = |station: &str, waited_ns_sum| Part {
            station: station.to_owned(),
            waited_ns_sum,
            ..Part::default()
        };
        let mut inside = ModelStatistics::default();
        inside.paths.push(Path {
            operation: "read".to_owned(),
            traced: 4,
            latency_ns_sum: 100,
            parts: vec![part("pool.reads*", 70), part("drive.*", 10)],
        });
        let most = |name: &str| Stations { name: name.to_owned(), ..Stations::default() };
        assert_eq!(
            longest_wait(&inside, &most("drive.*")).as_deref(),
            Some("Operations wait longest at pool.reads*: 70 % of the mean latency of a read.")
        );
        assert_eq!(longest_wait(&inside, &most("pool.reads*")), None);
    }

    #[test]
    fn operations_have_the_article_that_they_take() {
        let titles = ["read", "log write", "other", "metadata", "upkeep write"].map(one_of);
        let expected = [
            "a read",
            "a log write",
            "other operations",
            "a metadata operation",
            "an upkeep write",
        ];
        assert_eq!(titles, expected);
    }
}
