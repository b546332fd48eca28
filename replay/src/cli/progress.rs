//! Progress bars: simulated against recorded time, on a terminal only.

use std::time::{Duration, Instant};

use causal::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// A bar for each experiment.
pub(super) struct Bars {
    bars: MultiProgress,
}

impl Bars {
    pub(super) fn new() -> Self {
        Self { bars: MultiProgress::new() }
    }

    /// A sign of life for something of unknown length, until it is dropped.
    pub(super) fn spinner(&self, what: &str) -> ProgressBar {
        let spinner = self.bars.add(ProgressBar::new_spinner());
        spinner.set_message(what.to_owned());
        spinner.enable_steady_tick(Duration::from_millis(100));
        spinner
    }

    /// Says a line on stderr, above the bars.
    pub(super) fn say(&self, line: &str) {
        self.bars.suspend(|| trace::stderr::print(line));
    }

    /// A bar for a number of runs; hidden for a single one.
    pub(super) fn jobs(&self, count: usize) -> ProgressBar {
        if count < 2 {
            return ProgressBar::hidden();
        }
        let bar = self.bars.add(ProgressBar::new(count as u64));
        let style = ProgressStyle::with_template("{pos} of {len} runs {bar:30} {elapsed} elapsed, {eta} to go");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }

    /// A bar for a run of synthetic traffic.
    pub(super) fn traffic_bar(&self, name: &str) -> TrafficBar {
        let bar = self.bars.add(ProgressBar::new(1_000));
        let style = ProgressStyle::with_template("{prefix:20} {bar:30} {percent:>3}%  {msg}, {eta} to go");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(name.to_owned());
        TrafficBar { bar, began: Instant::now() }
    }

    /// A bar for an experiment.
    pub(super) fn bar(&self, name: &str) -> Bar {
        let bar = self.bars.add(ProgressBar::new(0));
        let style = ProgressStyle::with_template("{prefix:20} {bar:30} {percent:>3}%  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(name.to_owned());
        Bar { bar, began: Instant::now() }
    }
}

/// The bar of one experiment: full when the simulated time is the recorded job time.
pub(super) struct Bar {
    bar: ProgressBar,
    began: Instant,
}

impl Bar {
    pub(super) fn show(&self, progress: Progress) {
        let to_ms = |at: causal::JobTime| at.ps() / 1_000_000_000;
        self.bar.set_length(to_ms(progress.recorded).max(to_ms(progress.now)));
        self.bar.set_position(to_ms(progress.now));
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = progress.causal_events as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_message(format!(
            "{:.1} s simulated, {:.1} s recorded, {rate:.0} messages/s",
            progress.now.as_secs_f64(),
            progress.recorded.as_secs_f64(),
        ));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The bar of a run of synthetic traffic: full at the end of the measurement.
pub(super) struct TrafficBar {
    bar: ProgressBar,
    began: Instant,
}

impl TrafficBar {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share from 0 to 1")]
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(super) fn show(&self, progress: netsim::traffic::Progress) {
        self.bar.set_position((progress.share() * 1_000.0) as u64);
        let rate = progress.events as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
        let phase = if progress.now >= progress.until { "waiting for the last packets" } else { "simulated" };
        self.bar.set_message(format!("{:.3} us {phase}, {rate:.0} events/s", progress.now.as_secs_f64() * 1e6));
    }
}

impl Drop for TrafficBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
