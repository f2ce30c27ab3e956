//! Tests the measured time to the first byte of an object, with servers that delay parts of their
//! response.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use plimsoll_s3::{Client, Completion, Config, Op, Target, Timeout};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 4\r\n\r\nbusy";
const GET: Op<'static> =
    Op::Get { key: "k", offset_bytes: 0, size_bytes: 4, whole: true, buffer_offset_bytes: 0 };

/// Sends a request to a server that delays each part of its response by some ms. Returns the
/// client's completion.
fn ask(parts: &'static [(u64, &'static [u8])], op: &Op<'_>) -> Completion {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut request = [0; 4096];
        for (delay_ms, part) in parts {
            if *part == HEAD || *part == BUSY {
                let _ = stream.read(&mut request);
            }
            std::thread::sleep(Duration::from_millis(*delay_ms));
            let _ = stream.write_all(part);
        }
    });
    let target = Target::with_key("s3://b", &endpoint, "x", ("k", "s")).unwrap();
    let mut client = Client::new(target, Config::default()).unwrap();
    client.submit(7, op).unwrap();
    let (mut arena, mut out) = ([0; 64], Vec::new());
    while out.is_empty() {
        client.poll(&mut arena, Timeout::Completion, &mut out);
    }
    out.remove(0)
}

/// Returns the time until the first byte, and the time from the first byte to the end, both in
/// milliseconds.
fn spans_ms(done: &Completion) -> (u64, u64) {
    let first_ns = done.first_byte_ns.unwrap();
    ((first_ns - done.submitted_ns) / 1_000_000, (done.completed_ns - first_ns) / 1_000_000)
}

#[test]
fn a_delay_counts_before_or_after_the_first_byte_of_the_object() {
    let before = ask(&[(150, HEAD), (0, b"abcd")], &GET);
    let (first_ms, rest_ms) = spans_ms(&before);
    assert!(first_ms >= 150 && rest_ms < 100, "{before:?}");
    // The head of the response arrives earlier than the object's first byte, and does not count.
    let within = ask(&[(0, HEAD), (150, b"abcd")], &GET);
    let (first_ms, rest_ms) = spans_ms(&within);
    assert!(first_ms >= 150 && rest_ms < 100, "{within:?}");
    let after = ask(&[(0, HEAD), (0, b"a"), (150, b"bcd")], &GET);
    let (first_ms, rest_ms) = spans_ms(&after);
    assert!(first_ms < 100 && rest_ms >= 140, "{after:?}");
}

#[test]
fn the_first_byte_is_that_of_the_response_that_succeeded() {
    let retried = ask(&[(0, BUSY), (0, HEAD), (0, b"abcd")], &GET);
    assert_eq!(retried.result, Ok(4));
    let (first_ms, _) = spans_ms(&retried);
    assert!(first_ms >= 50, "the pause before the retry counts: {retried:?}");
    let written = ask(
        &[(0, HEAD), (0, b"abcd")],
        &Op::Put { key: "k", size_bytes: 4, buffer_offset_bytes: 0 },
    );
    assert_eq!((written.result, written.first_byte_ns), (Ok(4), None));
}
