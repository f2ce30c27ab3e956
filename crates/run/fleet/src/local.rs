//! Starts a private server and agents on this host, for trials. Dropping them ends their processes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_plan::{ResolvedPlan, TargetKind};
use plimsoll_runner::error::RunnerError;

use crate::broker::Server;

/// Time limit for the start of the server and of each agent.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time limit for a process to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A process that is ended when its owner is dropped: first with SIGTERM, then with SIGKILL.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let term = rustix::process::Signal::TERM;
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            // This fails if the process has already ended.
            let _ = rustix::process::kill_process(pid, term);
        }
        let signalled = Instant::now();
        while signalled.elapsed() < STOP_TIMEOUT {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A private NATS server with JetStream on a free port of the loopback interface.
#[derive(Debug)]
pub struct PrivateServer {
    _process: Process,
    url: String,
}

impl PrivateServer {
    /// Starts a server with its data in `directory`, which is created.
    ///
    /// # Errors
    /// `nats-server` is not installed, or does not start.
    pub fn start(directory: &Path, stop: &AtomicBool) -> Result<Self, RunnerError> {
        let failed = |error: std::io::Error| {
            RunnerError::environment(format!(
                "cannot start nats-server in {}: {error}",
                directory.display()
            ))
        };
        fs::create_dir_all(directory).map_err(failed)?;
        let log = File::create(directory.join("nats-server.log")).map_err(failed)?;
        let program = find_program();
        let mut command = Command::new(&program);
        command.args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"]).arg(directory);
        command.arg("--ports_file_dir").arg(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => RunnerError::environment(
                "cannot start a local fleet: nats-server is not on the PATH",
            )
            .hint(
                "install the package nats-server (on Debian and Ubuntu: `apt install \
             nats-server`)",
            ),
            _ => failed(error),
        })?;
        let mut process = Process(process);
        let ports = directory.join(format!("{}_{}.ports", file_name(&program), process.0.id()));
        let began = Instant::now();
        loop {
            if let Some(url) = fs::read(&ports).ok().and_then(|text| parse_address(&text)) {
                return Ok(Self { _process: process, url });
            }
            let ended = !matches!(process.0.try_wait(), Ok(None));
            if ended || began.elapsed() > START_TIMEOUT || stop.load(Ordering::Relaxed) {
                let log = fs::read_to_string(directory.join("nats-server.log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or("its log is empty").to_owned();
                return Err(RunnerError::environment(format!("cannot start nats-server: {last}")));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Finds the server on the PATH or in the directory in which Debian installs it, which is not on
/// every user's PATH.
fn find_program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("nats-server"));
    let found = found.chain([PathBuf::from("/usr/sbin/nats-server")]).find(|path| path.is_file());
    found.unwrap_or_else(|| "nats-server".into())
}

fn file_name(program: &Path) -> String {
    program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the address in a ports file, or `None` while the file is incomplete.
fn parse_address(text: &[u8]) -> Option<String> {
    let ports: serde_json::Value = serde_json::from_slice(text).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

/// A fleet on this host.
#[derive(Debug)]
pub struct LocalFleet {
    _agents: Vec<Process>,
    server: PrivateServer,
}

impl LocalFleet {
    /// Starts a server and `count` agents with their files below `directory`. `program` is this
    /// executable, `trust` the public key that agents accept, `allow` the options for permitted
    /// targets, and `calibration` the file with this host's ceilings. If each agent measured the
    /// ceilings, the agents would disturb each other.
    ///
    /// # Errors
    /// The errors of [`PrivateServer::start`], or an agent cannot be started.
    pub fn start(
        directory: &Path,
        count: u32,
        program: &Path,
        trust: &str,
        allow: &[String],
        calibration: Option<&Path>,
        stop: &AtomicBool,
    ) -> Result<Self, RunnerError> {
        let server = PrivateServer::start(&directory.join("nats"), stop)?;
        let mut agents = Vec::new();
        for number in 1..=count {
            let own = directory.join(format!("agent-{number}"));
            let failed = |error: std::io::Error| {
                RunnerError::environment(format!("cannot start agent {number}: {error}"))
            };
            fs::create_dir_all(own.join("state/plimsoll")).map_err(failed)?;
            if let Some(file) = calibration {
                let to = own.join("state/plimsoll/calibration.json");
                fs::copy(file, to).map_err(failed)?;
            }
            let log = File::create(own.join("log")).map_err(failed)?;
            let mut agent = Command::new(program);
            agent.args(["agent", "--server", server.url(), "--trust", trust, "--name"]);
            agent.arg(format!("local-{number}"));
            agent.args(allow);
            for (variable, name) in [
                ("XDG_STATE_HOME", "state"),
                ("XDG_DATA_HOME", "share"),
                ("XDG_CACHE_HOME", "cache"),
            ] {
                agent.env(variable, own.join(name));
            }
            agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            agents.push(Process(agent.spawn().map_err(failed)?));
        }
        Ok(Self { _agents: agents, server })
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn server(&self) -> Server {
        Server { url: self.server.url().to_owned(), ..Server::default() }
    }
}

/// Returns the options that make all agents allow the plan's targets and the commands of its
/// events. Targets are allowed by their common parent directory or prefix. This is safe, because a
/// user of this host wrote the plan.
///
/// # Errors
/// The kind of target is not supported, or several agents would use the same directory.
pub fn allow_options(plan: &ResolvedPlan, count: u32) -> Result<Vec<String>, RunnerError> {
    let mut allowed = Vec::new();
    for target in &plan.targets {
        for option in target_options(&target.kind, plan, count)? {
            if !allowed.contains(&option) {
                allowed.push(option);
            }
        }
    }
    let events = plan.events.iter().filter(|event| event.host.is_some());
    let commands = events.flat_map(|event| [&event.run, &event.undo]);
    let commands = commands.filter(|command| !command.is_empty());
    allowed.extend(commands.map(|command| ("--allow-event", command.join(" "))));
    Ok(allowed.into_iter().flat_map(|(option, place)| [option.to_owned(), place]).collect())
}

fn target_options(
    kind: &TargetKind,
    plan: &ResolvedPlan,
    count: u32,
) -> Result<Vec<(&'static str, String)>, RunnerError> {
    let path = match kind {
        TargetKind::Path { path } => path,
        TargetKind::Null => return Ok(Vec::new()),
        TargetKind::S3 { url, endpoint, .. } => {
            let whole = format!("{}/{}", endpoint.trim_end_matches('/'), &url["s3://".len()..]);
            return Ok(vec![("--allow-s3", shared_parent(&whole).to_owned())]);
        }
        TargetKind::Nfs { exports, uid, gid, .. } => {
            let of_hosts = plan.fleet.iter().flat_map(|fleet| fleet.exports());
            let all = exports.iter().cloned().chain(of_hosts);
            return Ok(all
                .map(|export| ("--allow-nfs", allowed_export(&export, *uid, *gid)))
                .collect());
        }
        _ => {
            return Err(RunnerError::usage(
                "a local fleet supports only `path`, `nfs`, `s3` and `null` targets",
            )
            .hint("use a directory: path = \"/mnt/test/{host}\""));
        }
    };
    let parts = Path::new(path).components();
    let parent: PathBuf = parts.take_while(|part| !names_host(part.as_os_str())).collect();
    if count > 1 && parent == Path::new(path) {
        return Err(RunnerError::usage("each agent on this host needs its own directory")
            .hint(format!("set path = \"{}/{{host}}\"", path.trim_end_matches('/'))));
    }
    if !parent.is_dir() {
        return Err(RunnerError::usage(format!("{} is not a directory", parent.display()))
            .hint("create it first, or choose another directory"));
    }
    Ok(vec![("--allow-path", parent.display().to_string())])
}

/// Returns the address of the export that contains the directories of all hosts, with the plan's
/// port, user and group.
fn allowed_export(export: &str, uid: u32, gid: u32) -> String {
    let (place, options) = export.split_once('?').unwrap_or((export, ""));
    let given = |name: &str| options.split('&').any(|option| option.starts_with(name));
    let mut all: Vec<String> =
        options.split('&').filter(|option| !option.is_empty()).map(str::to_owned).collect();
    for (name, id) in [("uid=", uid), ("gid=", gid)] {
        if id != 0 && !given(name) {
            all.push(format!("{name}{id}"));
        }
    }
    let place = shared_parent(place);
    if all.is_empty() { place.to_owned() } else { format!("{place}?{}", all.join("&")) }
}

/// Returns the part of a target that precedes the component with `{host}`.
fn shared_parent(place: &str) -> &str {
    match place.find("{host}") {
        Some(at) => &place[..place[..at].rfind('/').unwrap_or(0)],
        None => place,
    }
}

fn names_host(part: &std::ffi::OsStr) -> bool {
    part.to_string_lossy().contains("{host}")
}
