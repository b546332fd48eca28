//! Switches whose inputs pass one packet at a time match all their heads with their links at once.

use super::allocator::{Allocator, Request, Requests};
use super::arbiter::{GrantedVl, Turns};
use super::arbitration::{Asking, Bits as _, Heads};
use super::input_arbiter::{Contender, Contest, InputArbiter};
use super::strategies::Strategies;
use super::{Credit, Event};
use crate::fabric::ids::LaneId;
use crate::fabric::packet::Observer;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};
use crate::units::DurationPs;

/// What was found at a switch: requests, and for links that stay idle what they wait for.
#[derive(Default)]
struct SwitchRequests {
    requests: Vec<Request>,
    heads: Vec<Head>,
    /// Lanes for which a head lacks credits, and the least that is lacked.
    lacking: Vec<(LinkId, u32, u32)>,
    /// When an input is free for which a head waits.
    input_free: Option<SimTime>,
}

/// A request's queue and its bit in the masks of the lane.
#[derive(Clone, Copy)]
struct Head {
    queue: LaneId,
    bit: u32,
}

/// A match: how the output's tables of VLs are then.
#[derive(Clone, Copy)]
struct Match {
    request: usize,
    turns: Turns,
    given: GrantedVl,
    moves_turns: bool,
}

impl<O: Observer, S: Strategies> Credit<O, S> {
    /// The event for which `switch` waited, unless it has found out since that it should wait for another one.
    pub(super) fn switch_woken(&mut self, switch: NodeId, at: SimTime) {
        let Some(switches) = &mut self.switches else { return };
        let wake = &mut switches.wakes[switch.0 as usize];
        if *wake == at {
            *wake = SimTime::MAX;
            switches.look_at(switch);
        }
    }

    /// Has `switch` look again at the first instant from `at` on at which it allocates, unless it will earlier.
    fn wake_switch(&mut self, switch: NodeId, at: SimTime) {
        let Some(switches) = &mut self.switches else { return };
        let at = switches.from(at);
        let wake = &mut switches.wakes[switch.0 as usize];
        if at < *wake {
            *wake = at;
            self.events.schedule(at, Event::Switch(switch));
        }
    }

    /// All switches allocate that have to look.
    pub(super) fn allocate_all(&mut self, now: SimTime) {
        let Some(switches) = &mut self.switches else { return };
        let mut looking = std::mem::take(&mut switches.looking);
        let allocates = switches.from(now) == now;
        looking.iter().for_each(|switch| switches.listed[switch.0 as usize] = false);
        for switch in looking.drain(..) {
            if allocates { self.allocate(switch, now) } else { self.wake_switch(switch, now) }
        }
        if let Some(switches) = &mut self.switches {
            switches.looking = looking;
        }
    }

    /// Matches the heads of `switch` that may start with its links, and has it look again for the others.
    fn allocate(&mut self, switch: NodeId, now: SimTime) {
        let Some(cycle) = self.switches.as_ref().map(|switches| switches.cycle) else { return };
        let SwitchRequests { mut requests, mut heads, lacking, mut input_free } = self.requests_of(switch, now);
        loop {
            let mut matching = Matching::new(self, requests, &heads, now);
            self.allocator.allocate(&mut matching);
            let Matching { matched, open, all, .. } = matching;
            for one in &matched {
                self.start_matched(all[one.request], heads[one.request], *one, now);
            }
            let left = |request: &usize| open[*request];
            // Of those that were not matched, whose link is free, the input has passed another packet.
            let closed = (0..all.len()).filter(|request| !open[*request]).map(|request| all[request]);
            for Request { input, .. } in closed.filter(|request| self.links[request.output].free_at <= now) {
                input_free = earlier(input_free, self.switches.as_ref().map(|switches| switches.free_at[input]), now);
            }
            heads = (0..all.len()).filter(left).map(|request| heads[request]).collect();
            requests = (0..all.len()).filter(left).map(|request| all[request]).collect();
            if requests.is_empty() || matched.is_empty() || cycle > DurationPs::ZERO {
                break;
            }
        }
        if !requests.is_empty() && cycle > DurationPs::ZERO {
            self.wake_switch(switch, now + cycle);
        }
        if let Some(at) = input_free {
            self.wake_switch(switch, at);
        }
        for (output, vl, least) in lacking {
            // One that has started something looks when it is free.
            if self.links[output].free_at <= now {
                self.wait_for(self.number.lane(output, vl), least);
            }
        }
    }

    /// What the heads of `switch` ask for.
    fn requests_of(&mut self, switch: NodeId, now: SimTime) -> SwitchRequests {
        let mut found = SwitchRequests::default();
        for output in self.topology.out(switch).to_vec() {
            let output = self.link_numbers.output(output);
            let link = self.links[output];
            if link.asking == 0 {
                continue;
            }
            if link.free_at > now {
                self.wake(output, link.free_at);
                continue;
            }
            for vl in (0..self.vls).filter(|vl| link.asking & 1 << vl != 0) {
                self.requests_for(output, vl, now, &mut found);
            }
        }
        found
    }

    /// The same for `vl` of the link `output`, which is free.
    fn requests_for(&mut self, output: LinkId, vl: u32, now: SimTime, found: &mut SwitchRequests) {
        let link = self.links[output];
        let lane = self.number.lane(output, vl);
        let mut least = u32::MAX;
        let masks = self.asking_masks(output, vl);
        let mut bits = Asking::new(&masks, 0);
        while let Some(bit) = bits.next() {
            let queue = self.queue_of(link.inputs, vl, bit);
            let input = self.number.link(queue);
            let need = self.lanes.ends[queue].buffer.need;
            if !self.lanes.has(lane, need, now) {
                least = least.min(need);
                continue;
            }
            let free_at = self.switches.as_ref().map(|switches| switches.free_at[input]);
            if free_at > Some(now) {
                found.input_free = earlier(found.input_free, free_at, now);
                continue;
            }
            found.requests.push(Request { input, input_vl: self.number.vl(queue), output, output_vl: vl });
            found.heads.push(Head { queue, bit });
        }
        if least < u32::MAX {
            found.lacking.push((output, vl, least));
        }
    }

    /// A packet that was matched starts.
    fn start_matched(&mut self, request: Request, head: Head, matched: Match, now: SimTime) {
        let Request { input, input_vl, output, output_vl } = request;
        let lane = self.number.lane(output, output_vl);
        let begin = self.lanes.ends[lane].sender.begin;
        self.links[output].turns = matched.turns;
        let Some((flits, credits)) = self.leave_queue(output, output_vl, head.bit, now) else { return };
        let bytes = u32::try_from(u64::from(flits) * self.flit).unwrap_or(u32::MAX);
        self.tables.started(&mut self.links[output].turns, matched.given, credits.into(), bytes);
        if !matched.moves_turns {
            self.lanes.ends[lane].sender.begin = begin;
        }
        let Some(switches) = &mut self.switches else { return };
        // The head behind it comes when its last flit has left, which is when its input is free.
        switches.free_at[input] = self.lanes.ends[head.queue].buffer.since;
        if matched.moves_turns {
            switches.turns[input] = input_vl + 1;
        }
    }
}

/// The earlier of two instants, those by `now` apart.
fn earlier(one: Option<SimTime>, other: Option<SimTime>, now: SimTime) -> Option<SimTime> {
    one.into_iter().chain(other).filter(|at| *at > now).min()
}

/// The requests of one switch while they are matched.
struct Matching<'a, O, S: Strategies> {
    network: &'a Credit<O, S>,
    heads: &'a [Head],
    now: SimTime,
    all: Vec<Request>,
    open: Vec<bool>,
    /// For each request how its output's tables of VLs are if it is taken, once the output has taken its pick.
    granted: Vec<Option<(Turns, GrantedVl)>>,
    matched: Vec<Match>,
}

impl<'a, O, S: Strategies> Matching<'a, O, S> {
    fn new(network: &'a Credit<O, S>, all: Vec<Request>, heads: &'a [Head], now: SimTime) -> Self {
        let (open, granted) = (vec![true; all.len()], vec![None; all.len()]);
        Self { network, heads, now, all, open, granted, matched: Vec::new() }
    }

    /// The output's tables of VLs after one of the VLs of `may` has got its turn.
    fn give(&self, output: LinkId, may: u16) -> (Turns, GrantedVl) {
        let link = &self.network.links[output];
        let mut turns = link.turns;
        let given = self.network.tables.give(&mut turns, may, link.free_at < self.now);
        (turns, given)
    }

    /// Which of the contenders `arbiter` takes; round robin begins at position `begin`.
    fn arbitrate(&self, arbiter: &impl InputArbiter, contenders: Vec<(Contender, usize)>, begin: u32) -> Option<usize> {
        let first = contenders.iter().position(|(contender, _)| contender.position >= begin).unwrap_or(0);
        let mut in_turn = contenders.clone();
        in_turn.rotate_left(first);
        let network = self.network;
        let heads = Heads {
            lanes: &network.lanes,
            packets: &network.packets,
            number: network.number,
            links: &network.link_numbers,
            seed: network.seed,
            now: self.now,
        };
        let mut contest = ListContest { heads, contenders: in_turn.into_iter().map(|(contender, _)| contender) };
        let taken = arbiter.take(&mut contest)?;
        contenders.iter().find(|(contender, _)| *contender == taken).map(|(_, request)| *request)
    }
}

impl<O, S: Strategies> Requests for Matching<'_, O, S> {
    fn all(&self) -> &[Request] {
        &self.all
    }

    fn is_open(&self, request: usize) -> bool {
        self.open[request]
    }

    fn of_input(&self, arbiter: &impl InputArbiter, among: &[usize]) -> Option<usize> {
        let contender = |request: &usize| {
            let position = self.all[*request].input_vl;
            (Contender { position, queue: self.heads[*request].queue.0 }, *request)
        };
        let mut contenders: Vec<(Contender, usize)> = among.iter().map(contender).collect();
        contenders.sort_by_key(|(contender, _)| contender.position);
        let input = self.all[*among.first()?].input;
        let begin = self.network.switches.as_ref().map_or(0, |switches| switches.turns[input]);
        self.arbitrate(arbiter, contenders, begin)
    }

    fn of_output(&mut self, among: &[usize]) -> Option<usize> {
        let output = self.all[*among.first()?].output;
        let may = among.iter().fold(0, |may, request| may | 1 << self.all[*request].output_vl);
        let (turns, given) = self.give(output, may);
        let vl = u32::from(given.vl);
        let contender = |request: &usize| {
            let Head { queue, bit } = self.heads[*request];
            (Contender { position: bit, queue: queue.0 }, *request)
        };
        let on_vl = among.iter().filter(|request| self.all[**request].output_vl == vl);
        let contenders: Vec<(Contender, usize)> = on_vl.map(contender).collect();
        let begin = self.network.lanes.ends[self.network.number.lane(output, vl)].sender.begin;
        let taken = self.arbitrate(&self.network.input_arbiter, contenders, begin.into())?;
        self.granted[taken] = Some((turns, given));
        Some(taken)
    }

    fn take(&mut self, request: usize, moves_turns: bool) {
        if !self.open[request] {
            return;
        }
        let Request { input, output, output_vl, .. } = self.all[request];
        let (turns, given) = self.granted[request].unwrap_or_else(|| self.give(output, 1 << output_vl));
        self.matched.push(Match { request, turns, given, moves_turns });
        for (open, other) in self.open.iter_mut().zip(&self.all) {
            *open &= other.input != input && other.output != output;
        }
    }
}

/// Heads in a list, in the order of round robin.
pub(super) struct ListContest<'a, B, C> {
    pub heads: Heads<'a, B>,
    pub contenders: C,
}

impl<B, C: Iterator<Item = Contender>> Contest for ListContest<'_, B, C> {
    fn next(&mut self) -> Option<Contender> {
        self.contenders.next()
    }

    fn asks_since(&self, contender: Contender) -> SimTime {
        self.heads.asks_since(contender)
    }

    fn injected(&self, contender: Contender) -> SimTime {
        self.heads.injected(contender)
    }

    fn waiting_flits(&self, contender: Contender) -> u64 {
        self.heads.waiting_flits(contender)
    }

    fn draw(&self, contender: Contender) -> u64 {
        self.heads.draw(contender)
    }
}
