//! One part of the network, run optimistically: a place is a port of a switch, an event a packet's arrival in front of it.
//!
//! What hosts send hangs on nothing that arrives, so that they are inputs. A packet that arrives at a host changes nothing and is an end.

use super::super::hop::Hop;
use super::super::hosts::{HostOutput, Hosts};
use super::super::port::{OutPort, Ports, SavedPort};
use super::super::shared::Shared;
use crate::fabric::optimistic::{Key, Model, Output, Sent};
use crate::fabric::windows::{HostMessages, PartObserver};
use crate::kernel::Place;
use crate::network::Token;
use crate::time::SimTime;
use crate::topology::NodeId;

/// A message of several packets that is under way.
pub(super) type Opened = (Token, u64);

/// Hosts, switches and their links.
pub(super) struct Switches<O, M> {
    pub hosts: Hosts<M>,
    pub ports: Ports,
    pub observer: O,
    arrived: u64,
    pub delivered: u64,
    pub dropped: u64,
    /// When the present run ends, and the window in which the next one begins.
    until: SimTime,
    border: u64,
    /// The next window in which hosts have something to do before that, and when it begins.
    next: Option<(u64, SimTime)>,
}

impl<O: PartObserver, M: HostMessages> Switches<O, M> {
    pub fn new(shared: &Shared, part: u16, observer: O, messages: M) -> Self {
        let layout = &shared.layout.parts[usize::from(part)];
        Self {
            hosts: Hosts::new(shared, layout.hosts.clone(), messages),
            ports: Ports::new(shared, layout.links.iter().copied()),
            observer,
            arrived: 0,
            delivered: 0,
            dropped: 0,
            until: SimTime::ZERO,
            border: 0,
            next: None,
        }
    }

    fn turn_to(&mut self, shared: &Shared, window: u64) {
        let next = self.hosts.next_window(window).map(|window| (window, shared.begin(window)));
        self.next = next.filter(|(_, at)| *at < self.until);
    }
}

/// What hosts bring.
struct Inputs<'a>(&'a mut Output<Hop, Opened>);

impl HostOutput for Inputs<'_> {
    fn leaves(&mut self, _shared: &Shared, port: &OutPort, arrives: SimTime, hop: Hop) {
        self.0.sent.push(sent(port, arrives, hop));
    }

    fn opened(&mut self, shared: &Shared, destination: NodeId, token: Token, packets: u64) {
        let part = usize::from(shared.place(destination).part);
        self.0.notes.push((part, (token, packets)));
    }
}

/// `hop` arrives at the end of the link behind `port`.
fn sent(port: &OutPort, arrives: SimTime, hop: Hop) -> Sent<Hop> {
    Sent { part: port.part.into(), key: Key::new(arrives, Place(port.link.0)), event: hop }
}

impl<O: PartObserver, M: HostMessages> Model for Switches<O, M> {
    type Shared = Shared;
    type Event = Hop;
    type Before = SavedPort;
    type Note = Opened;

    fn places(&self) -> usize {
        self.ports.len()
    }

    fn is_end(&self, shared: &Shared, hop: &Hop) -> bool {
        shared.topology.is_host(hop.node)
    }

    fn place(&self, shared: &Shared, hop: &Hop) -> Option<usize> {
        let link = shared.route(hop)?;
        Some(shared.layout.ports[link.0 as usize] as usize)
    }

    fn run(&mut self, _shared: &Shared, at: SimTime, place: usize, hop: &Hop) -> (SavedPort, Option<Sent<Hop>>) {
        let before = self.ports.save(place);
        let arrives = self.ports.offer(place, at, hop.bytes).map(|(arrives, _)| arrives);
        let port = self.ports.get(place);
        let on = |arrives| sent(port, arrives, hop.onto(port.link, port.to));
        (before, arrives.map(on))
    }

    fn restore(&mut self, place: usize, before: SavedPort, sent: bool) {
        self.ports.restore(place, before, !sent);
    }

    fn commit(&mut self, _shared: &Shared, at: SimTime, hop: &Hop, sent: bool) {
        self.arrived += 1;
        if !sent {
            self.dropped += 1;
            self.observer.dropped(&hop.lost(at));
        }
    }

    fn commit_end(&mut self, shared: &Shared, at: SimTime, hop: &Hop) {
        self.arrived += 1;
        if self.is_end(shared, hop) {
            self.delivered += 1;
            self.observer.delivered(&shared.record(hop, at));
        }
    }

    fn begin(&mut self, shared: &Shared, until: SimTime) {
        self.until = until;
        self.turn_to(shared, self.border);
        self.border = until.0 / shared.width;
    }

    fn shorten(&mut self, until: SimTime) {
        self.until = self.until.min(until);
        self.next = self.next.filter(|(_, at)| *at < self.until);
    }

    fn next_input(&self) -> Option<SimTime> {
        self.next.map(|(_, at)| at)
    }

    fn run_inputs(&mut self, shared: &Shared, output: &mut Output<Hop, Opened>) {
        let Some((window, _)) = self.next else { return };
        let end = shared.begin(window + 1).min(self.until);
        self.hosts.run(shared, window, end, &mut self.observer, &mut Inputs(output));
        self.turn_to(shared, window + 1);
    }

    fn receive(&mut self, (token, packets): Opened) {
        self.observer.opened(token, packets);
    }

    fn events(&self) -> u64 {
        self.arrived + self.hosts.waited
    }
}
