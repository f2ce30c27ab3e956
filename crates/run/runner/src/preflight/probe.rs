//! Checks a plan's targets and servers without writing to them.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::s3::{S3DataSet, S3DataSetRequest};
use plimsoll_engine::{EngineError, matrix, nfs};
use plimsoll_plan::{Matrix, ResolvedPlan, SizeBytes, Target, TargetKind, Workload};
use rustix::fs::{Access, access, statfs};

use super::{Preflight, missing_directory, target_paths};
use crate::error::{RunnerError, engine_error};
use crate::exit::Exit;
use crate::listener::Listener;

/// Timeout for connecting to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks every target and server of a plan without writing, and reports the results.
pub(super) fn probe_targets(
    plan: &ResolvedPlan,
    preflight: &Preflight,
    listener: &mut dyn Listener,
) -> Result<(), RunnerError> {
    let mut first = None;
    let mut record = |path: &str, found: Result<String, RunnerError>| match found {
        Ok(says) => listener.say(&format!("{path}: {says}")),
        Err(error) => {
            listener.say(&format!("{path}: {}", error.message));
            first.get_or_insert(error);
        }
    };
    let several = plan.targets.len() > 1;
    for target in &plan.targets {
        for path in target_paths(target) {
            let found = match (&target.kind, &plan.workload) {
                (TargetKind::Device { .. }, Workload::Matrix(matrix)) => {
                    probe_device(plan, matrix, &path, preflight)
                }
                (TargetKind::Nfs { uid, gid, .. }, _) => {
                    probe_export(plan, target, &path, *uid, *gid)
                }
                (TargetKind::S3 { url, endpoint, region }, _) => {
                    probe_bucket(plan, target, [url, endpoint, region])
                }
                _ => probe(target, &path, several),
            };
            record(&path, found);
        }
    }
    for endpoint in &plan.observe.metrics {
        record(&endpoint.url, probe_server(&endpoint.url, 80));
    }
    first.map_or(Ok(()), Err)
}

/// File system types of proc and sysfs (from `statfs`). These claim that root may write to their
/// directories.
const KERNEL_SYSTEMS: [i64; 2] = [0x9fa0, 0x6265_6572];

fn probe(target: &Target, target_path: &str, several: bool) -> Result<String, RunnerError> {
    let path = Path::new(target_path);
    match &target.kind {
        TargetKind::Device { .. } => {
            access(path, Access::READ_OK | Access::WRITE_OK)
                .map_err(|error| RunnerError::usage(format!("{target_path}: {error}")))?;
            Ok("exists and is writable".to_owned())
        }
        _ if !path.is_dir() => Err(missing_directory(target_path, several)),
        _ if statfs(path).is_ok_and(|system| KERNEL_SYSTEMS.contains(&system.f_type)) => {
            let says = format!(
                "{target_path} is on a file system of the kernel, where no files can be \
                 created"
            );
            Err(RunnerError::usage(says).hint("use a directory on the storage under test"))
        }
        _ => {
            access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|error| RunnerError::environment(format!("{target_path}: {error}")))?;
            Ok("exists and is writable".to_owned())
        }
    }
}

/// Time after which a bucket that does not respond counts as unreachable.
const BUCKET_NS_MAX: u64 = 10_000_000_000;

/// Opens a device in the same way as the run, and searches it for data.
fn probe_device(
    plan: &ResolvedPlan,
    matrix: &Matrix,
    path: &str,
    preflight: &Preflight,
) -> Result<String, RunnerError> {
    let (device, destroy) = (Path::new(path), &preflight.destroy);
    let size_bytes = matrix::probe_device(plan, matrix, device, destroy, preflight.keep)
        .map_err(|error| engine_error(&error))?;
    let overwritten = match destroy.iter().any(|named| named == device) {
        true => "; its data will be overwritten (--destroy)",
        false => "",
    };
    let size = SizeBytes(size_bytes).about();
    Ok(format!("exists, is usable for this plan, and has a size of {size}{overwritten}"))
}

/// Mounts an export in the same way as the run, and compares its free space with the size of the
/// plan's data.
fn probe_export(
    plan: &ResolvedPlan,
    target: &Target,
    export: &str,
    uid: u32,
    gid: u32,
) -> Result<String, RunnerError> {
    let found =
        nfs::probe_export(export, &plan.name, uid, gid).map_err(|error| engine_error(&error))?;
    let needs = plan.required_bytes(target);
    let needed_bytes =
        needs.iter().filter(|need| need.directory == export).map(|need| need.bytes).sum();
    let free_bytes = found.free_bytes;
    if free_bytes < needed_bytes && !found.has_own_directory {
        let error = EngineError::TooSmall { path: export.into(), needed_bytes, free_bytes };
        return Err(engine_error(&error));
    }
    let [needed, free] = [needed_bytes, free_bytes].map(|bytes| SizeBytes(bytes).about());
    Ok(format!("can be mounted, {needed} needed, {free} free"))
}

/// Lists a bucket in the same way as the run.
fn probe_bucket(
    plan: &ResolvedPlan,
    target: &Target,
    [url, endpoint, region]: [&str; 3],
) -> Result<String, RunnerError> {
    // If nothing answers at the address, this connection attempt fails early and reports it.
    probe_server(endpoint, if endpoint.starts_with("https:") { 443 } else { 80 })?;
    let (name, outage_max_ns) = (plan.name.as_str(), BUCKET_NS_MAX);
    S3DataSet::probe(&S3DataSetRequest { name, url, endpoint, region, outage_max_ns })
        .map_err(|error| engine_error(&error))?;
    let needs = plan.required_bytes(target);
    let needed_bytes = needs.iter().fold(0, |sum: u64, need| sum.saturating_add(need.bytes));
    Ok(format!("{url} can be listed, {} needed", SizeBytes(needed_bytes).about()))
}

/// Connects to the server of a URL; `port` is the default port.
fn probe_server(url: &str, port: u16) -> Result<String, RunnerError> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let no = |says: String| RunnerError::new(Exit::Environment, format!("{address}: {says}"));
    let all = address.to_socket_addrs().map_err(|error| no(error.to_string()))?;
    let mut last = no("the host name has no address".to_owned());
    for one in all {
        match TcpStream::connect_timeout(&one, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(format!("{address} accepts connections")),
            Err(error) => last = no(error.to_string()),
        }
    }
    Err(last.hint("start the server, or correct its address"))
}
