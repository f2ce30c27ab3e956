//! Starts and stops a real S3 server for tests: `s3s-fs`, which stores objects as files.
#![allow(dead_code)] // each test binary uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_s3::Target;

#[path = "../../../nfs/tests/support/port.rs"]
#[allow(clippy::duplicate_mod)] // several of these are in one file of tests
pub mod port;
use port::free_port;

/// Shell script that stops and restarts a server.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../measure/s3/tests/support/s3.sh");

pub const KEY: &str = "plimsoll";
pub const SECRET: &str = "load line";

/// A running server, which is stopped when the value is dropped.
pub struct Server {
    pub directory: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
}

/// Returns the path of the server's program. It is where `tests/support/install.sh` installs it, or
/// in `PATH`.
fn program() -> PathBuf {
    if let Ok(program) = std::env::var("PLIMSOLL_S3S_FS") {
        return program.into();
    }
    let here = std::env::current_exe().unwrap();
    let made = here.ancestors().map(|above| above.join("tools/bin/s3s-fs"));
    made.into_iter().find(|program| program.is_file()).unwrap_or_else(|| "s3s-fs".into())
}

impl Server {
    /// Starts a server with one bucket, whose name is `load`.
    pub fn start() -> Self {
        Self::start_in(&std::env::temp_dir().display().to_string())
    }

    /// Starts a server that stores its objects in the directory `place`.
    pub fn start_in(place: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("plimsoll-s3-").tempdir_in(place).unwrap();
        std::fs::create_dir(directory.path().join("load")).unwrap();
        let port = free_port();
        let mut server = Self { directory, port, child: None };
        server.again();
        server
    }

    /// Restarts the server with the same settings.
    pub fn again(&mut self) {
        let child = Command::new(program())
            .args(["--host", "127.0.0.1", "--access-key", KEY, "--secret-key", SECRET])
            .args(["--port", &self.port.to_string()])
            .arg(self.directory.path())
            .env("RUST_LOG", "off")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("s3s-fs: run crates/measure/s3/tests/support/install.sh, which installs it");
        self.child = Some(child);
        for _ in 0..100 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("s3s-fs did not listen on 127.0.0.1:{}", self.port);
    }

    /// Stops the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Returns a shell command of `s3.sh`: `kill` stops the server like a crash, and `again`
    /// restarts it.
    pub fn command(&self, word: &str) -> String {
        let directory = self.directory.path();
        let id = self.child.as_ref().map_or(0, Child::id);
        for (name, number) in [("pid", id), ("port", u32::from(self.port))] {
            let file = directory.join(name);
            if !file.exists() {
                std::fs::write(file, number.to_string()).unwrap();
            }
        }
        let program = program().display().to_string();
        format!("PLIMSOLL_S3S_FS='{program}' bash '{SCRIPT}' {word} '{}'", directory.display())
    }

    /// Returns a shell command that stops the server and removes its objects. It is for the case
    /// that this process dies.
    pub fn stop_command(&self) -> String {
        let id = self.child.as_ref().map_or(String::new(), |child| child.id().to_string());
        format!("kill {id}; rm -rf '{}'", self.directory.path().display())
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn target(&self) -> Target {
        Target::with_key("s3://load/unit", &self.endpoint(), "us-east-1", (KEY, SECRET)).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if self.directory.path().join("pid").exists() {
            // Also stops a server that the command `again` started.
            drop(Command::new("sh").args(["-c", &self.command("kill")]).status());
        }
    }
}
