//! Routers all of whose packets have one flit: then nothing is under way at a crossbar when packets ask, queues are lists of packets, and what
//! asks, has room or waits is a bit.

use super::bits::Bits;
use crate::fabric::clocked::calendar::Calendar;
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ways::Ways;
use crate::fabric::figures::LinkMeter;
use crate::fabric::ids::PacketId;
use crate::fabric::slab::Slab;
use crate::time::SimTime;
use crate::topology::LinkId;

/// The packets of a network.
type Packets = Slab<PacketId, Packet>;

/// A VC at the end of a link, at a switch.
#[derive(Clone, Copy)]
pub(super) struct InVc {
    /// Its first and last packet.
    pub first: PacketId,
    last: PacketId,
    /// The switch.
    switch: u32,
    /// The VC of its sender's output, and cycles until that is told of credits.
    sender_vc: u32,
    told_after: u32,
    /// Its number among the VCs of inputs of its switch.
    bit: u8,
    pub from_host: bool,
}

/// A VC of a link, at its sender.
#[derive(Clone, Copy)]
struct OutVc {
    /// The first and last packet of its queue, and how many there are.
    first: PacketId,
    last: PacketId,
    held: u32,
    credits: u32,
    /// Packets that have left.
    sent: u64,
}

/// A link, at its sender.
#[derive(Clone, Copy)]
pub(super) struct Out {
    /// Bytes and packets that have begun to cross it in the present interval.
    pub bytes: u64,
    pub packets: u64,
    pub link: LinkId,
    /// The switch, or the node of the host.
    pub from: u32,
    /// The first VC of the input where it ends, and cycles until a packet is there.
    pub first_in_vc: u32,
    pub ahead: u32,
    /// VCs with packets, a bit each.
    waiting: u16,
    /// The VC with which the choice of the next packet begins.
    turn: u8,
    pub from_host: bool,
    pub to_host: bool,
    /// Of a host: whether it is in the list of those that may send.
    is_listed: bool,
}

/// A switch.
#[derive(Clone, Copy)]
pub(super) struct Switch {
    /// VCs of inputs with packets, and VCs of outputs whose queues have room, a bit each.
    pub asking: Bits,
    pub open: Bits,
    /// Outputs with packets that may find credits, a bit each.
    pub ready: u64,
    /// Its first VC of an input, and its first output and VC of one.
    pub first_in_vc: u32,
    pub first_output: u32,
    pub first_out_vc: u32,
    is_listed: bool,
}

/// A packet that asks for a VC of an output; both VCs are numbered within their switch.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    pub in_vc: u32,
    pub out_vc: u32,
}

/// A network of such routers.
pub(super) struct OneFlit {
    vcs: u32,
    /// By number of a VC of outputs at its switch: the bit of the output, and which of its VCs it is.
    places: Box<[(u8, u8); MAX_VCS as usize]>,
    /// Packets for which the queue of a VC at an output has room.
    room: u32,
    pub ways: Ways,
    pub in_vcs: Vec<InVc>,
    out_vcs: Vec<OutVc>,
    pub outs: Vec<Out>,
    pub switches: Vec<Switch>,
    /// Packets that arrive in VCs of inputs, and at hosts, and VCs of outputs whose credits come back.
    pub arrivals: Calendar<(u32, PacketId)>,
    pub delivered: Calendar<PacketId>,
    pub credits: Calendar<u32>,
    /// When the interval ends of which outputs count what crosses.
    pub interval_end: SimTime,
    /// Switches at which packets ask or wait, and outputs of hosts that may send.
    pub working: Vec<u32>,
    pub sending: Vec<u32>,
    /// What is asked for within a cycle at a switch.
    pub wishes: Vec<Wish>,
}

/// Bits of a switch: VCs of its inputs, VCs of its outputs, and outputs.
const MAX_VCS: u32 = Bits::MAX;
const MAX_OUTPUTS: u32 = 64;

impl InVc {
    /// Number `bit` of `switch`, at the end of a link that comes from a host or not.
    pub const fn new(from_host: bool, (switch, bit): (u32, u8), (sender_vc, told_after): (u32, u32)) -> Self {
        Self { first: PacketId::NONE, last: PacketId::NONE, switch, sender_vc, told_after, bit, from_host }
    }
}

impl Out {
    /// `link`, which begins at `from`, `from_host` or not, and ends at a host, or in the VCs of an input from the first one on, `ahead` cycles
    /// away.
    pub const fn new(link: LinkId, (from, from_host): (u32, bool), first_in_vc: Option<u32>, ahead: u32) -> Self {
        let (to_host, first_in_vc) = match first_in_vc {
            Some(first) => (false, first),
            None => (true, 0),
        };
        Self {
            bytes: 0,
            packets: 0,
            link,
            from,
            first_in_vc,
            ahead,
            waiting: 0,
            turn: 0,
            from_host,
            to_host,
            is_listed: false,
        }
    }
}

impl OneFlit {
    /// Of routers with `vcs` VCs a link, queues of `buffer` packets at inputs and of `room` packets at outputs. The outputs of a switch lie next
    /// to each other, those of hosts anywhere; `switches` have their first input and output, and how many there are of both. Nothing happens
    /// more than `ahead` cycles later. `None` if they are more than there are bits for.
    pub fn new(
        (vcs, ahead): (u32, usize),
        (buffer, room): (u32, u32),
        ways: Ways,
        (in_vcs, outs): (Vec<InVc>, Vec<Out>),
        switches: impl Iterator<Item = ((u32, u32), (u32, u32))>,
    ) -> Option<Self> {
        let switch = |((first_input, inputs), (first_output, outputs)): ((u32, u32), (u32, u32))| {
            let fits = inputs.max(outputs) * vcs <= MAX_VCS && outputs <= MAX_OUTPUTS;
            fits.then_some(Switch {
                asking: Bits::NONE,
                open: Bits::ALL,
                ready: 0,
                first_in_vc: first_input * vcs,
                first_output,
                first_out_vc: first_output * vcs,
                is_listed: false,
            })
        };
        let out_vc = OutVc { first: PacketId::NONE, last: PacketId::NONE, held: 0, credits: buffer, sent: 0 };
        let mut places = Box::new([(0, 0); MAX_VCS as usize]);
        for (place, number) in places.iter_mut().zip(0u32..) {
            // Both are less than 128.
            *place = ((number / vcs) as u8, (number % vcs) as u8);
        }
        Some(Self {
            vcs,
            places,
            room,
            ways,
            in_vcs,
            out_vcs: vec![out_vc; outs.len() * vcs as usize],
            outs,
            switches: switches.map(switch).collect::<Option<_>>()?,
            arrivals: Calendar::new(ahead),
            delivered: Calendar::new(ahead),
            credits: Calendar::new(ahead),
            interval_end: SimTime::ZERO,
            working: Vec::new(),
            sending: Vec::new(),
            wishes: Vec::new(),
        })
    }

    /// The next cycle, from `now` on, in which anything happens.
    pub fn next_cycle(&self, now: u64) -> Option<u64> {
        if !self.working.is_empty() || !self.sending.is_empty() {
            return Some(now);
        }
        let comes = [self.arrivals.next(now), self.delivered.next(now), self.credits.next(now)];
        comes.into_iter().flatten().min()
    }

    /// `packet` arrives in a VC of an input. Returns the packet in front of it, if there is one.
    #[inline(always)]
    pub fn arrives(&mut self, in_vc: u32, packet: PacketId) -> Option<PacketId> {
        let state = &mut self.in_vcs[in_vc as usize];
        let before = std::mem::replace(&mut state.last, packet);
        if before != PacketId::NONE {
            return Some(before);
        }
        state.first = packet;
        let (switch, bit) = (state.switch, state.bit);
        let state = &mut self.switches[switch as usize];
        state.asking.put(bit.into());
        if !state.is_listed {
            state.is_listed = true;
            self.working.push(switch);
        }
        None
    }

    /// A credit of a VC of `output` comes back.
    #[inline(always)]
    pub fn credit_returns(&mut self, out_vc: u32, output: u32) {
        let credits = &mut self.out_vcs[out_vc as usize].credits;
        *credits = credits.wrapping_add(1);
        let out = &self.outs[output as usize];
        if out.from_host {
            return self.list_host(output);
        }
        if out.waiting == 0 {
            return;
        }
        let switch = out.from;
        let state = &mut self.switches[switch as usize];
        state.ready |= bit_of(output.wrapping_sub(state.first_output));
        if !state.is_listed {
            state.is_listed = true;
            self.working.push(switch);
        }
    }

    /// The host of `output` may have a packet to send.
    pub fn list_host(&mut self, output: u32) {
        let out = &mut self.outs[output as usize];
        if !out.is_listed {
            out.is_listed = true;
            self.sending.push(output);
        }
    }

    /// All is done at `switch` in this cycle, which leaves `state`. Returns whether it has something to do in the next one.
    #[inline(always)]
    pub fn done(&mut self, switch: u32, mut state: Switch) -> bool {
        state.is_listed = !state.asking.is_empty() || state.ready != 0;
        self.switches[switch as usize] = state;
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

    /// The first packet of a VC of an input of a switch moves in the cycle `now` into the queue of what it asked for. Its credit goes back. What
    /// changes at the switch is noted in `state`.
    #[inline(always)]
    pub fn grant(&mut self, packets: &mut Packets, state: &mut Switch, wish: Wish, now: u64) {
        let Wish { in_vc, out_vc } = wish;
        let (output, vc) = self.places[(out_vc % MAX_VCS) as usize];
        let input = &mut self.in_vcs[state.first_in_vc.wrapping_add(in_vc) as usize];
        let id = input.first;
        let next = std::mem::replace(&mut packets.get_mut(id).next, PacketId::NONE);
        input.first = next;
        if next == PacketId::NONE {
            input.last = PacketId::NONE;
            state.asking.remove(in_vc);
        }
        self.credits.put(now.wrapping_add(input.told_after.into()), input.sender_vc);
        let queue = &mut self.out_vcs[state.first_out_vc.wrapping_add(out_vc) as usize];
        queue.held = queue.held.wrapping_add(1);
        if queue.held >= self.room {
            state.open.remove(out_vc);
        }
        let before = std::mem::replace(&mut queue.last, id);
        if before == PacketId::NONE {
            queue.first = id;
        } else {
            packets.get_mut(before).next = id;
        }
        // There are 16 VCs at most.
        self.outs[state.first_output.wrapping_add(output.into()) as usize].waiting |= 1 << (vc & 15);
        state.ready |= bit_of(output.into());
    }

    /// A packet leaves in the cycle `now` by a switch's output with the bit `bit`: of those with a credit the one whose turn it is. What changes at
    /// the switch is noted in `state`. Returns whether one has left.
    #[inline(always)]
    pub fn output_sends(&mut self, packets: &mut Packets, state: &mut Switch, bit: u32, now: u64) -> bool {
        let output = state.first_output.wrapping_add(bit);
        let out = &mut self.outs[output as usize];
        let first = output.wrapping_mul(self.vcs);
        // Turned so that the first VC is the lowest bit.
        let mut turned = out.waiting.rotate_right(out.turn.into());
        let found = loop {
            if turned == 0 {
                break None;
            }
            let vc = turned.trailing_zeros().wrapping_add(out.turn.into()) % u16::BITS;
            turned &= turned.wrapping_sub(1);
            let queue = &mut self.out_vcs[first.wrapping_add(vc) as usize];
            if out.to_host || queue.credits > 0 {
                break Some((vc, queue));
            }
        };
        let Some((vc, queue)) = found else {
            state.ready &= !bit_of(bit);
            return false;
        };
        let id = queue.first;
        let packet = packets.get_mut(id);
        packet.switches = packet.switches.wrapping_add(1);
        let next = std::mem::replace(&mut packet.next, PacketId::NONE);
        queue.held = queue.held.wrapping_sub(1);
        queue.first = next;
        queue.credits = queue.credits.wrapping_sub(u32::from(!out.to_host));
        queue.sent = queue.sent.wrapping_add(1);
        state.open.put(first.wrapping_add(vc).wrapping_sub(state.first_out_vc));
        out.turn = if vc + 1 < self.vcs { vc as u8 + 1 } else { 0 };
        if next == PacketId::NONE {
            queue.last = PacketId::NONE;
            out.waiting &= !(1 << (vc & 15));
            if out.waiting == 0 {
                state.ready &= !bit_of(bit);
            }
        }
        out.bytes = out.bytes.wrapping_add(packet.bytes.into());
        out.packets = out.packets.wrapping_add(1);
        let at = now.wrapping_add(out.ahead.into());
        if out.to_host {
            self.delivered.put(at, id);
        } else {
            self.arrivals.put(at, (out.first_in_vc.wrapping_add(vc), id));
        }
        true
    }

    /// `packet` of so many bytes begins to leave a host on `vc` of `output` in the cycle `now`.
    pub fn host_sends(&mut self, (output, vc): (u32, u32), (packet, bytes): (PacketId, u32), now: u64) {
        self.out_vcs[(output * self.vcs + vc) as usize].sent += 1;
        let out = &mut self.outs[output as usize];
        out.bytes += u64::from(bytes);
        out.packets += 1;
        self.arrivals.put(now + u64::from(out.ahead), (out.first_in_vc + vc, packet));
    }

    /// Adds what `out` has counted to the meter of its link, with intervals of `interval_ps` picoseconds.
    pub fn add_unmetered(&self, out: &Out, meter: &mut LinkMeter, interval_ps: u64) {
        if out.packets > 0 {
            meter.all_crossed(SimTime(self.interval_end.0 - 1), out.bytes, out.packets, interval_ps);
        }
    }

    /// How many packets have left by each VC of each of `outputs`; [`u32::MAX`] is none.
    pub fn sent(&self, outputs: impl Iterator<Item = u32>) -> impl Iterator<Item = u64> {
        let vcs = self.vcs as usize;
        outputs.flat_map(move |output| {
            let first = output as usize * vcs;
            (first..first + vcs).map(|vc| self.out_vcs.get(vc).map_or(0, |vc| vc.sent))
        })
    }
}

/// The bit of an output of a switch, which has fewer than 64.
#[inline(always)]
const fn bit_of(output: u32) -> u64 {
    1 << (output & 63)
}
