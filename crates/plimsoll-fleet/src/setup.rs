//! A fleet's secure set-up: an authority, certificates, keys, the server's configuration, and a directory for each host.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nkeys::KeyPair;
use plimsoll_evidence::signature::make_keys;
use plimsoll_runner::error::RunnerError;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair as TlsKey, KeyUsagePurpose, date_time_ymd,
};

use crate::access::Access;
use crate::card::is_name;
use crate::permissions::{self, Permissions};

/// Certificates hold until the end of this year: a fleet is set up anew before.
const VALID_TO_YEAR: i32 = 2036;
/// More agents than this are set up in parts.
pub const AGENTS_MAX: u32 = 1_000;

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
}

/// Where things lie that were set up.
#[derive(Clone, Debug)]
pub struct Made {
    /// For the server's host: `nats.conf` and what it names.
    pub server: PathBuf,
    /// For who runs plans: `fleet.toml` and what it names.
    pub coordinator: PathBuf,
    /// For each agent's host: `agent.toml` and what it names.
    pub agents: Vec<PathBuf>,
}

/// Sets a fleet up. What was made before an error stays, to be looked at; nothing is overwritten.
///
/// # Errors
/// A directory that holds something, names that are none, files that can't be written.
pub fn set_up(setup: &Setup) -> Result<Made, RunnerError> {
    check(setup)?;
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
    let own = Access { server: url, ..Access::default() };
    let mut users = Vec::new();
    let run = Access { sign: Some("sign.key".into()), ..own.clone() };
    let of = (permissions::coordinator(), "who runs plans");
    users.push(user(&authority, &coordinator, "fleet.toml", "coordinator", run, of)?);
    let mut agents = Vec::new();
    for name in &setup.agents {
        let directory = root.join("agents").join(name);
        make_directory(&directory)?;
        let access =
            Access { name: Some(name.clone()), trust: vec![public.clone()], ..own.clone() };
        let of = (permissions::agent(name), name.as_str());
        users.push(user(&authority, &directory, "agent.toml", name, access, of)?);
        agents.push(directory);
    }
    write(&server.join("nats.conf"), &configuration(setup, &users), 0o600)?;
    Ok(Made { server, coordinator, agents })
}

fn check(setup: &Setup) -> Result<(), RunnerError> {
    if setup.agents.is_empty() || setup.agents.len() > AGENTS_MAX as usize {
        let says =
            format!("a fleet has 1 to {AGENTS_MAX} agents here, and not {}", setup.agents.len());
        return Err(RunnerError::usage(says));
    }
    for (at, name) in setup.agents.iter().enumerate() {
        if !is_name(name) {
            return Err(RunnerError::usage(format!("{name:?} can't be an agent's name"))
                .hint("use letters, digits, - and _"));
        }
        if setup.agents.iter().take(at).any(|other| other == name) {
            return Err(RunnerError::usage(format!("{name} is named twice")));
        }
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    if setup.server_name.is_empty() || !setup.server_name.chars().all(is_plain) {
        let says = format!("{:?} is no name or address of a host", setup.server_name);
        return Err(RunnerError::usage(says).hint("name it as agents reach it: nats.example"));
    }
    let holds = fs::read_dir(&setup.directory).is_ok_and(|mut entries| entries.next().is_some());
    if holds {
        let says = format!("{} holds something already", setup.directory.display());
        return Err(RunnerError::usage(says).hint("name another directory: no key is overwritten"));
    }
    Ok(())
}

/// The keys, certificate and access file of one host; its user in the server's configuration.
fn user(
    authority: &Authority,
    directory: &Path,
    file: &str,
    name: &str,
    access: Access,
    (permissions, who): (Permissions, &str),
) -> Result<String, RunnerError> {
    let failed = |error: &dyn std::fmt::Display| {
        RunnerError::environment(format!("the key of {name}: {error}"))
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
    let permissions = permissions.text("      ");
    Ok(format!(
        "    # {who}\n    {{ nkey: {}\n      permissions: {permissions}\n    }}\n",
        key.public_key()
    ))
}

fn configuration(setup: &Setup, users: &[String]) -> String {
    format!(
        "# A NATS server for a Plimsoll fleet, made by `plimsoll fleet init`. Start it in this directory:\n\
         #   nats-server -c nats.conf\n\
         listen: \"0.0.0.0:{}\"\n\
         max_payload: 4MB\n\
         jetstream {{ store_dir: \"jetstream\" }}\n\
         tls {{\n  cert_file: \"server.pem\"\n  key_file: \"server.key\"\n  ca_file: \"ca.pem\"\n  verify: true\n  \
         timeout: 5\n}}\n\
         authorization {{\n  users: [\n{}  ]\n}}\n",
        setup.port,
        users.concat()
    )
}

/// Who signs the fleet's certificates. Its key is not kept: nobody can make another host of this fleet.
struct Authority {
    pem: String,
    issuer: Issuer<'static, TlsKey>,
}

impl Authority {
    fn new() -> Result<Self, RunnerError> {
        let mut params = params("Plimsoll fleet", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = TlsKey::generate().map_err(failed)?;
        let pem = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// Writes a certificate, its key and the authority's certificate into a directory.
    fn issue(
        &self,
        directory: &Path,
        stem: &str,
        name: &str,
        is_server: bool,
    ) -> Result<(), RunnerError> {
        let names = if is_server { vec![name.to_owned()] } else { Vec::new() };
        let mut params = params(name, names)?;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match is_server {
            true => ExtendedKeyUsagePurpose::ServerAuth,
            false => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        let key = TlsKey::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        write(&directory.join("ca.pem"), &self.pem, 0o644)?;
        write(&directory.join(format!("{stem}.pem")), &certificate.pem(), 0o644)?;
        write(&directory.join(format!("{stem}.key")), &key.serialize_pem(), 0o600)
    }
}

fn params(name: &str, names: Vec<String>) -> Result<CertificateParams, RunnerError> {
    let mut params = CertificateParams::new(names).map_err(failed)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    // From before: clocks of hosts may be behind.
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(VALID_TO_YEAR, 12, 31);
    Ok(params)
}

fn failed(error: rcgen::Error) -> RunnerError {
    RunnerError::environment(format!("a certificate can't be made: {error}"))
}

fn make_directory(path: &Path) -> Result<(), RunnerError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| RunnerError::environment(format!("{}: {error}", path.display())))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), RunnerError> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| RunnerError::environment(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_host_has_a_directory_of_its_own_and_nothing_is_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let setup = Setup {
            directory: root.path().join("fleet"),
            server_name: "nats.example".to_owned(),
            port: 4222,
            agents: vec!["node1".to_owned(), "node2".to_owned()],
        };
        let made = set_up(&setup).unwrap();
        let access = Access::read(&made.agents[1].join("agent.toml")).unwrap();
        assert_eq!(access.name.as_deref(), Some("node2"));
        assert_eq!(access.server, "tls://nats.example:4222");
        let seed = |directory: &Path| fs::read_to_string(directory.join("user.nk")).unwrap();
        assert_ne!(seed(&made.agents[0]), seed(&made.agents[1]));
        for secret in ["user.nk", "client.key", "agent.toml"] {
            let mode = fs::metadata(made.agents[0].join(secret)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{secret}");
        }
        let configuration = fs::read_to_string(made.server.join("nats.conf")).unwrap();
        assert_eq!(configuration.matches("nkey: U").count(), 3);
        assert!(set_up(&setup).unwrap_err().to_string().contains("holds something"));
        let wrong = |agents: &[&str], server: &str| {
            let agents = agents.iter().map(|name| (*name).to_owned()).collect();
            let directory = root.path().join("other");
            let setup =
                Setup { directory, server_name: server.to_owned(), agents, ..setup.clone() };
            set_up(&setup).unwrap_err().to_string()
        };
        assert!(wrong(&["a", "a"], "h").contains("twice"));
        assert!(wrong(&["a.b"], "h").contains("can't be"));
        assert!(wrong(&[], "h").contains("1 to"));
        assert!(wrong(&["a"], "h\"\nport: 1").contains("no name"));
    }
}
