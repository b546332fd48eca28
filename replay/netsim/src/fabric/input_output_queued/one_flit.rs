//! Routers all of whose packets have one flit: then nothing is under way at a crossbar when packets ask, queues are lists of packets, and what
//! asks, has room or waits is a bit.

use crate::fabric::ids::PacketId;
use crate::topology::LinkId;

/// A VC at the end of a link, at a switch.
#[derive(Clone, Copy)]
pub(super) struct InVc {
    /// Its first and last packet.
    pub first: PacketId,
    last: PacketId,
    pub link: LinkId,
    pub vc: u32,
    pub from_host: bool,
    /// The switch, and its number among the VCs of inputs there.
    switch: u32,
    bit: u32,
    /// The VC of its sender's output, and cycles until that is told of credits.
    pub sender_vc: u32,
    pub told_after: u32,
}

/// A VC of a link, at its sender.
#[derive(Clone, Copy)]
struct OutVc {
    /// The first and last packet of its queue, and how many there are.
    first: PacketId,
    last: PacketId,
    held: u32,
    credits: u32,
}

/// A link, at its sender.
#[derive(Clone, Copy)]
pub(super) struct Out {
    pub link: LinkId,
    /// The switch, or the node of the host.
    pub from: u32,
    pub from_host: bool,
    pub to_host: bool,
    /// Of a host: whether it is in the list of those that may send.
    is_listed: bool,
    /// VCs with packets, and VCs whose queues have room, a bit each.
    waiting: u32,
    pub open: u32,
    /// The VC with which the choice of the next packet begins.
    turn: u32,
}

/// A switch.
#[derive(Clone, Copy)]
struct Switch {
    /// VCs of inputs with packets, a bit each.
    asking: u128,
    /// Outputs with packets that may find credits, a bit each.
    ready: u64,
    /// Its first VC of an input, and its first output.
    first_in_vc: u32,
    first_output: u32,
    is_listed: bool,
}

/// A packet that asks for a VC of an output.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// What decides the order of grants, the least first: whether a host sent it, and what was drawn.
    pub rank: (bool, u64),
    pub in_vc: u32,
    pub output: u32,
    pub vc: u32,
}

/// A network of such routers.
pub(super) struct OneFlit {
    vcs: u32,
    /// Packets for which the queue of a VC at an output has room.
    room: u32,
    pub in_vcs: Vec<InVc>,
    out_vcs: Vec<OutVc>,
    pub outs: Vec<Out>,
    switches: Vec<Switch>,
    /// Switches at which packets ask or wait, and outputs of hosts that may send.
    pub working: Vec<u32>,
    pub sending: Vec<u32>,
    /// What is asked for within a cycle at a switch.
    pub wishes: Vec<Wish>,
}

/// Bits of a switch: VCs of its inputs, VCs of its outputs, and outputs.
const MAX_VCS: u32 = 128;
const MAX_OUTPUTS: u32 = 64;

impl InVc {
    /// Number `bit` of `switch`: VC `vc` at the end of `link`, which comes from a host or not.
    pub const fn new(link: LinkId, vc: u32, from_host: bool, (switch, bit): (u32, u32), sender: (u32, u32)) -> Self {
        let (sender_vc, told_after) = sender;
        Self { first: PacketId::NONE, last: PacketId::NONE, link, vc, from_host, switch, bit, sender_vc, told_after }
    }
}

impl OneFlit {
    /// Of routers with `vcs` VCs a link, queues of `buffer` packets at inputs and of `room` packets at outputs. `links` are the outputs, those of a
    /// switch next to each other, each with its sender (switch, or node of the host) and whether that, and its end, is a host; `switches` have
    /// their first input and output, and how many there are of both. `None` if they are more than there are bits for.
    pub fn new(
        vcs: u32,
        (buffer, room): (u32, u32),
        in_vcs: Vec<InVc>,
        links: impl Iterator<Item = (LinkId, u32, bool, bool)>,
        switches: impl Iterator<Item = ((u32, u32), (u32, u32))>,
    ) -> Option<Self> {
        let switch = |((first_input, inputs), (first_output, outputs)): ((u32, u32), (u32, u32))| {
            let fits = inputs.max(outputs) * vcs <= MAX_VCS && outputs <= MAX_OUTPUTS;
            let first_in_vc = first_input * vcs;
            fits.then_some(Switch { asking: 0, ready: 0, first_in_vc, first_output, is_listed: false })
        };
        let outs: Vec<Out> = links
            .map(|(link, from, from_host, to_host)| Out {
                link,
                from,
                from_host,
                to_host,
                is_listed: false,
                waiting: 0,
                open: (1 << vcs) - 1,
                turn: 0,
            })
            .collect();
        let out_vc = OutVc { first: PacketId::NONE, last: PacketId::NONE, held: 0, credits: buffer };
        Some(Self {
            vcs,
            room,
            in_vcs,
            out_vcs: vec![out_vc; outs.len() * vcs as usize],
            outs,
            switches: switches.map(switch).collect::<Option<_>>()?,
            working: Vec::new(),
            sending: Vec::new(),
            wishes: Vec::new(),
        })
    }

    /// Whether something may be done in the next cycle.
    pub fn has_work(&self) -> bool {
        !self.working.is_empty() || !self.sending.is_empty()
    }

    /// `packet` arrives in a VC of an input. Returns the packet in front of it, if there is one.
    #[inline]
    pub fn arrives(&mut self, in_vc: u32, packet: PacketId) -> Option<PacketId> {
        let state = &mut self.in_vcs[in_vc as usize];
        let before = std::mem::replace(&mut state.last, packet);
        if before != PacketId::NONE {
            return Some(before);
        }
        state.first = packet;
        let (switch, bit) = (state.switch, state.bit);
        self.switches[switch as usize].asking |= 1 << bit;
        self.list(switch);
        None
    }

    /// A credit of a VC of an output comes back.
    #[inline]
    pub fn credit_returns(&mut self, out_vc: u32, output: u32) {
        self.out_vcs[out_vc as usize].credits += 1;
        let out = &self.outs[output as usize];
        if out.from_host {
            self.list_host(output);
        } else if out.waiting != 0 {
            let switch = out.from;
            self.ready(switch, output);
            self.list(switch);
        }
    }

    #[inline]
    fn list(&mut self, switch: u32) {
        let state = &mut self.switches[switch as usize];
        if !state.is_listed {
            state.is_listed = true;
            self.working.push(switch);
        }
    }

    #[inline]
    fn ready(&mut self, switch: u32, output: u32) {
        let state = &mut self.switches[switch as usize];
        state.ready |= 1 << (output - state.first_output);
    }

    /// The host of `output` may have a packet to send.
    pub fn list_host(&mut self, output: u32) {
        let out = &mut self.outs[output as usize];
        if !out.is_listed {
            out.is_listed = true;
            self.sending.push(output);
        }
    }

    /// The VCs of inputs of `switch` whose first packets ask, a bit each, the first VC of an input, and the first one of an output.
    #[inline]
    pub fn asking(&self, switch: u32) -> (u128, u32, u32) {
        let Switch { asking, first_in_vc, first_output, .. } = self.switches[switch as usize];
        (asking, first_in_vc, first_output * self.vcs)
    }

    /// The outputs of `switch` with packets that may find credits, a bit each, and the first output.
    #[inline]
    pub fn waiting(&self, switch: u32) -> (u64, u32) {
        let Switch { ready, first_output, .. } = self.switches[switch as usize];
        (ready, first_output)
    }

    /// Whether `switch` has something to do in the next cycle.
    #[inline]
    pub fn stays(&mut self, switch: u32) -> bool {
        let state = &mut self.switches[switch as usize];
        state.is_listed = state.asking != 0 || state.ready != 0;
        state.is_listed
    }

    /// Says whether the host of `output` `stays` in the list of those that may send. Returns the same.
    pub fn host_stays(&mut self, output: u32, stays: bool) -> bool {
        self.outs[output as usize].is_listed = stays;
        stays
    }

    /// The lowest VC of a host's `output` with a credit: that is taken.
    pub fn take_credit(&mut self, output: u32) -> Option<u32> {
        let first = (output * self.vcs) as usize;
        let vcs = &mut self.out_vcs[first..first + self.vcs as usize];
        let (vc, state) = (0..).zip(vcs).find(|(_, vc)| vc.credits > 0)?;
        state.credits -= 1;
        Some(vc)
    }

    /// The first packet of a VC of an input, behind which is `next`, moves into the queue of what it asked for. Returns the packet in front of it
    /// there, if there is one.
    #[inline]
    pub fn grant(&mut self, wish: &Wish, next: PacketId) -> Option<PacketId> {
        let Wish { in_vc, output, vc, .. } = *wish;
        let input = &mut self.in_vcs[in_vc as usize];
        let packet = std::mem::replace(&mut input.first, next);
        let (switch, bit) = (input.switch, input.bit);
        if next == PacketId::NONE {
            input.last = PacketId::NONE;
            self.switches[switch as usize].asking &= !(1 << bit);
        }
        let queue = &mut self.out_vcs[(output * self.vcs + vc) as usize];
        queue.held += 1;
        let is_full = queue.held >= self.room;
        let before = std::mem::replace(&mut queue.last, packet);
        if before == PacketId::NONE {
            queue.first = packet;
        }
        let out = &mut self.outs[output as usize];
        out.waiting |= 1 << vc;
        if is_full {
            out.open &= !(1 << vc);
        }
        self.ready(switch, output);
        (before != PacketId::NONE).then_some(before)
    }

    /// The packet that leaves by an output of `switch`, and its VC: of those with a credit the one whose turn it is.
    #[inline]
    pub fn turn(&mut self, switch: u32, output: u32) -> Option<(u32, PacketId)> {
        let Out { waiting, turn, to_host, .. } = self.outs[output as usize];
        let first = output * self.vcs;
        let later = waiting & (u32::MAX << turn);
        for mut vcs in [later, waiting & !later] {
            while vcs != 0 {
                let vc = vcs.trailing_zeros();
                vcs &= vcs - 1;
                let queue = &self.out_vcs[(first + vc) as usize];
                if to_host || queue.credits > 0 {
                    return Some((vc, queue.first));
                }
            }
        }
        let state = &mut self.switches[switch as usize];
        state.ready &= !(1 << (output - state.first_output));
        None
    }

    /// The first packet of `vc` of an output of `switch`, behind which is `next`, leaves.
    #[inline]
    pub fn leaves(&mut self, switch: u32, (output, vc): (u32, u32), next: PacketId) {
        let queue = &mut self.out_vcs[(output * self.vcs + vc) as usize];
        queue.held -= 1;
        queue.first = next;
        let out = &mut self.outs[output as usize];
        if !out.to_host {
            queue.credits -= 1;
        }
        out.open |= 1 << vc;
        out.turn = if vc + 1 < self.vcs { vc + 1 } else { 0 };
        if next == PacketId::NONE {
            queue.last = PacketId::NONE;
            out.waiting &= !(1 << vc);
            if out.waiting == 0 {
                let state = &mut self.switches[switch as usize];
                state.ready &= !(1 << (output - state.first_output));
            }
        }
    }
}
