//! A server that serves metrics.

use std::io::{Read, Write};
use std::net::TcpListener;

/// Responds to every request for metrics with the text that `answer` returns. `answer` receives the
/// number of earlier requests.
pub fn metrics(answer: impl Fn(u64) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (requested, stream) in (0..).zip(listener.incoming().flatten()) {
            let mut stream = stream;
            let mut question = [0; 4096];
            let _ = stream.read(&mut question);
            let body = answer(requested);
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}");
        }
    });
    url
}
