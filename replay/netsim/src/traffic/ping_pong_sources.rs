//! Hosts that ask and answer.

use std::collections::HashMap;
use std::f64::consts::TAU;

use super::drawing::{Drawing, message};
use super::ping_pong::{Noise, NoiseDistribution, PingPongPlan};
use super::{Drawn, draw, unit};
use crate::fabric::packet::Message;
use crate::kernel::{EventQueue, Phase, Place};
use crate::network::Token;
use crate::statistics::{Meter, float};
use crate::time::SimTime;
use crate::units::DurationPs;

/// A question and its answer.
#[derive(Clone, Copy)]
struct Exchange {
    /// The host that asks.
    asks: u32,
    /// When it handed the question over.
    began: SimTime,
}

/// What a host does.
#[derive(Clone, Copy)]
enum Turn {
    /// It asks.
    Ask,
    /// It answers.
    Answer(Exchange),
}

/// Hosts that ask and answer.
pub struct PingPongSources<'a> {
    drawing: &'a Drawing,
    plan: PingPongPlan,
    queue: EventQueue<(u32, Turn)>,
    /// How many messages each host has handed over.
    handed_over: Vec<u64>,
    /// How many questions each host has decided to ask.
    asked: Vec<u64>,
    /// How often each host has drawn what it takes longer.
    noises: Vec<u64>,
    /// Messages under way by their tokens, and whether they are answers.
    under_way: HashMap<u64, (Exchange, bool)>,
    /// Questions that were decided on and have had no answer yet.
    open: u64,
}

impl<'a> PingPongSources<'a> {
    pub(super) fn new(drawing: &'a Drawing, plan: PingPongPlan, hosts: u32) -> Self {
        let mut sources = Self {
            drawing,
            plan,
            queue: EventQueue::new(1 << 20),
            handed_over: vec![0; hosts as usize],
            asked: vec![0; hosts as usize],
            noises: vec![0; hosts as usize],
            under_way: HashMap::new(),
            open: 0,
        };
        let asking: Vec<u32> = (0..hosts).filter(|host| sources.is_asking(*host)).collect();
        for host in asking {
            (0..plan.window).for_each(|_| sources.decide_to_ask(host, SimTime::ZERO));
        }
        sources
    }

    /// Whether `host` asks of its own accord.
    fn is_asking(&self, host: u32) -> bool {
        let partner = self.drawing.destinations.destination(self.drawing.seed, host, 0);
        !self.plan.first_asks || partner.is_some_and(|partner| host < partner)
    }

    /// `host` asks from `now` on, unless it has asked often enough or the run will be over.
    fn decide_to_ask(&mut self, host: u32, now: SimTime) {
        let asked = &mut self.asked[host as usize];
        if self.drawing.plan.count.is_some_and(|most| *asked >= most) {
            return;
        }
        *asked += 1;
        self.open += 1;
        self.schedule(host, now, Turn::Ask);
    }

    /// `host` takes its turn at `at`, or as much later as noise says.
    fn schedule(&mut self, host: u32, at: SimTime, turn: Turn) {
        let noise = self.plan.noise.map_or(0, |noise| {
            let drawn = &mut self.noises[host as usize];
            *drawn += 1;
            noise.ps(self.drawing.seed, host, *drawn - 1)
        });
        let at = at.0.saturating_add(noise);
        if at < self.drawing.plan.end_ps {
            self.queue.schedule(SimTime(at), Phase::Arrive, Place(host), (host, turn));
        }
    }

    /// When the next message is handed over; `None` while all wait for deliveries.
    pub fn next_time(&self) -> Option<SimTime> {
        self.queue.next_time()
    }

    /// The next message that is handed over at `now`.
    pub fn next_at(&mut self, now: SimTime) -> Option<Message> {
        let (_, (host, turn)) = self.queue.pop_until(now)?;
        let count = self.handed_over[host as usize];
        self.handed_over[host as usize] += 1;
        let (message, exchange, answers) = match turn {
            Turn::Ask => (self.drawing.message(host, count)?, Exchange { asks: host, began: now }, false),
            Turn::Answer(exchange) => {
                let (bytes, level) = (self.plan.reply_bytes, self.drawing.level(host, count));
                let flows = self.drawing.plan.flows;
                (message(host, exchange.asks, bytes, level, count, flows), exchange, true)
            }
        };
        self.under_way.insert(message.token.0, (exchange, answers));
        Some(message)
    }

    /// The message with `token` has arrived at `now`.
    pub(super) fn delivered(&mut self, now: SimTime, token: Token, meter: &mut Meter) {
        let Some((exchange, answers)) = self.under_way.remove(&token.0) else { return };
        if answers {
            self.open -= 1;
            meter.round_trip(exchange.began, now);
            self.decide_to_ask(exchange.asks, now);
            return;
        }
        let (source, count) = (exchange.asks, token.0 & ((1 << 40) - 1));
        let Some(host) = self.drawing.destinations.destination(self.drawing.seed, source, count) else { return };
        let at = SimTime(now.0.saturating_add(self.plan.turnaround_ps));
        self.schedule(host, at, Turn::Answer(exchange));
    }

    /// A packet of the message with `token` was lost, which is known at `now`: its host asks again.
    pub(super) fn lost(&mut self, now: SimTime, token: Token) {
        if let Some((exchange, _)) = self.under_way.remove(&token.0) {
            self.open -= 1;
            self.decide_to_ask(exchange.asks, now);
        }
    }

    /// Whether each host has had all its answers, where their number is given.
    pub(super) const fn is_done(&self) -> bool {
        self.drawing.plan.count.is_some() && self.open == 0
    }
}

impl Noise {
    /// What `host` takes longer with its message `count`, in picoseconds.
    fn ps(&self, seed: u64, host: u32, count: u64) -> u64 {
        let drawn = unit(draw(seed, Drawn::Noise, host, count));
        let mean = float(self.mean.ps());
        let deviation = float(self.deviation.map_or(0, DurationPs::ps));
        let noise = match self.distribution {
            NoiseDistribution::Exponential => -mean * libm::log1p(-drawn),
            NoiseDistribution::Uniform => mean + deviation * 3f64.sqrt() * (2.0 * drawn - 1.0),
            NoiseDistribution::Normal => {
                let angle = TAU * unit(draw(seed, Drawn::NoiseAngle, host, count));
                mean + deviation * (-2.0 * libm::log1p(-drawn)).sqrt() * libm::cos(angle)
            }
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate: never below 0")]
        let ps = noise.round() as u64;
        ps
    }
}
