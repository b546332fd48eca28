//! What an agent is asked by signals while it runs.
//!
//! Behind feature `agent`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};

use crate::waker::Waker;

/// What an agent is asked.
#[derive(Clone, Debug)]
pub struct Signals {
    stop: Arc<AtomicBool>,
    report: Arc<AtomicBool>,
    /// Rung when something is asked.
    pub waker: Waker,
}

impl Signals {
    /// SIGTERM and SIGINT ask for the end, SIGUSR1 for the counters.
    ///
    /// # Errors
    /// If the kernel does not let us listen.
    pub fn listen() -> io::Result<Self> {
        let signals = Self { stop: Arc::default(), report: Arc::default(), waker: Waker::new()? };
        for (signal, flag) in [(SIGTERM, &signals.stop), (SIGINT, &signals.stop), (SIGUSR1, &signals.report)] {
            // In this order: whoever hears the bell finds the flag set.
            signal_hook::flag::register(signal, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(signal, signals.waker.sender()?)?;
        }
        Ok(signals)
    }

    /// Whether the run is to end.
    #[must_use]
    pub fn is_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks for the end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Whether the counters were asked for since the last call.
    #[must_use]
    pub fn take_report(&self) -> bool {
        self.report.swap(false, Ordering::Relaxed)
    }
}
