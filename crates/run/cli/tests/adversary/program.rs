//! The program under test, with a time limit.

use std::fs::{File, read_to_string};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{CommandOutput, Sandbox};

/// Time limit of a command. Every case takes a fraction of this time; a command that exceeds it
/// hangs.
pub const BOUND: Duration = Duration::from_secs(240);

/// Interval at which the test checks whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running command that the case disturbs. It is killed when this value is dropped.
pub struct Going {
    child: Child,
    stdout: std::path::PathBuf,
    stderr: std::path::PathBuf,
}

impl Going {
    /// Starts `command`. Its output goes to files, because nothing reads pipes during the run.
    pub fn start(sandbox: &Sandbox, command: &mut Command) -> Self {
        let (stdout, stderr) = (sandbox.path("stdout"), sandbox.path("stderr"));
        command.stdout(Stdio::from(File::create(&stdout).unwrap()));
        command.stderr(Stdio::from(File::create(&stderr).unwrap()));
        Self { child: command.spawn().unwrap(), stdout, stderr }
    }

    /// Returns the process id of the command.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the command has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end of the command. Returns `None` if the command hung and was killed.
    pub fn end(mut self) -> Option<CommandOutput> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let text = |path| read_to_string(path).unwrap_or_default();
                let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
                return Some(CommandOutput { code: status.code().unwrap_or(-1), stdout, stderr });
            }
            if waited > BOUND {
                return None;
            }
            // The loop counts polls and not elapsed time, because a disturbance that stops the
            // command may stop this process too.
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command. Returns `None` if it hung.
pub fn carry_out(sandbox: &Sandbox, arguments: &[&str]) -> Option<CommandOutput> {
    Going::start(sandbox, &mut sandbox.command(arguments)).end()
}
