//! Hints for the errors of `plimsoll serve`.

use plimsoll_serve::{ServeError, TokensError};

use crate::error::CliError;
use crate::exit::Exit;

/// Converts an error of the server.
pub fn page(error: ServeError) -> CliError {
    let says = CliError::environment(error.to_string());
    match error {
        ServeError::Listen { .. } => says.hint("use another port, or 0 for a free port"),
        ServeError::Open(_) => CliError::usage(error.to_string())
            .hint("pass a file of tokens: --token-file FILE")
            .hint("or allow everyone to use the page without a token: --insecure"),
        ServeError::Plain(_) => CliError::usage(error.to_string())
            .hint("pass a certificate and its key: --tls-cert FILE --tls-key FILE")
            .hint("or confirm that this is intended, for example behind a proxy: --insecure"),
        ServeError::Template(_) => CliError::new(Exit::Defect, error.to_string()),
        ServeError::System(_) => says,
    }
}

/// Converts an error of the token file.
pub fn tokens(error: TokensError) -> CliError {
    let says = CliError::usage(error.to_string());
    match error {
        TokensError::Unreadable { .. } => CliError::environment(error.to_string())
            .hint("create the file: each line is `view TOKEN NAME` or `run TOKEN NAME`"),
        TokensError::Line { .. } | TokensError::Empty(_) => {
            says.hint("each line must be `view TOKEN NAME` or `run TOKEN NAME`")
        }
    }
}
