//! SIGINT and SIGTERM: the first asks the run to end and keeps its evidence, the second ends the
//! process at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::CliError;
use crate::exit::Exit;

/// Registers the handlers; the flag turns true at the first signal.
///
/// # Errors
/// The system refuses a handler.
pub fn flag_on_signal() -> Result<Arc<AtomicBool>, CliError> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the shutdown looks at the flag before this signal sets it.
        flag::register_conditional_shutdown(signal, Exit::Interrupted.code().into(), asked.clone())
            .and_then(|_| flag::register(signal, asked.clone()))
            .map_err(|error| {
                CliError::new(Exit::Defect, format!("cannot handle signal {signal}: {error}"))
            })?;
    }
    Ok(asked)
}
