//! Routers all of whose packets have one flit: then nothing is under way at a crossbar when packets ask, queues are lists of packets, and what
//! asks, has room or waits is a bit.

mod passing;

use super::bits::Bits;
use crate::fabric::clocked::calendar::Calendar;
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ways::{Run, Ways};
use crate::fabric::figures::LinkMeter;
use crate::fabric::ids::PacketId;
use crate::fabric::slab::Slab;
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

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
    told_after: u16,
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
    held: u16,
    credits: u16,
    /// Packets that have left, modulo 2^32.
    sent: u32,
}

impl OutVc {
    /// A packet leaves that takes so many credits. Returns whether the count of packets began again.
    #[inline(always)]
    const fn sends(&mut self, credits: u16) -> bool {
        self.credits = self.credits.wrapping_sub(credits);
        self.sent = self.sent.wrapping_add(1);
        self.sent == 0
    }
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
    /// Outputs with packets, and those of them whose packets may find credits, a bit each.
    waiting: u64,
    pub ready: u64,
    /// Its first VC of an input, and its first output and VC of one.
    pub first_in_vc: u32,
    pub first_output: u32,
    pub first_out_vc: u32,
    is_listed: bool,
}

/// A packet that asks for a VC of an output; both VCs are numbered within their switch.
#[derive(Clone, Copy, Default)]
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
    room: u16,
    /// By switch, then destination: its outputs for that, where packets take any VC of them with room; none where that has to be asked.
    runs: Vec<VcRun>,
    hosts: usize,
    /// The outputs of hosts.
    host_outputs: Vec<u32>,
    /// Whether switches have more VCs than fit into one word.
    pub is_wide: bool,
    pub in_vcs: Vec<InVc>,
    out_vcs: Vec<OutVc>,
    /// How often the count of packets of each of them began again.
    overflows: Vec<u32>,
    pub outs: Vec<Out>,
    pub switches: Vec<Switch>,
    /// Packets that arrive in VCs of inputs, and at hosts, and VCs of outputs whose credits come back.
    pub arrivals: Calendar<(u32, PacketId)>,
    pub delivered: Calendar<PacketId>,
    pub credits: Calendar<u32>,
    /// The same of the next cycle, while hosts and switches work: that is when most comes.
    soon: Soon,
    /// When the interval ends of which outputs count what crosses.
    pub interval_end: SimTime,
    /// Switches at which packets ask or wait, and outputs of hosts that may send.
    pub working: Vec<u32>,
    pub sending: Vec<u32>,
    /// What is asked for within a cycle at a switch: as much as there is room for, and no list of it is kept from one switch to the next.
    pub wishes: Box<[Wish; MAX_VCS as usize]>,
    /// By the bit of an output: the packet that passes to it in this cycle at a switch, and for which of its VCs of outputs.
    passing: Box<[(PacketId, u32); MAX_OUTPUTS as usize]>,
}

/// What comes in a cycle.
#[derive(Default)]
struct Soon {
    arrivals: Vec<(u32, PacketId)>,
    delivered: Vec<PacketId>,
    credits: Vec<u32>,
}

/// VCs of outputs of a switch that lie next to each other.
#[derive(Clone, Copy)]
pub(super) struct VcRun {
    pub first: u8,
    /// 64 at most; 0: not known.
    pub count: u8,
}

/// Bits of a switch: VCs of its inputs, VCs of its outputs, and outputs.
pub(super) const MAX_VCS: u32 = Bits::MAX;
const MAX_OUTPUTS: u32 = 64;

impl InVc {
    /// Number `bit` of `switch`, at the end of a link that comes from a host or not.
    pub const fn new(from_host: bool, (switch, bit): (u32, u8), (sender_vc, told_after): (u32, u16)) -> Self {
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
    /// to each other, those of hosts anywhere; `switches` have their first input and output, and how many there are of both. A packet takes any VC of
    /// its outputs, if there is one or with `takes_all`. Nothing happens more than `ahead` cycles later. `None` if they are more than there are bits for, or queues longer than is counted.
    pub fn new(
        (vcs, ahead): (u32, usize),
        (buffer, room): (u32, u32),
        (ways, takes_all): (&Ways, bool),
        (in_vcs, outs): (Vec<InVc>, Vec<Out>),
        switches: impl Iterator<Item = ((u32, u32), (u32, u32))>,
    ) -> Option<Self> {
        let mut is_wide = false;
        let mut switch = |((first_input, inputs), (first_output, outputs)): ((u32, u32), (u32, u32))| {
            is_wide |= inputs.max(outputs) * vcs > Bits::MAX_NARROW;
            let fits = inputs.max(outputs) * vcs <= MAX_VCS && outputs <= MAX_OUTPUTS;
            fits.then_some(Switch {
                asking: Bits::NONE,
                open: Bits::ALL,
                waiting: 0,
                ready: 0,
                first_in_vc: first_input * vcs,
                first_output,
                first_out_vc: first_output * vcs,
                is_listed: false,
            })
        };
        let (credits, room) = (u16::try_from(buffer).ok()?, u16::try_from(room).ok()?);
        let out_vc = OutVc { first: PacketId::NONE, last: PacketId::NONE, held: 0, credits, sent: 0 };
        let mut places = Box::new([(0, 0); MAX_VCS as usize]);
        for (place, number) in places.iter_mut().zip(0u32..) {
            // Both are less than 128.
            *place = ((number / vcs) as u8, (number % vcs) as u8);
        }
        let run = |run: &Run| {
            let (first, count) = (u32::from(run.first) * vcs, u32::from(run.count) * vcs);
            let is_any = (run.count == 1 || takes_all) && count <= u64::BITS;
            // Both are less than 128 where switches fit.
            VcRun { first: first as u8, count: if is_any { count as u8 } else { 0 } }
        };
        let mut host_outputs = vec![u32::MAX; ways.hosts()];
        for (number, out) in (0..).zip(&outs).filter(|(_, out)| out.from_host) {
            if let Some(output) = host_outputs.get_mut(out.from as usize) {
                *output = number;
            }
        }
        let switches = switches.map(&mut switch).collect::<Option<_>>()?;
        Some(Self {
            vcs,
            places,
            room,
            runs: ways.runs().iter().map(run).collect(),
            hosts: ways.hosts(),
            host_outputs,
            is_wide,
            in_vcs,
            out_vcs: vec![out_vc; outs.len() * vcs as usize],
            overflows: vec![0; outs.len() * vcs as usize],
            outs,
            switches,
            arrivals: Calendar::new(ahead),
            delivered: Calendar::new(ahead),
            credits: Calendar::new(ahead),
            soon: Soon::default(),
            interval_end: SimTime::ZERO,
            working: Vec::new(),
            sending: Vec::new(),
            wishes: Box::new([Wish::default(); MAX_VCS as usize]),
            passing: Box::new([(PacketId::NONE, 0); MAX_OUTPUTS as usize]),
        })
    }

    /// Where packets to `to` go on at `switch`.
    #[inline(always)]
    pub fn run(&self, switch: u32, to: NodeId) -> VcRun {
        let place = (switch as usize).wrapping_mul(self.hosts).wrapping_add(to.0 as usize);
        self.runs.get(place).copied().unwrap_or(VcRun { first: 0, count: 0 })
    }

    /// The next cycle, from `now` on, in which anything happens.
    pub fn next_cycle(&self, now: u64) -> Option<u64> {
        if !self.working.is_empty() || !self.sending.is_empty() {
            return Some(now);
        }
        let comes = [self.arrivals.next(now), self.delivered.next(now), self.credits.next(now)];
        comes.into_iter().flatten().min()
    }

    /// Hosts and switches begin to work in the cycle `now`: until [`Self::end_work`] nothing else is done.
    pub fn begin_work(&mut self, now: u64) {
        let next = now + 1;
        self.soon = Soon {
            arrivals: self.arrivals.take(next),
            delivered: self.delivered.take(next),
            credits: self.credits.take(next),
        };
    }

    pub fn end_work(&mut self, now: u64) {
        let Soon { arrivals, delivered, credits } = std::mem::take(&mut self.soon);
        self.arrivals.put_back(now + 1, arrivals);
        self.delivered.put_back(now + 1, delivered);
        self.credits.put_back(now + 1, credits);
    }

    /// `packet` arrives in a VC of an input, so many cycles behind `now`.
    #[inline(always)]
    fn sends(&mut self, (in_vc, packet): (u32, PacketId), now: u64, ahead: u32) {
        if ahead == 1 {
            self.soon.arrivals.push((in_vc, packet));
        } else {
            self.arrivals.put(now.wrapping_add(ahead.into()), (in_vc, packet));
        }
    }

    /// `packet` arrives in a VC of an input. Returns the packet in front of it, if there is one.
    #[inline(always)]
    pub fn arrives<const WIDE: bool>(&mut self, in_vc: u32, packet: PacketId) -> Option<PacketId> {
        let state = &mut self.in_vcs[in_vc as usize];
        let before = std::mem::replace(&mut state.last, packet);
        if before != PacketId::NONE {
            return Some(before);
        }
        state.first = packet;
        let (switch, bit) = (state.switch, state.bit);
        let state = &mut self.switches[switch as usize];
        state.asking.put::<WIDE>(bit.into());
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

    /// A host may have a packet to send.
    #[inline]
    pub fn host_wakes(&mut self, host: u32) {
        self.list_host(self.host_outputs[host as usize]);
    }

    /// The host of `output` may have a packet to send.
    #[inline]
    fn list_host(&mut self, output: u32) {
        let out = &mut self.outs[output as usize];
        if !out.is_listed {
            out.is_listed = true;
            self.sending.push(output);
        }
    }

    /// All is done at `switch` in this cycle, which leaves `state`. Returns whether it has something to do in the next one.
    #[inline(always)]
    pub fn done<const WIDE: bool>(&mut self, switch: u32, mut state: Switch) -> bool {
        state.is_listed = !state.asking.is_empty::<WIDE>() || state.ready != 0;
        self.switches[switch as usize] = state;
        state.is_listed
    }

    /// Says whether the host of `output` `stays` in the list of those that may send. Returns the same.
    #[inline]
    pub fn host_stays(&mut self, output: u32, stays: bool) -> bool {
        self.outs[output as usize].is_listed = stays;
        stays
    }

    /// The lowest VC of a host's `output` with a credit: that is taken.
    #[inline]
    pub fn take_credit(&mut self, output: u32) -> Option<u32> {
        let first = output.wrapping_mul(self.vcs) as usize;
        let vcs = self.out_vcs.get_mut(first..)?.get_mut(..self.vcs as usize)?;
        let (vc, state) = (0..).zip(vcs).find(|(_, vc)| vc.credits > 0)?;
        state.credits -= 1;
        Some(vc)
    }

    /// `packet` of so many bytes begins to leave a host on `vc` of `output`, a credit of which was taken, in the cycle `now`.
    #[inline(always)]
    pub fn host_sends(&mut self, (output, vc): (u32, u32), (packet, bytes): (PacketId, u32), now: u64) {
        let out_vc = output.wrapping_mul(self.vcs).wrapping_add(vc) as usize;
        if self.out_vcs[out_vc].sends(0) {
            self.overflows[out_vc] += 1;
        }
        let out = &mut self.outs[output as usize];
        out.bytes = out.bytes.wrapping_add(bytes.into());
        out.packets = out.packets.wrapping_add(1);
        let (ahead, in_vc) = (out.ahead, out.first_in_vc.wrapping_add(vc));
        self.sends((in_vc, packet), now, ahead);
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
            let counts = move |vc: usize| Some((self.out_vcs.get(vc)?.sent, self.overflows.get(vc)?));
            (first..first + vcs)
                .map(move |vc| counts(vc).map_or(0, |(sent, over)| u64::from(*over) << 32 | u64::from(sent)))
        })
    }
}

/// The bit of an output of a switch, which has fewer than 64.
#[inline(always)]
const fn bit_of(output: u32) -> u64 {
    1 << (output & 63)
}
