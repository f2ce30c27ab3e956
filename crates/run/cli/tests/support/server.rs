//! A server of the web page, and HTTP requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use super::Sandbox;

/// A server in a sandbox. It ends when this value is dropped.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response of the server.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{:.2000}", self.head, self.text());
        self
    }
}

impl Server {
    pub fn start(sandbox: &Sandbox, options: &[&str]) -> Self {
        let all = [&["serve", "--listen", "0", "--json"], options].concat();
        Self::of(sandbox.start(&all))
    }

    /// Returns the handle of a server that was started with `--json` and whose stdout is a pipe.
    pub fn of(mut child: Child) -> Self {
        let mut said = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // The output is one JSON object on several lines.
        while serde_json::from_str::<Value>(&said).is_err() {
            assert_ne!(stdout.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        let url = said["url"].as_str().unwrap();
        let address = url.rsplit_once("://").unwrap().1.trim_end_matches('/').to_owned();
        Self { child, address }
    }

    pub fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: \
             {length}\r\n\r\n{body}",
            self.address
        ))
    }

    pub fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    pub fn csrf(&self) -> String {
        self.get("/api/session").expect(200).json()["csrf"].as_str().unwrap().to_owned()
    }

    pub fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let csrf = self.csrf();
        let fields = form.iter().copied().chain([("csrf", csrf.as_str())]);
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.ask("POST", path, headers, &fields.join("&"))
    }

    /// Sends a request with the header that programs use.
    pub fn send(&self, path: &str, body: &str) -> Answer {
        let headers = format!("X-CSRF-Token: {}\r\nContent-Type: text/plain\r\n", self.csrf());
        self.ask("POST", path, &headers, body)
    }

    pub fn live(&self) -> Value {
        self.get("/api/live").expect(200).json()
    }
}

pub fn quoted(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
