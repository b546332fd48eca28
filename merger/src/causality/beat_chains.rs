//! Beats of timers as they come, those of all timers in turn: the first one that brings news is found in few steps, and only some lie in memory.

use std::io;

use trace::ids::TimerId;
use trace::rows::Carrier;

use super::draft::number;
use crate::maps::HashMap;
use crate::spilled::{Reader, Record, RecordList, Writer};

/// Memory that beats take at most, bytes.
const MAX_BYTES: usize = 1 << 20;

/// The beats of each timer so far, by the half that carries news.
pub(super) struct BeatChains {
    all: RecordList<Beat>,
    /// The last of each.
    last: HashMap<(TimerId, Carrier), u32>,
}

/// A beat of a chain of them. Its jumps are those of Myers, "An applicative random-access stack" (1983): a beat is found in a number of
/// steps that grows with the logarithm of that of beats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beat {
    /// The latest time at which any until then happened.
    latest_ns: u64,
    delivered_ns: u64,
    /// How many there are before it in its chain.
    depth: u32,
    /// The one before it; itself where it is the first.
    before: u32,
    /// One further back; itself where it is the first.
    jump: u32,
}

impl Record for Beat {
    const BLANK: Self = Self { latest_ns: 0, delivered_ns: 0, depth: 0, before: 0, jump: 0 };
    const BYTES: usize = 2 * 8 + 3 * 4;

    fn write(&self, out: &mut Writer<'_>) {
        [self.latest_ns, self.delivered_ns].into_iter().for_each(|time| time.write(out));
        [self.depth, self.before, self.jump].into_iter().for_each(|place| place.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Self {
        let [latest_ns, delivered_ns] = std::array::from_fn(|_| input.u64());
        let [depth, before, jump] = std::array::from_fn(|_| input.u32());
        Self { latest_ns, delivered_ns, depth, before, jump }
    }
}

impl Default for BeatChains {
    fn default() -> Self {
        Self { all: RecordList::within(MAX_BYTES), last: HashMap::default() }
    }
}

impl BeatChains {
    /// The next beat of a timer.
    pub fn add(&mut self, timer: TimerId, half: Carrier, happened_ns: u64, delivered_ns: u64) {
        let place = number(self.all.len());
        let beat = match self.last.insert((timer, half), place) {
            None => Beat { latest_ns: happened_ns, delivered_ns, depth: 0, before: place, jump: place },
            Some(before) => {
                let last = self.get(before);
                let middle = self.get(last.jump);
                // Two jumps of one length make one of twice that and one.
                let are_equal =
                    last.depth.wrapping_sub(middle.depth) == middle.depth.wrapping_sub(self.get(middle.jump).depth);
                let jump = if are_equal { middle.jump } else { before };
                let latest_ns = last.latest_ns.max(happened_ns);
                Beat { latest_ns, delivered_ns, depth: last.depth.wrapping_add(1), before, jump }
            }
        };
        self.all.push(beat);
    }

    /// When the first beat was delivered that happened at `news_ns` or later.
    pub fn delivers(&self, timer: TimerId, half: Carrier, news_ns: u64) -> Option<u64> {
        let mut first = self.get(*self.last.get(&(timer, half))?);
        if first.latest_ns < news_ns {
            return None;
        }
        while first.depth > 0 {
            let further = [first.jump, first.before].map(|place| self.get(place));
            match further.into_iter().find(|beat| beat.latest_ns >= news_ns) {
                Some(earlier) => first = earlier,
                None => break,
            }
        }
        Some(first.delivered_ns)
    }

    /// Whether all could be kept, and looked at.
    ///
    /// # Errors
    /// If a temporary file failed.
    pub fn check(&self) -> io::Result<()> {
        self.all.check()
    }

    fn get(&self, place: u32) -> Beat {
        self.all.get(place as usize)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::spilled::read_back;

    proptest! {
        #[test]
        fn the_first_beat_that_brings_news_is_found_as_in_a_list(
            told in prop::collection::vec((0u32..3, 0u64..200), 0..400), news in prop::collection::vec(0u64..201, 1..20),
        ) {
            let mut chains = BeatChains::default();
            let mut plain: HashMap<u32, Vec<(u64, u64)>> = HashMap::default();
            for (delivered, (timer, happened)) in (0..).zip(told) {
                chains.add(TimerId(timer), Carrier::Request, happened, delivered);
                plain.entry(timer).or_default().push((happened, delivered));
            }
            for timer in 0..3 {
                for news in &news {
                    let of_timer = plain.get(&timer).map_or(&[][..], Vec::as_slice);
                    let first = of_timer.iter().find(|(happened, _)| happened >= news);
                    let found = chains.delivers(TimerId(timer), Carrier::Request, *news);
                    prop_assert_eq!(found, first.map(|(_, delivered)| *delivered));
                    prop_assert_eq!(chains.delivers(TimerId(timer), Carrier::Response, *news), None);
                }
            }
            prop_assert!(chains.check().is_ok());
        }

        #[test]
        fn a_beat_is_kept_whole(latest_ns: u64, delivered_ns: u64, depth: u32, before: u32, jump: u32) {
            let beat = Beat { latest_ns, delivered_ns, depth, before, jump };
            prop_assert_eq!(read_back(&beat), beat);
        }
    }

    #[test]
    fn a_beat_of_a_million_is_found_in_few_steps() {
        let mut chains = BeatChains::default();
        (0..1_000_000u64).for_each(|at| chains.add(TimerId(0), Carrier::Request, at, at));
        for news in [0, 1, 499_999, 500_000, 999_999] {
            let (mut at, mut steps) = (chains.get(999_999), 0);
            while at.depth > 0 && chains.get(at.before).latest_ns >= news {
                let jump = chains.get(at.jump);
                at = if jump.latest_ns >= news { jump } else { chains.get(at.before) };
                steps += 1;
            }
            assert!(at.delivered_ns == news && steps <= 60, "{steps} steps to {news}");
            assert_eq!(chains.delivers(TimerId(0), Carrier::Request, news), Some(news));
        }
    }
}
