//! TLS proxy in front of another server: `stunnel`, with a certificate from an authority of the
//! test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[path = "../../../nfs/tests/support/port.rs"]
#[allow(clippy::duplicate_mod)] // several of these are in one file of tests
mod port;
use port::free_port;

/// Running proxy, which is stopped when the value is dropped.
pub struct Front {
    pub port: u16,
    directory: tempfile::TempDir,
    child: Child,
}

impl Front {
    /// Starts a TLS proxy for the server at the port `behind`. Its certificate is for `name`, such
    /// as `IP:127.0.0.1`.
    pub fn start(behind: u16, name: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("plimsoll-tls-").tempdir().unwrap();
        certificates(directory.path(), name);
        let port = free_port();
        let config = format!(
            "foreground = yes\npid =\nsyslog = no\n[front]\naccept = 127.0.0.1:{port}\nconnect = \
             127.0.0.1:{behind}\ncert = {0}/server.pem\nkey = {0}/server.key\n",
            directory.path().display()
        );
        let file = directory.path().join("stunnel.conf");
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new("stunnel")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("stunnel: ./test installs it");
        for _ in 0..100 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Self { port, directory, child };
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("stunnel did not listen on 127.0.0.1:{port}");
    }

    /// Returns the path of the certificate of the test's authority.
    pub fn authority(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Creates an authority (`ca.pem`), and a certificate and key of the server (`server.pem`,
/// `server.key`).
fn certificates(directory: &Path, name: &str) {
    let openssl = |arguments: &str| {
        let status = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(directory)
            .stderr(Stdio::null())
            .status()
            .expect("openssl: ./test installs it");
        assert!(status.success(), "openssl {arguments}");
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
    openssl(&format!("req {key} -subj /CN=store -keyout server.key -out server.csr"));
    std::fs::write(directory.join("names"), format!("subjectAltName={name}\n")).unwrap();
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names \
         -out server.pem",
    );
}
