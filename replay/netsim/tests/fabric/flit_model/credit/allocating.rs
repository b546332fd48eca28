//! Allocations: switches that match all their heads with their links at once, inputs that pass one packet at a time.

use super::{Choice, Happening, Model, Step};
use crate::flit_model::arbiter::Turn;
use crate::flit_model::fault::Fault;
use netsim::fabric::credit::{AllocationOrder, SeparableConfig};
use std::collections::BTreeMap;

/// A head that may start.
#[derive(Clone, Copy)]
struct Request {
    queue: usize,
    choice: Choice,
    /// The turn of its VL at the link, once the link has granted.
    turn: Option<Turn>,
}

impl Model<'_> {
    /// Every switch allocates, if now is one of its instants, and notes the next one if something is left.
    pub(super) fn allocations(&mut self) {
        let Some(allocation) = self.config.allocation else { return };
        let cycle = if self.fault == Some(Fault::CycleForgotten) { 0 } else { allocation.cycle.ps() };
        for node in self.topology.hosts() as usize..self.at_node.len() {
            if cycle == 0 || self.now.0.is_multiple_of(cycle) {
                while !self.requests(node).is_empty() {
                    self.allocate(node, &allocation);
                    if cycle > 0 {
                        break;
                    }
                }
            }
            if !self.requests(node).is_empty() {
                let next = (self.now.0 / cycle + 1) * cycle;
                self.note(netsim::time::SimTime(next), Step::Move, Happening::Cycle);
            }
        }
        for (link, state) in self.links.iter_mut().enumerate() {
            if self.topology.link(link.into()).from.0 >= self.topology.hosts() && state.free {
                state.arbiter.idle();
            }
        }
    }

    /// The heads of a switch that may start, in order of queues: link and input are free, credits are there.
    fn requests(&self, node: usize) -> Vec<Request> {
        let mut requests = Vec::new();
        for queue in self.at_node[node].clone() {
            if let Some(choice) = self.may_start(queue)
                && self.links[choice.link].free
                && !self.input_busy(queue)
            {
                requests.push(Request { queue, choice, turn: None });
            }
        }
        requests
    }

    /// Whether the input of a queue passes a packet.
    fn input_busy(&self, queue: usize) -> bool {
        let input = self.queues[queue].input;
        let node = self.queues[queue].node.0 as usize;
        let of_input = self.at_node[node].clone().filter(|other| self.queues[*other].input == input);
        let mut heads = of_input.filter_map(|other| self.queues[other].waiting.front());
        let in_gap = self.fault == Some(Fault::InputBusyInGap)
            && self.links.iter().any(|link| !link.free && link.last_input == input);
        in_gap || self.fault != Some(Fault::InputsNoResource) && heads.any(|head| head.started)
    }

    /// One allocation of a switch, in which all iterations pass.
    fn allocate(&mut self, node: usize, allocation: &SeparableConfig) {
        let input_first =
            (allocation.order == AllocationOrder::InputFirst) != (self.fault == Some(Fault::OtherSideFirst));
        let iterations = if self.fault == Some(Fault::OneIteration) { 1 } else { allocation.iterations };
        for iteration in 0..iterations {
            let requests = self.requests(node);
            let matched = if input_first {
                let asked = self.inputs_take(requests);
                self.links_take(asked)
            } else {
                let granted = self.links_take(requests);
                self.inputs_take(granted)
            };
            for request in matched {
                let first = iteration == 0 || self.fault == Some(Fault::TurnsMoveInAllIterations);
                self.start_matched(request, first);
            }
        }
    }

    /// For each input the one of `requests` that it takes.
    fn inputs_take(&self, requests: Vec<Request>) -> Vec<Request> {
        let mut of_input: BTreeMap<usize, Vec<Request>> = BTreeMap::new();
        for request in requests {
            of_input.entry(self.queues[request.queue].input.unwrap()).or_default().push(request);
        }
        let rule = match self.fault {
            Some(Fault::QueuesByRuleOfInputs) => self.config.input_arbitration,
            _ => self.config.allocation.unwrap().queue_arbitration,
        };
        let mut taken = Vec::new();
        for (input, mut requests) in of_input {
            requests.sort_by_key(|request| request.queue);
            let queues: Vec<usize> = requests.iter().map(|request| request.queue).collect();
            // The queues of an input stand one behind the other, by VL; at the start the turn is that of VL 0.
            let first = queues[0] - self.queues[queues[0]].vl;
            let last = self.last_matched[input].map_or(first + usize::from(self.config.vls) - 1, |vl| first + vl);
            let queue = self.by_rule(rule, last, &queues);
            taken.push(*requests.iter().find(|request| request.queue == queue).unwrap());
        }
        taken
    }

    /// For each link the one of `requests` that it takes: first the VL, then the input.
    fn links_take(&mut self, requests: Vec<Request>) -> Vec<Request> {
        let mut of_link: BTreeMap<usize, Vec<Request>> = BTreeMap::new();
        for request in requests {
            of_link.entry(request.choice.link).or_default().push(request);
        }
        let mut taken = Vec::new();
        for (link, mut requests) in of_link {
            requests.sort_by_key(|request| request.queue);
            let mut vls = vec![false; usize::from(self.config.vls)];
            requests.iter().for_each(|request| vls[request.choice.vl] = true);
            let turn = self.links[link].arbiter.turn(&vls).unwrap();
            let vl = usize::from(turn.vl);
            let on_vl = requests.iter().filter(|request| request.choice.vl == vl);
            let queues: Vec<usize> = on_vl.map(|request| request.queue).collect();
            let queue = self.input(link, vl, &queues);
            if self.fault == Some(Fault::TurnsMoveUnmatched) {
                self.links[link].lanes[vl].last_taken = queue;
            }
            let request = requests.iter().find(|request| request.queue == queue).unwrap();
            taken.push(Request { turn: Some(turn), ..*request });
        }
        taken
    }

    /// A packet starts that was matched; `first` says whether round robins move on.
    fn start_matched(&mut self, request: Request, first: bool) {
        let Request { queue, choice: Choice { link, vl, .. }, turn } = request;
        let packet = &self.packets[self.queues[queue].waiting[0].packet];
        let (credits, bytes) = (packet.credits, packet.flits * self.flit());
        let input = self.queues[queue].input;
        self.links[link].arbiter.start(&turn.unwrap(), credits, bytes);
        self.links[link].last_input = input;
        if first {
            self.links[link].lanes[vl].last_taken = queue;
            self.last_matched[input.unwrap()] = Some(self.queues[queue].vl);
        }
        self.start(link, vl, queue);
    }
}
