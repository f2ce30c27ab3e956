//! A PostgreSQL server for a test; `./test` installs PostgreSQL. The server uses a free port of
//! this host and has one user with a password. It is ended by process id.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::port::free_port;

use super::{tool, wait_until};

/// Password of the server's user.
pub const PASSWORD: &str = "s3cret word";

/// A server. It is killed when this value is dropped.
pub struct Postgres {
    child: Child,
    port: u16,
    root: TempDir,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Debian installs each version in a separate directory.
fn program(name: &str) -> PathBuf {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL: `./test` installs it");
    let mut found: Vec<PathBuf> =
        versions.flatten().map(|version| version.path().join("bin").join(name)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    found.pop().expect("PostgreSQL: `./test` installs it")
}

/// PostgreSQL refuses to run as root.
fn as_its_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Postgres {
    pub fn start() -> Self {
        // The operating system's user for the server must have access.
        let root =
            tempfile::Builder::new().prefix("plimsoll-postgres-").tempdir_in("/tmp").unwrap();
        let at = |name: &str| root.path().join(name).display().to_string();
        std::fs::write(at("password"), PASSWORD).unwrap();
        let subject = "/CN=127.0.0.1";
        let (key, certificate) = (at("server.key"), at("server.pem"));
        let san = "subjectAltName=IP:127.0.0.1";
        let end = "basicConstraints=critical,CA:FALSE";
        tool(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                subject,
                "-addext",
                san,
                "-addext",
                end,
                "-keyout",
                &key,
                "-out",
                &certificate,
            ],
        );
        tool("chown", &["-R", "postgres:postgres", &root.path().display().to_string()]);
        tool("chmod", &["600", &key]);
        let made = as_its_user(&program("initdb"))
            .args([
                "-D",
                &at("data"),
                "-U",
                "ann",
                "-A",
                "scram-sha-256",
                "--no-sync",
                "-E",
                "UTF8",
            ])
            .args(["--locale=C", "--pwfile", &at("password")])
            .status();
        assert!(made.unwrap().success(), "initdb");
        let port = free_port();
        let child = Self::serve(&root, port);
        let mut postgres = Self { child, port, root };
        postgres.wait();
        postgres.sql("postgres", "CREATE DATABASE storage");
        postgres
    }

    fn serve(root: &TempDir, port: u16) -> Child {
        let at = |name: &str| root.path().join(name).display().to_string();
        let set = |name: &str, value: &str| ["-c".to_owned(), format!("{name}={value}")];
        as_its_user(&program("postgres"))
            .args([
                "-D",
                &at("data"),
                "-p",
                &port.to_string(),
                "-k",
                &root.path().display().to_string(),
            ])
            .args(set("listen_addresses", "127.0.0.1"))
            .args(set("ssl", "on"))
            .args(set("ssl_cert_file", &at("server.pem")))
            .args(set("ssl_key_file", &at("server.key")))
            .spawn()
            .unwrap()
    }

    fn wait(&mut self) {
        let port = self.port.to_string();
        wait_until("PostgreSQL answers", || {
            let requested = Command::new(program("pg_isready"))
                .args(["-h", "127.0.0.1", "-p", &port, "-q"])
                .status();
            requested.unwrap().success()
        });
    }

    /// Kills the server as a power failure would: without notice or further writes.
    pub fn kill(&mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        // The server's child processes notice its end and exit.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }

    /// Stops (`-STOP`) or continues (`-CONT`) all processes of the server.
    pub fn signal(&self, signal: &str) {
        let main = self.child.id().to_string();
        let own = std::fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
        tool("kill", &[&[signal, &main][..], &own.split_whitespace().collect::<Vec<_>>()].concat());
    }

    /// Starts the server again after [`Self::kill`].
    pub fn start_again(&mut self) {
        // For a while, remaining processes of the old server use its shared memory.
        for _ in 0..50 {
            self.child = Self::serve(&self.root, self.port);
            std::thread::sleep(Duration::from_millis(200));
            if self.child.try_wait().unwrap().is_none() {
                break;
            }
        }
        self.wait();
    }

    /// Returns the address of the database, without the password.
    pub fn address(&self) -> String {
        format!("postgres://ann@127.0.0.1:{}/storage", self.port)
    }

    /// Returns the path of the server's TLS certificate.
    pub fn certificate(&self) -> PathBuf {
        self.root.path().join("server.pem")
    }

    /// Executes SQL. Returns the output, one line per row.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let ran = Command::new(program("psql"))
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "ann", "-d", database])
            .args(["-v", "ON_ERROR_STOP=1", "-X", "-q", "-t", "-A", "-c", sql])
            .env("PGPASSWORD", PASSWORD)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }
}
