//! Utilisation of a modelled system's stations in each window. It shows why the load degraded.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::model_statistics::generalise_name;
use plimsoll_evidence::series::Data;
use plimsoll_plan::Window;

use super::Windows;
use crate::figures::measured;

/// Group of similar stations, summed over all nodes, with its utilisation in each window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StationWindows {
    /// Common name of the stations: a star replaces each number in their names.
    pub name: String,
    /// Mean busy share in each window; `None` if the window does not exist or is too short.
    pub before: Option<f64>,
    pub during: Option<f64>,
    pub after: Option<f64>,
    /// Station with the largest busy share during the event.
    pub busiest: String,
    /// That share.
    pub busiest_during: Option<f64>,
    /// Station whose busy share increased most during the event, with its shares before and during
    /// the event. The mean of a group also includes lost devices, so it may fall nevertheless.
    pub risen: Option<(String, f64, f64)>,
}

impl StationWindows {
    /// Returns the increase of the busy share during the event.
    pub fn rise(&self) -> Option<f64> {
        Some(self.during? - self.before?)
    }
}

/// Busy time of a station and total length of its samples, one pair for each window.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    by_window: [f64; 3],
}

fn index(window: Window) -> usize {
    match window {
        Window::Before => 0,
        Window::During => 1,
        Window::After => 2,
    }
}

/// Returns the name of the station if the series row contains a station's busy share.
fn station_of(name: &str) -> Option<&str> {
    name.strip_prefix("model.")?.strip_suffix(".utilisation")
}

/// Returns the stations that were busy at some time. The station with the largest increase comes
/// first. Empty if no model was simulated.
pub fn station_windows(bundle: &Bundle, windows: &Windows) -> Vec<StationWindows> {
    let Some(measure) = measured(bundle) else { return Vec::new() };
    let phase = bundle.run.phases.iter().position(|phase| std::ptr::eq(phase, measure));
    let mut stations: BTreeMap<&str, Busy> = BTreeMap::new();
    let mut samples: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    for row in bundle.series.iter().filter(|row| Some(row.phase as usize) == phase) {
        let (Some(name), Data::Gauge(share)) = (station_of(&row.name), row.data) else { continue };
        let middle_ns = row.start_ns.saturating_add(row.duration_ns / 2);
        let mut parts = windows.parts.iter();
        let part = parts.find(|part| (part.from_ns..part.to_ns).contains(&middle_ns));
        let Some(window) = part.map(|part| index(part.window)) else { continue };
        samples.insert(row.start_ns, (window, row.duration_ns));
        let busy = stations.entry(name).or_default();
        busy.by_window[window] += share * row.duration_ns as f64;
    }
    let mut lengths_ns = [0.0; 3];
    samples.values().for_each(|(window, ns)| lengths_ns[*window] += *ns as f64);
    let mut groups: BTreeMap<String, Vec<(&str, [Option<f64>; 3])>> = BTreeMap::new();
    for (name, busy) in stations {
        let share = |at: usize| (lengths_ns[at] > 0.0).then(|| busy.by_window[at] / lengths_ns[at]);
        groups.entry(generalise_name(name)).or_default().push((name, [0, 1, 2].map(share)));
    }
    let mut all: Vec<StationWindows> = groups.into_iter().map(group).collect();
    all.sort_by(|a, b| {
        let rise = |s: &StationWindows| s.rise().unwrap_or(f64::MIN);
        rise(b).total_cmp(&rise(a)).then_with(|| a.name.cmp(&b.name))
    });
    all
}

fn group((name, stations): (String, Vec<(&str, [Option<f64>; 3])>)) -> StationWindows {
    let mean = |at: usize| {
        let sum = stations.iter().try_fold(0.0, |sum, (_, shares)| Some(sum + shares[at]?))?;
        Some(sum / stations.len().max(1) as f64)
    };
    let during = |station: &(&str, [Option<f64>; 3])| station.1[1].unwrap_or(-1.0);
    let busiest = stations.iter().max_by(|a, b| during(a).total_cmp(&during(b)));
    let shares = stations.iter().filter_map(|(name, s)| Some((*name, s[0]?, s[1]?)));
    let risen = shares.max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
    let risen = risen.filter(|(_, before, during)| during > before);
    StationWindows {
        risen: risen.map(|(name, before, during)| (name.to_owned(), before, during)),
        name,
        before: mean(0),
        during: mean(1),
        after: mean(2),
        busiest: busiest.map_or(String::new(), |(name, _)| (*name).to_owned()),
        busiest_during: busiest.and_then(|(_, shares)| shares[1]),
    }
}
