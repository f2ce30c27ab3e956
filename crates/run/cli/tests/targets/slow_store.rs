//! An object store that delays its responses: before the first byte of the response, or after the
//! first byte of the object.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::s3::port::free_port;

/// Position of the delay in a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delayed {
    BeforeFirstByte,
    AfterFirstByte,
}

/// Relays connections to the store on `port`, and delays each response. Returns the endpoint.
pub fn start(port: u16, delayed: Delayed, delay: Duration) -> String {
    let own = free_port();
    let listener = TcpListener::bind(("127.0.0.1", own)).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(store) = TcpStream::connect(("127.0.0.1", port)) else { return };
            let is_new = Arc::new(AtomicBool::new(false));
            let (asking, answering) = (client.try_clone().unwrap(), store.try_clone().unwrap());
            let requested = Arc::clone(&is_new);
            std::thread::spawn(move || requests(asking, store, &requested));
            std::thread::spawn(move || responses(answering, client, &is_new, delayed, delay));
        }
    });
    format!("http://127.0.0.1:{own}")
}

fn requests(mut client: TcpStream, mut store: TcpStream, is_new: &AtomicBool) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = client.read(&mut piece) {
        is_new.store(true, Ordering::SeqCst);
        if store.write_all(&piece[..read]).is_err() {
            return;
        }
    }
    let _ = store.shutdown(std::net::Shutdown::Both);
}

fn responses(
    mut store: TcpStream,
    mut client: TcpStream,
    is_new: &AtomicBool,
    delayed: Delayed,
    delay: Duration,
) {
    client.set_nodelay(true).unwrap();
    let (mut piece, mut seen) = (vec![0; 64 * 1024], Vec::new());
    while let Ok(read @ 1..) = store.read(&mut piece) {
        if is_new.swap(false, Ordering::SeqCst) {
            seen.clear();
            if delayed == Delayed::BeforeFirstByte {
                std::thread::sleep(delay);
            }
        }
        let before = seen.len();
        seen.extend_from_slice(&piece[..read]);
        let head = seen.windows(4).position(|end| end == b"\r\n\r\n");
        let first = head.map_or(0, |head| head + 5);
        let mut rest = &piece[..read];
        if delayed == Delayed::AfterFirstByte && (before + 1..seen.len()).contains(&first) {
            let (until, after) = rest.split_at(first - before);
            if client.write_all(until).is_err() {
                return;
            }
            std::thread::sleep(delay);
            rest = after;
        }
        if client.write_all(rest).is_err() {
            return;
        }
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
}
