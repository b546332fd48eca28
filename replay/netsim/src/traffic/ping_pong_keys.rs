//! The keys of hosts that ask and answer, and what they come to.

use super::config::{Pattern, TrafficConfig, TrafficError};
use super::ping_pong::{Noise, NoiseDistribution, Partner, PingPongPlan};
use super::plan::span_ps;
use super::span::Span;
use super::table::MAX_PS;
use crate::fabric::packet::LinkTime;
use crate::units::DurationPs;

/// Questions that a host may have out.
const MAX_WINDOW: u32 = 1 << 16;

fn check_noise(noise: &Noise) -> Result<(), TrafficError> {
    let deviation = noise.deviation.map(DurationPs::ps);
    let day = MAX_PS;
    if noise.mean.ps() > day || deviation.is_some_and(|deviation| deviation > day) {
        return Err(TrafficError::value("noise", noise.mean, "mean and deviation of at most a simulated day"));
    }
    match (noise.distribution, deviation) {
        (NoiseDistribution::Exponential, Some(_)) => {
            let reason = "an exponential distribution deviates by its mean; leave this out";
            Err(TrafficError::key("noise.deviation", reason.to_owned()))
        }
        (NoiseDistribution::Normal | NoiseDistribution::Uniform, None) => {
            Err(TrafficError::key("noise.deviation", "normal and uniform distributions need it".to_owned()))
        }
        (NoiseDistribution::Uniform, Some(ps)) if u128::from(ps).pow(2) * 3 > u128::from(noise.mean.ps()).pow(2) => {
            let value = DurationPs(ps);
            Err(TrafficError::value("noise.deviation", value, "at most mean / sqrt(3): nothing takes less than 0"))
        }
        _ => Ok(()),
    }
}

impl TrafficConfig {
    pub(super) fn is_ping_pong(&self) -> bool {
        self.pattern == Pattern::PingPong
    }

    /// Refuses what contradicts a ping-pong.
    pub(super) fn check_ping_pong(&self) -> Result<(), TrafficError> {
        if !self.is_ping_pong() {
            return Ok(());
        }
        for (key, given) in [
            ("load", self.load.is_some()),
            ("interval", self.interval.is_some()),
            ("arrivals", self.arrivals.is_some()),
            ("lengths", !self.lengths.is_empty()),
            ("injection_queue", self.injection_queue.is_some()),
            ("network_limit", self.network_limit.is_some()),
            ("react", self.react.is_some()),
            ("bursts", self.bursts.is_some()),
            ("self_traffic", self.self_traffic),
            ("warm_up", self.count.is_some() && self.warm_up.is_some()),
        ] {
            if given {
                let reason = "in a ping-pong a host asks when it has its answer; leave this out";
                return Err(TrafficError::key(key, reason.to_owned()));
            }
        }
        if let Some(window) = self.window
            && !(1..=MAX_WINDOW).contains(&window)
        {
            return Err(TrafficError::value("window", window, &format!("1 to {MAX_WINDOW} questions of a host")));
        }
        if let Some(reply) = self.reply
            && reply.get() > 1 << 40
        {
            return Err(TrafficError::value("reply", format!("\"{reply}\""), "at most 1 TiB"));
        }
        self.noise.as_ref().map_or(Ok(()), check_noise)
    }

    /// What the keys come to, for messages of `bytes`.
    pub(super) fn ping_pong(&self, link: &LinkTime, bytes: u64) -> Result<Option<PingPongPlan>, TrafficError> {
        if !self.is_ping_pong() {
            return Ok(None);
        }
        Ok(Some(PingPongPlan {
            first_asks: self.partner.unwrap_or_default() != Partner::Random,
            window: self.window.unwrap_or(1),
            reply_bytes: self.reply.map_or(bytes, |reply| reply.get()),
            turnaround_ps: span_ps("turnaround", self.turnaround.unwrap_or(Span::Cycles(0)), link)?,
            noise: self.noise,
        }))
    }
}
