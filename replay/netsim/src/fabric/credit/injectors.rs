//! What hosts with several queues know of them.

use super::config::InjectionConfig;
use super::lanes::Numbering;
use crate::time::SimTime;

/// What hosts know of their queues.
pub(super) struct Injectors {
    pub config: InjectionConfig,
    /// Of each queue: the flits of its packets that have not begun to leave.
    pub flits: Vec<u64>,
    /// Until when its last packet leaves that has begun to.
    pub leaving_until: Vec<SimTime>,
}

impl Injectors {
    /// Nothing waits at `hosts` hosts.
    pub fn new(config: InjectionConfig, number: Numbering, hosts: u32) -> Self {
        let queues = number.count(hosts as usize);
        Self { config, flits: vec![0; queues], leaving_until: vec![SimTime::ZERO; queues] }
    }

    /// Of `queues`, a bit each, those that there are.
    pub fn among(&self, queues: u32) -> impl Iterator<Item = u32> {
        (0..u32::from(self.config.queues)).filter(move |queue| queues >> queue & 1 == 1)
    }

    /// With how many packets a queue is full.
    pub fn full(&self) -> u64 {
        self.config.full.unwrap_or(u64::MAX)
    }
}
