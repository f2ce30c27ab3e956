//! An object store that keeps all objects in this process's memory: a typical source of inflated S3
//! figures.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Starts the server and returns its endpoint. The server stops when the process exits.
pub fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let objects = Objects::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let objects = objects.clone();
            // The thread ends when its client disconnects.
            std::thread::spawn(move || while answer(&stream, &objects).is_some() {});
        }
    });
    endpoint
}

/// Responds to one request; `None` at the end of the connection.
fn answer(stream: &TcpStream, objects: &Objects) -> Option<()> {
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    let (mut first, mut length, mut range) = (String::new(), 0, None);
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "range" => {
                let (from, to) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((from.parse::<usize>().ok()?, to.parse::<usize>().ok()?));
            }
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // In the path, the object's key follows the name of the bucket.
    let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key).to_owned();
    let mut objects = objects.lock().unwrap();
    let (status, said) = match method {
        "PUT" => {
            objects.insert(key, body);
            ("200 OK", Vec::new())
        }
        "GET" if key.is_empty() => ("200 OK", list(&objects, query)),
        "GET" | "HEAD" => match (objects.get(&key), range) {
            (Some(object), None) => ("200 OK", object.clone()),
            (Some(object), Some((from, to))) => {
                ("206 Partial Content", object.get(from..=to)?.to_vec())
            }
            (None, _) => ("404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
        },
        "DELETE" => {
            objects.remove(&key);
            ("204 No Content", Vec::new())
        }
        _ => ("501 Not Implemented", Vec::new()),
    };
    drop(objects);
    let mut answer =
        format!("HTTP/1.1 {status}\r\nETag: \"0\"\r\nContent-Length: {}\r\n\r\n", said.len());
    if method == "DELETE" {
        answer = format!("HTTP/1.1 {status}\r\n\r\n");
    }
    let mut answer = answer.into_bytes();
    if method != "HEAD" {
        answer.extend(said);
    }
    (&mut &*stream).write_all(&answer).ok()
}

fn list(objects: &BTreeMap<String, Vec<u8>>, query: &str) -> Vec<u8> {
    let requested = query.split('&').find_map(|part| part.strip_prefix("prefix="));
    let prefix = requested.unwrap_or_default().replace("%2F", "/");
    let of_prefix = objects.iter().filter(|(key, _)| key.starts_with(&prefix));
    let contents: String = of_prefix
        .map(|(key, object)| {
            let size = object.len();
            format!(
                "<Contents><ETag>0</ETag><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult \
         xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>load</Name><Prefix>{prefix}</Prefix><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
    )
    .into_bytes()
}
