//! Being told to stop: Ctrl-C and SIGTERM end a lab in the same orderly way as its last job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context, LabError, Result};

/// Longest wait between two looks at the flag.
const LOOK: Duration = Duration::from_millis(50);

/// Set once a signal came. Clones look at the same flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on. Further signals change nothing: the tidying up is bounded.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn on_signals() -> Result<Self> {
        let stop = Self::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))
                .with_context(|| format!("cannot catch signal {signal}"))?;
        }
        Ok(stop)
    }

    /// Whether a signal came.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks all that hold a clone to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// [`LabError::Stopped`] once a signal came.
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(LabError::Stopped) } else { Ok(()) }
    }

    /// Sleeps, but not longer than until a signal.
    ///
    /// # Errors
    /// [`LabError::Stopped`] once a signal came.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
        }
    }
}
