//! `plimsoll durability`: cuts a target off and checks that no acknowledged write is lost.

mod flags;
mod place;
mod request;
mod target_flags;

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use plimsoll_evidence::durability::FILE;
use plimsoll_judge::durability::judge;
use plimsoll_report::durability::DurabilityResult;
use plimsoll_runner::durability;
use plimsoll_runner::listener::Listener;

pub use self::flags::Options;
use super::bundle;
use crate::common::Globals;
use crate::error::CliError;
use crate::exit::Exit;
use crate::progress::StderrProgress;
use crate::{interrupt, notes};

/// Runs the test.
///
/// # Errors
/// The target or the witness cannot be used, or a command failed.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    if let Some(directory) = &options.serve_witness {
        let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
        // Ignored, because the witness server cannot report an error after its peer disconnects.
        let _ = durability::serve_witness(directory, input, output);
        return Ok(Exit::Ok);
    }
    let request = options.request()?;
    let stop = interrupt::flag_on_signal()?;
    let mut progress = StderrProgress::new(common.quiet);
    let ask = |text: &str, _: &mut dyn Listener| ask_user(text, &stop);
    let evidence = durability::carry_out(&request, &stop, &ask, &mut progress)?;
    let verdict = judge(&evidence);
    let result = DurabilityResult { verdict: &verdict, evidence: &evidence };
    bundle::print(&if common.json { bundle::json(&result)? } else { result.text() })?;
    notes::tell(&format!("evidence: {}", request.witness.child(FILE)));
    Ok(Exit::of_durability(&evidence))
}

/// Shows a request to the operator and waits for Enter. Returns false at the end of the input or
/// after a signal.
fn ask_user(text: &str, stop: &AtomicBool) -> bool {
    notes::tell(&format!("{text} Then press Enter."));
    let (sender, line) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_line(&mut text);
        // After a signal, nobody waits for the answer any more.
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0));
    });
    loop {
        match line.recv_timeout(Duration::from_millis(50)) {
            Ok(confirmed) => return confirmed,
            Err(_) if stop.load(Ordering::Relaxed) => return false,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return false,
            Err(_) => {}
        }
    }
}
