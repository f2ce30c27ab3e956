//! Checks that each host can run its part of an order. Also checks that no two hosts use the same
//! exports or objects, because they would overwrite each other's data.
//!
//! Directories and devices are local to a host, except on a shared file system. In this case, the
//! lock in the directory stops the second host.

use std::collections::BTreeMap;

use plimsoll_plan::{ResolvedPlan, Target, TargetKind, Workload};
use plimsoll_runner::error::RunnerError;

use crate::card::Card;
use crate::order::Order;

/// Resolves the part of each host, and checks that no two parts use the same target.
///
/// # Errors
/// Two hosts use the same target, or a host cannot run its part of the plan.
pub(super) fn check_overlap(
    order: &Order,
    hosts: &[Card],
) -> Result<Vec<ResolvedPlan>, RunnerError> {
    let mut parts = Vec::new();
    let mut owners = BTreeMap::<String, &str>::new();
    for host in hosts {
        let (own, part) = part_of(order, host)?;
        parts.push(part);
        for place in shared_targets(own) {
            let Some(other) = owners.insert(place.clone(), &host.name) else { continue };
            if other != host.name {
                let message = format!("{other} and {} would both use {place}", host.name);
                return Err(RunnerError::usage(message).hint(
                    "use a different target for each host: put {host} into the address (s3 = \
                     \"s3://bucket/{host}\"), set the address for each host in [[fleet.host]], or \
                     divide the exports with `carries = \"share\"`",
                ));
            }
        }
    }
    Ok(parts)
}

/// Resolves the plan with the settings of a host. Returns the resolved plan, and the part of it
/// that the order requests.
pub(super) fn part_of(
    order: &Order,
    host: &Card,
) -> Result<(ResolvedPlan, ResolvedPlan), RunnerError> {
    let wrong = |message: String| {
        RunnerError::usage(format!("cannot resolve the plan for {}: {}", host.name, message.trim()))
    };
    let plan = order.plan_of(&host.name).map_err(|errors| wrong(errors.to_string()))?;
    let own = plan.on_host(&host.name, &host.labels);
    let own = own.map_err(|errors| wrong(errors.to_string()))?;
    let part = order.part_of(&plan, &own, &host.name).map_err(|message| {
        wrong(message)
            .hint("use the same plan on all hosts, and describe differences and shares in [fleet]")
    })?;
    Ok((own.resolve(), part))
}

/// Returns a short text about the part that a host runs: its workload and targets.
pub(super) fn describe(part: &ResolvedPlan) -> String {
    let places: Vec<String> = part.targets.iter().flat_map(Target::places).collect();
    let workload = match &part.workload {
        Workload::Mailbox(store) => {
            format!("{} mailboxes in {} databases", store.mailboxes, store.databases)
        }
        Workload::Matrix(matrix) => {
            let clients: u32 = matrix.streams.iter().map(|stream| stream.clients).sum();
            format!("{clients} clients")
        }
    };
    format!(
        "{workload} on {}",
        if places.is_empty() { "no storage".into() } else { places.join(", ") }
    )
}

/// Returns those targets of a host that other hosts can also reach.
fn shared_targets(own: ResolvedPlan) -> Vec<String> {
    let mut places = Vec::new();
    for target in own.targets {
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
    places
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_plan::Plan;

    use super::*;

    fn check_plan(target: &str, more: &str) -> Result<(), String> {
        let text = format!(
            "version = 1\nname = \"p\"\n[target]\n{target}\n[workload.matrix]\nfile_size = \"1MiB\"\n{more}"
        );
        let plan = Plan::parse(&text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let hosts = ["a", "b"].map(|name| Card { name: name.to_owned(), ..Card::default() });
        let order = Order::new("run", Vec::new(), &plan, 0).unwrap();
        check_overlap(&order, &hosts).map(drop).map_err(|error| error.message)
    }

    #[test]
    fn hosts_with_the_same_objects_are_rejected() {
        let store = "endpoint = \"http://h:1\"";
        let error = check_plan(&format!("s3 = \"s3://load/x\"\n{store}"), "").unwrap_err();
        assert_eq!(error, "a and b would both use s3://load/x at http://h:1");
        check_plan(&format!("s3 = \"s3://load/{{host}}\"\n{store}"), "").unwrap();
        let error = check_plan("nfs = [\"nfs://filer/v1\", \"nfs://filer/v2\"]", "").unwrap_err();
        assert!(error.contains("nfs://filer/v1"), "{error}");
        let own = "[[fleet.host]]\nname = \"b\"\nset = { \"target.nfs\" = \"nfs://filer/v2\" }\n";
        check_plan("nfs = \"nfs://filer/v1\"", own).unwrap();
        check_plan("path = \"/mnt/test\"", "").unwrap();
        let shares = "[fleet]\nnames = [\"a\", \"b\"]\ncarries = \"share\"\n";
        check_plan("nfs = [\"nfs://filer/v1\", \"nfs://filer/v2\"]", shares).unwrap();
    }
}
