//! Tests servers that send invalid responses. The client must report a clear error, must not panic,
//! and must limit its memory.

use std::io::{Read, Write};
use std::net::TcpListener;

use plimsoll_s3::{CallError, Client, Config, Op, Target, Violation};

/// Sends a request to a server that sends `answer` and closes the connection. Returns the client's
/// result.
fn ask(answer: &'static [u8], op: &Op<'_>) -> Result<u32, CallError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
        }
    });
    let target = Target::with_key("s3://b", &endpoint, "x", ("k", "s")).unwrap();
    let config = Config { give_up_after_ns: 150_000_000, ..Config::default() };
    Client::new(target, config).unwrap().call(op, &mut [0; 64])
}

const GET: Op<'static> =
    Op::Get { key: "k", offset_bytes: 0, size_bytes: 64, whole: true, buffer_offset_bytes: 0 };

#[test]
fn nonsense_is_named() {
    let list = Op::List { prefix: "", names_max: 10 };
    for (answer, violation) in [
        (&b"SSH-2.0-OpenSSH\r\n\r\n"[..], Violation::StatusLine),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Violation::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", Violation::TooMuch { limit_bytes: 1 }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Violation::Chunk),
    ] {
        assert_eq!(ask(answer, &GET), Err(CallError::Violation(violation)));
    }
    let long = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n\
        0123456789012345678901234567890123456789012345678901234567890123456789";
    assert_eq!(ask(long, &GET), Err(Violation::TooMuch { limit_bytes: 64 }.into()));
    let document = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<a/>";
    assert_eq!(ask(document, &list), Err(Violation::Document("LIST").into()));
}

#[test]
fn a_response_cut_short_is_tried_again_and_given_up() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\nabc";
    let error = ask(cut, &GET).unwrap_err();
    assert!(
        matches!(&error, CallError::GivenUp { last, .. } if last.contains("middle")),
        "{error}"
    );
}

#[test]
fn chunks_and_interim_responses_are_understood() {
    let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\
        Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(ask(chunked, &GET), Ok(5));
}
