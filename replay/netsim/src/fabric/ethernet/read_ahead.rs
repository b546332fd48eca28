//! What the next events need is read for several of them at once. One by one, each packet of a large network waits for one cache miss
//! after the other: its own, that of its path, that of its port, or that of its flow.

use super::flow::NONE;
use super::{Ethernet, Event};
use std::hint::black_box;

/// Events whose state is read at once: about as many cache misses as a core has under way.
const AHEAD: u32 = 16;

impl Ethernet {
    /// To be called for each event: reads what the next [`AHEAD`] need, before the first of them.
    #[inline]
    pub(super) fn read_ahead(&mut self) {
        if self.until_read == 0 {
            self.until_read = AHEAD;
            self.read_next();
        }
        self.until_read -= 1;
    }

    fn read_next(&self) {
        const COUNT: usize = AHEAD as usize;
        let mut packets = [None; COUNT];
        for (packet, event) in packets.iter_mut().zip(self.queue.next_few(COUNT)) {
            if let Event::Arrive(id) = event {
                *packet = Some(id);
            }
        }
        let at = packets.map(|packet| packet.map_or(0, |id| self.packets.get(id).at as usize + 1));
        let links = at.map(|at| self.paths.get(at).copied().unwrap_or(NONE));
        let free = links.map(|link| self.ports.get(link).map(|port| (port.free(), port.next_start())));
        black_box(free);
        for (id, link) in packets.iter().zip(links) {
            let Some(packet) = id.filter(|_| link == NONE).map(|id| self.packets.get(id)) else { continue };
            let flow = if packet.data_flow == NONE { packet.ack_flow } else { packet.data_flow };
            if let Some(flow) = self.flows.get(flow) {
                black_box((
                    packet.sent_at,
                    packet.ack.echo,
                    flow.path,
                    flow.sender.unacknowledged,
                    flow.sender.deadline,
                    flow.sender.cubic.window,
                    flow.receiver.next,
                ));
            }
        }
    }
}
