//! What the lab is doing, on stderr.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use trace::stderr;

/// Says each step with the seconds since the beginning; on a terminal a spinner shows that it is alive.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    spinner: Option<ProgressBar>,
}

impl Progress {
    /// Begins now.
    #[must_use]
    pub fn new() -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.enable_steady_tick(Duration::from_millis(200));
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { start: Instant::now(), spinner }
    }

    /// Says what begins now.
    pub fn step(&self, what: &str) {
        let line = format!("[{:6.1} s] {what}", self.start.elapsed().as_secs_f64());
        match &self.spinner {
            Some(bar) => {
                bar.suspend(|| stderr::print(line));
                bar.set_message(what.to_owned());
            }
            None => stderr::print(line),
        }
    }

    /// Seconds since the beginning.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Takes the spinner away.
    pub fn finish(&self) {
        if let Some(bar) = &self.spinner {
            bar.finish_and_clear();
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}
