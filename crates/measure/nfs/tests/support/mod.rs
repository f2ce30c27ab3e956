//! Starts and stops NFS-Ganesha servers for the tests and the benchmark.
#![allow(dead_code)] // each test binary uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use plimsoll_nfs::NfsUrl;

#[allow(clippy::duplicate_mod)] // several of these are in one file of tests
pub mod port;
use port::free_port;

/// Script that starts and stops the server.
const SCRIPT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../measure/nfs/tests/support/ganesha.sh");

/// Running NFS-Ganesha with exports in a temporary directory. It is stopped when the value is
/// dropped.
pub struct Ganesha {
    directory: tempfile::TempDir,
    pub nfs_port: u16,
    pub mount_port: u16,
}

impl Ganesha {
    /// Starts a server with `exports` exports: `/export1`, `/export2` and so on.
    pub fn start(exports: u32) -> Self {
        Self::start_in("/var/tmp", exports)
    }

    /// Like [`Ganesha::start`], but its directory is in `place` unless `PLIMSOLL_TEST_DIR` is set.
    pub fn start_in(place: &str, exports: u32) -> Self {
        let place = std::env::var("PLIMSOLL_TEST_DIR").unwrap_or_else(|_| place.into());
        let directory = tempfile::Builder::new()
            .prefix("plimsoll-nfs-")
            .tempdir_in(place)
            .expect("a directory for the exports (set PLIMSOLL_TEST_DIR to one with file handles)");
        let mut server = Self { directory, nfs_port: 0, mount_port: 0 };
        let mut said = String::new();
        for _ in 0..3 {
            (server.nfs_port, server.mount_port) = (free_port(), free_port());
            let ports = [server.nfs_port, server.mount_port].map(|port| port.to_string());
            match server.script("start", &[&ports[0], &ports[1], &exports.to_string()]) {
                Ok(()) => return server,
                Err(error) => said = error, // perhaps another process uses the port now
            }
            let _ = server.script("stop", &[]);
        }
        panic!("NFS-Ganesha did not start; these tests need it: {said}");
    }

    /// Returns the URL of export `number`, which counts from 1.
    pub fn url(&self, number: u32) -> NfsUrl {
        NfsUrl::parse(&self.url_text(number)).unwrap()
    }

    /// Returns the URL of export `number` as a plan states it.
    pub fn url_text(&self, number: u32) -> String {
        let (nfs, mount) = (self.nfs_port, self.mount_port);
        format!("nfs://127.0.0.1/export{number}?nfsport={nfs}&mountport={mount}")
    }

    /// Returns the address of the server's NFS service.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.nfs_port))
    }

    /// Returns the directory of export `number`.
    pub fn path(&self, number: u32) -> PathBuf {
        self.directory.path().join(format!("export{number}"))
    }

    /// Returns a shell command that stops the server and removes its exports. It is for the case
    /// that this process dies.
    pub fn stop_command(&self) -> String {
        let directory = self.directory.path().display();
        format!("bash '{SCRIPT}' stop '{directory}'; rm -rf '{directory}'")
    }

    /// Returns a shell command of the script: `kill` stops the server like a crash, and `again`
    /// restarts it.
    pub fn command(&self, word: &str) -> String {
        format!("bash '{SCRIPT}' {word} '{}'", self.directory.path().display())
    }

    /// Stops the server with SIGKILL, like a crash.
    pub fn kill(&self) {
        self.script("kill", &[]).unwrap();
    }

    /// Restarts the server with the same settings.
    pub fn again(&self) {
        self.script("again", &[]).unwrap();
    }

    fn script(&self, command: &str, rest: &[&str]) -> Result<(), String> {
        let output = Command::new("bash")
            .args([SCRIPT, command])
            .arg(self.directory.path())
            .args(rest)
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        if let Err(error) = self.script("stop", &[]) {
            eprintln!("NFS-Ganesha was not stopped: {error}");
        }
    }
}
