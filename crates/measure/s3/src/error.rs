//! Errors of requests.

use thiserror::Error;

/// A server's violation of HTTP/1.1 or of the S3 protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The status line is invalid.
    #[error("the response does not start with an HTTP/1.1 status line")]
    StatusLine,
    #[error("the response's head exceeds {limit_bytes} bytes")]
    HeadTooLong {
        /// Maximum length.
        limit_bytes: usize,
    },
    /// `Content-Length` is not a number, or occurs with different values.
    #[error("the response's Content-Length is not a number, or has different values")]
    Length,
    /// The size line of a chunk is invalid.
    #[error("the size of a chunk in the response is invalid")]
    Chunk,
    /// The response is longer than the request allows.
    #[error("the response exceeds the {limit_bytes} bytes that were requested")]
    TooMuch {
        /// Maximum length.
        limit_bytes: u64,
    },
    /// The connection ended in the middle of a response.
    #[error("the connection ended in the middle of a response")]
    Truncated,
    /// An XML document could not be parsed.
    #[error("the response to {0} is not the XML document that S3 defines")]
    Document(&'static str),
}

/// Reason for a failed request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The store responded with an error.
    #[error("{code} (HTTP {status}): {}", explain(.code, *.status))]
    Status {
        /// HTTP status.
        status: u16,
        /// Error code of S3, such as `NoSuchKey`; `no code` if the response has none.
        code: String,
    },
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Violation(#[from] Violation),
    /// TLS with the server failed, or its certificate is not trusted.
    #[error("TLS with the server failed: {0}")]
    Tls(String),
    /// The operation did not succeed within the time limit, despite retries.
    #[error(
        "no attempt succeeded within {} ms ({tries} attempts); the last attempt failed with: {last}",
        after_ns / 1_000_000
    )]
    GivenUp {
        /// Time since the first attempt.
        after_ns: u64,
        tries: u32,
        /// Failure of the last attempt.
        last: String,
    },
}

impl CallError {
    /// Returns the `errno` that matches best, for callers that need an error number.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Status { status: 404, .. } => 2,
            Self::Status { status: 401 | 403, .. } => 13,
            Self::Status { status: 507, .. } => 28,
            Self::Status { .. } => 5,
            Self::Violation(_) | Self::Tls(_) => 71,
            Self::GivenUp { .. } => 110,
        }
    }
}

fn explain(code: &str, status: u16) -> &'static str {
    match (code, status) {
        ("NoSuchBucket", _) => "the bucket does not exist: create it first",
        ("NoSuchKey", _) => "the object does not exist",
        ("InvalidAccessKeyId", _) => {
            "the store does not know the access key: check AWS_ACCESS_KEY_ID"
        }
        ("SignatureDoesNotMatch", _) => {
            "the store rejected the signature: check AWS_SECRET_ACCESS_KEY and the region"
        }
        ("AccessDenied", _) | (_, 401 | 403) => {
            "access denied: check the permissions of the access key"
        }
        ("RequestTimeTooSkewed", _) => "the clocks of this host and the store differ",
        ("InvalidRange", _) => "the object is shorter than the requested range",
        (_, 404) => "there is no such object or bucket",
        (_, 507) => "the store is full",
        (_, 500..) => "the store had an internal error: check the store's log",
        _ => "the store rejected the request",
    }
}

/// Reason for a rejected submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// Every connection has an operation in flight. The caller must poll first.
    #[error("every connection has a request outstanding: poll first")]
    Full,
    /// The transfer exceeds the maximum size of a request.
    #[error("a transfer of {size_bytes} bytes is too large: the maximum is {limit_bytes}")]
    Size {
        /// Requested size in bytes.
        size_bytes: u64,
        /// Maximum size.
        limit_bytes: u64,
    },
}

/// Reason why a store cannot be used as a target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TargetError {
    /// The certificate authorities could not be read.
    #[error("{endpoint}: cannot verify certificates: {says}")]
    Authorities {
        /// Endpoint as the user wrote it.
        endpoint: String,
        /// Error message.
        says: String,
    },
    /// The endpoint is not a valid address of a store.
    #[error("{0} is not a valid address of a store: use https://host:port or http://host:port")]
    Endpoint(String),
    /// The address of the bucket is not valid.
    #[error("{0} is not the address of a bucket: use s3://bucket or s3://bucket/prefix")]
    Bucket(String),
    #[error("there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")]
    Credentials,
    /// The host name cannot be resolved to an address.
    #[error("cannot resolve the host of {endpoint}: {says}")]
    Host {
        /// Endpoint as the user wrote it.
        endpoint: String,
        /// Error message.
        says: String,
    },
    /// The system could not create an epoll instance.
    #[error("cannot create an epoll instance: errno {0}")]
    Epoll(i32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let error = CallError::Status { status: 404, code: "NoSuchBucket".to_owned() };
        assert_eq!(
            error.to_string(),
            "NoSuchBucket (HTTP 404): the bucket does not exist: create it first"
        );
        assert_eq!(error.errno(), 2);
        let error = CallError::Status { status: 403, code: "no code".to_owned() };
        assert!(error.to_string().contains("permissions"));
        assert_eq!(CallError::from(Violation::Length).errno(), 71);
    }
}
