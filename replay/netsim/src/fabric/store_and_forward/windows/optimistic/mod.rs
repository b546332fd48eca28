//! `store-and-forward` by Time Warp: the same packets at the same picoseconds as in windows and by events.
//!
//! A port of a switch is taken back by a copy of what it was before each packet, and of its list of packets that wait, where there is one.

mod switches;

use std::ops::RangeInclusive;

use super::layout::PartLayout;
use super::port::Ports;
use super::shared::Shared;
use super::{Totals, Windowed, figures, lane_bytes, shares};
use crate::fabric::optimistic::{Model, OptimisticCost, OptimisticOptions, Part, Rounds};
use crate::fabric::windows::{self, HostMessages, PartObserver, WindowProgress, WindowedRun, WindowsCost};
use crate::network::{HostIndex, NetworkFigures};
use crate::time::SimTime;
use crate::topology::NodeId;
use switches::Switches;

/// A run by Time Warp.
pub struct Optimistic<O: PartObserver, M: HostMessages> {
    shared: Shared,
    parts: Vec<Part<Switches<O, M>>>,
    rounds: Rounds,
    observer: O,
}

impl Windowed {
    /// Makes `parts` parts of it as [`Windowed::into_parts`] does, to be run optimistically.
    pub fn into_optimistic<O: PartObserver, M: HostMessages>(
        self,
        parts: u16,
        packet_bytes: &RangeInclusive<u64>,
        observer: O,
        messages: impl Fn(&[HostIndex]) -> M + Sync,
        options: OptimisticOptions,
    ) -> Optimistic<O, M> {
        let shared = Shared::new(&self.config, self.topology, self.routes, parts, packet_bytes);
        let mut rounds = Rounds::new(options, shared.width);
        let of = shared.layout.parts.len();
        let part = |(number, layout): (u16, &PartLayout)| {
            let hosts: Vec<_> = layout.hosts.clone().map(|node| shared.host_of(NodeId(node))).collect();
            Part::new(number.into(), of, Switches::new(&shared, number, observer.for_part(), messages(&hosts)))
        };
        let (parts, others_cpu_s) = windows::in_shares(of, shares(&shared), |numbers| {
            (0..).zip(&shared.layout.parts).skip(numbers.start).take(numbers.len()).map(part)
        });
        rounds.cost.others_cpu_s += others_cpu_s;
        Optimistic { parts, rounds, observer, shared }
    }
}

impl<O: PartObserver, M: HostMessages> WindowedRun<O> for Optimistic<O, M> {
    fn run_before(&mut self, until: SimTime, look: impl FnMut(WindowProgress) -> bool) -> bool {
        self.rounds.run_before(&mut self.parts, &self.shared, until, look)
    }

    fn on_threads(&mut self, threads: usize) {
        self.rounds.most = threads;
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn window_ps(&self) -> u64 {
        self.shared.width
    }

    fn cost(&self) -> WindowsCost {
        let remote_events = self.parts.iter().map(Part::remote_events).sum();
        WindowsCost { remote_events, ..self.rounds.cost }
    }

    fn optimistic_cost(&self) -> Option<OptimisticCost> {
        Some(self.rounds.optimistic_cost(&self.parts))
    }

    fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.model.events()).sum()
    }

    fn observers<'a>(&'a self) -> impl Iterator<Item = &'a O>
    where
        O: 'a,
    {
        self.parts.iter().map(|part| &part.model.observer)
    }

    fn observers_mut<'a>(&'a mut self) -> impl Iterator<Item = &'a mut O>
    where
        O: 'a,
    {
        self.parts.iter_mut().map(|part| &mut part.model.observer)
    }

    fn into_observer(self) -> O {
        let mut all = self.observer;
        self.parts.into_iter().for_each(|part| all.merge(part.model.observer));
        all
    }

    fn lanes(&self) -> u32 {
        1
    }

    fn lane_bytes(&mut self, now: SimTime) -> Vec<u64> {
        let ports: Vec<_> = self.parts.iter().map(|part| [&part.model.hosts.ports, &part.model.ports]).collect();
        let (bytes, others_cpu_s) = lane_bytes(&self.shared, &ports, now);
        self.rounds.cost.others_cpu_s += others_cpu_s;
        bytes
    }

    fn forget_packets(&mut self) {
        for part in &mut self.parts {
            part.forget();
            part.model.hosts.forget_messages();
        }
    }

    /// The traffic of links over time is not counted.
    fn take_figures(&mut self) -> NetworkFigures {
        let totals = Totals {
            events: self.events(),
            dropped: self.parts.iter().map(|part| part.model.dropped).sum(),
            delivered: self.parts.iter().map(|part| part.model.delivered).sum(),
        };
        let models = self.parts.iter_mut().map(|part| &mut part.model);
        let counts = models.map(|model| [&mut model.hosts.ports, &mut model.ports].map(Ports::take_counts)).collect();
        let (figures, others_cpu_s) = figures(&self.shared, counts, totals);
        self.rounds.cost.others_cpu_s += others_cpu_s;
        figures
    }
}
