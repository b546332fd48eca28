//! Clocks that were stepped or slewed while they were recorded: found where no straight line fits what both hosts saw, and
//! undone.

use std::cmp::Reverse;

use super::hull::{lower_hull, mirrored};
use super::map::ClockMap;
use super::pairs::{Cloud, PairFit};

/// What one clock gains over another at most, as a share: Linux corrects a clock by 500 ppm at most (`MAXFREQ` of
/// linux/timex.h), either way at both ends.
pub(super) const MAX_RATE: f64 = 1e-3;
/// Stamps of whole microseconds at both ends may contradict each other by so much, nanoseconds.
const TOLERANCE_NS: f64 = 2_000.0;
/// Fewer packets between two breaks are no stretch of a clock but stamps that mean something else (a packet that was sent twice
/// and of which each host saw another copy).
const MIN_POINTS: usize = 16;
/// How often such packets are taken out, and what is left looked at again.
const MAX_ROUNDS: u32 = 8;

/// What was done to a clock at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Jump {
    /// Host, by number.
    pub host: usize,
    /// When, nanoseconds since the epoch on that clock, as it was before.
    pub at_ns: i64,
    /// By how much it was stepped, nanoseconds.
    pub step_ns: i64,
    /// By how much its rate changed, parts per million.
    pub rate_ppm: f64,
}

/// What makes one straight clock of one that jumped: from each of these times of its own on, a map; nothing before the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Correction {
    stretches: Vec<(i64, ClockMap)>,
}

impl Correction {
    /// What to add to a time of the clock.
    fn delta_ns(&self, t_ns: i64) -> f64 {
        let after = self.stretches.partition_point(|(from, _)| *from <= t_ns);
        after.checked_sub(1).map_or(0.0, |at| self.stretches[at].1.delta_ns(t_ns))
    }

    /// A time of the clock, as it would have told it without jumps; 0, which stands for "not seen", stays 0.
    #[must_use]
    pub fn apply(&self, t_ns: u64) -> u64 {
        let t = i64::try_from(t_ns).unwrap_or(i64::MAX);
        let after = self.stretches.partition_point(|(from, _)| *from <= t);
        after.checked_sub(1).map_or(t_ns, |at| self.stretches[at].1.apply(t_ns))
    }

    fn moved(&self, t_ns: i64) -> i64 {
        t_ns.saturating_add(self.delta_ns(t_ns).round() as i64)
    }
}

/// A bound of how the second of two clocks stands to the first: the packet's time on the first, and the difference.
#[derive(Clone, Copy, Debug)]
struct Bound {
    at_ns: i64,
    difference_ns: i64,
    /// Whether the truth lies below.
    upper: bool,
}

/// A line between the upper and the lower bounds, and the room between them beside it; less than nothing if there is no such line.
#[derive(Clone, Copy, Debug)]
struct Between {
    map: ClockMap,
    room_ns: f64,
}

/// Finds the hosts whose clocks jumped, and takes the jumps out of what was seen of them. Of two hosts that have seen only
/// each other, the clock of `reference` is the right one. `fits` must hold all points. What contradicts all else is taken out as well.
pub(super) fn undo(hosts: usize, reference: usize, fits: &mut [PairFit]) -> (Vec<Correction>, Vec<Jump>) {
    let mut corrections = vec![Correction::default(); hosts];
    let mut jumps = Vec::new();
    let mut done = vec![false; hosts];
    for fit in fits.iter_mut().filter(|fit| !is_straight(fit)) {
        let (kept, _) = stretches(bounds(fit, fit.b));
        *fit = of_bounds(fit, &kept);
    }
    loop {
        let broken: Vec<usize> = (0..fits.len()).filter(|&fit| !is_straight(&fits[fit])).collect();
        let concerns = |fit: usize, host: usize| fits[fit].a == host || fits[fit].b == host;
        let count = |host: usize| broken.iter().filter(|&&fit| concerns(fit, host)).count();
        let pairs = |host: usize| (0..fits.len()).filter(|&fit| concerns(fit, host)).count();
        // Most of those who met a host whose clock jumped have noticed.
        let worst = (0..hosts)
            .filter(|&host| !done[host] && count(host) > 0 && 2 * count(host) >= pairs(host))
            .max_by_key(|&host| (count(host), host != reference, Reverse(host)));
        let Some(host) = worst else { break };
        done[host] = true;
        let partner = |fit: usize| if fits[fit].a == host { fits[fit].b } else { fits[fit].a };
        let witnesses: Vec<Vec<ClockSegment>> = {
            let of_host = || broken.iter().copied().filter(|&fit| concerns(fit, host));
            let least = of_host().map(|fit| count(partner(fit))).min();
            let surest = of_host().filter(|&fit| Some(count(partner(fit))) == least);
            surest.map(|fit| stretches(bounds(&fits[fit], host)).1).filter(|found| found.len() > 1).collect()
        };
        let Some((correction, found)) = correction_of(host, &witnesses) else { continue };
        for fit in fits.iter_mut().filter(|fit| fit.a == host || fit.b == host) {
            *fit = corrected(fit, host, &correction);
        }
        corrections[host] = correction;
        jumps.extend(found);
    }
    // What still fits no line came about a jump, where nobody knows on which side.
    for fit in fits.iter_mut().filter(|fit| !is_straight(fit)) {
        let (kept, found) = stretches(bounds(fit, fit.b));
        if let Some(longest) = found.iter().max_by_key(|stretch| stretch.length_ns()) {
            let within = |bound: &&Bound| (longest.first_ns..=longest.last_ns).contains(&bound.at_ns);
            *fit = of_bounds(fit, &kept.iter().filter(within).copied().collect::<Vec<_>>());
        }
    }
    jumps.sort_by_key(|jump| (jump.at_ns, jump.host));
    (corrections, jumps)
}

/// Whether there is a line between what a pair of hosts saw in its two directions; their edges are enough to tell.
pub(super) fn is_straight(fit: &PairFit) -> bool {
    line_between(&fit.forward.points, &fit.backward.points).is_none_or(|between| between.room_ns >= -TOLERANCE_NS)
}

/// What a pair of hosts saw, as bounds of the clock of `host` against the other's, by time.
fn bounds(fit: &PairFit, host: usize) -> Vec<Bound> {
    let points = |points: &[(i64, i64)], upper: bool| -> Vec<Bound> {
        let turned = |&(at_ns, difference_ns): &(i64, i64)| {
            if host == fit.b {
                Bound { at_ns, difference_ns, upper }
            } else {
                Bound { at_ns: at_ns.saturating_add(difference_ns), difference_ns: -difference_ns, upper: !upper }
            }
        };
        points.iter().map(turned).collect()
    };
    let mut all = points(&fit.forward.points, true);
    all.extend(points(&fit.backward.points, false));
    all.sort_unstable_by_key(|bound| (bound.at_ns, bound.difference_ns, bound.upper));
    all
}

/// The same pair with these bounds of its second host only, if they suffice for a fit.
fn of_bounds(fit: &PairFit, kept: &[Bound]) -> PairFit {
    let points = |upper: bool| {
        kept.iter().filter(|bound| bound.upper == upper).map(|bound| (bound.at_ns, bound.difference_ns)).collect()
    };
    PairFit::of(fit.a, fit.b, Cloud::whole(points(true)), Cloud::whole(points(false)), fit.whole_ns)
        .unwrap_or_else(|| fit.clone())
}

fn corrected(fit: &PairFit, host: usize, correction: &Correction) -> PairFit {
    let moved = |cloud: &Cloud| -> Cloud {
        let points = cloud
            .points
            .iter()
            .map(|&(at_a, difference)| {
                let at_b = at_a.saturating_add(difference);
                let a = if host == fit.a { correction.moved(at_a) } else { at_a };
                let b = if host == fit.b { correction.moved(at_b) } else { at_b };
                (a, b.saturating_sub(a))
            })
            .collect();
        Cloud::whole(points)
    };
    let whole = fit.whole_ns;
    let whole = if host == fit.a { (correction.moved(whole.0), correction.moved(whole.1)) } else { whole };
    PairFit::of(fit.a, fit.b, moved(&fit.forward), moved(&fit.backward), whole).unwrap_or_else(|| fit.clone())
}

/// A time in which both clocks ran evenly.
#[derive(Clone, Copy, Debug)]
struct ClockSegment {
    first_ns: i64,
    last_ns: i64,
    map: ClockMap,
}

impl ClockSegment {
    fn length_ns(&self) -> i64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// What the second clock shows at a time of the first.
    fn shows_ns(&self, t: i64) -> i64 {
        t.saturating_add(self.map.delta_ns(t).round() as i64)
    }
}

/// What straightens the clock of a host, by what others saw of it: the longest stretch between two jumps stands as it is, all
/// others are moved to where it leads. The pair that met most often about the jumps tells of them, and the others when they were,
/// as far as they have seen as many.
fn correction_of(host: usize, witnesses: &[Vec<ClockSegment>]) -> Option<(Correction, Vec<Jump>)> {
    let gap = |stretches: &[ClockSegment]| {
        stretches.windows(2).map(|pair| pair[1].first_ns.saturating_sub(pair[0].last_ns)).max().unwrap_or(i64::MAX)
    };
    let surest = witnesses.iter().min_by_key(|stretches| gap(stretches))?;
    let straight = surest.iter().max_by_key(|stretch| stretch.length_ns())?;
    let step =
        |from: &ClockSegment, to: &ClockSegment, t: i64| (to.map.delta_ns(t) - from.map.delta_ns(t)).round() as i64;
    let mut jumps = Vec::new();
    let mut maps = Vec::new();
    for (number, stretch) in surest.iter().enumerate() {
        let t = stretch.first_ns;
        let begins = if number == 0 {
            i64::MIN
        } else {
            let before = &surest[number - 1];
            let about = i64::midpoint(before.last_ns, t);
            let by_ns = step(before, stretch, about);
            // On the host's own clock, as it was before: not earlier, not later.
            let same = witnesses.iter().filter(|stretches| stretches.len() == surest.len());
            let windows = same.map(|stretches| {
                let (before, after) = (&stretches[number - 1], &stretches[number]);
                (before.shows_ns(before.last_ns), after.shows_ns(after.first_ns).saturating_sub(by_ns))
            });
            let own = (before.shows_ns(before.last_ns), stretch.shows_ns(t).saturating_sub(by_ns));
            let narrower = |(from, to): (i64, i64), (least, most): (i64, i64)| {
                if least.max(from) < most.min(to) { (least.max(from), most.min(to)) } else { (from, to) }
            };
            let (from, to) = windows.fold(own, narrower);
            let rate_ppm = (stretch.map.rate - before.map.rate) * 1e6;
            let when = i64::midpoint(from, to);
            jumps.push(Jump { host, at_ns: when, step_ns: by_ns, rate_ppm });
            // Set forward, it never showed what lies between; set back, it showed it twice.
            when.saturating_add(by_ns / 2)
        };
        let moves = ClockMap {
            at_ns: stretch.shows_ns(t),
            offset_ns: straight.map.delta_ns(t) - stretch.map.delta_ns(t),
            rate: (straight.map.rate - stretch.map.rate) / (1.0 + stretch.map.rate),
        };
        maps.push((begins, moves));
    }
    (!jumps.is_empty()).then_some((Correction { stretches: maps }, jumps))
}

/// Cuts bounds, which are ordered by time, into the fewest stretches that are straight. Those that fit into none are left out
/// of what is handed back.
fn stretches(mut bounds: Vec<Bound>) -> (Vec<Bound>, Vec<ClockSegment>) {
    for round in 0.. {
        let ranges = straight_ranges(&bounds);
        let (long, short): (Vec<_>, Vec<_>) = ranges.into_iter().partition(|(from, to)| to - from >= MIN_POINTS);
        if long.is_empty() || short.is_empty() || round == MAX_ROUNDS {
            return (bounds.clone(), stretches_of(&bounds, long));
        }
        let mut is_short = vec![false; bounds.len()];
        short.into_iter().for_each(|(from, to)| is_short[from..to].fill(true));
        let mut at = 0;
        bounds.retain(|_| {
            at += 1;
            !is_short[at - 1]
        });
    }
    (bounds, Vec::new())
}

fn straight_ranges(bounds: &[Bound]) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut from = 0;
    while from < bounds.len() {
        let to = from + longest(bounds.len() - from, |length| fits(&bounds[from..from + length]));
        ranges.push((from, to));
        from = to;
    }
    ranges
}

/// Each range as far as it is nearer to its own line than to its neighbour's, where it fits both.
fn stretches_of(bounds: &[Bound], mut ranges: Vec<(usize, usize)>) -> Vec<ClockSegment> {
    for at in 1..ranges.len() {
        let ((first, end), (begin, to)) = (ranges[at - 1], ranges[at]);
        let earliest = begin - longest(begin - first, |length| fits(&bounds[begin - length..to]));
        let (Some(before), Some(after)) = (between(&bounds[first..end]), between(&bounds[begin..to])) else { continue };
        let distance =
            |bound: &Bound, line: &Between| (bound.difference_ns as f64 - line.map.delta_ns(bound.at_ns)).abs();
        let mut gain = 0.0;
        let mut best = (0.0, begin);
        for cut in (earliest.max(first + 1)..begin).rev() {
            gain += distance(&bounds[cut], &before) - distance(&bounds[cut], &after);
            if gain > best.0 {
                best = (gain, cut);
            }
        }
        ranges[at].0 = best.1;
        ranges[at - 1].1 = end.min(best.1);
    }
    let stretch = |(from, to): (usize, usize)| {
        let map = between(&bounds[from..to])?.map;
        Some(ClockSegment { first_ns: bounds[from].at_ns, last_ns: bounds[to - 1].at_ns, map })
    };
    ranges.into_iter().filter_map(stretch).collect()
}

fn fits(bounds: &[Bound]) -> bool {
    between(bounds).is_none_or(|between| between.room_ns >= -TOLERANCE_NS)
}

/// The greatest length up to `all` that is good, where all shorter ones than a good one are; at least 1, if there is any.
fn longest(all: usize, is_good: impl Fn(usize) -> bool) -> usize {
    let (mut good, mut bad) = (all.min(1), all + 1);
    let mut step = MIN_POINTS;
    while good < all && bad > all {
        let tried = (good + step).min(all);
        if is_good(tried) {
            good = tried;
        } else {
            bad = tried;
        }
        step *= 2;
    }
    while good + 1 < bad {
        let middle = usize::midpoint(good, bad);
        if is_good(middle) { good = middle } else { bad = middle }
    }
    good
}

/// As [`line_between`].
fn between(bounds: &[Bound]) -> Option<Between> {
    let of = |upper: bool| -> Vec<(i64, i64)> {
        let points = bounds.iter().filter(|bound| bound.upper == upper);
        points.map(|bound| (bound.at_ns, bound.difference_ns)).collect()
    };
    // By time they are ordered already, at one time the lowest comes first.
    line_between(&of(true), &of(false))
}

/// The line that is farthest from all points, no steeper than [`MAX_RATE`]; `None` if they are all on one side. `above` must be
/// ordered.
fn line_between(above: &[(i64, i64)], below: &[(i64, i64)]) -> Option<Between> {
    let (above, below) = (lower_hull(above), lower_hull(&mirrored(below)));
    let &(at_ns, base) = above.first().filter(|_| !below.is_empty())?;
    // What the line may be at `at_ns`, by its rate: at least, at most.
    let least = |hull: &[(i64, i64)], base: i64, rate: f64| {
        let above = |&(x, y): &(i64, i64)| y.saturating_sub(base) as f64 - rate * x.saturating_sub(at_ns) as f64;
        hull.iter().map(above).fold(f64::INFINITY, f64::min)
    };
    let may_be = |rate: f64| (-least(&below, -base, -rate), least(&above, base, rate));
    let room = |rate: f64| {
        let (least, most) = may_be(rate);
        most - least
    };
    // The room is concave in the rate.
    let (mut low, mut high) = (-MAX_RATE, MAX_RATE);
    for _ in 0..80 {
        let third = (high - low) / 3.0;
        if room(low + third) < room(high - third) { low += third } else { high -= third }
    }
    let rate = f64::midpoint(low, high);
    let (least, most) = may_be(rate);
    let offset_ns = base as f64 + f64::midpoint(least, most);
    Some(Between { map: ClockMap { at_ns, offset_ns, rate }, room_ns: most - least })
}
