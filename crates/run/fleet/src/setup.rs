//! Secure set-up of a fleet: certificate authority, certificates, keys, server configuration, and
//! one file per host.
//!
//! The authority's key is stored in a separate directory, which is not copied to any host. This key
//! is needed to add hosts after the set-up.

use std::fs;
use std::path::{Path, PathBuf};

use nkeys::KeyPair;
use plimsoll_evidence::signature::{make_keys, public_key};
use plimsoll_runner::error::RunnerError;

use crate::access::Access;
use crate::authority::{Authority, CERTIFICATE};
use crate::card::is_name;
use crate::credential::Credential;
use crate::files::{make_directory, replace, write};
use crate::permissions;
use crate::users::{self, Users};

/// Maximum number of agents in a fleet.
pub const AGENTS_MAX: u32 = 1_000;
/// Directory of the authority's key.
const AUTHORITY: &str = "authority";
/// User name of the coordinator. It contains spaces, so it differs from the names of all agents.
const COORDINATOR: &str = "the coordinator";

/// Settings of a new fleet.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Directory to which the files are written. It must be empty or not exist yet.
    pub directory: PathBuf,
    /// Name or address of the server to which agents connect.
    pub server_name: String,
    pub port: u16,
    pub agents: Vec<String>,
    /// Directories that plans may use on each host.
    pub allow_paths: Vec<PathBuf>,
    /// True to discard the authority's key. No host can then be added after the set-up.
    pub forgets_authority: bool,
}

/// Directories of a new fleet.
#[derive(Clone, Debug)]
pub struct FleetFiles {
    /// Directory for the server's host: `nats.conf` and the files that it uses.
    pub server: PathBuf,
    /// Directory for the coordinator: `fleet.toml`, and the key for signing plans.
    pub coordinator: PathBuf,
    /// One file for each agent's host, with the host's keys and certificate.
    pub agents: Vec<PathBuf>,
    /// Directory of the authority's key, which must not be copied to any host. `None` if the key
    /// was discarded.
    pub authority: Option<PathBuf>,
}

/// Result of changing an existing fleet.
#[derive(Clone, Debug)]
pub struct FleetChange {
    /// Address of the server to which agents connect.
    pub server: String,
    /// File with the new list of users, which must be copied to the server.
    pub users: PathBuf,
    /// Files of the agents that were added or removed.
    pub agents: Vec<PathBuf>,
}

/// Sets up a fleet. If an error occurs, the files written before remain. No file is overwritten.
///
/// # Errors
/// The directory is not empty, names are not valid, or files cannot be written.
pub fn set_up(setup: &Setup) -> Result<FleetFiles, RunnerError> {
    check_setup(setup)?;
    let root = &setup.directory;
    make_directory(root)?;
    let authority = Authority::new()?;
    let (server, coordinator) = (root.join("server"), root.join("coordinator"));
    for directory in [&server, &coordinator, &root.join("agents")] {
        make_directory(directory)?;
    }
    let (certificate, key) = authority.issue(&setup.server_name, true)?;
    write(&server.join(CERTIFICATE), authority.pem(), 0o644)?;
    write(&server.join("server.pem"), &certificate, 0o644)?;
    write(&server.join("server.key"), &key, 0o600)?;
    let public = make_keys(&coordinator.join("sign.key"), None)?;
    let url = format!("tls://{}:{}", setup.server_name, setup.port);
    let mut users = Users::default();
    let (sign, hosts) = (Some("sign.key".into()), setup.agents.clone());
    let run = Access { server: url.clone(), sign, hosts, ..Access::default() };
    let key = issue_user(&authority, &coordinator.join("fleet.toml"), "coordinator", run)?;
    users.add(COORDINATOR, &key, &permissions::coordinator());
    let allow_paths = &setup.allow_paths;
    let template =
        AgentTemplate { authority: &authority, root, server: &url, trust: &public, allow_paths };
    let agents = template.create_agents(&setup.agents, &mut users)?;
    write(&server.join("nats.conf"), &configuration(setup), 0o600)?;
    write(&server.join(users::FILE), &users.text(), 0o600)?;
    let mut saved = None;
    if !setup.forgets_authority {
        let directory = root.join(AUTHORITY);
        make_directory(&directory)?;
        authority.save(&directory)?;
        saved = Some(directory);
    }
    Ok(FleetFiles { server, coordinator, agents, authority: saved })
}

/// Adds agents to a fleet: writes a file for each agent, and updates the server's list of users.
/// All existing keys remain valid. The authority is read from the directory `authority`, or else
/// from the fleet's directory.
///
/// # Errors
/// The authority is missing, names are in use or not valid, the list of users was changed by hand,
/// or files cannot be written.
pub fn add(
    root: &Path,
    names: &[String],
    allow_paths: &[PathBuf],
    authority: Option<&Path>,
) -> Result<FleetChange, RunnerError> {
    check_names(names)?;
    let _lock = lock(root)?;
    let (path, mut users) = read_users(root)?;
    if let Some(there) = names.iter().find(|name| users.has(name)) {
        return Err(RunnerError::usage(format!("cannot add {there}: it is already in the fleet"))
            .hint("give the new host another name"));
    }
    let file = |name: &String| agent_file(root, name);
    if let Some(there) = names.iter().map(file).find(|path| path.symlink_metadata().is_ok()) {
        let message = format!("{} exists, but the server has no such agent", there.display());
        return Err(RunnerError::usage(message).hint(
            "this file was left by a removed agent or an interrupted `add`: delete it first",
        ));
    }
    if users.len().saturating_add(names.len()) > AGENTS_MAX as usize + 1 {
        let message = format!("too many agents: a fleet has at most {AGENTS_MAX}");
        return Err(RunnerError::usage(message).hint("set up a second fleet"));
    }
    let coordinator = root.join("coordinator");
    let kept = root.join(AUTHORITY);
    let authority = Authority::read(authority.unwrap_or(&kept), &root.join("server"))?;
    let access = Access::read(&coordinator.join("fleet.toml"))?;
    let Some(sign) = &access.sign else {
        let message = format!("{}/fleet.toml has no signing key", coordinator.display());
        return Err(RunnerError::usage(message).hint("add the line: sign = \"sign.key\""));
    };
    let trust = public_key(&format!("{}.pub", sign.display()))?;
    let template = AgentTemplate {
        authority: &authority,
        root,
        server: &access.server,
        trust: &trust,
        allow_paths,
    };
    let agents = template.create_agents(names, &mut users)?;
    replace(&path, &users.text())?;
    change_hosts(root, |hosts| hosts.extend(names.iter().cloned()))?;
    Ok(FleetChange { server: access.server, users: path, agents })
}

/// Removes agents from the server's list of users. Their files remain, but no longer give
/// access.
///
/// # Errors
/// One of the names is not an agent of the fleet, the list of users was changed by hand, or files
/// cannot be written.
pub fn remove(root: &Path, names: &[String]) -> Result<FleetChange, RunnerError> {
    check_names(names)?;
    let _lock = lock(root)?;
    let (path, mut users) = read_users(root)?;
    for name in names {
        if !users.remove(name) {
            let message = format!("cannot remove {name}: the fleet has no such agent");
            return Err(RunnerError::usage(message)
                .hint("the names of the agents are the file names in agents/"));
        }
    }
    let access = Access::read(&root.join("coordinator/fleet.toml"))?;
    replace(&path, &users.text())?;
    change_hosts(root, |hosts| hosts.retain(|name| !names.contains(name)))?;
    let agents = names.iter().map(|name| agent_file(root, name)).collect();
    Ok(FleetChange { server: access.server, users: path, agents })
}

/// Changes the list of the fleet's hosts in the coordinator's file. The other parts of this file
/// stay unchanged.
fn change_hosts(root: &Path, change: impl FnOnce(&mut Vec<String>)) -> Result<(), RunnerError> {
    let path = root.join("coordinator/fleet.toml");
    let wrong = |error: &dyn std::fmt::Display| {
        RunnerError::usage(format!("cannot change {}: {error}", path.display()))
    };
    let text = fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let mut access = Access::parse(&text).map_err(|error| wrong(&error))?;
    change(&mut access.hosts);
    replace(&path, &toml::to_string(&access).map_err(|error| wrong(&error))?)
}

fn agent_file(root: &Path, name: &str) -> PathBuf {
    root.join("agents").join(format!("{name}.toml"))
}

fn check_setup(setup: &Setup) -> Result<(), RunnerError> {
    if setup.agents.is_empty() || setup.agents.len() > AGENTS_MAX as usize {
        let message = format!("a fleet needs 1 to {AGENTS_MAX} agents, not {}", setup.agents.len());
        return Err(RunnerError::usage(message));
    }
    check_names(&setup.agents)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    if setup.server_name.is_empty() || !setup.server_name.chars().all(is_plain) {
        let message = format!("{:?} is not a host name or address", setup.server_name);
        return Err(RunnerError::usage(message)
            .hint("use the name to which agents connect, such as nats.example"));
    }
    let holds = fs::read_dir(&setup.directory).is_ok_and(|mut entries| entries.next().is_some());
    if holds {
        let message = format!("{} is not empty", setup.directory.display());
        return Err(RunnerError::usage(message).hint(
            "choose another directory (keys are never overwritten), or add a host with `plimsoll fleet add`",
        ));
    }
    Ok(())
}

fn check_names(names: &[String]) -> Result<(), RunnerError> {
    for (at, name) in names.iter().enumerate() {
        if !is_name(name) {
            return Err(RunnerError::usage(format!("{name:?} is not a valid agent name"))
                .hint("use letters, digits, - and _"));
        }
        if names.iter().take(at).any(|other| other == name) {
            return Err(RunnerError::usage(format!("{name} is listed twice")));
        }
    }
    Ok(())
}

/// Locks the fleet against concurrent changes until the returned file is dropped.
fn lock(root: &Path) -> Result<fs::File, RunnerError> {
    let path = root.join("server");
    let file = fs::File::open(&path).map_err(|error| {
        RunnerError::usage(format!("cannot open {}: {error}", path.display()))
            .hint("pass the directory that `plimsoll fleet init` created")
    })?;
    file.try_lock().map_err(|error| {
        RunnerError::environment(format!("cannot lock {}: {error}", path.display()))
            .hint("wait until the other `plimsoll fleet add` or `remove` has finished")
    })?;
    Ok(file)
}

/// Reads the list of the server's users, and checks that the server's configuration includes it.
fn read_users(root: &Path) -> Result<(PathBuf, Users), RunnerError> {
    let server = root.join("server");
    let (configuration, path) = (server.join("nats.conf"), server.join(users::FILE));
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| {
            RunnerError::usage(format!("cannot read {}: {error}", path.display())).hint(
                "fleets of earlier versions lack this file: set the fleet up again with `plimsoll fleet init`",
            )
        })
    };
    let text = read(&path)?;
    if !read(&configuration)?.contains(users::FILE) {
        let message = format!("{} does not include {}", configuration.display(), users::FILE);
        return Err(RunnerError::usage(message)
            .hint(format!("add it again: authorization {{ include \"{}\" }}", users::FILE)));
    }
    let users = Users::read(&text).map_err(|mut error| {
        error.message = format!("{}: {}", server.display(), error.message);
        error
    })?;
    Ok((path, users))
}

/// Settings that are the same for all new agents.
struct AgentTemplate<'a> {
    authority: &'a Authority,
    root: &'a Path,
    server: &'a str,
    trust: &'a str,
    allow_paths: &'a [PathBuf],
}

impl AgentTemplate<'_> {
    /// Creates a file and a user for each name.
    fn create_agents(
        &self,
        names: &[String],
        users: &mut Users,
    ) -> Result<Vec<PathBuf>, RunnerError> {
        let mut agents = Vec::new();
        for name in names {
            let file = agent_file(self.root, name);
            let access = Access {
                server: self.server.to_owned(),
                name: Some(name.clone()),
                trust: vec![self.trust.to_owned()],
                allow_paths: self.allow_paths.to_vec(),
                ..Access::default()
            };
            let key = issue_user(self.authority, &file, name, access)?;
            users.add(name, &key, &permissions::agent(name));
            agents.push(file);
        }
        Ok(agents)
    }
}

/// Writes the file of one host with its keys and certificate. Returns the host's public key.
fn issue_user(
    authority: &Authority,
    file: &Path,
    name: &str,
    access: Access,
) -> Result<String, RunnerError> {
    let failed = |error: &dyn std::fmt::Display| {
        RunnerError::environment(format!("cannot create the key of {name}: {error}"))
    };
    let (certificate, tls_key) = authority.issue(name, false)?;
    let key = KeyPair::new_user();
    let seed = key.seed().map_err(|error| failed(&error))?;
    let access = Access {
        nkey: Some(Credential::text(seed)),
        tls_ca: Some(Credential::text(authority.pem().to_owned())),
        tls_cert: Some(Credential::text(certificate)),
        tls_key: Some(Credential::text(tls_key)),
        ..access
    };
    let text = toml::to_string(&access).map_err(|error| failed(&error))?;
    write(file, &text, 0o600)?;
    Ok(key.public_key())
}

fn configuration(setup: &Setup) -> String {
    format!(
        "# NATS server of a Plimsoll fleet, created by `plimsoll fleet init`. You may edit it. Start it in this directory:\n\
         #   nats-server -c nats.conf\n\
         listen: \"0.0.0.0:{}\"\n\
         max_payload: 4MB\n\
         jetstream {{ store_dir: \"jetstream\" }}\n\
         tls {{\n  cert_file: \"server.pem\"\n  key_file: \"server.key\"\n  ca_file: \"ca.pem\"\n  verify: true\n  \
         timeout: 5\n}}\n\
         # The included file lists the agents and the coordinator. `plimsoll fleet add` and `remove` rewrite it.\n\
         authorization {{\n  include \"{}\"\n}}\n",
        setup.port,
        users::FILE
    )
}

#[cfg(test)]
mod tests;
