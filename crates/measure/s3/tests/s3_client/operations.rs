//! Tests every operation with a real server and with an unavailable server.

use std::time::{Duration, Instant};

use crate::support::{self, KEY, SECRET, Server};
use plimsoll_s3::{CallError, Client, Config, Kind, Op, Target, Timeout};

const MIB: u32 = 1 << 20;

fn put(key: &str, size_bytes: u32, buffer_offset_bytes: u64) -> Op<'_> {
    Op::Put { key, size_bytes, buffer_offset_bytes }
}

#[test]
fn what_is_put_is_what_is_got() {
    let server = Server::start();
    let mut client = Client::new(server.target(), Config::default()).unwrap();
    let mut arena: Vec<u8> = (0..4 * MIB).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect();
    let sent = arena[..MIB as usize].to_vec();
    assert_eq!(client.call(&put("unit/a b,c", MIB, 0), &mut arena), Ok(MIB));
    let whole = Op::Get {
        key: "unit/a b,c",
        offset_bytes: 0,
        size_bytes: MIB,
        whole: true,
        buffer_offset_bytes: u64::from(MIB),
    };
    assert_eq!(client.call(&whole, &mut arena), Ok(MIB));
    assert_eq!(&arena[MIB as usize..2 * MIB as usize], &sent[..]);
    let range = Op::Get {
        key: "unit/a b,c",
        offset_bytes: 4096,
        size_bytes: 8192,
        whole: false,
        buffer_offset_bytes: 0,
    };
    assert_eq!(client.call(&range, &mut arena), Ok(8192));
    assert_eq!(&arena[..8192], &sent[4096..12_288]);
    assert_eq!(client.call(&Op::Head { key: "unit/a b,c" }, &mut []), Ok(0));
    let list = Op::List { prefix: "unit/", names_max: 100 };
    assert_eq!(client.call(&list, &mut []), Ok(1));
    assert_eq!(client.listed(), ["unit/a b,c"]);
    assert_eq!(client.call(&Op::Delete { key: "unit/a b,c" }, &mut []), Ok(0));
    assert_eq!(client.call(&list, &mut []), Ok(0));
    let gone = client.call(&whole, &mut arena).unwrap_err();
    assert_eq!(gone, CallError::Status { status: 404, code: "NoSuchKey".to_owned() });
    assert_eq!(client.stats().connects, 1, "one connection served them all");
}

#[test]
fn a_large_object_goes_in_parts() {
    let server = Server::start();
    let config = Config { part_bytes: 5 * MIB, ..Config::default() };
    let mut client = Client::new(server.target(), config).unwrap();
    let mut arena: Vec<u8> = (0..24 * MIB).map(|at| (at.wrapping_mul(73) >> 5) as u8).collect();
    let size_bytes = 12 * MIB;
    assert_eq!(client.call(&put("unit/large", size_bytes, 0), &mut arena), Ok(size_bytes));
    assert_eq!(client.stats().multipart_uploads, 1);
    assert_eq!(client.stats().requests, 5, "begin, three parts, complete");
    let get = Op::Get {
        key: "unit/large",
        offset_bytes: 0,
        size_bytes,
        whole: true,
        buffer_offset_bytes: u64::from(size_bytes),
    };
    assert_eq!(client.call(&get, &mut arena), Ok(size_bytes));
    let (sent, got) = arena.split_at(size_bytes as usize);
    assert!(sent == got);
}

#[test]
fn refusals_are_named() {
    let server = Server::start();
    let endpoint = server.endpoint();
    let call = |url: &str, secret: &str, op: &Op<'_>| {
        let target = Target::with_key(url, &endpoint, "us-east-1", (KEY, secret)).unwrap();
        let mut client = Client::new(target, Config::default()).unwrap();
        client.call(op, &mut [0; 4]).unwrap_err().to_string()
    };
    let refused = call("s3://load", "wrong", &put("x", 4, 0));
    assert!(refused.starts_with("SignatureDoesNotMatch (HTTP 403): "), "{refused}");
    let list = Op::List { prefix: "", names_max: 1 };
    let refused = call("s3://nowhere", SECRET, &list);
    assert!(refused.starts_with("NoSuchBucket (HTTP 404): "), "{refused}");
}

#[test]
fn many_are_outstanding_and_a_killed_server_is_waited_for() {
    let mut server = Server::start();
    let config = Config { connections: 8, ..Config::default() };
    let mut client = Client::new(server.target(), config).unwrap();
    let mut arena = vec![7u8; 8 * 4096];
    let (mut out, mut longest_ns, mut made) = (Vec::new(), 0, 0u64);
    let mut free: Vec<u64> = (0..8).collect();
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            server.kill();
            std::thread::sleep(Duration::from_millis(400));
            server.again();
        });
        while start.elapsed() < Duration::from_millis(1500) || client.outstanding() > 0 {
            while start.elapsed() < Duration::from_millis(1500)
                && let Some(place) = free.pop()
            {
                let key = format!("unit/k{}", made % 50);
                client.submit(place, &put(&key, 4096, place * 4096)).unwrap();
                made += 1;
            }
            client.poll(&mut arena, Timeout::Completion, &mut out);
            for completion in out.drain(..) {
                assert_eq!(completion.result, Ok(4096));
                longest_ns = longest_ns.max(completion.completed_ns - completion.submitted_ns);
                free.push(completion.token);
            }
        }
    });
    assert!(longest_ns >= 400_000_000, "the outage is in the latency: {longest_ns}");
    assert!(client.stats().disconnects > 0 && client.stats().retries > 0);
    assert_eq!(client.stats().operations[&Kind::Put], made);
}

#[test]
fn nobody_there_is_given_up() {
    let port = support::port::free_port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let target = Target::with_key("s3://load", &endpoint, "x", (KEY, SECRET)).unwrap();
    let config = Config { give_up_after_ns: 200_000_000, ..Config::default() };
    let mut client = Client::new(target, config).unwrap();
    let error = client.call(&Op::Head { key: "x" }, &mut []).unwrap_err();
    assert!(matches!(&error, CallError::GivenUp { tries: 2.., .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}
