//! Events of a run: the windows around them, the recovery, and the output of the commands.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::events::{CommandRecord, EventRecord};
use plimsoll_judge::events::recovery::{P99_FACTOR, RATE_SHARE};
use plimsoll_judge::events::{
    NoRecovery, StationWindows, WindowFigures, Windows, station_windows, window_figures,
};
use plimsoll_plan::{Event, one_line};

use super::empty_section;
use crate::document::{Block, Section};
use crate::number::{Unit, elapsed};
use crate::table::{Cell, Column, Table, Tone};

pub(crate) fn section(bundle: &Bundle) -> Section {
    if bundle.run.events.is_empty() {
        return empty_section();
    }
    let mut section = Section::brief("events", "Events");
    if let Some(windows) = Windows::of(bundle) {
        section = section.with(Block::Table(table_of_windows(bundle, &windows)));
        section = section.with(Block::Words(describe_recovery(&windows)));
        let stations = station_windows(bundle, &windows);
        if let Some(words) = describe_stations(&stations) {
            section = section.with(Block::Words(words));
            section = section.with(Block::Table(table_of_stations(stations)));
        }
    }
    section.with(Block::Table(table_of_events(bundle)))
}

/// Returns the outputs of the commands, for the full report.
pub(crate) fn outputs(bundle: &Bundle) -> Section {
    let mut section = Section::full("event-output", "Output of the commands");
    for event in &bundle.run.events {
        for command in [&event.command, &event.undo].into_iter().flatten() {
            for (stream, text) in [("output", &command.stdout), ("errors", &command.stderr)] {
                if !text.trim().is_empty() {
                    let caption = format!("{}: {stream} of {}", event.name, command_line(command));
                    section = section.with(Block::Listing { caption, text: text.clone() });
                }
            }
        }
    }
    section
}

fn table_of_windows(bundle: &Bundle, windows: &Windows) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("window", "window"),
            Column::numbers("from", "start_ns"),
            Column::numbers("lasted", "duration_ns"),
            Column::of(Unit::Rate, "I/Os per second", "rate_per_s"),
            Column::numbers("of before", "of_before"),
            Column::numbers("median", "latency_ns_p50").rank(1),
            Column::numbers("p99", "latency_ns_p99"),
            Column::numbers("largest", "latency_ns_max"),
            Column::numbers("longest outage", "outage_ns"),
            Column::numbers("errors", "errors"),
        ],
    );
    table.rows = window_figures(bundle, windows).iter().map(row).collect();
    table
}

fn row(figures: &WindowFigures) -> Vec<Cell> {
    let latency = |ns: Option<u64>| Cell::maybe(Unit::Latency, ns.map(|ns| ns as f64));
    vec![
        Cell::text(figures.part.window.word()).tone(Tone::Strong),
        Cell::number(Unit::Elapsed, figures.part.from_ns as f64),
        Cell::number(Unit::Elapsed, figures.part.duration_ns() as f64),
        Cell::maybe(Unit::Rate, figures.rate_per_s),
        Cell::maybe(Unit::Share, figures.of_before),
        latency(figures.latency_ns_p50),
        latency(figures.latency_ns_p99),
        latency(figures.latency_ns_max),
        match figures.outage_ns {
            Some(0) => Cell::text("none"),
            outage => latency(outage),
        },
        Cell::count(figures.errors),
    ]
}

fn describe_recovery(windows: &Windows) -> String {
    let level = format!(
        "\"Recovered\" means that from then on, the rate is at least {:.0} % of the rate before the \
         event, and the p99 is at most {P99_FACTOR} times the p99 before the event.",
        RATE_SHARE * 100.0
    );
    let action = &windows.action;
    let step = elapsed(windows.interval_ns as f64);
    let says = match &windows.recovery_ns {
        Ok(0) => format!("Recovered immediately after \"{action}\" (accurate to {step})."),
        Ok(after_ns) => format!(
            "Recovered {} after \"{action}\" (accurate to {step}).",
            elapsed(*after_ns as f64)
        ),
        Err(NoRecovery::NotWithinRun(rest_ns)) => format!(
            "Not recovered before the run ended, {} after \"{action}\".",
            elapsed(*rest_ns as f64)
        ),
        Err(NoRecovery::Unknown(reason)) => {
            format!("It is unknown when the system recovered: {reason}.")
        }
    };
    format!("{says} {level}")
}

/// Describes which station of a modelled system became busier during the event.
fn describe_stations(stations: &[StationWindows]) -> Option<String> {
    // Shares below 10 % are printed with a decimal. Otherwise a rise from 0.3 to 0.4 % would be
    // printed as 0 to 0 %.
    let percent = |share: f64| match share < 0.1 {
        true => format!("{:.1} %", share * 100.0),
        false => format!("{:.0} %", share * 100.0),
    };
    let most = stations.first()?;
    let (before, during) = most.before.zip(most.during)?;
    if during <= before {
        let risen = stations.iter().filter_map(|group| group.risen.as_ref());
        let risen = risen.max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
        if let Some((name, before, during)) = risen {
            return Some(format!(
                "No kind of station was busier on average, but the utilisation of {name} increased \
                 from {} to {} during the event.",
                percent(*before),
                percent(*during)
            ));
        }
        return Some(
            "None of the model's stations (devices, links, CPUs) was busier during the event than \
             before the event."
                .to_owned(),
        );
    }
    let mut says = format!(
        "During the event, the utilisation of {} increased more than that of other stations: from \
         {} to {}",
        most.name,
        percent(before),
        percent(during)
    );
    let busiest = stations.iter().filter(|group| group.busiest_during.is_some());
    let busiest = busiest.max_by(|a, b| {
        let share = |group: &StationWindows| group.busiest_during.unwrap_or(0.0);
        share(a).total_cmp(&share(b))
    });
    if let Some((busiest, share)) = busiest.and_then(|group| Some((group, group.busiest_during?))) {
        says.push_str(&format!(
            "; the busiest station, {}, had a utilisation of {}",
            busiest.busiest,
            percent(share)
        ));
    }
    Some(format!("{says}."))
}

/// Maximum number of rows in the table of stations. The rows with the largest increases are shown.
const STATIONS_MAX: usize = 6;

fn table_of_stations(stations: Vec<StationWindows>) -> Table {
    let mut table = Table::new(
        "Utilisation of the model's stations before, during and after the event, sorted by increase",
        vec![
            Column::words("station", "station"),
            Column::of(Unit::Share, "before", "utilisation_before"),
            Column::of(Unit::Share, "during", "utilisation_during"),
            Column::of(Unit::Share, "after", "utilisation_after"),
            Column::of(Unit::Share, "busiest, during", "utilisation_busiest_during"),
            Column::words("busiest", "busiest").rank(1),
        ],
    );
    let share = |share| Cell::maybe(Unit::Share, share);
    let row = |group: StationWindows| {
        vec![
            Cell::text(group.name),
            share(group.before),
            share(group.during),
            share(group.after),
            share(group.busiest_during),
            Cell::text(group.busiest),
        ]
    };
    table.rows = stations.into_iter().take(STATIONS_MAX).map(row).collect();
    table
}

fn table_of_events(bundle: &Bundle) -> Table {
    let mut table = Table::new(
        "",
        vec![
            Column::words("event", "event"),
            Column::numbers("at", "at_ns"),
            Column::numbers("lasted", "duration_ns").rank(1),
            Column::words("result", "result"),
            Column::remarks("command", "command"),
        ],
    );
    for event in &bundle.run.events {
        let planned = bundle.plan.events.iter().find(|planned| planned.name == event.name);
        table.rows.push(event_row(event, planned));
        if let Some(at_ns) = event.undo_at_ns {
            let name = format!("undo {}", label(event));
            table.rows.push(action_row(&name, Some(at_ns), event.undo.as_ref(), "", String::new()));
        }
    }
    table
}

fn event_row(event: &EventRecord, planned: Option<&Event>) -> Vec<Cell> {
    let effect = planned.map_or(String::new(), effect);
    action_row(&label(event), event.at_ns, event.command.as_ref(), &event.missed, effect)
}

/// Describes the effect of an event on a modelled system.
fn effect(event: &Event) -> String {
    let throttle = event.throttle.as_ref();
    let throttle =
        throttle.map(|t| format!("throttle {} to {:.0} %", t.component, t.speed * 100.0));
    let effect = event.fail.as_ref().map(|component| format!("fail {component}")).or(throttle);
    one_line(&effect.unwrap_or_default())
}

/// Returns the event's name and, in a fleet, the host that ran its commands.
fn label(event: &EventRecord) -> String {
    match &event.host {
        Some(host) => format!("{} on {host}", event.name),
        None => event.name.clone(),
    }
}

fn action_row(
    name: &str,
    at_ns: Option<u64>,
    command: Option<&CommandRecord>,
    missed: &str,
    effect: String,
) -> Vec<Cell> {
    let lasted = command.map(|command| command.end_ns.saturating_sub(command.start_ns) as f64);
    let result = match (command, missed) {
        (_, missed) if !missed.is_empty() => Cell::text(missed.to_owned()).tone(Tone::Bad),
        (Some(command), _) if !command.failure.is_empty() => {
            Cell::text(command.failure.clone()).tone(Tone::Bad)
        }
        (Some(CommandRecord { exit_code: None, .. }), _) => {
            Cell::text("unknown: the command stopped its own host, as expected")
        }
        (Some(_), _) => Cell::text("exit code 0"),
        (None, _) => Cell::text("happened"),
    };
    vec![
        Cell::text(name.to_owned()),
        Cell::maybe(Unit::Elapsed, at_ns.map(|ns| ns as f64)),
        lasted.map_or(Cell::empty(), |ns| Cell::number(Unit::Elapsed, ns)),
        result,
        Cell::text(command.map_or(effect, command_line)),
    ]
}

fn command_line(command: &CommandRecord) -> String {
    one_line(&command.argv.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_that_took_over_from_a_lost_one_is_named() {
        let drives = StationWindows {
            name: "drive.*".to_owned(),
            before: Some(0.6),
            during: Some(0.55),
            risen: Some(("drive.1".to_owned(), 0.6, 0.8)),
            ..StationWindows::default()
        };
        let says = describe_stations(std::slice::from_ref(&drives)).unwrap_or_default();
        assert!(says.contains("utilisation of drive.1 increased from 60 % to 80 %"), "{says}");
        let says = describe_stations(&[StationWindows { risen: None, ..drives }]);
        assert!(says.unwrap_or_default().starts_with("None of the model's stations"));
    }

    #[test]
    fn a_small_rise_of_the_utilisation_is_visible() {
        let drives = StationWindows {
            name: "drive.*".to_owned(),
            before: Some(0.002_98),
            during: Some(0.003_72),
            busiest: "drive.5".to_owned(),
            busiest_during: Some(0.476),
            ..StationWindows::default()
        };
        let says = describe_stations(&[drives]).unwrap_or_default();
        assert!(
            says.contains(
                "from 0.3 % to 0.4 %; the busiest station, drive.5, had a utilisation of 48 %"
            ),
            "{says}"
        );
    }
}
