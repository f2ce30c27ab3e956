//! Signature Version 4 in request headers. A signature in a URL would appear in the logs of servers
//! and proxies, and anyone could use the URL until the signature expires.

use std::fmt::Write as _;
use std::time::SystemTime;

use jiff::Timestamp;
use rusty_s3::Credentials;
use sha2::{Digest, Sha256};

/// Value that is sent instead of the body's hash if the body is not signed. Signed URLs use the
/// same value.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The parts of a request that are signed.
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    /// Percent-encoded path.
    pub(crate) path: &'a str,
    /// Canonical query ([`canonical_query`]).
    pub(crate) query: &'a str,
    pub(crate) host: &'a str,
    pub(crate) region: &'a str,
}

/// Returns the headers with the signature of a request. Each header ends with a line end.
pub(crate) fn headers(request: &Unsigned<'_>, credentials: &Credentials, at: SystemTime) -> String {
    let time = time_stamp(at);
    let day = &time[..8];
    let mut signed =
        format!("host:{}\nx-amz-content-sha256:{UNSIGNED}\nx-amz-date:{time}\n", request.host);
    let mut names = "host;x-amz-content-sha256;x-amz-date".to_owned();
    let mut headers = format!("x-amz-content-sha256: {UNSIGNED}\r\nx-amz-date: {time}\r\n");
    // Writing to a string cannot fail.
    if let Some(token) = credentials.token() {
        let _ = writeln!(signed, "x-amz-security-token:{token}");
        names.push_str(";x-amz-security-token");
        let _ = write!(headers, "x-amz-security-token: {token}\r\n");
    }
    let Unsigned { method, path, query, region, .. } = request;
    let canonical = format!("{method}\n{path}\n{query}\n{signed}\n{names}\n{UNSIGNED}");
    let scope = format!("{day}/{region}/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&sha256(canonical.as_bytes())));
    let mut key = hmac(format!("AWS4{}", credentials.secret()).as_bytes(), day.as_bytes());
    for part in [region, "s3", "aws4_request"] {
        key = hmac(&key, part.as_bytes());
    }
    let signature = hex(&hmac(&key, text.as_bytes()));
    let _ = write!(
        headers,
        "Authorization: AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}\r\n",
        credentials.key()
    );
    headers
}

/// Returns the parameters of an encoded query in sorted order. If a parameter has no value, the
/// value is empty.
pub(crate) fn canonical_query(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<(&str, &str)> =
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    match key.len() > block.len() {
        true => block[..32].copy_from_slice(&sha256(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let padded = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Formats a time as `20261126T023000Z`.
fn time_stamp(at: SystemTime) -> String {
    Timestamp::try_from(at).unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn hashes_are_those_of_the_standards() {
        // These are test cases 2 and 6 of RFC 4231.
        assert_eq!(
            hex(&hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
        let at = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        assert_eq!(time_stamp(at), "20130524T000000Z");
        let leap = UNIX_EPOCH + Duration::from_secs(951_782_399);
        assert_eq!(time_stamp(leap), "20000228T235959Z");
    }

    #[test]
    fn the_secret_is_in_no_header_and_a_token_is_signed() {
        let request = Unsigned {
            method: "GET",
            path: "/b/k",
            query: "list-type=2&prefix=a%2F",
            host: "h:9000",
            region: "us-east-1",
        };
        let at = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let plain = headers(&request, &Credentials::new("AKID", "the-secret"), at);
        assert!(
            !plain.contains("the-secret") && plain.contains("Credential=AKID/20130524/us-east-1")
        );
        let with_token = Credentials::new_with_token("AKID", "the-secret", "tok");
        let signed = headers(&request, &with_token, at);
        assert!(signed.contains("x-amz-security-token: tok\r\n"));
        assert!(signed.contains("x-amz-date;x-amz-security-token,"), "{signed}");
    }

    #[test]
    fn a_query_is_sorted_and_each_name_has_a_value() {
        assert_eq!(canonical_query("uploads"), "uploads=");
        assert_eq!(canonical_query("uploadId=x&partNumber=1"), "partNumber=1&uploadId=x");
        assert_eq!(canonical_query(""), "");
    }
}
