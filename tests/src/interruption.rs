//! Programs that this one runs, when this one is told to end.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// How often it is looked whether a program has ended, or shall.
const LOOK: Duration = Duration::from_millis(100);

/// SIGINT and SIGTERM end this process at once, but while another program runs: then that one is told to end first, so that it can clean up.
/// A second signal ends this process in any case.
#[derive(Debug)]
pub struct Interruption {
    came: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

impl Interruption {
    /// From now on.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub fn on_signals() -> Result<Self> {
        let (came, at_once) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&at_once))?;
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&came))?;
            flag::register(signal, Arc::clone(&came))?;
        }
        Ok(Self { came, at_once })
    }

    /// Runs a program to its end. Returns what it told on stderr, too.
    ///
    /// # Errors
    /// If it cannot be run, or a signal came meanwhile.
    pub fn run(&self, command: &mut Command) -> Result<(ExitStatus, String)> {
        self.at_once.store(false, Ordering::Relaxed);
        let done = self.wait(command);
        self.at_once.store(true, Ordering::Relaxed);
        ensure!(!self.came.load(Ordering::Relaxed), "stopped by a signal; what was done before is kept");
        done
    }

    fn wait(&self, command: &mut Command) -> Result<(ExitStatus, String)> {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut stderr = child.stderr.take().context("no stderr")?;
        let told = thread::spawn(move || {
            let mut told = Vec::new();
            stderr.read_to_end(&mut told).map(|_| String::from_utf8_lossy(&told).into_owned())
        });
        let mut is_told = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if self.came.load(Ordering::Relaxed) && !is_told {
                is_told = true;
                Command::new("sh").args(["-c", "kill -TERM $0", &child.id().to_string()]).status()?;
            }
            thread::sleep(LOOK);
        };
        let told = told.join().map_err(|_| anyhow!("its stderr cannot be read"))??;
        Ok((status, told))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_program_is_told_to_end_by_the_signal_that_ends_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let (begun, cleaned_up) = (folder.path().join("begun"), folder.path().join("cleaned up"));
        let script = "trap 'touch \"$1\"; exit 7' TERM; touch \"$0\"; while :; do sleep 0.1; done";
        let interruption = Interruption::on_signals().unwrap();
        let (status, told) = interruption.run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap();
        assert_eq!((status.code(), told.as_str()), (Some(3), "why\n"));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.exists() {
                    thread::sleep(LOOK);
                }
                signal_hook::low_level::raise(SIGTERM).unwrap();
            });
            let stopped = interruption.run(Command::new("sh").args(["-c", script]).arg(&begun).arg(&cleaned_up));
            assert!(stopped.unwrap_err().to_string().contains("stopped by a signal"));
        });
        assert!(cleaned_up.exists());
    }
}
