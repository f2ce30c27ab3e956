//! The sequence of requests that an operation consists of. Most operations need one request. A
//! large PUT starts a multipart upload, sends its parts and completes it.

use rusty_s3::actions::CreateMultipartUpload;

use crate::connection::{Response, Sink};
use crate::error::{CallError, Violation};
use crate::op::{Kind, Op};
use crate::request::{Payload, S3Request};

/// Current step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    One,
    Begin,
    Part(u32),
    Complete,
}

/// An operation in flight.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub token: u64,
    pub kind: Kind,
    key: String,
    offset_bytes: u64,
    size_bytes: u32,
    whole: bool,
    buffer_offset_bytes: u64,
    names_max: u16,
    part_bytes: u32,
    step: Step,
    upload: String,
    etags: Vec<String>,
    pub submitted_ns: u64,
    /// Time at which the first byte of the current response's body arrived.
    pub first_byte_ns: Option<u64>,
    pub tries: u32,
    /// Time at which the request is sent again; `None` if no retry is due.
    pub retry_at_ns: Option<u64>,
    pub last: String,
}

/// Next step after a successful response.
pub(crate) enum Outcome {
    /// Another request must be sent.
    Next,
    /// The operation is complete, with this result.
    Done(u32),
}

impl Job {
    /// Creates the steps of an operation. Each part of a large PUT has `part_bytes` bytes.
    pub fn new(token: u64, op: &Op<'_>, part_bytes: u32, spare: String) -> Self {
        let mut key = spare;
        key.clear();
        let mut job = Self {
            token,
            kind: op.kind(),
            key,
            offset_bytes: 0,
            size_bytes: 0,
            whole: false,
            buffer_offset_bytes: 0,
            names_max: 0,
            part_bytes,
            step: Step::One,
            upload: String::new(),
            etags: Vec::new(),
            submitted_ns: 0,
            first_byte_ns: None,
            tries: 0,
            retry_at_ns: None,
            last: String::new(),
        };
        match *op {
            Op::Get { key, offset_bytes, size_bytes, whole, buffer_offset_bytes } => {
                job.key.push_str(key);
                (job.offset_bytes, job.size_bytes, job.whole) = (offset_bytes, size_bytes, whole);
                job.buffer_offset_bytes = buffer_offset_bytes;
            }
            Op::Put { key, size_bytes, buffer_offset_bytes } => {
                job.key.push_str(key);
                (job.size_bytes, job.buffer_offset_bytes) = (size_bytes, buffer_offset_bytes);
                if size_bytes > part_bytes {
                    job.step = Step::Begin;
                }
            }
            Op::Head { key } | Op::Delete { key } => job.key.push_str(key),
            Op::List { prefix, names_max } => {
                job.key.push_str(prefix);
                job.names_max = names_max;
            }
        }
        job
    }

    /// Returns the buffer of the key, so that the next operation can reuse it.
    pub fn into_spare(self) -> String {
        self.key
    }

    fn part(&self, number: u32) -> (u64, u32) {
        let start = number.saturating_mul(self.part_bytes);
        let size = self.size_bytes.saturating_sub(start).min(self.part_bytes);
        (self.buffer_offset_bytes + u64::from(start), size)
    }

    /// Returns the current request, its body, and the destination of the response's body.
    pub fn ask(&self) -> (S3Request<'_>, Payload, Sink) {
        let (key, size_bytes) = (self.key.as_str(), self.size_bytes);
        let offset_bytes = self.buffer_offset_bytes;
        match (self.step, self.kind) {
            (Step::Begin, _) => (S3Request::Begin { key }, Payload::None, Sink::Text),
            (Step::Part(number), _) => {
                let (offset_bytes, size_bytes) = self.part(number);
                let upload = self.upload.as_str();
                let ask = S3Request::Part { key, upload, number: number as u16 + 1, size_bytes };
                (ask, Payload::Arena { offset_bytes, size_bytes }, Sink::Text)
            }
            (Step::Complete, _) => {
                let ask = S3Request::Complete { key, upload: &self.upload, etags: &self.etags };
                (ask, Payload::None, Sink::Text)
            }
            (Step::One, Kind::Get) => {
                let range = (!self.whole).then_some((self.offset_bytes, size_bytes));
                (
                    S3Request::Get { key, range },
                    Payload::None,
                    Sink::Arena { offset_bytes, size_bytes },
                )
            }
            (Step::One, Kind::Put) => {
                let payload = Payload::Arena { offset_bytes, size_bytes };
                (S3Request::Put { key, size_bytes }, payload, Sink::Text)
            }
            (Step::One, Kind::Head) => (S3Request::Head { key }, Payload::None, Sink::None),
            (Step::One, Kind::Delete) => (S3Request::Delete { key }, Payload::None, Sink::Text),
            (Step::One, Kind::List) => (
                S3Request::List { prefix: key, names_max: self.names_max },
                Payload::None,
                Sink::Text,
            ),
        }
    }

    /// Processes a successful response. The function `names` returns the number of names in the XML
    /// document of a LIST.
    pub fn good(
        &mut self,
        response: &Response,
        names: &mut dyn FnMut(&str) -> Result<u32, CallError>,
    ) -> Result<Outcome, CallError> {
        let text = || String::from_utf8_lossy(&response.text);
        match self.step {
            Step::Begin => {
                let begun = CreateMultipartUpload::parse_response(&text());
                let begun = begun.map_err(|_| Violation::Document("POST ?uploads"))?;
                begun.upload_id().clone_into(&mut self.upload);
                self.step = Step::Part(0);
                Ok(Outcome::Next)
            }
            Step::Part(number) => {
                let etag = response.etag.clone().ok_or(Violation::Document("PUT of a part"))?;
                self.etags.push(etag);
                let done = self.part(number + 1).1 == 0;
                self.step = if done { Step::Complete } else { Step::Part(number + 1) };
                Ok(Outcome::Next)
            }
            // S3 may respond with status 200, although the document contains an error.
            Step::Complete if text().contains("<Error>") => {
                let code = code(&response.text);
                Err(CallError::Status { status: response.status, code })
            }
            Step::Complete => Ok(Outcome::Done(self.size_bytes)),
            Step::One => Ok(Outcome::Done(match self.kind {
                Kind::Get => response.arena_bytes,
                Kind::Put => self.size_bytes,
                Kind::List => names(&text())?,
                Kind::Head | Kind::Delete => 0,
            })),
        }
    }
}

/// Returns S3's error code from the document.
pub(crate) fn code(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    match code {
        Some((code, _)) if !code.is_empty() && code.len() <= 64 => code.to_owned(),
        _ => "no code".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_error_is_found() {
        let text = b"<?xml?><Error><Code>NoSuchKey</Code><Message>x</Message></Error>";
        assert_eq!(code(text), "NoSuchKey");
        assert_eq!(code(b"<html>"), "no code");
    }

    #[test]
    fn a_large_put_takes_its_parts_in_order() {
        let op = Op::Put { key: "k", size_bytes: 25, buffer_offset_bytes: 100 };
        let mut job = Job::new(1, &op, 10, String::new());
        let response = |text: &str| Response {
            status: 200,
            etag: Some("\"e\"".to_owned()),
            arena_bytes: 0,
            text: text.as_bytes().to_vec(),
        };
        let mut none = |_: &str| Ok(0);
        let begun = "<InitiateMultipartUploadResult \
             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>b</Bucket><Key>k</Key>\
             <UploadId>u</UploadId></InitiateMultipartUploadResult>";
        assert!(matches!(job.ask().0, S3Request::Begin { .. }));
        assert!(matches!(job.good(&response(begun), &mut none), Ok(Outcome::Next)));
        for (number, offset_bytes, size_bytes) in [(1, 100, 10), (2, 110, 10), (3, 120, 5)] {
            let (ask, payload, _) = job.ask();
            assert!(matches!(ask, S3Request::Part { number: n, upload: "u", .. } if n == number));
            assert_eq!(payload, Payload::Arena { offset_bytes, size_bytes });
            assert!(matches!(job.good(&response(""), &mut none), Ok(Outcome::Next)));
        }
        assert!(matches!(job.ask().0, S3Request::Complete { etags, .. } if etags.len() == 3));
        let failed = "<Error><Code>InternalError</Code></Error>";
        assert!(job.clone().good(&response(failed), &mut none).is_err());
        assert!(matches!(job.good(&response("<x/>"), &mut none), Ok(Outcome::Done(25))));
    }
}
