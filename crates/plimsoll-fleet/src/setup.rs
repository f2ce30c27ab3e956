//! A fleet's secure set-up: an authority, certificates, keys, the server's configuration, and a directory for each host.
//!
//! Hosts come and go: the authority's key is kept for that, in a directory that nobody gets.

use std::fs;
use std::path::{Path, PathBuf};

use nkeys::KeyPair;
use plimsoll_evidence::signature::{make_keys, public_key};
use plimsoll_runner::error::RunnerError;

use crate::access::Access;
use crate::authority::Authority;
use crate::card::is_name;
use crate::files::{make_directory, replace, write};
use crate::permissions;
use crate::users::{self, Users};

/// More agents than this are set up in parts.
pub const AGENTS_MAX: u32 = 1_000;
/// Where the authority's key is kept.
const AUTHORITY: &str = "authority";
/// The user who is no agent.
const COORDINATOR: &str = "the coordinator";

/// What is to be set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where all of it is written; must not be there yet, or be empty.
    pub directory: PathBuf,
    /// The server's name or address, as agents reach it.
    pub server_name: String,
    /// Its port.
    pub port: u16,
    /// The agents' names.
    pub agents: Vec<String>,
    /// Whether the authority is forgotten: nobody can add a host then.
    pub forgets_authority: bool,
}

/// Where things lie that were set up.
#[derive(Clone, Debug)]
pub struct FleetFiles {
    /// For the server's host: `nats.conf` and what it names.
    pub server: PathBuf,
    /// For who runs plans: `fleet.toml` and what it names.
    pub coordinator: PathBuf,
    /// For each agent's host: `agent.toml` and what it names.
    pub agents: Vec<PathBuf>,
    /// For nobody: the authority's key, where it is kept.
    pub authority: Option<PathBuf>,
}

/// What changed in a fleet that was set up.
#[derive(Clone, Debug)]
pub struct FleetChange {
    /// The server's address, as agents reach it.
    pub server: String,
    /// The users that the server is to know from now on.
    pub users: PathBuf,
    /// The directories of the agents that came, or went.
    pub agents: Vec<PathBuf>,
}

/// Sets a fleet up. What was made before an error stays, to be looked at; nothing is overwritten.
///
/// # Errors
/// A directory that holds something, names that are none, files that can't be written.
pub fn set_up(setup: &Setup) -> Result<FleetFiles, RunnerError> {
    check_setup(setup)?;
    let root = &setup.directory;
    make_directory(root)?;
    let authority = Authority::new()?;
    let (server, coordinator) = (root.join("server"), root.join("coordinator"));
    for directory in [&server, &coordinator, &root.join("agents")] {
        make_directory(directory)?;
    }
    authority.issue(&server, "server", &setup.server_name, true)?;
    let public = make_keys(&coordinator.join("sign.key"), None)?;
    let url = format!("tls://{}:{}", setup.server_name, setup.port);
    let mut users = Users::default();
    let run = Access { server: url.clone(), sign: Some("sign.key".into()), ..Access::default() };
    let key = issue_user(&authority, &coordinator, "fleet.toml", "coordinator", run)?;
    users.add(COORDINATOR, &key, &permissions::coordinator());
    let template = AgentTemplate { authority: &authority, root, server: &url, trust: &public };
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

/// Adds agents to a fleet that was set up: a directory for each, and the server's users anew. All other keys stay. The
/// authority is looked for in the fleet's directory, unless it is kept elsewhere.
///
/// # Errors
/// A fleet without its authority, names that are there or are none, users that somebody changed, files that can't be
/// written.
pub fn add(
    root: &Path,
    names: &[String],
    authority: Option<&Path>,
) -> Result<FleetChange, RunnerError> {
    check_names(names)?;
    let _lock = lock(root)?;
    let (path, mut users) = read_users(root)?;
    if let Some(there) = names.iter().find(|name| users.has(name)) {
        return Err(RunnerError::usage(format!("cannot add {there}: it is already in the fleet"))
            .hint("give the new host another name"));
    }
    let directory = |name: &String| root.join("agents").join(name);
    if let Some(there) = names.iter().map(directory).find(|path| path.symlink_metadata().is_ok()) {
        let message = format!("{} exists, but the server has no such agent", there.display());
        return Err(RunnerError::usage(message)
            .hint("a removed agent or an interrupted `add` left it behind: delete it first"));
    }
    if users.len().saturating_add(names.len()) > AGENTS_MAX as usize + 1 {
        let message = format!("too many agents: a fleet has at most {AGENTS_MAX}");
        return Err(RunnerError::usage(message).hint("set up a second fleet"));
    }
    let coordinator = root.join("coordinator");
    let kept = root.join(AUTHORITY);
    let authority = Authority::read(authority.unwrap_or(&kept), &coordinator)?;
    let access = Access::read(&coordinator.join("fleet.toml"))?;
    let Some(sign) = &access.sign else {
        let message = format!("{}/fleet.toml has no signing key", coordinator.display());
        return Err(RunnerError::usage(message).hint("add the line: sign = \"sign.key\""));
    };
    let trust = public_key(&format!("{}.pub", sign.display()))?;
    let template =
        AgentTemplate { authority: &authority, root, server: &access.server, trust: &trust };
    let agents = template.create_agents(names, &mut users)?;
    replace(&path, &users.text())?;
    Ok(FleetChange { server: access.server, users: path, agents })
}

/// Takes agents out of a fleet: the server is to know them no more. Their directories stay, and are of no use.
///
/// # Errors
/// Names that are none of the fleet's, users that somebody changed, files that can't be written.
pub fn remove(root: &Path, names: &[String]) -> Result<FleetChange, RunnerError> {
    check_names(names)?;
    let _lock = lock(root)?;
    let (path, mut users) = read_users(root)?;
    for name in names {
        if !users.remove(name) {
            let message = format!("cannot remove {name}: the fleet has no such agent");
            return Err(
                RunnerError::usage(message).hint("the directories in agents/ show the names")
            );
        }
    }
    let access = Access::read(&root.join("coordinator/fleet.toml"))?;
    replace(&path, &users.text())?;
    let agents = names.iter().map(|name| root.join("agents").join(name)).collect();
    Ok(FleetChange { server: access.server, users: path, agents })
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
            .hint("use the name that agents connect to, such as nats.example"));
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

/// Keeps two that change a fleet apart, until it is dropped.
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

/// The server's users, which its configuration has to include.
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

/// What new agents have in common.
struct AgentTemplate<'a> {
    authority: &'a Authority,
    root: &'a Path,
    server: &'a str,
    trust: &'a str,
}

impl AgentTemplate<'_> {
    /// A directory for each, and its user.
    fn create_agents(
        &self,
        names: &[String],
        users: &mut Users,
    ) -> Result<Vec<PathBuf>, RunnerError> {
        let mut agents = Vec::new();
        for name in names {
            let directory = self.root.join("agents").join(name);
            make_directory(&directory)?;
            let access = Access {
                server: self.server.to_owned(),
                name: Some(name.clone()),
                trust: vec![self.trust.to_owned()],
                ..Access::default()
            };
            let key = issue_user(self.authority, &directory, "agent.toml", name, access)?;
            users.add(name, &key, &permissions::agent(name));
            agents.push(directory);
        }
        Ok(agents)
    }
}

/// The keys, certificate and access file of one host; its public key.
fn issue_user(
    authority: &Authority,
    directory: &Path,
    file: &str,
    name: &str,
    access: Access,
) -> Result<String, RunnerError> {
    let failed = |error: &dyn std::fmt::Display| {
        RunnerError::environment(format!("cannot create the key of {name}: {error}"))
    };
    authority.issue(directory, "client", name, false)?;
    let key = KeyPair::new_user();
    let seed = key.seed().map_err(|error| failed(&error))?;
    write(&directory.join("user.nk"), &format!("{seed}\n"), 0o600)?;
    let access = Access {
        nkey: Some("user.nk".into()),
        tls_ca: Some("ca.pem".into()),
        tls_cert: Some("client.pem".into()),
        tls_key: Some("client.key".into()),
        ..access
    };
    let text = toml::to_string(&access).map_err(|error| failed(&error))?;
    write(&directory.join(file), &text, 0o600)?;
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
         # The agents and the coordinator: `plimsoll fleet add` and `remove` rewrite this file.\n\
         authorization {{\n  include \"{}\"\n}}\n",
        setup.port,
        users::FILE
    )
}

#[cfg(test)]
mod tests;
