//! The jobs under way: what YARN, HDFS and the tasks do when something has happened.
//!
//! One module a subject: `state`, `attempts` and `capacity` (how things stand), `app` (submission, application master, the job's end), `yarn` (heartbeats, who gets which container),
//! `speculation` (second attempts of slow tasks), `behaviour`, `map`, `reduce` (what tasks do), `pipeline` (writing to HDFS), `plan` (how all of them add steps).

mod app;
mod attempts;
mod behaviour;
mod capacity;
mod map;
mod pending_outputs;
mod pipeline;
mod plan;
mod reduce;
mod requests;
mod running;
mod speculation;
mod spills;
mod state;
mod yarn;

use netsim::engine::Workload;
use netsim::network::{Delivery, HostIndex, Network, Token};
use netsim::time::SimTime;
use trace::ids::ConnectionId;
use trace::rows::{Carrier, On, TaskKind};

use crate::kernel::{Fired, StepId};
pub use state::Model;
pub(crate) use state::Task;
use state::{Continuation, TimerOwner};

impl Model {
    /// Does what follows on all that has happened, and hands to the network what is sent.
    fn settle<N: Network>(&mut self, network: &mut N) {
        while let Some(fired) = self.kernel.next_fired() {
            self.follow(fired);
        }
        for sent in self.kernel.take_outgoing() {
            while self.flows.len() <= sent.connection.index() {
                let connection = ConnectionId(self.flows.len() as u32);
                let (client, server) = self.world.ends(connection);
                let flows = network.open_connection(HostIndex(client.0), HostIndex(server.0));
                let kind = self.world.connections[connection.index()].protocol.kind();
                network.describe(flows.0, kind);
                network.describe(flows.1, kind);
                self.flows.push(flows);
            }
            let (from_client, from_server) = self.flows[sent.connection.index()];
            let flow = if sent.from_client { from_client } else { from_server };
            let note = self.world.notes.get(sent.message.0 as usize).copied().flatten();
            let of_bytes = note.map_or(sent.bytes, |note| note.bytes);
            network.send_part(self.kernel.now, flow, sent.bytes, of_bytes, Token(sent.step.0.into()));
        }
    }

    fn follow(&mut self, fired: Fired<Continuation>) {
        match fired.hook {
            Continuation::Beat(timer, half) => match (self.owners[timer.index()], half, fired.moment) {
                (TimerOwner::Node(node), Carrier::Request, On::Sent) => self.node_reports(node),
                (TimerOwner::Node(node), Carrier::Request, On::Delivered) => self.node_update(node, fired.step),
                (TimerOwner::App(app), Carrier::Response, On::Sent) => self.master_response_leaves(app),
                (TimerOwner::App(app), Carrier::Response, On::Delivered) => self.ramp_up_reduces(app, fired.step),
                (TimerOwner::Report(task), Carrier::Request, moment) => self.report(task, moment == On::Delivered),
                (TimerOwner::Reduce(task), Carrier::Response, On::Sent) => self.events_are_sent(task),
                (TimerOwner::Reduce(task), Carrier::Response, On::Delivered) => self.events_are_there(task),
                _ => {}
            },
            Continuation::Submitted(app) => self.apps[app as usize].asked_master = Some(fired.step),
            Continuation::Registered(app) => self.ask_maps(app, fired.step),
            Continuation::MapsAsked(app) => self.maps_are_asked(app, fired.step),
            Continuation::ReducesAsked(app, reduces) => self.reduces_are_asked(app, reduces, fired.step),
            Continuation::TaskUp(task) if self.kernel.is_killed(task) => {}
            Continuation::TaskUp(task) => match self.tasks[task.index()].kind {
                TaskKind::Reduce => self.start_reduce(task, fired.step),
                TaskKind::Map | TaskKind::Other => self.start_map(task, fired.step),
            },
            Continuation::Scan(app) => self.scan(app),
            Continuation::SecondAsked(task) => self.second_is_asked(task, fired.step),
            Continuation::Killed(task) => self.attempt_is_killed(task, fired.step),
            Continuation::Released(container) => self.container_is_released(container, fired.step),
            Continuation::TaskDone(task) => self.task_done(task, fired.step),
            Continuation::Exited(container) => self.container_exits(container, fired.step),
            Continuation::Fetched(task, fetcher) => self.fetched(task, fetcher, fired.step),
            Continuation::ShuffleEnd(task) => self.reduce_input(task, fired.step),
            Continuation::JobFinished(app) => self.job_finished(app, fired.step),
            Continuation::ClientKnows(app) => self.client_knows(app, fired.step),
        }
    }
}

impl<N: Network> Workload<N> for Model {
    fn next_tick(&self, _: &N) -> Option<SimTime> {
        self.kernel.next()
    }

    fn tick(&mut self, _: SimTime, network: &mut N) {
        self.kernel.act();
        self.settle(network);
    }

    fn delivered(&mut self, delivery: &Delivery, network: &mut N) {
        if let Ok(step) = u32::try_from(delivery.token.0) {
            self.kernel.delivered(delivery.at, StepId(step));
            self.settle(network);
        }
    }

    fn is_done(&self) -> bool {
        self.is_complete() || self.is_full()
    }
}
