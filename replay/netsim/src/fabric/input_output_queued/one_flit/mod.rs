//! Routers all of whose packets have one flit: then nothing is under way at a crossbar when packets ask, queues are lists of packets, and what
//! asks, has room or waits is a bit.

mod parts;
mod passing;

use super::bits::Bits;
use crate::fabric::clocked::calendar::Calendar;
use crate::fabric::clocked::packet::Packet;
use crate::fabric::clocked::ways::{Run, Ways};
use crate::fabric::figures::LinkMeter;
use crate::fabric::ids::PacketId;
use crate::time::SimTime;
pub(super) use parts::{Input, Out, Sender, Switch, VcRun};
use parts::{OutVc, Queue, UnderWay, place_of};

/// A network of such routers.
pub(super) struct OneFlit {
    vcs: u32,
    /// As many bits.
    of_output: u64,
    /// By number of a VC of outputs at its switch: the bit of the output, and which of its VCs it is.
    places: Box<[(u8, u8); MAX_VCS as usize]>,
    /// Packets for which the queue of a VC at an output has room.
    room: u16,
    /// By switch, then destination: which of `runs` are its outputs for that, where packets take any VC of them with room. Nothing where that has to
    /// be asked.
    ways: Vec<u8>,
    runs: Vec<VcRun>,
    hosts: usize,
    /// The outputs of hosts.
    host_outputs: Vec<u32>,
    /// Whether switches have more VCs than fit into one word.
    pub is_wide: bool,
    /// Those under way, by [`place_of`].
    packets: Vec<UnderWay>,
    inputs: Vec<Input>,
    /// What lies in their VCs.
    in_queues: Vec<Queue>,
    pub outs: Vec<Out>,
    pub senders: Vec<Sender>,
    out_vcs: Vec<OutVc>,
    out_queues: Vec<Queue>,
    /// How often the count of packets of each of their VCs began again.
    overflows: Vec<u32>,
    pub switches: Vec<Switch>,
    /// Packets that arrive in an input's VC, and at hosts, and VCs of outputs whose credits come back.
    pub arrivals: Calendar<((u32, u32), PacketId)>,
    pub delivered: Calendar<PacketId>,
    pub credits: Calendar<u32>,
    /// The same of the next cycle, while hosts and switches work: that is when most comes.
    arriving: CycleArrivals,
    /// Packets that arrive in the next cycle lie in their VCs already. By switch, VCs of its inputs that ask from then on; and switches that have
    /// some.
    coming: Vec<Bits>,
    awaiting: Vec<u32>,
    /// How many of these there are.
    awaiting_count: usize,
    /// When the interval ends of which outputs count what crosses.
    pub interval_end: SimTime,
    /// Switches at which packets ask or wait, and outputs of hosts that may send.
    pub working: Vec<u32>,
    pub sending: Vec<u32>,
    /// By number of a VC of outputs at its switch, while packets ask there: the VC of an input whose packet is to have it.
    takers: Box<[u8; MAX_VCS as usize]>,
}

/// What asks at a switch.
pub(super) struct SwitchRequests<'a> {
    queues: &'a [Queue],
    packets: &'a [UnderWay],
    ways: &'a [u8],
    runs: &'a [VcRun],
    /// By number of a VC of outputs: the VC of an input whose packet is to have it.
    pub takers: &'a mut [u8; MAX_VCS as usize],
}

impl SwitchRequests<'_> {
    /// The first packet of a VC of an input, and where it may go on.
    #[inline(always)]
    pub fn first(&self, in_vc: u32) -> (PacketId, VcRun) {
        let packet = self.queues[in_vc as usize].first;
        let to = self.packets[place_of(packet)].destination;
        let run = self.ways.get(to.0 as usize).and_then(|way| self.runs.get(usize::from(*way)));
        (packet, run.copied().unwrap_or(VcRun::UNKNOWN))
    }
}

/// What comes in a cycle.
#[derive(Default)]
struct CycleArrivals {
    delivered: Vec<PacketId>,
    credits: Vec<u32>,
}

/// Bits of a switch: VCs of its inputs, VCs of its outputs, and outputs.
const MAX_VCS: u32 = Bits::MAX;
const MAX_OUTPUTS: u32 = 64;

impl OneFlit {
    /// Of routers with `vcs` VCs a link, queues of `buffer` packets at inputs and of `room` packets at outputs. The outputs of a switch lie next
    /// to each other, those of hosts anywhere; `switches` have their first input and output, and how many there are of both. A packet takes any VC of
    /// its outputs, if there is one or with `takes_all`. Nothing happens more than `ahead` cycles later. `None` if they are more than there are bits for, or queues longer than is counted.
    pub fn new(
        (vcs, ahead): (u32, usize),
        (buffer, room): (u32, u32),
        (ways, takes_all): (&Ways, bool),
        (inputs, outs, senders): (Vec<Input>, Vec<Out>, Vec<Sender>),
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
                first_input,
                first_output,
                first_in_vc: first_input * vcs,
                first_out_vc: first_output * vcs,
                is_listed: false,
            })
        };
        let (credits, room) = (u16::try_from(buffer).ok()?, u16::try_from(room).ok()?);
        let out_vc = OutVc { held: 0, credits, sent: 0 };
        let (of_inputs, of_outputs) = (inputs.len() * vcs as usize, outs.len() * vcs as usize);
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
        let mut runs: Vec<VcRun> = Vec::new();
        let number_of = |run: VcRun| {
            let known = runs.iter().position(|known| *known == run);
            u8::try_from(known.unwrap_or_else(|| {
                runs.push(run);
                runs.len() - 1
            }))
            .ok()
        };
        let by_destination: Option<Vec<u8>> = ways.runs().iter().map(run).map(number_of).collect();
        let mut host_outputs = vec![u32::MAX; ways.hosts()];
        for (number, sender) in (0..).zip(&senders).filter(|(_, sender)| sender.is_host) {
            if let Some(output) = host_outputs.get_mut(sender.from as usize) {
                *output = number;
            }
        }
        let switches = switches.map(&mut switch).collect::<Option<Vec<_>>>()?;
        Some(Self {
            vcs,
            of_output: u64::MAX >> u64::BITS.checked_sub(vcs).filter(|spare| *spare < u64::BITS)?,
            places,
            room,
            ways: by_destination.unwrap_or_default(),
            runs,
            hosts: ways.hosts(),
            host_outputs,
            is_wide,
            packets: vec![UnderWay::NONE],
            inputs,
            in_queues: vec![Queue::EMPTY; of_inputs],
            outs,
            senders,
            out_vcs: vec![out_vc; of_outputs],
            out_queues: vec![Queue::EMPTY; of_outputs],
            overflows: vec![0; of_outputs],
            coming: vec![Bits::NONE; switches.len()],
            // One more is written to, and does not count.
            awaiting: vec![0; switches.len() + 1],
            awaiting_count: 0,
            switches,
            arrivals: Calendar::new(ahead),
            delivered: Calendar::new(ahead),
            credits: Calendar::new(ahead),
            arriving: CycleArrivals::default(),
            interval_end: SimTime::ZERO,
            working: Vec::new(),
            sending: Vec::new(),
            takers: Box::new([0; MAX_VCS as usize]),
        })
    }

    /// What asks at switch `number`, and may go on where: VCs of its inputs, packets, by destination its outputs for that (empty where they are
    /// not known), and the VCs' takers.
    #[inline(always)]
    pub fn asked(&mut self, number: u32, switch: &Switch) -> SwitchRequests<'_> {
        let ways = self.ways.get((number as usize).wrapping_mul(self.hosts)..).unwrap_or_default();
        SwitchRequests {
            queues: self.in_queues.get(switch.first_in_vc as usize..).unwrap_or_default(),
            packets: &self.packets,
            ways: ways.get(..self.hosts).unwrap_or_default(),
            runs: &self.runs,
            takers: &mut self.takers,
        }
    }

    /// The next cycle, from `now` on, in which anything happens.
    pub fn next_cycle(&self, now: u64) -> Option<u64> {
        if !self.working.is_empty() || !self.sending.is_empty() || self.awaiting_count > 0 {
            return Some(now);
        }
        let comes = [self.arrivals.next(now), self.delivered.next(now), self.credits.next(now)];
        comes.into_iter().flatten().min()
    }

    /// Hosts and switches begin to work in the cycle `now`: until [`Self::end_work`] nothing else is done.
    pub fn begin_work(&mut self, now: u64) {
        let next = now + 1;
        self.arriving = CycleArrivals { delivered: self.delivered.take(next), credits: self.credits.take(next) };
    }

    pub fn end_work(&mut self, now: u64) {
        let CycleArrivals { delivered, credits } = std::mem::take(&mut self.arriving);
        self.delivered.put_back(now + 1, delivered);
        self.credits.put_back(now + 1, credits);
    }

    /// `packet` arrives in a VC of an input, so many cycles behind `now`.
    #[inline(always)]
    fn sends<const WIDE: bool>(&mut self, place: (u32, u32), packet: PacketId, now: u64, ahead: u32) {
        if ahead != 1 {
            return self.arrivals.put(now.wrapping_add(ahead.into()), (place, packet));
        }
        // It lies in its VC at once, but it is not noted at the switch yet that this asks. Whether it is the first one is left to chance, and so
        // nothing branches by it.
        let (switch, bit, is_first) = self.append(place, packet);
        let coming = &mut self.coming[switch as usize];
        let none_came = coming.is_empty::<WIDE>();
        coming.put_if::<WIDE>(bit, is_first);
        self.awaiting[self.awaiting_count] = switch;
        self.awaiting_count += usize::from(none_came & is_first);
    }

    /// Puts `packet` behind all others in a VC of an input. Returns the switch, the VC's number there, and whether it is the first one.
    #[inline(always)]
    fn append(&mut self, (input, vc): (u32, u32), packet: PacketId) -> (u32, u32, bool) {
        let queue = &mut self.in_queues[input.wrapping_mul(self.vcs).wrapping_add(vc) as usize];
        let is_first = queue.push(&mut self.packets, packet);
        let (switch, bit) = self.inputs[input as usize].place(vc);
        (switch, bit, is_first)
    }

    /// The VC of an input of a switch whose packet is to have a VC of an output.
    #[inline(always)]
    fn taker(&self, out_vc: u32) -> u32 {
        self.takers[(out_vc % MAX_VCS) as usize].into()
    }

    /// VCs of inputs ask whose packets arrive in the cycle that begins.
    pub fn see_coming(&mut self) {
        let count = std::mem::take(&mut self.awaiting_count);
        for place in 0..count {
            let switch = self.awaiting[place];
            let coming = std::mem::replace(&mut self.coming[switch as usize], Bits::NONE);
            self.switches[switch as usize].asking.put_all(coming);
            self.list_switch(switch);
        }
    }

    /// `packet` arrives in a VC of an input.
    pub fn arrives<const WIDE: bool>(&mut self, place: (u32, u32), packet: PacketId) {
        let (switch, bit, is_first) = self.append(place, packet);
        self.switches[switch as usize].asking.put_if::<WIDE>(bit, is_first);
        self.list_switch(switch);
    }

    /// A switch has something to do in the present cycle.
    #[inline(always)]
    fn list_switch(&mut self, switch: u32) {
        let state = &mut self.switches[switch as usize];
        if !state.is_listed {
            state.is_listed = true;
            self.working.push(switch);
        }
    }

    /// A credit of a VC of an output comes back; `output_of` tells of which output.
    #[inline(always)]
    pub fn credit_returns(&mut self, out_vc: u32, output_of: impl Fn(u32) -> u32) {
        let vc = &mut self.out_vcs[out_vc as usize];
        vc.credits = vc.credits.wrapping_add(1);
        if vc.held != 0 {
            self.credit_is_of_use(out_vc, output_of(out_vc));
        }
    }

    /// Somebody waits for a credit of a VC of `output`.
    #[inline]
    fn credit_is_of_use(&mut self, out_vc: u32, output: u32) {
        let Sender { from, is_host, .. } = self.senders[output as usize];
        if is_host {
            self.out_vcs[out_vc as usize].held = 0;
            return self.list_host(output);
        }
        let state = &mut self.switches[from as usize];
        state.ready |= bit_of(output.wrapping_sub(state.first_output));
        self.list_switch(from);
    }

    /// A host may have a packet to send.
    #[inline]
    pub fn host_wakes(&mut self, host: u32) {
        self.list_host(self.host_outputs[host as usize]);
    }

    /// The host of `output` may have a packet to send.
    #[inline]
    fn list_host(&mut self, output: u32) {
        let sender = &mut self.senders[output as usize];
        if !sender.is_listed {
            sender.is_listed = true;
            self.sending.push(output);
        }
    }

    /// Says whether the host of `output` `stays` in the list of those that may send. Returns the same.
    #[inline]
    pub fn host_stays(&mut self, output: u32, stays: bool) -> bool {
        self.senders[output as usize].is_listed = stays;
        stays
    }

    /// The lowest VC of a host's `output` with a credit: that is taken. Without one the host waits for the next.
    #[inline]
    pub fn take_credit(&mut self, output: u32) -> Option<u32> {
        let first = output.wrapping_mul(self.vcs) as usize;
        let vcs = self.out_vcs.get_mut(first..)?.get_mut(..self.vcs as usize)?;
        if let Some((vc, state)) = (0..).zip(vcs.iter_mut()).find(|(_, vc)| vc.credits > 0) {
            state.credits -= 1;
            return Some(vc);
        }
        vcs.iter_mut().for_each(|vc| vc.held = 1);
        None
    }

    /// `packet`, which is `id`, begins to leave a host on `vc` of `output`, a credit of which was taken, in the cycle `now`.
    #[inline(always)]
    pub fn host_sends<const WIDE: bool>(
        &mut self,
        (output, vc): (u32, u32),
        (id, packet): (PacketId, &Packet),
        now: u64,
    ) {
        let (destination, bytes) = (packet.destination, packet.bytes);
        let place = place_of(id);
        if place >= self.packets.len() {
            self.packets.resize(place + 1, UnderWay::NONE);
        }
        self.packets[place] = UnderWay { destination, bytes, ..UnderWay::NONE };
        let out_vc = output.wrapping_mul(self.vcs).wrapping_add(vc) as usize;
        if self.out_vcs[out_vc].sends(0) {
            self.overflows[out_vc] += 1;
        }
        let out = &mut self.outs[output as usize];
        out.bytes = out.bytes.wrapping_add(bytes.into());
        out.packets = out.packets.wrapping_add(1);
        let (ahead, input) = (out.ahead, out.input);
        self.sends::<WIDE>((input, vc), id, now, ahead);
    }

    /// Switches that a packet has left.
    #[inline]
    pub fn switches_left(&self, packet: PacketId) -> u32 {
        self.packets[place_of(packet)].switches
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
