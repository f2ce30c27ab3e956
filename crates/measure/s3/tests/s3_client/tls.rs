//! Tests an https store whose certificate is from a private authority.

use std::time::Duration;

use crate::front::Front;
use crate::support::{KEY, SECRET, Server};
use plimsoll_s3::{CallError, Client, Config, Op, Target, Timeout};

const MIB: u32 = 1 << 20;

fn target(port: u16) -> Target {
    let endpoint = format!("https://127.0.0.1:{port}");
    Target::with_key("s3://load/unit", &endpoint, "us-east-1", (KEY, SECRET)).unwrap()
}

fn get(size_bytes: u32, buffer_offset_bytes: u32) -> Op<'static> {
    let buffer_offset_bytes = u64::from(buffer_offset_bytes);
    Op::Get { key: "unit/a", offset_bytes: 0, size_bytes, whole: true, buffer_offset_bytes }
}

#[test]
fn what_is_put_over_tls_is_what_is_got() {
    let server = Server::start();
    let front = Front::start(server.port, "IP:127.0.0.1");
    let target = target(front.port).trusting(&front.authority()).unwrap();
    let config = Config { part_bytes: 5 * MIB, ..Config::default() };
    let mut client = Client::new(target, config).unwrap();
    for size_bytes in [1, 16_384, MIB + 1, 12 * MIB] {
        let mut arena: Vec<u8> =
            (0..2 * size_bytes).map(|at| (at.wrapping_mul(31) >> 3) as u8).collect();
        let put = Op::Put { key: "unit/a", size_bytes, buffer_offset_bytes: 0 };
        assert_eq!(client.call(&put, &mut arena), Ok(size_bytes));
        arena[size_bytes as usize..].fill(0);
        assert_eq!(client.call(&get(size_bytes, size_bytes), &mut arena), Ok(size_bytes));
        let (sent, got) = arena.split_at(size_bytes as usize);
        assert!(sent == got, "{size_bytes} bytes");
    }
    assert_eq!(client.stats().connects, 1, "one connection served them all");
    assert_eq!(client.stats().disconnects, 0);
}

#[test]
fn many_are_outstanding_over_tls() {
    let server = Server::start();
    let front = Front::start(server.port, "IP:127.0.0.1");
    let target = target(front.port).trusting(&front.authority()).unwrap();
    let mut client = Client::new(target, Config { connections: 8, ..Config::default() }).unwrap();
    let size_bytes = 256 * 1024;
    let mut arena = vec![7u8; 8 * size_bytes as usize];
    let mut out = Vec::new();
    for slot in 0..8u32 {
        let key = format!("unit/{slot}");
        let buffer_offset_bytes = u64::from(slot * size_bytes);
        let put = Op::Put { key: &key, size_bytes, buffer_offset_bytes };
        client.submit(u64::from(slot), &put).unwrap();
    }
    while client.outstanding() > 0 {
        client.poll(&mut arena, Timeout::Completion, &mut out);
    }
    assert!(out.iter().all(|completion| completion.result == Ok(size_bytes)), "{out:?}");
    assert_eq!(client.stats().connects, 8);
    assert_eq!(client.stats().disconnects, 0);
}

#[test]
fn a_certificate_that_is_not_trusted_or_for_another_name_is_refused_at_once() {
    let server = Server::start();
    let front = Front::start(server.port, "DNS:elsewhere.example");
    let call = |target: Target| {
        let mut client = Client::new(target, Config::default()).unwrap();
        client.call(&Op::Head { key: "unit/a" }, &mut []).unwrap_err()
    };
    let unknown = call(target(front.port));
    assert!(
        matches!(&unknown, CallError::Tls(says) if says.contains("AWS_CA_BUNDLE")),
        "{unknown}"
    );
    let other = call(target(front.port).trusting(&front.authority()).unwrap());
    assert!(matches!(&other, CallError::Tls(says) if says.contains("not valid")), "{other}");
}

#[test]
fn a_server_without_tls_is_told_from_one_with_it() {
    let server = Server::start();
    let target = target(server.port);
    let config = Config { give_up_after_ns: 200_000_000, ..Config::default() };
    let error = Client::new(target, config).unwrap().call(&Op::Head { key: "x" }, &mut []);
    let says = error.unwrap_err().to_string();
    assert!(says.contains("does not speak TLS") || says.contains("ended"), "{says}");
}

#[test]
fn a_server_that_goes_away_is_waited_for_and_connected_to_anew() {
    let mut server = Server::start();
    let front = Front::start(server.port, "IP:127.0.0.1");
    let target = target(front.port).trusting(&front.authority()).unwrap();
    let mut client = Client::new(target, Config::default()).unwrap();
    let put = Op::Put { key: "unit/a", size_bytes: 4096, buffer_offset_bytes: 0 };
    let mut arena = vec![7u8; 4096];
    assert_eq!(client.call(&put, &mut arena), Ok(4096));
    server.kill();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            server.again();
        });
        assert_eq!(client.call(&put, &mut arena), Ok(4096));
    });
    assert!(client.stats().connects >= 2, "{:?}", client.stats());
}
