//! Options that every command has.

use clap::Args;

/// Options of all commands.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Print the result as JSON on stdout.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// When to use colour: NO_COLOR is heeded too.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    pub color: clap::ColorChoice,
}
