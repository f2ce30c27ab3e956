//! Encodes requests.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use rusty_s3::S3Action;
use rusty_s3::actions::{
    CompleteMultipartUpload, CreateMultipartUpload, ListObjectsV2, UploadPart,
};

use crate::signature::{Unsigned, canonical_query, headers};
use crate::target::Target;

/// Validity period, which the library requires although unsigned URLs do not expire.
const VALID: Duration = Duration::from_secs(60);

/// Body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Payload {
    #[default]
    None,
    /// The body is a range of the arena.
    Arena { offset_bytes: u64, size_bytes: u32 },
    /// The body is an XML document.
    Text(String),
}

/// One HTTP request.
#[derive(Clone, Debug)]
pub(crate) enum S3Request<'a> {
    Get { key: &'a str, range: Option<(u64, u32)> },
    Put { key: &'a str, size_bytes: u32 },
    Head { key: &'a str },
    Delete { key: &'a str },
    List { prefix: &'a str, names_max: u16 },
    Begin { key: &'a str },
    Part { key: &'a str, upload: &'a str, number: u16, size_bytes: u32 },
    Complete { key: &'a str, upload: &'a str, etags: &'a [String] },
}

/// Writes the head of a request into `out`. Returns the XML document that the request sends, if
/// any.
pub(crate) fn write(target: &Target, ask: &S3Request<'_>, out: &mut Vec<u8>) -> Option<String> {
    // The headers are signed instead of the URL.
    let (bucket, credentials) = (&target.bucket, None);
    let mut document = None;
    let (method, url, length) = match *ask {
        S3Request::Get { key, .. } => {
            ("GET", bucket.get_object(credentials, key).sign(VALID), None)
        }
        S3Request::Put { key, size_bytes } => {
            ("PUT", bucket.put_object(credentials, key).sign(VALID), Some(size_bytes as usize))
        }
        S3Request::Head { key } => ("HEAD", bucket.head_object(credentials, key).sign(VALID), None),
        S3Request::Delete { key } => {
            ("DELETE", bucket.delete_object(credentials, key).sign(VALID), None)
        }
        S3Request::List { prefix, names_max } => {
            let mut list = ListObjectsV2::new(bucket, credentials);
            list.with_prefix(prefix);
            list.with_max_keys(names_max.into());
            ("GET", list.sign(VALID), None)
        }
        S3Request::Begin { key } => {
            let begin = CreateMultipartUpload::new(bucket, credentials, key);
            ("POST", begin.sign(VALID), Some(0))
        }
        S3Request::Part { key, upload, number, size_bytes } => {
            let part = UploadPart::new(bucket, credentials, key, number, upload);
            ("PUT", part.sign(VALID), Some(size_bytes as usize))
        }
        S3Request::Complete { key, upload, etags } => {
            let etags = etags.iter().map(String::as_str);
            let complete = CompleteMultipartUpload::new(bucket, credentials, key, upload, etags);
            let url = complete.sign(VALID);
            let body = complete.body();
            let length = body.len();
            document = Some(body);
            ("POST", url, Some(length))
        }
    };
    let query = canonical_query(url.query().unwrap_or_default());
    let unsigned = Unsigned {
        method,
        path: url.path(),
        query: &query,
        host: &target.host,
        region: bucket.region(),
    };
    let signed = headers(&unsigned, &target.credentials, SystemTime::now());
    let mut head = String::with_capacity(640);
    // Writing to a string can't fail.
    let _ = write!(head, "{method} {}", url.path());
    if !query.is_empty() {
        let _ = write!(head, "?{query}");
    }
    let _ = write!(head, " HTTP/1.1\r\nHost: {}\r\n{signed}", target.host);
    if let Some(length) = length {
        let _ = write!(head, "Content-Length: {length}\r\n");
    }
    if let S3Request::Get { range: Some((offset, size)), .. } = *ask {
        let last = offset + u64::from(size).saturating_sub(1);
        let _ = write!(head, "Range: bytes={offset}-{last}\r\n");
    }
    head.push_str("\r\n");
    out.clear();
    out.extend_from_slice(head.as_bytes());
    document
}
