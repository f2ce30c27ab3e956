//! Lists the hosts, storage and dates of several runs, for the head of a report about them.

use plimsoll_judge::sweep::PointPlace;

use crate::time::utc;

/// Maximum number of names in a list. A longer list is shortened and ends with the number of
/// omitted names.
const LISTED_MAX: usize = 6;

/// Returns date, host, file system, kernel, device and version. A fact that no run has recorded is
/// `unknown`.
pub(crate) fn facts<'a>(places: impl Iterator<Item = &'a PointPlace>) -> Vec<(String, String)> {
    let places: Vec<&PointPlace> = places.collect();
    let mut pairs = Vec::new();
    let mut put = |name: &str, text: String| pairs.push((name.to_owned(), text));
    let started = || places.iter().map(|place| place.started_unix_ns);
    if let (Some(first), Some(last)) = (started().min(), started().max()) {
        let last = if last > first { format!(" to {}", utc(last)) } else { String::new() };
        put("measured", format!("{}{last}", utc(first)));
    }
    let all = |of: &dyn Fn(&PointPlace) -> Vec<String>| {
        let known = listed(places.iter().flat_map(|place| of(place)));
        if known.is_empty() { "unknown".to_owned() } else { known }
    };
    if !places.is_empty() {
        put("host", all(&|place| place.host.iter().cloned().collect()));
        put("file system", all(&|place| place.file_systems.clone()));
        put("kernel", all(&|place| place.kernel.iter().cloned().collect()));
        put("device", all(&|place| place.devices.clone()));
        put("Plimsoll", all(&|place| vec![place.version.clone()]));
    }
    pairs
}

/// Lists the distinct values, in order of their first appearance.
pub(crate) fn listed(values: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for value in values {
        if !known.contains(&value) {
            known.push(value);
        }
    }
    let more = known.len().saturating_sub(LISTED_MAX);
    known.truncate(LISTED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", known.join(", "))
}
