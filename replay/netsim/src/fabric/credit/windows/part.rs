//! One part of the network, with its hosts and what they send, window by window.

use super::super::Credit;
use super::super::border::Mail;
use super::super::link_numbers::Cut;
use super::super::pending::PendingEvents;
use crate::fabric::messages::packets_of;
use crate::fabric::packet::PacketFabric;
use crate::fabric::windows::{self, HostMessages, PartObserver};
use crate::network::{HostIndex, Simulation};
use crate::time::SimTime;
use crate::topology::Topology;
use crate::units::DurationPs;
use std::sync::Arc;

/// Most hosts hand their next message over within so long.
const HORIZON: DurationPs = DurationPs::from_us(10);

/// What all parts read and none changes.
pub(super) struct Shared {
    pub topology: Arc<Topology>,
    pub cut: Arc<Cut>,
    /// The width of a window: nothing that one part does shows sooner in another.
    pub window_ps: u64,
}

/// Switches, hosts, and the links that begin or end there.
pub(super) struct Part<O, M> {
    number: u16,
    pub network: Credit<O>,
    messages: M,
    /// Hosts, by when they hand over their next message.
    due: PendingEvents<HostIndex>,
    /// Whether there is mail for another part.
    sent: bool,
}

impl<O: PartObserver, M: HostMessages> Part<O, M> {
    /// Part `number`, which is `network`, with `hosts` that send `messages`.
    pub fn new(number: u16, network: Credit<O>, messages: M, hosts: Vec<HostIndex>) -> Self {
        let mut part = Self { number, network, messages, due: PendingEvents::new(HORIZON), sent: false };
        hosts.into_iter().for_each(|host| part.wait_for(host));
        part
    }

    /// Forgets what is on the way.
    pub fn forget_packets(&mut self) {
        self.network.forget_packets();
        self.due = PendingEvents::new(HORIZON);
    }

    fn wait_for(&mut self, host: HostIndex) {
        if let Some(at) = self.messages.next_time(host) {
            self.due.schedule(at, host);
        }
    }

    /// `host` hands over its message of this instant.
    fn hand_over(&mut self, shared: &Shared, host: HostIndex, now: SimTime) {
        if let Some(message) = self.messages.take(host) {
            self.network.observer.handed_over(now, &message);
            let packets = packets_of(message.bytes, self.network.mtu.get());
            if packets > 1 {
                let part = shared.cut.part(shared.topology.host_node(message.destination.0));
                match &mut self.network.border {
                    Some(border) if part != self.number => {
                        border.mail[usize::from(part)].opened.push((message.token, packets));
                    }
                    _ => self.network.observer.opened(message.token, packets),
                }
            }
            self.network.send(now, &message);
        }
        self.wait_for(host);
    }
}

impl<O: PartObserver, M: HostMessages> windows::Part for Part<O, M> {
    type Shared = Shared;
    type Mail = Mail;

    fn width(shared: &Shared) -> u64 {
        shared.window_ps
    }

    fn next_window(&self, shared: &Shared, from: u64) -> Option<u64> {
        if self.sent {
            return Some(from);
        }
        let next = [self.network.next_event(), self.due.next_time()].into_iter().flatten().min()?;
        Some((next.0 / shared.window_ps).max(from))
    }

    fn run_window(&mut self, shared: &Shared, window: u64, limit: SimTime) {
        let begin = SimTime(window.saturating_mul(shared.window_ps));
        let end = SimTime(begin.0.saturating_add(shared.window_ps)).min(limit);
        if let Some(border) = &mut self.network.border {
            border.begin_window(begin);
        }
        while let Some(at) = self.due.next_time().filter(|at| *at < end) {
            self.network.run_before(at);
            // What a host hands over at one instant is there before anything of that instant happens.
            while let Some(host) = self.due.pop(at) {
                self.hand_over(shared, host, at);
            }
        }
        self.network.run_before(end);
        self.sent = self.network.border.as_ref().is_some_and(|border| !border.mail.iter().all(Mail::is_empty));
    }

    fn mail(&mut self) -> &mut [Mail] {
        self.network.border.as_mut().map_or(&mut [], |border| border.mail.as_mut_slice())
    }

    fn is_empty(mail: &Mail) -> bool {
        mail.is_empty()
    }

    fn events_of(mail: &Mail) -> usize {
        mail.packets.len() + mail.credits.len()
    }

    fn take_in(&mut self, _shared: &Shared, border: SimTime, mail: &mut Mail) {
        for (token, packets) in mail.opened.drain(..) {
            self.network.observer.opened(token, packets);
        }
        self.network.take_in(border, mail);
    }

    fn events(&self) -> u64 {
        self.network.events()
    }
}
