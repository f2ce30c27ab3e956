//! Warnings about a publicly reachable page.

/// Returns what other people can do if the page has no tokens or no TLS.
pub fn exposures(has_tokens: bool, has_tls: bool) -> impl Iterator<Item = &'static str> {
    let open = "no token is required: everyone who can reach this address can read all evidence, \
        write notes and start the allowed runs";
    let plain = if has_tokens {
        "connections are not encrypted: others can read tokens and evidence"
    } else {
        "connections are not encrypted: others can read evidence"
    };
    let open = (!has_tokens).then_some(open);
    open.into_iter().chain((!has_tls).then_some(plain))
}

#[cfg(test)]
mod tests {
    use super::exposures;

    #[test]
    fn warnings_of_an_insecure_page_are_true() {
        let of = |tokens, tls| exposures(tokens, tls).collect::<Vec<_>>();
        assert!(of(true, true).is_empty());
        assert!(matches!(of(false, true)[..], [open] if open.starts_with("no token")));
        assert!(matches!(of(true, false)[..], [plain] if plain.contains("read tokens")));
        let [open, plain] = of(false, false)[..] else { panic!("both are missing") };
        assert!(open.starts_with("no token") && plain.starts_with("connections are not encrypted"));
        assert!(!plain.contains("tokens"), "there are none");
    }
}
