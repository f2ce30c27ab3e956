//! Options that every command has.

use clap::{Args, ColorChoice};

/// Options of all commands.
#[derive(Clone, Debug, Args)]
pub struct Globals {
    /// Print the result as JSON on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The team's catalogue, postgres://user@host/database: finished runs are copied there, and
    /// runs of others are listed. PLIMSOLL_CATALOGUE sets it too; PGPASSWORD has the password.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub catalogue: Option<String>,
    /// When to use colour. NO_COLOR is respected.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    pub color: clap::ColorChoice,
}

/// Returns true if colour is wanted for a stream. `terminal`: the stream is a terminal.
pub fn colour(common: &Globals, terminal: bool) -> bool {
    match common.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // no-color.org: any non-empty value.
        ColorChoice::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}
