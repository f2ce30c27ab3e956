//! `[target]`: each target has exactly one kind. If there are several targets, each target has a
//! name.

use crate::raw::{Root, TargetRaw};
use crate::read::list::List;
use crate::read::value::Name;
use crate::read::{Cx, Located, Position};
use crate::resolved::{Target, TargetKind};

/// Minimum of `outage_max`, in ns.
const OUTAGE_NS_MIN: u64 = 1_000_000_000;
const KINDS: &str = "databases, path, device, nfs, s3, model or null";

/// Returns the targets of the plan.
pub(super) fn resolve(root: &Root, cx: &mut Cx) -> Option<Vec<Target>> {
    let Some(given) = &root.target else {
        let help = format!("add [target] with one of {KINDS}");
        cx.missing(&root.at.unwritten("target"), "is missing", help);
        return None;
    };
    let mut targets: Vec<Target> = Vec::new();
    let many = given.value.items.len() > 1;
    for (raw, at) in &given.value.items {
        let name = match &raw.name {
            Some(name) => name.value.0.clone(),
            None if many => {
                let help = "name each target of a comparison, for example name = \"ext4\"";
                cx.missing(&raw.at.unwritten("name"), "is missing", help);
                continue;
            }
            None => "target".to_owned(),
        };
        if targets.iter().any(|t| t.name == name) {
            cx.fail(
                at,
                format!("has the same name as another target, \"{name}\""),
                "choose another name",
            );
            continue;
        }
        if let Some(kind) = kind(raw, at, cx) {
            let outage_max_ns = raw.outage_max.as_ref().map(|given| given.value.0);
            targets.push(Target { name, outage_max_ns, kind });
        }
    }
    (targets.len() == given.value.items.len()).then_some(targets)
}

fn kind(raw: &TargetRaw, at: &Position, cx: &mut Cx) -> Option<TargetKind> {
    let kinds = [
        raw.databases.as_ref().map(|g| &g.at),
        raw.path.as_ref().map(|g| &g.at),
        raw.device.as_ref().map(|g| &g.at),
        raw.nfs.as_ref().map(|g| &g.at),
        raw.s3.as_ref().map(|g| &g.at),
        raw.model.as_ref().map(|g| &g.at),
        raw.null.value.then_some(&raw.null.at),
    ];
    let mut stated = kinds.into_iter().flatten();
    let first = stated.next();
    if let (Some(first), Some(second)) = (first, stated.next()) {
        let help =
            format!("a target is exactly one of {KINDS}; remove `{}` or this field", first.field);
        cx.fail(second, "sets a second kind of target", help);
        return None;
    }
    if first.is_none() {
        cx.missing(at, "does not state a system to test", format!("add one of {KINDS}"));
    }
    reject_strays(raw, cx);
    if let Some(given) = &raw.outage_max {
        if raw.model.is_some() || raw.null.value {
            cx.fail(
                &given.at,
                "is only valid for real storage, not for a model or a null target",
                "remove this field",
            );
        } else if given.value.0 < OUTAGE_NS_MIN {
            cx.fail(&given.at, "is too short to detect an outage", "use \"1s\" or more");
        }
    }
    build(raw, cx)
}

/// Rejects fields that belong to other kinds of targets.
fn reject_strays(raw: &TargetRaw, cx: &mut Cx) {
    let mut stray = |written: bool, at: &Position, with: &str, fits: bool| {
        if written && !fits {
            cx.fail(at, format!("is only valid with `{with}`"), "remove this field");
        }
    };
    let nfs = raw.nfs.is_some();
    stray(raw.connections.written, &raw.connections.at, "nfs", nfs);
    stray(raw.uid.written, &raw.uid.at, "nfs", nfs);
    stray(raw.gid.written, &raw.gid.at, "nfs", nfs);
    stray(raw.region.written, &raw.region.at, "s3", raw.s3.is_some());
    stray(raw.set.written, &raw.set.at, "model", raw.model.is_some());
    if let Some(endpoint) = &raw.endpoint {
        stray(true, &endpoint.at, "s3", raw.s3.is_some());
    }
    if let Some(logs) = &raw.logs {
        stray(true, &logs.at, "databases", raw.databases.is_some());
    }
}

fn build(raw: &TargetRaw, cx: &mut Cx) -> Option<TargetKind> {
    if let Some(databases) = &raw.databases {
        let databases = distinct(databases, cx);
        let logs = raw.logs.as_ref().map_or_else(|| databases.clone(), |l| distinct(l, cx));
        return Some(TargetKind::Directories { databases, logs });
    }
    if let Some(path) = &raw.path {
        return Some(TargetKind::Path { path: path.value.0.clone() });
    }
    if let Some(device) = &raw.device {
        if !device.value.0.starts_with("/dev/") {
            cx.fail(
                &device.at,
                "is not a device",
                "use its full name, for example \"/dev/nvme0n1\"",
            );
        }
        return Some(TargetKind::Device { device: device.value.0.clone() });
    }
    if let Some(nfs) = &raw.nfs {
        return Some(TargetKind::Nfs {
            exports: nfs.value.items.iter().map(|(n, at)| export(&n.0, at, cx)).collect(),
            connections: small(raw.connections.value.0, 1024, &raw.connections.at, cx),
            uid: small(raw.uid.value.0, u64::from(u32::MAX), &raw.uid.at, cx),
            gid: small(raw.gid.value.0, u64::from(u32::MAX), &raw.gid.at, cx),
        });
    }
    if let Some(s3) = &raw.s3 {
        return s3_bucket(raw, s3, cx);
    }
    if let Some(model) = &raw.model {
        let set = raw.set.value.0.clone();
        return Some(TargetKind::Model { model: model.value.0.clone(), set });
    }
    raw.null.value.then_some(TargetKind::Null)
}

fn s3_bucket(raw: &TargetRaw, s3: &Located<Name>, cx: &mut Cx) -> Option<TargetKind> {
    if !s3
        .value
        .0
        .strip_prefix("s3://")
        .is_some_and(|rest| !rest.starts_with('/') && !rest.is_empty())
    {
        cx.fail(&s3.at, "is not a bucket", "use a URL such as \"s3://bucket/prefix\"");
    }
    let Some(endpoint) = &raw.endpoint else {
        let help = "set the store's address, for example endpoint = \"https://store.example:9000\"";
        cx.missing(&raw.at.unwritten("endpoint"), "is missing", help);
        return None;
    };
    if !is_http(&endpoint.value.0) {
        cx.fail(
            &endpoint.at,
            "is not an address",
            "use \"https://host:port\" or \"http://host:port\"",
        );
    }
    without_user(&endpoint.value.0, &endpoint.at, cx);
    Some(TargetKind::S3 {
        url: s3.value.0.clone(),
        endpoint: endpoint.value.0.clone(),
        region: raw.region.value.0.clone(),
    })
}

pub(super) fn is_http(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !host.contains(' '))
}

/// Rejects a URL that contains a user name or a password.
pub(super) fn without_user(url: &str, at: &Position, cx: &mut Cx) {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    if host.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) {
        // A plan becomes part of the evidence, and other people read the evidence.
        let help = "remove the user and password; Plimsoll does not send them, but the bundle would \
                    contain them";
        cx.fail(at, "contains a user or password", help);
    }
}

fn export(url: &str, at: &Position, cx: &mut Cx) -> String {
    let parts = url.strip_prefix("nfs://").and_then(|rest| rest.split_once('/'));
    if !parts.is_some_and(|(host, path)| !host.is_empty() && !path.is_empty()) {
        cx.fail(at, "is not an NFS export", "use a URL such as \"nfs://host/export\"");
    }
    without_user(url, at, cx);
    url.to_owned()
}

/// Returns the names. Records an error for each name that occurs twice.
fn distinct(list: &Located<List<Name>>, cx: &mut Cx) -> Vec<String> {
    let names: Vec<String> = list.value.0.iter().map(|n| n.0.clone()).collect();
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            let help = "list each directory once; databases are assigned to the directories in \
                        rotation";
            cx.fail(&list.at, format!("lists {name} twice"), help);
        }
    }
    names
}

/// Returns the number. If the number is greater than `most`, records an error.
pub(super) fn small(value: u64, most: u64, at: &Position, cx: &mut Cx) -> u32 {
    if value > most {
        cx.fail(at, format!("{value} exceeds the maximum"), format!("use at most {most}"));
    }
    // Returns at most this limit, because the number may be used as the size of a list before the
    // plan is rejected.
    u32::try_from(value.min(most)).unwrap_or(u32::MAX)
}
