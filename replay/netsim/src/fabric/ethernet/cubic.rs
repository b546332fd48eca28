//! CUBIC with HyStart, as Linux 6 computes them: integers, windows in segments, time in jiffies.
//!
//! Constants: beta 717/1024, C = 0.4 (410/1024), fast convergence, Reno-friendly region, at most half a window more a
//! round trip. HyStart: ACK trains and delay increase, from 16 segments on; its train threshold is halved because CUBIC
//! is not paced. A jiffy is 4 ms (250 Hz, as distributions build their kernels).

use crate::time::SimTime;

const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
const C_TIMES_1024: u64 = 410;
/// log2 of the clock of the cubic function, in ticks a second.
const CLOCK_BITS: u32 = 10;
/// 8/3 (1 + beta) / (1 - beta), times 8: how many ACKs of Reno's give one segment.
const RENO_SCALE: u64 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
const JIFFY_US: u64 = 4_000;
const HYSTART_LOW_WINDOW: u64 = 16;
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_TRAIN_GAP_US: u64 = 2_000;
const HYSTART_DELAY_MIN_US: u64 = 4_000;
const HYSTART_DELAY_MAX_US: u64 = 16_000;
/// Bytes of the largest super-packet, of which HyStart allows four between ACKs.
const GSO_MAX_BYTES: u64 = 65_536;

/// No slow start threshold yet.
pub const UNBOUNDED: u64 = u64::MAX;

/// The congestion window of one sender and what CUBIC remembers of it.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// The congestion window in segments.
    pub window: u64,
    /// The slow start threshold in segments; [`UNBOUNDED`] at first.
    pub threshold: u64,
    counted: u64,
    last_max: u64,
    last_window: u64,
    last_time: u64,
    origin: u64,
    k: u64,
    epoch: Option<u64>,
    acks: u64,
    reno_window: u64,
    per_segment: u64,
    delay_min_us: u64,
    hystart: HyStart,
}

#[derive(Clone, Debug, Default)]
struct HyStart {
    found: bool,
    round_start_us: u64,
    last_ack_us: u64,
    round_end: u64,
    least_rtt_us: u64,
    samples: u32,
}

/// What an ACK says to the congestion control.
#[derive(Clone, Copy, Debug)]
pub struct AckInfo {
    /// When it came.
    pub now: SimTime,
    /// Segments that it newly reports as delivered.
    pub delivered: u64,
    /// The oldest byte not yet acknowledged.
    pub unacknowledged: u64,
    /// The next byte to be sent.
    pub next: u64,
    /// Bytes a second that TCP would pace at; HyStart's train threshold hangs on it.
    pub pacing_rate: u64,
}

fn micros(time: SimTime) -> u64 {
    time.0 / 1_000_000
}

fn jiffies(time: SimTime) -> u64 {
    micros(time) / JIFFY_US
}

/// The largest integer whose cube is at most `value`.
fn cube_root(value: u64) -> u64 {
    let mut root = 0u64;
    for bit in (0..22).rev() {
        let tried = root | (1 << bit);
        if u128::from(tried).pow(3) <= u128::from(value) {
            root = tried;
        }
    }
    root
}

impl Cubic {
    /// A new connection's, with an initial window of `initial` segments.
    #[must_use]
    pub fn new(initial: u64) -> Self {
        Self {
            window: initial,
            threshold: UNBOUNDED,
            counted: 0,
            last_max: 0,
            last_window: 0,
            last_time: 0,
            origin: 0,
            k: 0,
            epoch: None,
            acks: 0,
            reno_window: 0,
            per_segment: 0,
            delay_min_us: 0,
            hystart: HyStart::default(),
        }
    }

    /// Whether the window is below the slow start threshold.
    #[must_use]
    pub const fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// A round-trip time was measured by an ACK.
    pub fn measured(&mut self, rtt_us: u64, info: &AckInfo) {
        // Just after a recovery the queue is still full of the past.
        if self.epoch.is_some_and(|epoch| jiffies(info.now).saturating_sub(epoch) < 250) && !self.in_slow_start() {
            return;
        }
        let rtt_us = rtt_us.max(1);
        if self.delay_min_us == 0 || rtt_us < self.delay_min_us {
            self.delay_min_us = rtt_us;
        }
        if !self.hystart.found && self.in_slow_start() && self.window >= HYSTART_LOW_WINDOW {
            self.watch_slow_start(rtt_us, info);
        }
    }

    /// HyStart: ends slow start when a round's ACKs come as one train for too long, or the delay has grown.
    fn watch_slow_start(&mut self, rtt_us: u64, info: &AckInfo) {
        let now = micros(info.now);
        let state = &mut self.hystart;
        if info.unacknowledged > state.round_end {
            *state = HyStart {
                round_start_us: now,
                last_ack_us: now,
                round_end: info.next,
                least_rtt_us: u64::MAX,
                ..HyStart::default()
            };
        }
        if now - state.last_ack_us <= HYSTART_TRAIN_GAP_US {
            state.last_ack_us = now;
            let allowance = (GSO_MAX_BYTES * 4 * 1_000_000 / info.pacing_rate.max(1)).min(1_000);
            if now - state.round_start_us > (self.delay_min_us + allowance) / 2 {
                state.found = true;
            }
        }
        state.least_rtt_us = state.least_rtt_us.min(rtt_us);
        if state.samples < HYSTART_SAMPLES {
            state.samples += 1;
        } else {
            let allowance = (self.delay_min_us / 8).clamp(HYSTART_DELAY_MIN_US, HYSTART_DELAY_MAX_US);
            state.found |= state.least_rtt_us > self.delay_min_us + allowance;
        }
        if state.found {
            self.threshold = self.window;
        }
    }

    /// Segments were acknowledged while the window was in use: grows it.
    pub fn acknowledged(&mut self, info: &AckInfo) {
        let mut segments = info.delivered;
        if self.in_slow_start() {
            let grown = self.window.saturating_add(segments).min(self.threshold);
            segments -= grown - self.window;
            self.window = grown;
            if segments == 0 {
                return;
            }
        }
        self.update(info.now, segments);
        self.grow(segments);
    }

    /// One segment more for each `per_segment` that were acknowledged.
    fn grow(&mut self, segments: u64) {
        let per_segment = self.per_segment.max(1);
        if self.counted >= per_segment {
            self.counted = 0;
            self.window += 1;
        }
        self.counted += segments;
        if self.counted >= per_segment {
            self.window += self.counted / per_segment;
            self.counted %= per_segment;
        }
    }

    fn update(&mut self, now: SimTime, segments: u64) {
        let time = jiffies(now);
        self.acks += segments;
        if self.last_window == self.window && time.saturating_sub(self.last_time) <= 250 / 32 && self.epoch.is_some() {
            return;
        }
        if self.epoch.is_none() || time != self.last_time {
            self.last_window = self.window;
            self.last_time = time;
            self.follow_cubic(time, segments);
        }
        self.be_reno_friendly();
        self.per_segment = self.per_segment.max(2);
    }

    fn follow_cubic(&mut self, time: u64, segments: u64) {
        let window = self.window;
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acks = segments;
            self.reno_window = window;
            if self.last_max <= window {
                self.k = 0;
                self.origin = window;
            } else {
                self.k = cube_root((1 << (10 + 3 * CLOCK_BITS)) / C_TIMES_1024 * (self.last_max - window));
                self.origin = self.last_max;
            }
            time
        });
        let elapsed_us = time.saturating_sub(epoch) * JIFFY_US + self.delay_min_us;
        let elapsed = (elapsed_us << CLOCK_BITS) / 1_000_000;
        let offset = u128::from(elapsed.abs_diff(self.k));
        let wide = (u128::from(C_TIMES_1024) * offset.pow(3)) >> (10 + 3 * CLOCK_BITS);
        let distance = u64::try_from(wide).unwrap_or(u64::MAX);
        let target =
            if elapsed < self.k { self.origin.saturating_sub(distance) } else { self.origin.saturating_add(distance) };
        self.per_segment = if target > window { window / (target - window) } else { 100 * window };
        if self.last_max == 0 && self.per_segment > 20 {
            self.per_segment = 20;
        }
    }

    fn be_reno_friendly(&mut self) {
        let per_segment = ((self.window * RENO_SCALE) >> 3).max(1);
        while self.acks > per_segment {
            self.acks -= per_segment;
            self.reno_window += 1;
        }
        if self.reno_window > self.window {
            let most = self.window / (self.reno_window - self.window);
            self.per_segment = self.per_segment.min(most);
        }
    }

    /// A loss: the new slow start threshold, and the end of the epoch. The window is the caller's to shrink.
    pub fn lost(&mut self) {
        self.epoch = None;
        self.last_max = if self.window < self.last_max {
            self.window * (BETA_SCALE + BETA) / (2 * BETA_SCALE)
        } else {
            self.window
        };
        self.threshold = (self.window * BETA / BETA_SCALE).max(2);
    }

    /// A retransmission time-out: everything but the threshold starts anew.
    pub fn timed_out(&mut self) {
        let threshold = self.threshold;
        *self = Self::new(1);
        self.threshold = threshold;
    }

    /// The sender begins again after `idle_ps` with nothing in flight: the time of the pause does not count.
    pub fn resumed(&mut self, now: SimTime, idle_ps: u64) {
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle_ps / 1_000_000 / JIFFY_US).min(jiffies(now));
        }
    }

    /// Slow start after idle: the window halves for each time-out that the pause lasted, not below `initial`.
    pub fn restart(&mut self, idle_ps: u64, timeout_ps: u64, initial: u64) {
        let least = initial.min(self.window);
        let kept = self.window * 3 / 4;
        if self.threshold != UNBOUNDED {
            self.threshold = self.threshold.max(kept);
        }
        let halvings = idle_ps / timeout_ps.max(1);
        self.window = self.window.checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0).max(least);
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn info(now_us: u64, delivered: u64) -> AckInfo {
        AckInfo {
            now: SimTime(now_us * 1_000_000),
            delivered,
            unacknowledged: now_us,
            next: now_us + 1,
            pacing_rate: 12_500_000,
        }
    }

    #[test]
    fn cube_roots_are_exact() {
        for root in [0u64, 1, 2, 3, 10, 999, 1_000, 2_642_245 / 2] {
            let cube = root.pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 3 * root * root + 3 * root), root);
        }
    }

    #[test]
    fn slow_start_doubles_and_a_loss_takes_three_tenths() {
        let mut cubic = Cubic::new(10);
        cubic.acknowledged(&info(100, 10));
        assert_eq!(cubic.window, 20);
        cubic.lost();
        assert_eq!(cubic.threshold, 20 * 717 / 1024);
    }

    #[test]
    fn the_window_is_back_at_its_old_maximum_after_k() {
        let mut cubic = Cubic::new(1_000);
        cubic.lost();
        cubic.window = cubic.threshold;
        // K = cbrt(0.3 W / C) = cbrt(300 / 0.4) = 9.086 s; ten round trips of 100 ms a second.
        let mut at_8s = 0;
        for round in 1..=100 {
            cubic.acknowledged(&info(1_000_000 + round * 100_000, cubic.window));
            if round == 60 {
                at_8s = cubic.window;
            }
        }
        assert!((940..1_000).contains(&at_8s), "concave below the old maximum: {at_8s}");
        assert!((990..1_020).contains(&cubic.window), "{}", cubic.window);
    }

    #[test]
    fn an_ack_train_ends_slow_start() {
        let mut cubic = Cubic::new(16);
        for ack in 0..20 {
            let round = AckInfo { unacknowledged: 1_000 + ack, next: 2_000, ..info(1_000 + ack * 100, 1) };
            cubic.measured(300, &round);
        }
        // (300 us + 1 ms) / 2 after the round began, well before 20 ACKs at 100 us are over.
        assert_eq!(cubic.threshold, 16);
    }

    #[test]
    fn idle_time_halves_the_window_but_not_below_the_initial_one() {
        let mut cubic = Cubic::new(10);
        cubic.window = 100;
        cubic.threshold = 50;
        cubic.restart(2_500, 1_000, 10);
        assert_eq!((cubic.window, cubic.threshold), (25, 75));
        cubic.restart(u64::MAX, 1_000, 10);
        assert_eq!(cubic.window, 10);
    }
}
