//! Tasks that run: where, for whom, and how fast.

use netsim::kernel::random;
use trace::ids::TaskId;

use super::behaviour::Behaviour;
use super::plan::Actor;
use super::state::Model;
use crate::world::NodeId;

/// What a task is about, once it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) actor: Actor,
    pub(super) node: NodeId,
    pub(super) app: u32,
    /// Its computing takes so many times as long as that of a mean task.
    pub(super) factor: f64,
    pub(super) behaviour: Behaviour,
}

impl Model {
    pub(super) fn running(&self, task: TaskId) -> Option<Running> {
        let state = &self.tasks[task.index()];
        let (node, process) = (state.node?, state.process?);
        let actor = Actor { process, task: Some(task) };
        Some(Running { actor, node, app: state.app, factor: self.speed_factor(task), behaviour: self.behaviour(task) })
    }

    /// Log-normal with mean 1.
    fn speed_factor(&self, task: TaskId) -> f64 {
        let deviation = self.file.jobs[self.app_of(task) as usize].speed_deviation;
        if deviation == 0.0 {
            return 1.0;
        }
        let uniform = |count| {
            (random::draw(self.file.seed, 0x7370_6565_0000_0000 | u64::from(task.0), count) >> 11) as f64
                / (1u64 << 53) as f64
        };
        let normal = (-2.0 * libm::log(1.0 - uniform(0))).sqrt() * libm::cos(std::f64::consts::TAU * uniform(1));
        let variance = libm::log(1.0 + deviation * deviation);
        libm::exp(normal * variance.sqrt() - variance / 2.0)
    }
}
