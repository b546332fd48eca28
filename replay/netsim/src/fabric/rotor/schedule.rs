//! Which rack each circuit switch joins with which, and when.

use super::config::{Change, Reconfiguration, RotorConfig, RotorScheduler};
use crate::circuits::PlannedCircuit;
use crate::count::count;
use crate::kernel::random::{below, draw};
use crate::time::SimTime;
use std::collections::VecDeque;

/// What draws are for: places of [`draw`].
const ORDER: u64 = 1;
const SWAPS: u64 = 2;
const CLOCKS: u64 = 3;
const CHANGES: u64 = 1 << 32;

/// A rack, counted from 0.
pub(super) type Rack = u32;

/// For each rack the one that it is joined with; itself where its port is dark.
type Matching = Vec<Rack>;

/// The time from one change of a switch to its next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    /// Its number at that switch.
    pub number: u64,
    /// When it begins, and when the next one does.
    pub begin: u64,
    pub end: u64,
}

/// What becomes of a packet that comes to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transit {
    Passes,
    /// A part of it falls into a guard band.
    GuardBand,
    /// The switch is not reconfigured although its band is over.
    Reconfiguring,
}

/// The switches' schedule.
pub(super) struct Schedule {
    /// By switch, then in the order in which it has them.
    matchings: Vec<Vec<Matching>>,
    slice: u64,
    hold: u64,
    in_turn: bool,
    guard: u64,
    margin: u64,
    cable: u64,
    delay: Reconfiguration,
    seed: u64,
    /// Picoseconds by which each `ToR`'s clock is behind, and `most_skew` added, so that none is below 0.
    skews: Vec<u64>,
    most_skew: u64,
    /// Of circuits by demand: by rack the periods of its uplink, in order, and to which rack each leads.
    planned: Option<Vec<VecDeque<(Period, Rack)>>>,
}

impl Schedule {
    /// That of `config` for `racks` racks.
    pub fn new(config: &RotorConfig, racks: u32) -> Self {
        let uplinks = config.uplinks as usize;
        let mut all = factorisation(racks);
        mix_matchings(&mut all, config.seed);
        for repeated in all.len()..uplinks {
            all.push(all[repeated % all.len()].clone());
        }
        let dark: Matching = (0..racks).collect();
        all.resize(all.len().div_ceil(uplinks) * uplinks, dark);
        shuffle(&mut all, config.seed);
        let mut matchings = vec![Vec::new(); uplinks];
        all.into_iter().enumerate().for_each(|(index, matching)| matchings[index % uplinks].push(matching));
        let most_skew = config.clock_skew.ps();
        let skew = |rack: u32| below(draw(config.seed, CLOCKS, rack.into()), 2 * most_skew + 1);
        Self {
            matchings,
            slice: config.slice.ps(),
            hold: config.hold(),
            in_turn: config.change == Change::InTurn,
            guard: config.guard.ps(),
            margin: config.margin.ps(),
            cable: config.cable_delay.ps(),
            delay: config.reconfiguration_delay,
            seed: config.seed,
            skews: (0..racks).map(skew).collect(),
            most_skew,
            planned: (config.scheduler != RotorScheduler::Rotor).then(|| vec![VecDeque::new(); racks as usize]),
        }
    }

    /// Adds a planned circuit, and forgets those of its rack that are over.
    pub fn add(&mut self, now: SimTime, number: u64, circuit: &PlannedCircuit) {
        let Some(periods) = self.planned.as_mut().and_then(|planned| planned.get_mut(circuit.from)) else { return };
        let over = now.0.saturating_sub(2 * self.most_skew);
        while periods.front().is_some_and(|(period, _)| period.end < over) {
            periods.pop_front();
        }
        let period = Period { number, begin: circuit.begin.0, end: circuit.end.0 };
        periods.push_back((period, count(circuit.to)));
    }

    /// Switches: uplinks of a rack.
    pub fn switches(&self) -> u32 {
        count(self.matchings.len())
    }

    /// The period of switch `switch` in which `at` lies.
    pub fn period(&self, switch: u32, at: u64) -> Period {
        let turn = if self.in_turn { u64::from(switch) * self.slice } else { 0 };
        let lasts = self.hold * self.slice;
        // Switch 0 changes at 0, the others have begun before.
        let number = (at + lasts - turn) / lasts;
        let begin = (number * lasts + turn).saturating_sub(lasts);
        Period { number, begin, end: number * lasts + turn }
    }

    /// The period of the uplink of `rack` to `switch` in which `at` lies; none where no circuit is planned for then.
    pub fn at(&self, switch: u32, rack: Rack, at: u64) -> Option<Period> {
        let Some(planned) = &self.planned else { return Some(self.period(switch, at)) };
        let mut periods = planned[rack as usize].iter().map(|(period, _)| *period);
        periods.find(|period| period.begin <= at && at < period.end)
    }

    /// The period of the uplink of `rack` to `switch` behind `period`.
    pub fn next(&self, switch: u32, rack: Rack, period: &Period) -> Option<Period> {
        let Some(planned) = &self.planned else { return Some(self.period(switch, period.end)) };
        let place = planned[rack as usize].partition_point(|(one, _)| one.number <= period.number);
        planned[rack as usize].get(place).map(|(period, _)| *period)
    }

    /// The rack to which `switch` leads from `rack` in `period`; none if it is dark.
    pub fn joined(&self, switch: u32, period: &Period, rack: Rack) -> Option<Rack> {
        if let Some(planned) = &self.planned {
            let periods = &planned[rack as usize];
            let place = periods.partition_point(|(one, _)| one.number < period.number);
            return periods.get(place).filter(|(one, _)| one == period).map(|(_, to)| *to);
        }
        let order = &self.matchings[switch as usize];
        let turn = usize::try_from(period.number % order.len() as u64).unwrap_or(0);
        let other = order[turn][rack as usize];
        (other != rack).then_some(other)
    }

    /// When `rack`, by its clock, may begin to send in `period`, and until when its last bit must have left.
    pub fn window(&self, rack: Rack, period: &Period) -> (u64, u64) {
        let skew = self.skews[rack as usize];
        let begin = period.begin + self.guard + self.margin + skew;
        let end = period.end + skew;
        (
            begin.saturating_sub(self.cable + self.most_skew),
            end.saturating_sub(self.cable + self.margin + self.most_skew),
        )
    }

    /// The first period of `switch`, by the clock of `rack`, whose time to send is not over at `at`; none where none is planned.
    pub fn current(&self, switch: u32, rack: Rack, at: u64) -> Option<Period> {
        if let Some(planned) = &self.planned {
            let periods = &planned[rack as usize];
            let place = periods.partition_point(|(period, _)| self.window(rack, period).1 <= at);
            return periods.get(place).map(|(period, _)| *period);
        }
        // By the clock it may be the one before or behind; skews are shorter than half a period.
        let mut period = self.period(switch, at.saturating_sub(self.most_skew));
        while self.window(rack, &period).1 <= at {
            period = self.period(switch, period.end);
        }
        Some(period)
    }

    /// When the switch passes something in `period`.
    pub fn up(&self, switch: u32, period: &Period) -> u64 {
        let delay = self.delay.draw_ps(draw(self.seed, CHANGES + u64::from(switch), period.number));
        (period.begin + self.guard.max(delay)).min(period.end)
    }

    /// What becomes of a packet whose first bit comes to `switch` at `first` and its last one at `last`, sent in `period`.
    pub fn fate(&self, switch: u32, period: &Period, first: u64, last: u64) -> Transit {
        if first < period.begin + self.guard || last > period.end {
            return Transit::GuardBand;
        }
        let place = CHANGES + u64::from(switch);
        let delay = self.delay.draw_ps(draw(self.seed, place, period.number));
        if first < period.begin + delay { Transit::Reconfiguring } else { Transit::Passes }
    }

    /// The number of the slice in which `at` lies by the clock of `rack`.
    pub fn slice_of(&self, rack: Rack, at: u64) -> u64 {
        (at + self.most_skew).saturating_sub(self.skews[rack as usize]) / self.slice
    }

    /// After so many slices everything comes again; of circuits by demand, how many are planned at most for a rack.
    pub fn cycle(&self) -> u64 {
        if let Some(planned) = &self.planned {
            return planned.iter().map(VecDeque::len).max().unwrap_or(0) as u64;
        }
        self.hold * self.matchings.iter().map(Vec::len).max().unwrap_or(1) as u64
    }

    /// The circuits of slice `number`, as (switch, matching), without those that change at its end while others go on.
    pub fn of_slice(&self, number: u64) -> impl Iterator<Item = (u32, &[Rack])> {
        let at = number * self.slice;
        (0..self.switches()).filter_map(move |switch| {
            let period = self.period(switch, at);
            let leaves = self.in_turn && self.hold > 1 && period.end == at + self.slice;
            let order = &self.matchings[switch as usize];
            let turn = usize::try_from(period.number % order.len() as u64).unwrap_or(0);
            (!leaves).then(|| (switch, order[turn].as_slice()))
        })
    }
}

/// Matchings in which each pair of `racks` racks is joined once: those of a round-robin tournament (circle method).
fn factorisation(racks: u32) -> Vec<Matching> {
    // With an odd number one rack has a bye in each round.
    let players = racks + racks % 2;
    let others = players - 1;
    let round = |number: u32| {
        let mut matching: Matching = (0..players).collect();
        let mut join = |a: u32, b: u32| {
            matching[a as usize] = b;
            matching[b as usize] = a;
        };
        join(others, number);
        (1..players / 2).for_each(|apart| join((number + apart) % others, (number + others - apart) % others));
        let bye = |(rack, other): (usize, &Rack)| if *other < racks { *other } else { count(rack) };
        matching.iter().enumerate().map(bye).take(racks as usize).collect()
    };
    (0..others).map(round).collect()
}

/// Makes the matchings less regular, so that a few of them are an expander: where two are laid over each other, racks lie on circles and
/// paths; the two change roles on one of these.
fn mix_matchings(matchings: &mut [Matching], seed: u64) {
    let number = matchings.len() as u64;
    if number < 2 {
        return;
    }
    let index = |bits: u64, bound: u64| usize::try_from(below(bits, bound)).unwrap_or(0);
    for swap in 0..number * 16 {
        let first = index(draw(seed, SWAPS, 3 * swap), number);
        let second = (first + 1 + index(draw(seed, SWAPS, 3 * swap + 1), number - 1)) % matchings.len();
        let racks = matchings[first].len();
        let start = index(draw(seed, SWAPS, 3 * swap + 2), racks as u64);
        let mut reached = vec![false; racks];
        let mut open = vec![start];
        while let Some(rack) = open.pop() {
            if !std::mem::replace(&mut reached[rack], true) {
                open.extend([matchings[first][rack] as usize, matchings[second][rack] as usize]);
            }
        }
        for rack in (0..racks).filter(|rack| reached[*rack]) {
            let mine = matchings[first][rack];
            matchings[first][rack] = std::mem::replace(&mut matchings[second][rack], mine);
        }
    }
}

fn shuffle(matchings: &mut [Matching], seed: u64) {
    for last in (1..matchings.len()).rev() {
        let other = below(draw(seed, ORDER, last as u64), last as u64 + 1);
        matchings.swap(last, usize::try_from(other).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn each_pair_is_joined_once_in_a_cycle_however_matchings_are_mixed() {
        for (racks, uplinks) in [(2, 1), (3, 1), (3, 3), (4, 2), (7, 3), (10, 4), (16, 1), (108, 6)] {
            for change in [Change::Together, Change::InTurn] {
                let config = RotorConfig { uplinks, change, seed: u64::from(racks), ..RotorConfig::default() };
                let schedule = Schedule::new(&config, racks);
                let mut met = vec![0; (racks * racks) as usize];
                for switch in 0..uplinks {
                    let mut period = schedule.period(switch, 0);
                    for _ in 0..schedule.matchings[switch as usize].len() {
                        for rack in 0..racks {
                            if let Some(other) = schedule.joined(switch, &period, rack) {
                                assert_eq!(schedule.joined(switch, &period, other), Some(rack));
                                met[(rack * racks + other) as usize] += 1;
                            }
                        }
                        let next = schedule.period(switch, period.end);
                        assert_eq!((next.number, next.begin), (period.number + 1, period.end));
                        period = next;
                    }
                }
                let once = |index: usize| usize::from(!index.is_multiple_of(racks as usize + 1));
                assert!(met.iter().enumerate().all(|(index, times)| *times == once(index)), "{racks} {uplinks}");
            }
        }
    }

    #[test]
    fn one_switch_changes_in_each_slice_where_they_change_in_turn() {
        let config = RotorConfig { uplinks: 6, change: Change::InTurn, ..RotorConfig::default() };
        let schedule = Schedule::new(&config, 108);
        assert_eq!(schedule.cycle(), 108);
        let slice = config.slice.ps();
        for number in 0..300 {
            let changes = (0..6).filter(|switch| schedule.period(*switch, number * slice).begin == number * slice);
            // At the start there is nothing before.
            assert!(number == 0 || changes.eq([u32::try_from(number % 6).unwrap()]), "slice {number}");
            assert_eq!(schedule.of_slice(number).count(), 5);
        }
    }
}
