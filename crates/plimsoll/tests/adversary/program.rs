//! The program under test, and how long it may take.

use std::fs::{File, read_to_string};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Ran, Sandbox};

/// No case asks for more than a fraction of this: a command that takes as long hangs.
pub const BOUND: Duration = Duration::from_secs(240);

/// How often its end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A command that goes on while the case does something to it. Killed when dropped.
pub struct Going {
    child: Child,
    stdout: std::path::PathBuf,
    stderr: std::path::PathBuf,
}

impl Going {
    /// Starts `command`. What it says goes to files: nobody reads pipes meanwhile.
    pub fn start(sandbox: &Sandbox, command: &mut Command) -> Self {
        let (stdout, stderr) = (sandbox.path("stdout"), sandbox.path("stderr"));
        command.stdout(Stdio::from(File::create(&stdout).unwrap()));
        command.stderr(Stdio::from(File::create(&stderr).unwrap()));
        Self { child: command.spawn().unwrap(), stdout, stderr }
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end; `None` where it hung and was killed.
    pub fn end(mut self) -> Option<Ran> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let text = |path| read_to_string(path).unwrap_or_default();
                let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
                return Some(Ran { code: status.code().unwrap_or(-1), stdout, stderr });
            }
            if waited > BOUND {
                return None;
            }
            // Looks are counted, and not the time between them: who stops the command stops this as well.
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

/// Carries out a command; `None` where it hung.
pub fn carry_out(sandbox: &Sandbox, arguments: &[&str]) -> Option<Ran> {
    Going::start(sandbox, &mut sandbox.command(arguments)).end()
}
