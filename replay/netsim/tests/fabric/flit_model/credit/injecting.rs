//! Hosts with several queues, whose packets leave side by side.

use super::Model;
use crate::flit_model::fault::Fault;
use crate::flit_model::traffic::Sending;
use netsim::fabric::credit::{InjectionChoice, InjectionDirection, InjectionEquals, InjectionLength, InjectionRecord};
use netsim::kernel::random::draw;

impl Model<'_> {
    /// Whether a link is that of a host with several queues.
    pub(super) fn is_injected(&self, link: usize) -> bool {
        self.config.injection.is_some() && self.topology.link(link.into()).from.0 < self.topology.hosts()
    }

    /// The queue that a message takes which is handed over now.
    pub(super) fn injector(&self, sending: &Sending) -> usize {
        let injection = self.config.injection.expect("there are several queues");
        let host = self.topology.host_node(sending.source);
        let to = self.topology.host_node(sending.destination);
        let key = (u64::from(sending.source) << 40) + self.numbers[sending.source as usize];
        let all: Vec<usize> = (0..usize::from(injection.queues)).collect();
        // Packets that have not begun to leave.
        let waiting = |queue: usize| {
            let queue = &self.queues[self.at_node[host.0 as usize].start + queue];
            let counts = |started: bool| !started || self.fault == Some(Fault::LeavingPacketCounts);
            let packets = queue.waiting.iter().filter(move |waiting| counts(waiting.started));
            packets.map(|waiting| self.packets[waiting.packet].flits).collect::<Vec<u64>>()
        };
        // Flits of packets that have begun to leave and have not left the switch's buffer.
        let behind = |queue: usize| {
            let link = self.topology.out(host)[0].0 as usize;
            let leaving = self.queues[self.at_node[host.0 as usize].start + queue].waiting.iter();
            let leaving = leaving.filter(|waiting| waiting.started);
            let not_sent = leaving.map(|waiting| self.packets[waiting.packet].flits - waiting.left);
            let lane = &self.links[link].lanes[queue];
            match self.fault {
                Some(Fault::SwitchForgotten) => 0,
                Some(Fault::FlitsOnLinkForgotten) => lane.sent_flits - lane.told_flits,
                _ => not_sent.sum::<u64>() + lane.sent_flits - lane.told_flits,
            }
        };
        let shortest = |queues: &[usize]| {
            let first = match self.fault {
                Some(Fault::QueuesFromFirst) => 0,
                _ if injection.equals == InjectionEquals::First => 0,
                _ => draw(self.config.seed, (1 << 60) + u64::from(host.0), key) % all.len() as u64,
            };
            let first = usize::try_from(first).unwrap();
            let length = |queue: usize| match self.fault {
                Some(Fault::ShortestInPackets) => waiting(queue).len() as u64,
                _ if injection.length == InjectionLength::Switch => waiting(queue).iter().sum::<u64>() + behind(queue),
                _ => waiting(queue).iter().sum(),
            };
            let turned = |queue: usize| (queue + all.len() - first) % all.len();
            queues.iter().copied().min_by_key(|queue| (length(*queue), turned(*queue))).expect("there is a queue")
        };
        let of_direction = |direction: Option<usize>| direction.unwrap_or_else(|| shortest(&all));
        let anew = injection.record == InjectionRecord::Anew && self.fault != Some(Fault::WayOfPacket);
        let way = if anew { draw(self.config.seed, (1 << 60) + (1 << 32) + u64::from(host.0), key) } else { key };
        let by_axes = match injection.direction {
            InjectionDirection::First => self.routes.first_direction(host, to, way),
            InjectionDirection::Last => self.routes.last_direction(host, to, way),
        };
        match injection.choice {
            InjectionChoice::Shortest => shortest(&all),
            InjectionChoice::Dor => of_direction(by_axes),
            InjectionChoice::LongestPath => of_direction(self.routes.longest_direction(host, to, way)),
            InjectionChoice::DorShortest => {
                let full = usize::try_from(injection.full.unwrap()).unwrap();
                by_axes.filter(|queue| waiting(*queue).len() <= full).unwrap_or_else(|| shortest(&all))
            }
            InjectionChoice::ShortestProfitable => {
                let nearer = match injection.record {
                    InjectionRecord::Packet => self.routes.nearer_directions(host, to),
                    InjectionRecord::Anew => self.routes.way_directions(host, to, way),
                };
                let queues: Vec<usize> = all.iter().copied().filter(|queue| nearer >> queue & 1 == 1).collect();
                shortest(if queues.is_empty() { &all } else { &queues })
            }
        }
    }
}
