//! That each host can carry its part of an order, and no two work on the same exports or objects: one's writes would be
//! the other's damage.
//!
//! Directories and devices are each host's own, unless they lie on a file system that hosts share; there the lock
//! in the directory refuses the second.

use std::collections::BTreeMap;

use plimsoll_plan::TargetKind;
use plimsoll_runner::error::RunnerError;

use crate::card::Card;
use crate::order::Order;

/// Holds what each of the hosts would work on against the others'.
///
/// # Errors
/// Two that would share it, and a plan that can't be carried by one of them, or a part of it.
pub(super) fn check(order: &Order, hosts: &[Card]) -> Result<(), RunnerError> {
    let mut owners = BTreeMap::<String, &str>::new();
    for host in hosts {
        for place in places(order, host)? {
            let Some(other) = owners.insert(place.clone(), &host.name) else { continue };
            if other != host.name {
                let says = format!("{other} and {} would both work on {place}", host.name);
                return Err(RunnerError::usage(says).hint(
                    "give each its own: {host} stands for its name, as in s3 = \"s3://bucket/{host}\", and [[fleet.host]] says \
                     what differs on one",
                ));
            }
        }
    }
    Ok(())
}

/// What a host would work on that others reach too.
fn places(order: &Order, host: &Card) -> Result<Vec<String>, RunnerError> {
    let wrong = |says: String| {
        RunnerError::usage(format!("what {} would carry: {}", host.name, says.trim()))
    };
    let plan = order.plan_of(&host.name).map_err(|errors| wrong(errors.to_string()))?;
    let own = plan.on_host(&host.name, &host.labels);
    let own = own.map_err(|errors| wrong(errors.to_string()))?;
    order.part_of(&plan, &own, &host.name).map_err(|says| {
        wrong(says)
            .hint("leave it out of [[fleet.host]], or have all hosts differ in a plan of their own")
    })?;
    let mut places = Vec::new();
    for target in own.resolve().targets {
        match target.kind {
            TargetKind::Nfs { exports, .. } => places.extend(exports),
            TargetKind::S3 { url, endpoint, .. } => {
                places.push(format!("{} at {endpoint}", url.trim_end_matches('/')));
            }
            _ => {}
        }
    }
    places.sort();
    places.dedup();
    Ok(places)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_plan::Plan;

    use super::*;

    fn checked(target: &str, more: &str) -> Result<(), String> {
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\n{target}\n[workload.matrix]\nfile_size = \"1MiB\"\n{more}"
        );
        let plan = Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let hosts = ["a", "b"].map(|name| Card { name: name.to_owned(), ..Card::default() });
        let order = Order::new("run", Vec::new(), &plan, 0).unwrap();
        check(&order, &hosts).map_err(|error| error.message)
    }

    #[test]
    fn hosts_that_would_write_to_the_same_objects_are_told_apart_first() {
        let store = "endpoint = \"http://h:1\"";
        let error = checked(&format!("s3 = \"s3://load/x\"\n{store}"), "").unwrap_err();
        assert_eq!(error, "a and b would both work on s3://load/x at http://h:1");
        checked(&format!("s3 = \"s3://load/{{host}}\"\n{store}"), "").unwrap();
        let error = checked("nfs = [\"nfs://filer/v1\", \"nfs://filer/v2\"]", "").unwrap_err();
        assert!(error.contains("nfs://filer/v1"), "{error}");
        let own = "[[fleet.host]]\nname = \"b\"\nset = { \"target.nfs\" = \"nfs://filer/v2\" }\n";
        checked("nfs = \"nfs://filer/v1\"", own).unwrap();
        checked("path = \"/mnt/test\"", "").unwrap();
    }
}
