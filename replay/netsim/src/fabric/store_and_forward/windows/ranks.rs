//! One part of the network a process: rank 0 says what is to be done, and sees all packets.
//!
//! Each rank builds the whole network and runs the part of its number, window by window; mail goes by a [`Carrier`]. What observers would see goes to rank 0
//! every now and then.

use std::hash::Hasher;
use std::ops::RangeInclusive;

use super::part::Part;
use super::port::{Ports, link_figures};
use super::shared::Shared;
use super::{Totals, Windowed};
use crate::count::count;
use crate::fabric::windows::{
    Carrier, HostMessages, Letter, Notes, Part as _, PartObserver, WindowProgress, WindowedRun, WindowsCost, put,
};
use crate::network::{HostIndex, NetworkFigures};
use crate::time::SimTime;
use crate::topology::{LinkId, NodeId};

/// Windows after which rank 0 is told what was seen. What is noted until then takes memory.
const WINDOWS_OF_NOTES: u64 = 64;

/// Why ranks give up: they are told the same, and tell each other only what can be.
const UNREADABLE: &str =
    "a letter of another rank cannot be read: do all ranks run the same program over the same network?";

/// What rank 0 has the others do.
const RUN: u64 = 0;
const LANE_BYTES: u64 = 1;
const FIGURES: u64 = 2;
const END: u64 = 3;

/// A rank's part of the network.
pub struct Rank<M, C> {
    shared: Shared,
    part: Part<Notes, M>,
    carrier: C,
    /// The first window that is not over.
    window: u64,
    windows: u64,
    remote: u64,
}

/// Rank 0: a run in windows, of which all others run parts.
pub struct Head<O, M, C> {
    rank: Rank<M, C>,
    observer: O,
    cost: WindowsCost,
    events: u64,
}

impl Windowed {
    /// Hashes what the network's files say, by which ranks see whether they have found the same.
    pub fn hash_into(&self, state: &mut impl Hasher) {
        self.topology.hash_into(state);
        self.routes.hash_into(state);
    }

    /// The part of this network that the rank of `carrier` runs, of as many as there are ranks. The other arguments are those of [`Windowed::into_parts`]. `None` if the
    /// network has fewer parts than there are ranks.
    pub fn into_rank<M: HostMessages, C: Carrier>(
        self,
        carrier: C,
        packet_bytes: &RangeInclusive<u64>,
        messages: impl Fn(&[HostIndex]) -> M,
    ) -> Option<Rank<M, C>> {
        let (number, ranks) = (u16::try_from(carrier.rank()).ok()?, u16::try_from(carrier.ranks()).ok()?);
        let shared = Shared::new(&self.config, self.topology, self.routes, ranks, packet_bytes);
        let layout = shared.layout.parts.get(usize::from(number))?;
        if shared.layout.parts.len() < usize::from(ranks) {
            return None;
        }
        let hosts: Vec<_> = layout.hosts.clone().map(|node| shared.host_of(NodeId(node))).collect();
        let part = Part::new(&shared, number, Notes::default(), messages(&hosts));
        Some(Rank { shared, part, carrier, window: 0, windows: 0, remote: 0 })
    }
}

impl<M: HostMessages, C: Carrier> Rank<M, C> {
    /// Which rank it is.
    pub fn number(&self) -> usize {
        self.carrier.rank()
    }

    /// Rank 0, whose `observer` sees all.
    pub fn into_head<O: PartObserver>(self, observer: O) -> Head<O, M, C> {
        Head { rank: self, observer, cost: WindowsCost { threads: 1, ..WindowsCost::default() }, events: 0 }
    }

    /// Does what rank 0 says, until it is at its end.
    pub fn serve(mut self) {
        loop {
            let letter = self.carrier.tell(&[]);
            match self.understood(read_order(Letter(&letter))) {
                (RUN, until) => {
                    self.run_before(until, |_| false, |_| Some(()));
                }
                (LANE_BYTES, now) => {
                    self.lane_bytes(now);
                }
                (FIGURES, _) => {
                    self.counts();
                }
                (END, _) => return,
                _ => self.carrier.give_up(UNREADABLE),
            }
        }
    }

    /// What a letter says. Ends all ranks if it says nothing.
    fn understood<T>(&self, said: Option<T>) -> T {
        said.unwrap_or_else(|| self.carrier.give_up(UNREADABLE))
    }

    /// Runs until `until`, that instant not included. At rank 0 `see` is given what all ranks have noted (`None`: that cannot be read), and `look` says
    /// whether to stop. Returns whether it did.
    fn run_before(
        &mut self,
        until: SimTime,
        mut look: impl FnMut(WindowProgress) -> bool,
        mut see: impl FnMut(&[Vec<u8>]) -> Option<()>,
    ) -> bool {
        let (from, mut stopped) = (self.window, false);
        self.window = until.0 / self.shared.width;
        let mut next = self.exchange(from, stopped);
        for round in 1.. {
            let Some(window) = next.checked_sub(1).filter(|window| self.shared.begin(*window) < until) else { break };
            self.part.run_window(&self.shared, window, until);
            self.windows += 1;
            let from = window + 1;
            stopped = look(WindowProgress { now: self.shared.begin(from), events: self.part.events() });
            next = self.exchange(from, stopped);
            if round % WINDOWS_OF_NOTES == 0 {
                let seen = see(&self.gather());
                self.understood(seen);
            }
        }
        let seen = see(&self.gather());
        self.understood(seen);
        stopped
    }

    fn gather(&mut self) -> Vec<Vec<u8>> {
        self.carrier.gather(self.part.observer.take())
    }

    /// Brings the mail of the window before `from` to the ranks that it is for. Returns the first window from `from` on in which something happens anywhere,
    /// and one; 0 if a rank is to stop. Ends all ranks if they are not at the same window.
    fn exchange(&mut self, from: u64, stopped: bool) -> u64 {
        // What this rank has just sent is among it, so that all know before they have read their mail.
        let mine = self.part.next_window(&self.shared, from).unwrap_or(u64::MAX);
        let mut next = if stopped { 0 } else { mine.saturating_add(1) };
        let mut letters = Vec::with_capacity(self.carrier.ranks());
        for mail in self.part.mail() {
            self.remote += mail.packets() as u64;
            letters.push(mail.write([from, next]));
        }
        for letter in self.carrier.exchange(letters) {
            let mut letter = Letter(&letter);
            let (theirs, wanted) = (self.understood(letter.long()), self.understood(letter.long()));
            self.understood((theirs == from && (wanted == 0 || wanted > from)).then_some(()));
            next = next.min(wanted);
            let read = self.part.read_mail(&self.shared, letter);
            self.understood(read);
        }
        next
    }

    /// Numbers of each link, of which each rank knows its own. Rank 0 has them all.
    fn of_links<const N: usize>(&mut self, own: Vec<(LinkId, [u64; N])>) -> Vec<[u64; N]> {
        let mut letter = Vec::with_capacity(own.len() * (4 + 8 * N));
        own.iter().for_each(|(link, numbers)| put(&mut letter, numbers, &[link.0]));
        let mut all = vec![[0; N]; self.shared.topology.links().len()];
        let letters = self.carrier.gather(letter);
        if self.number() == 0 {
            for (rank, letter) in letters.iter().enumerate() {
                let links = self.links_of(rank);
                self.understood(read_links(Letter(letter), links, &mut all));
            }
        }
        all
    }

    /// The links whose ports a rank has.
    fn links_of(&self, rank: usize) -> impl Iterator<Item = LinkId> {
        let links = (0..self.shared.topology.links().len()).map(|id| LinkId(count(id)));
        links.filter(move |link| self.shared.port(*link).part == rank)
    }

    /// The links whose ports this rank has, each with its port: of a host or not, and its number.
    fn own_links(&self) -> Vec<(LinkId, usize, usize)> {
        let ports = self.links_of(self.number()).map(|link| (link, self.shared.port(link)));
        ports.map(|(link, port)| (link, port.kind, port.number)).collect()
    }

    fn lane_bytes(&mut self, now: SimTime) -> Vec<u64> {
        let ports = [&self.part.hosts.ports, &self.part.ports];
        let bytes = |(link, kind, number): (LinkId, usize, usize)| (link, [ports[kind].begun_bytes(number, now)]);
        let own = self.own_links().into_iter().map(bytes).collect();
        self.of_links(own).into_iter().map(|[bytes]| bytes).collect()
    }

    /// What was counted of links, and in all: bytes, packets, the most bytes that waited, drops; events, drops, deliveries, packets for other ranks, windows.
    fn counts(&mut self) -> (Vec<[u64; 4]>, [u64; 4]) {
        let counts = [&mut self.part.hosts.ports, &mut self.part.ports].map(Ports::take_counts);
        let own = self.own_links().into_iter();
        let own = own.map(|(link, kind, number)| (link, counts[kind].of(number))).collect();
        let links = self.of_links(own);
        let mut letter = Vec::new();
        put(&mut letter, &[self.part.events(), self.part.dropped, self.part.delivered, self.remote], &[]);
        let mut all = [0; 4];
        let letters = self.carrier.gather(letter);
        if self.number() == 0 {
            letters.iter().for_each(|letter| self.understood(add_counts(Letter(letter), &mut all)));
        }
        (links, all)
    }

    fn say(&mut self, what: u64, at: SimTime) {
        let mut letter = Vec::new();
        put(&mut letter, &[what, at.0], &[]);
        self.carrier.tell(&letter);
    }
}

/// What rank 0 wants, and the time that belongs to it.
fn read_order(mut letter: Letter<'_>) -> Option<(u64, SimTime)> {
    let order = (letter.long()?, letter.time()?);
    letter.is_empty().then_some(order)
}

/// Puts the numbers of `links`, all of those of a rank, where they belong.
fn read_links<const N: usize>(
    mut letter: Letter<'_>,
    links: impl Iterator<Item = LinkId>,
    all: &mut [[u64; N]],
) -> Option<()> {
    for link in links {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = letter.long()?;
        }
        if letter.short()? != link.0 {
            return None;
        }
        all[link.0 as usize] = numbers;
    }
    letter.is_empty().then_some(())
}

/// Adds what a rank has counted.
fn add_counts(mut letter: Letter<'_>, all: &mut [u64]) -> Option<()> {
    for sum in all {
        *sum = sum.checked_add(letter.long()?)?;
    }
    letter.is_empty().then_some(())
}

impl<O: PartObserver, M: HostMessages, C: Carrier> WindowedRun<O> for Head<O, M, C> {
    fn run_before(&mut self, until: SimTime, look: impl FnMut(WindowProgress) -> bool) -> bool {
        self.rank.say(RUN, until);
        let hosts = self.rank.shared.topology.hosts();
        let observer = &mut self.observer;
        self.rank.run_before(until, look, |letters| Notes::tell(letters, hosts, observer))
    }

    /// A rank has one thread.
    fn on_threads(&mut self, _threads: usize) {}

    fn parts(&self) -> usize {
        self.rank.carrier.ranks()
    }

    fn window_ps(&self) -> u64 {
        self.rank.shared.width
    }

    /// Of what this rank has alone.
    fn outlasts_window(&self, now: SimTime, counts: impl Fn(SimTime) -> bool) -> bool {
        self.rank.part.outlasts(now.0 / self.window_ps(), &counts)
    }

    fn cost(&self) -> WindowsCost {
        WindowsCost { windows: self.rank.windows, ..self.cost }
    }

    fn events(&self) -> u64 {
        self.events
    }

    fn observers<'a>(&'a self) -> impl Iterator<Item = &'a O>
    where
        O: 'a,
    {
        std::iter::once(&self.observer)
    }

    fn observers_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut O>
    where
        O: 'a,
    {
        std::iter::once(&mut self.observer)
    }

    fn into_observer(mut self) -> O {
        self.rank.say(END, SimTime::ZERO);
        self.observer
    }

    fn lanes(&self) -> u32 {
        1
    }

    fn lane_bytes(&mut self, now: SimTime) -> Vec<u64> {
        self.rank.say(LANE_BYTES, now);
        self.rank.lane_bytes(now)
    }

    fn forget_packets(&mut self) {
        self.rank.part.forget_packets();
    }

    fn take_figures(&mut self) -> NetworkFigures {
        self.rank.say(FIGURES, SimTime::ZERO);
        let (links, [events, dropped, delivered, remote]) = self.rank.counts();
        (self.events, self.cost.remote_events) = (events, remote);
        let topology = &self.rank.shared.topology;
        let links = (0..).zip(links).map(|(id, counts)| {
            let link = LinkId(id);
            link_figures(topology.link_name(link), topology.link(link).used_rate(), counts)
        });
        let links = links.collect();
        Totals { events, dropped, delivered }.figures(links)
    }
}
