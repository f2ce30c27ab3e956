//! Options that every command has.

use clap::{Args, ColorChoice};

/// Options of all commands.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Print the result as JSON on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The team's catalogue, postgres://user@host/database: runs are put there when they end, and those of others are listed
    /// and read. PLIMSOLL_CATALOGUE names it too, PGPASSWORD its password.
    #[arg(long, global = true, value_name = "ADDRESS")]
    pub catalogue: Option<String>,
    /// When to use colour: NO_COLOR is heeded too.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    pub color: clap::ColorChoice,
}

/// Whether colour is wanted on a stream that is a terminal, or is none.
pub fn colour(common: &Common, terminal: bool) -> bool {
    match common.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // no-color.org: any value that is not empty.
        ColorChoice::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}
