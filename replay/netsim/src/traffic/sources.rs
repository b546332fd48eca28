//! The hosts as sources of messages: of all in the order of time, or of each by itself.

use std::ops::RangeInclusive;

use super::burst_sources::BurstSources;
use super::bursts::Burst;
use super::config::{Arrivals, Flows, React};
use super::drawing::{Drawing, Source, message};
use super::moments::Moments;
use super::ping_pong_sources::PingPongSources;
use super::table::TimedMessage;
use super::{Drawn, draw, unit};
use crate::count::count;
use crate::csr::Csr;
use crate::fabric::packet::{LinkTime, Message};
use crate::fabric::windows::HostMessages;
use crate::kernel::random::below;
use crate::kernel::{CycleQueue, EventQueue, Phase, Place};
use crate::network::{HostIndex, Token};
use crate::statistics::Meter;
use crate::time::SimTime;

/// What hosts send in a run.
pub enum Sending {
    /// Messages that hosts draw.
    Drawn(Box<Drawing>),
    /// Messages of a table, in the order of time.
    Table {
        /// The messages.
        messages: Vec<TimedMessage>,
        /// What hashes of flows take for one flow.
        flows: Flows,
    },
}

/// All messages of a run, one after the other.
pub enum Sources<'a> {
    /// At random times, to the destinations of a pattern.
    Drawn(Box<DrawnSources<'a>>),
    /// In bursts, to the destinations of a pattern.
    Bursts(BurstSources<'a>),
    /// By questions and answers.
    PingPong(Box<PingPongSources<'a>>),
    /// From a table.
    Table {
        /// The messages in the order of time.
        messages: &'a [TimedMessage],
        /// Which is next.
        next: usize,
        /// How many each host has handed over.
        counts: Vec<u64>,
        /// What hashes of flows take for one flow.
        flows: Flows,
    },
}

/// Whether a host takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It does.
    Free,
    /// Not now: it draws none for this time.
    Wait,
    /// It does not, and the message is lost.
    Drop,
}

/// What becomes of a message whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// It is handed over.
    HandedOver(Message),
    /// It is lost, as its host has no room for it.
    Refused(Message),
}

/// Hosts that draw their messages.
pub struct DrawnSources<'a> {
    drawing: &'a Drawing,
    sources: Vec<Source>,
    /// How many messages each host did not hand over; empty if hosts are never full.
    refused: Vec<u64>,
    /// What each host owes and has handed over beside what it draws; empty if deliveries bring about nothing.
    reactions: Vec<Reactions>,
    moments: Moments,
    /// Hosts that owe messages, each at the flit time of its next one.
    owing: EventQueue<u32>,
}

/// Messages of a host that answer to deliveries.
#[derive(Clone, Copy, Debug, Default)]
struct Reactions {
    owed: u64,
    /// How many it has handed over.
    count: u64,
}

impl<'a> Sources<'a> {
    /// The messages of `hosts` hosts.
    #[must_use]
    pub fn new(sending: &'a Sending, hosts: u32) -> Self {
        let drawing = match sending {
            Sending::Drawn(drawing) => drawing,
            Sending::Table { messages, flows } => {
                return Self::Table { messages, next: 0, counts: vec![0; hosts as usize], flows: *flows };
            }
        };
        if let Some(bursts) = drawing.plan.bursts {
            return Self::Bursts(BurstSources::new(drawing, bursts, hosts));
        }
        if let Some(plan) = drawing.plan.ping_pong {
            return Self::PingPong(Box::new(PingPongSources::new(drawing, plan, hosts)));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
        let horizon = (drawing.plan.gap_ps * 4.0) as u64;
        let mut sources = vec![Source::default(); hosts as usize];
        let next = |(host, source): (u32, &mut Source)| {
            let at = drawing.next_time(host, source)?;
            Some((at, source.moment(), host))
        };
        let first = (0..).zip(&mut sources).filter_map(next);
        let moments = match drawing.whole_cycle_ps() {
            Some(cycle_ps) => {
                let first = first.map(|(_, cycle, host)| (cycle, Place(host)));
                Moments::Cycles(CycleQueue::new(cycle_ps, horizon / cycle_ps, first))
            }
            None => {
                let mut moments = Moments::Events(Box::new(EventQueue::new(horizon.clamp(1 << 20, 1 << 50))));
                first.for_each(|(at, cycle, host)| moments.schedule(at, cycle, host));
                moments
            }
        };
        Self::Drawn(Box::new(DrawnSources {
            drawing,
            sources,
            refused: if drawing.plan.waits() { vec![0; hosts as usize] } else { Vec::new() },
            reactions: match drawing.plan.react {
                Some(_) => vec![Reactions::default(); hosts as usize],
                None => Vec::new(),
            },
            moments,
            owing: EventQueue::new(1 << 20),
        }))
    }

    /// When the next message is handed over.
    #[must_use]
    pub fn next_time(&self) -> Option<SimTime> {
        match self {
            Self::Bursts(sources) => sources.next_time(),
            Self::PingPong(sources) => sources.next_time(),
            Self::Drawn(sources) => sources.next_time(),
            Self::Table { messages, next, .. } => messages.get(*next).map(|message| message.at),
        }
    }

    /// Looks at `now` whether a burst is over.
    pub fn look(&mut self, now: SimTime, meter: &Meter) {
        if let Self::Bursts(sources) = self {
            sources.look(now, meter);
        }
    }

    /// The bursts that are over; `None` where there are none.
    #[must_use]
    pub fn bursts(&self) -> Option<&[Burst]> {
        match self {
            Self::Bursts(sources) => Some(sources.done()),
            _ => None,
        }
    }

    /// Whether they have handed over all that there is, and know that it has arrived: only of those that ask for that.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Bursts(sources) => sources.is_done(),
            Self::PingPong(sources) => sources.is_done(),
            Self::Drawn(_) | Self::Table { .. } => false,
        }
    }

    /// Whether what they hand over because of a delivery can be handed over at that instant.
    #[must_use]
    pub const fn answer_at_once(&self) -> bool {
        matches!(self, Self::PingPong(_))
    }

    /// The message with `token` has arrived at `now`: its host may owe more from now on, or answers.
    pub fn delivered(&mut self, now: SimTime, token: Token, meter: &mut Meter) {
        match self {
            Self::Drawn(sources) => sources.delivered(now, token),
            Self::PingPong(sources) => sources.delivered(now, token, meter),
            Self::Bursts(_) | Self::Table { .. } => {}
        }
    }

    /// Tells those that wait for them, at `now`, which messages were lost.
    pub fn hear_of_losses(&mut self, now: SimTime, meter: &mut Meter) {
        if let Self::PingPong(sources) = self {
            meter.take_lost().into_iter().for_each(|token| sources.lost(now, token));
        }
    }

    /// The next message, if its time is `now`; `room` says whether its host takes it.
    pub fn next_at(&mut self, now: SimTime, room: impl Fn(&Message) -> Admission) -> Option<Injection> {
        match self {
            Self::Bursts(sources) => sources.next_at(now).map(Injection::HandedOver),
            Self::PingPong(sources) => sources.next_at(now).map(Injection::HandedOver),
            Self::Drawn(sources) => sources.next_at(now, room),
            Self::Table { messages, next, counts, flows } => {
                let timed = messages.get(*next).filter(|message| message.at == now)?;
                *next += 1;
                let count = &mut counts[timed.source as usize];
                let message = of_table(timed, *count, *flows);
                *count += 1;
                Some(Injection::HandedOver(message))
            }
        }
    }
}

impl DrawnSources<'_> {
    #[inline]
    fn next_time(&self) -> Option<SimTime> {
        let drawn = self.moments.next_time();
        if self.reactions.is_empty() { drawn } else { drawn.into_iter().chain(self.owing.next_time()).min() }
    }

    /// Has the next message of `host` come.
    fn schedule(&mut self, host: u32) {
        let source = &mut self.sources[host as usize];
        if let Some(at) = self.drawing.next_time(host, source) {
            self.moments.schedule(at, source.moment(), host);
        }
    }

    /// Message `token` has arrived, which may bring about more at its host.
    fn delivered(&mut self, now: SimTime, token: Token) {
        let Some(React { probability, messages: [least, most] }) = self.drawing.plan.react else { return };
        let (source, count) = (u32::try_from(token.0 >> 40).unwrap_or(u32::MAX), token.0 & ((1 << 40) - 1));
        let seed = self.drawing.seed;
        let Some(host) = self.drawing.destinations.destination(seed, source, count) else { return };
        if unit(draw(seed, Drawn::React, source, count)) >= probability || self.drawing.destinations.is_silent(host) {
            return;
        }
        let drawn = below(draw(seed, Drawn::Reactions, source, count), u64::from(most - least) + 1);
        let owed = &mut self.reactions[host as usize].owed;
        let owed_nothing = *owed == 0;
        *owed += u64::from(least) + drawn;
        if owed_nothing {
            self.owes(host, now);
        }
    }

    /// `host` hands over what it owes in the flit times behind `now`, one message in each.
    fn owes(&mut self, host: u32, now: SimTime) {
        let at = self.drawing.plan.link.cycle_after(now);
        if at.0 < self.drawing.plan.end_ps {
            self.owing.schedule(at, Phase::Arrive, Place(host), host);
        }
    }

    /// The next message that a host owes at `now`.
    fn owed_at(&mut self, now: SimTime, room: &impl Fn(&Message) -> Admission) -> Option<Injection> {
        loop {
            let (_, host) = self.owing.pop_until(now)?;
            let message = self.drawing.message(host, self.number(host));
            let room = message.as_ref().map_or(Admission::Free, room);
            if room == Admission::Wait {
                self.owes(host, now);
                continue;
            }
            let reactions = &mut self.reactions[host as usize];
            reactions.owed -= 1;
            reactions.count += 1;
            if reactions.owed > 0 {
                self.owes(host, now);
            }
            if let Some(message) = message {
                return Some(injection(message, room));
            }
        }
    }

    /// How many messages `host` has handed over.
    fn number(&self, host: u32) -> u64 {
        let place = host as usize;
        let refused = self.refused.get(place).copied().unwrap_or_default();
        self.sources[place].count - refused + self.reactions.get(place).map_or(0, |reactions| reactions.count)
    }

    fn next_at(&mut self, now: SimTime, room: impl Fn(&Message) -> Admission) -> Option<Injection> {
        if !self.reactions.is_empty()
            && let Some(fate) = self.owed_at(now, &room)
        {
            return Some(fate);
        }
        loop {
            let host = self.moments.pop_until(now)?;
            let count = self.number(host);
            self.sources[host as usize].count += 1;
            self.schedule(host);
            let Some(message) = self.drawing.message(host, count) else { continue };
            let Some(refused) = self.refused.get_mut(host as usize) else {
                return Some(Injection::HandedOver(message));
            };
            match room(&message) {
                Admission::Wait => *refused += 1,
                room => return Some(injection(message, room)),
            }
        }
    }
}

/// What becomes of `message`, whose host does not wait.
const fn injection(message: Message, room: Admission) -> Injection {
    match room {
        Admission::Free | Admission::Wait => Injection::HandedOver(message),
        Admission::Drop => Injection::Refused(message),
    }
}

/// A host by itself: 32 bytes.
pub(super) struct HostSource {
    source: Source,
    /// When it hands over its next message; [`SimTime::MAX`] if it hands over no more.
    next: SimTime,
    /// What is drawn for the time of the message behind that one: a gap takes so long to reckon that it is at hand when it is asked for.
    drawn: u64,
}

/// The messages of some hosts, host by host.
pub(super) enum HostSources<'a> {
    /// At random times, to the destinations of a pattern.
    Drawn {
        /// How times and destinations are drawn, for all hosts.
        drawing: &'a Drawing,
        /// The lowest host.
        first: u32,
        /// From that host on.
        sources: Vec<HostSource>,
    },
    /// From a table.
    Table {
        /// The messages in the order of time.
        messages: &'a [TimedMessage],
        /// The lowest host.
        first: u32,
        /// From that host on, which messages are theirs.
        of_hosts: Csr<u32>,
        /// How many each of them has handed over.
        counts: Vec<u64>,
        /// What hashes of flows take for one flow.
        flows: Flows,
    },
}

impl<'a> HostSources<'a> {
    /// The messages of `hosts`.
    pub fn new(sending: &'a Sending, hosts: &[HostIndex]) -> Self {
        let first = hosts.iter().min().map_or(0, |host| host.0);
        let end = hosts.iter().max().map_or(0, |host| host.0 + 1);
        match sending {
            Sending::Drawn(drawing) => {
                let source = |host: u32| {
                    let mut source = Source::default();
                    let next = drawing.next_time(host, &mut source).unwrap_or(SimTime::MAX);
                    HostSource { source, next, drawn: drawing.drawn(host, 1) }
                };
                Self::Drawn { drawing, first, sources: (first..end).map(source).collect() }
            }
            Sending::Table { messages, flows } => {
                let mine = messages.iter().enumerate().filter(|(_, message)| (first..end).contains(&message.source));
                let rows = mine.map(|(number, message)| ((message.source - first) as usize, count(number)));
                let of_hosts = Csr::grouped((end - first) as usize, rows);
                Self::Table { messages, first, of_hosts, counts: vec![0; (end - first) as usize], flows: *flows }
            }
        }
    }
}

impl HostMessages for HostSources<'_> {
    #[inline]
    fn next_time(&self, host: HostIndex) -> Option<SimTime> {
        match self {
            Self::Drawn { first, sources, .. } => {
                Some(sources[(host.0 - first) as usize].next).filter(|next| *next < SimTime::MAX)
            }
            Self::Table { messages, first, of_hosts, counts, .. } => {
                let place = (host.0 - first) as usize;
                let number = of_hosts.row(place).get(usize::try_from(counts[place]).ok()?)?;
                Some(messages[*number as usize].at)
            }
        }
    }

    #[inline]
    fn take(&mut self, host: HostIndex) -> Option<Message> {
        match self {
            Self::Drawn { drawing, first, sources } => {
                let HostSource { source, next, drawn } = &mut sources[(host.0 - *first) as usize];
                let count = source.count;
                source.count += 1;
                *next = drawing.time_of(host.0, source, *drawn).unwrap_or(SimTime::MAX);
                if *next < SimTime::MAX {
                    *drawn = drawing.drawn(host.0, count + 2);
                }
                drawing.message(host.0, count)
            }
            Self::Table { messages, first, of_hosts, counts, flows } => {
                let place = (host.0 - *first) as usize;
                let count = counts[place];
                let number = of_hosts.row(place).get(usize::try_from(count).ok()?)?;
                counts[place] += 1;
                Some(of_table(&messages[*number as usize], count, *flows))
            }
        }
    }
}

impl Sending {
    /// Whether messages are handed over only when a cycle of the hosts' links begins.
    pub(super) fn is_in_cycles(&self) -> bool {
        matches!(self, Self::Drawn(drawing) if drawing.plan.arrivals == Arrivals::Bernoulli && drawing.plan.ping_pong.is_none())
    }

    /// The longest message of a table, in bytes.
    #[must_use]
    pub fn longest(&self) -> Option<u64> {
        match self {
            Self::Drawn(_) => None,
            Self::Table { messages, .. } => messages.iter().map(|message| message.bytes).max(),
        }
    }

    /// The bytes of the smallest packet and of the largest one, headers included, that messages are cut into.
    #[must_use]
    pub fn packet_bytes(&self, link: &LinkTime) -> RangeInclusive<u64> {
        let (mtu, headers) = (u64::from(link.mtu.max(1)), u64::from(link.headers));
        let first = |bytes: u64| (bytes.min(mtu) + headers).max(1);
        let last = |bytes: u64| match bytes % mtu {
            0 if bytes > 0 => mtu + headers,
            rest => (rest + headers).max(1),
        };
        let of = |lengths: &mut dyn Iterator<Item = u64>| {
            lengths.map(|bytes| (last(bytes), first(bytes))).reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
        };
        let sizes = match self {
            Self::Drawn(drawing) => {
                let lengths = of(&mut drawing.plan.lengths.iter().map(|(bytes, _)| *bytes));
                lengths.or_else(|| of(&mut [drawing.plan.bytes].into_iter()))
            }
            Self::Table { messages, .. } => of(&mut messages.iter().map(|message| message.bytes)),
        };
        let (smallest, largest) = sizes.unwrap_or((1, mtu + headers));
        smallest..=largest
    }
}

fn of_table(timed: &TimedMessage, count: u64, flows: Flows) -> Message {
    message(timed.source, timed.destination, timed.bytes, timed.level, count, flows)
}
