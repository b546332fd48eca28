//! Time Warp on a model of a few lines, by hand, and beside the same events one after the other; and with mistakes, which have to show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::part::{Mail, Message};
use super::{Key, Model, Output, Part, Sent};
use crate::kernel::Place;
use crate::time::SimTime;

/// Places in a ring, dealt round to parts. From place 1000 on there are inputs.
#[derive(Clone, Copy, Debug)]
struct Ring {
    places: u32,
    parts: u32,
    /// An event goes on to one of so many places behind its own, or to an end behind the last of these.
    spread: u64,
    /// The model's own mistake: nothing is saved.
    keeps: bool,
}

impl Ring {
    fn part(self, place: u32) -> usize {
        (place % self.parts) as usize
    }

    fn local(self, place: u32) -> usize {
        (place / self.parts) as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Knock {
    /// `None`: an end.
    place: Option<u32>,
    value: u64,
    /// How often it goes on.
    left: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    value: u64,
    /// When its latest event to go on arrives.
    free: u64,
}

impl State {
    /// What `knock` makes of it at `at`, and what comes of that, when it arrives.
    fn knocked(&mut self, ring: Ring, at: SimTime, place: u32, knock: &Knock) -> Option<(Key, Knock)> {
        self.value = self.value.wrapping_mul(3).wrapping_add(knock.value);
        let left = knock.left.checked_sub(1)?;
        self.free = self.free.max(at.0) + 1 + self.value % 4;
        let step = self.value / 4 % (ring.spread + 1);
        let next = (step < ring.spread).then(|| (place + 1 + u32::try_from(step).unwrap()) % ring.places);
        let knock = Knock { place: next, value: self.value, left };
        Some((Key::new(SimTime(self.free), Place(place)), knock))
    }
}

/// What was committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    knocks: Vec<(Key, Knock, bool)>,
    ends: Vec<(Key, Knock)>,
    heard: u64,
}

impl Seen {
    fn sorted(mut self) -> Self {
        self.knocks.sort_unstable();
        self.ends.sort_unstable();
        self
    }
}

type Input = (u64, u32, u64, u32);

/// An event of input `number`.
fn brought(number: usize, (at, place, value, left): Input) -> (Key, Knock) {
    let key = Key::new(SimTime(at), Place(1_000 + u32::try_from(number).unwrap()));
    (key, Knock { place: Some(place), value, left })
}

/// All one after the other, and the states that places end in.
fn in_order(ring: Ring, inputs: &[Input]) -> (Seen, Vec<State>) {
    let mut pending: BTreeMap<Key, Knock> = BTreeMap::new();
    let (mut seen, mut states) = (Seen::default(), vec![State::default(); ring.places as usize]);
    for (number, input) in inputs.iter().enumerate() {
        pending.extend([brought(number, *input)]);
        seen.heard += input.2;
    }
    while let Some((key, knock)) = pending.pop_first() {
        let Some(place) = knock.place else {
            seen.ends.push((key, knock));
            continue;
        };
        let next = states[place as usize].knocked(ring, key.time(), place, &knock);
        seen.knocks.push((key, knock, next.is_some()));
        pending.extend(next);
    }
    (seen.sorted(), states)
}

/// A part of it.
struct Knocks {
    states: Vec<State>,
    inputs: VecDeque<(Key, Knock)>,
    until: SimTime,
    seen: Seen,
}

impl Model for Knocks {
    type Shared = Ring;
    type Event = Knock;
    type Before = State;
    type Note = u64;

    fn places(&self) -> usize {
        self.states.len()
    }

    fn is_end(&self, _: &Ring, knock: &Knock) -> bool {
        knock.place.is_none()
    }

    fn place(&self, ring: &Ring, knock: &Knock) -> Option<usize> {
        knock.place.map(|place| ring.local(place))
    }

    fn run(&mut self, ring: &Ring, at: SimTime, place: usize, knock: &Knock) -> (State, Option<Sent<Knock>>) {
        let before = self.states[place];
        let next = self.states[place].knocked(*ring, at, knock.place.unwrap(), knock);
        let sent = |(key, event): (Key, Knock)| {
            let part = event.place.unwrap_or(u32::try_from(event.value % 1_000).unwrap());
            Sent { part: ring.part(part), key, event }
        };
        (if ring.keeps { before } else { self.states[place] }, next.map(sent))
    }

    fn restore(&mut self, place: usize, before: State, _sent: bool) {
        self.states[place] = before;
    }

    fn commit(&mut self, _: &Ring, at: SimTime, knock: &Knock, sent: bool) {
        self.seen.knocks.push((Key::new(at, Place(0)), *knock, sent));
    }

    fn commit_end(&mut self, _: &Ring, at: SimTime, knock: &Knock) {
        self.seen.ends.push((Key::new(at, Place(0)), *knock));
    }

    fn begin(&mut self, _: &Ring, until: SimTime) {
        self.until = until;
    }

    fn shorten(&mut self, until: SimTime) {
        self.until = until;
    }

    fn next_input(&self) -> Option<SimTime> {
        self.inputs.front().map(|(key, _)| key.time()).filter(|at| *at < self.until)
    }

    fn run_inputs(&mut self, ring: &Ring, output: &mut Output<Knock, u64>) {
        let (key, event) = self.inputs.pop_front().unwrap();
        let part = ring.part(event.place.unwrap());
        output.sent.push(Sent { part, key, event });
        output.notes.push((part, event.value));
    }

    fn receive(&mut self, note: u64) {
        self.seen.heard += note;
    }

    fn events(&self) -> u64 {
        (self.seen.knocks.len() + self.seen.ends.len()) as u64
    }
}

/// The parts of `ring`, with inputs dealt round to them.
fn parts(ring: Ring, inputs: &[Input]) -> Vec<Part<Knocks>> {
    let part = |number: u32| {
        let places = (0..ring.places).filter(|place| place % ring.parts == number).count();
        let dealt =
            inputs.iter().enumerate().filter(|(place, _)| ring.part(u32::try_from(*place).unwrap()) == number as usize);
        let mut mine: Vec<_> = dealt.map(|(number, input)| brought(number, *input)).collect();
        mine.sort_unstable();
        let model = Knocks {
            states: vec![State::default(); places],
            inputs: mine.into(),
            until: SimTime::MAX,
            seen: Seen::default(),
        };
        Part::new(number as usize, ring.parts as usize, model)
    };
    (0..ring.parts).map(part).collect()
}

/// Keys by time alone: what is committed does not tell of places.
fn timed(seen: &Seen) -> Seen {
    let of = |key: Key| Key::new(key.time(), Place(0));
    let knocks = seen.knocks.iter().map(|(key, knock, sent)| (of(*key), *knock, *sent)).collect();
    let ends = seen.ends.iter().map(|(key, knock)| (of(*key), *knock)).collect();
    Seen { knocks, ends, heard: seen.heard }.sorted()
}

fn message(at: u64, from: u32, place: u32, value: u64, left: u32) -> Message<Knock> {
    let event = Knock { place: Some(place), value, left };
    Message { anti: false, key: Key::new(SimTime(at), Place(from)), event }
}

const END: SimTime = SimTime::MAX;

#[test]
fn a_straggler_takes_back_what_came_later_at_its_place_and_nothing_else() {
    let ring = Ring { places: 2, parts: 1, spread: 1, keeps: true };
    let mut part = parts(ring, &[]).remove(0);
    part.inbox.messages = vec![message(10, 7, 0, 1, 0), message(15, 7, 1, 9, 0), message(20, 7, 0, 2, 0)];
    part.receive(&ring);
    assert!(part.run_batch(&ring, 8, END) && !part.run_batch(&ring, 8, END));
    assert_eq!((part.model.states[0].value, part.model.states[1].value), (5, 9));
    part.inbox.messages = vec![message(12, 8, 0, 100, 0)];
    part.receive(&ring);
    assert_eq!(part.earliest(), Some(SimTime(12)));
    assert!(part.run_batch(&ring, 1, END));
    // Of three events the one at 20 was taken back, and waits again.
    assert_eq!((part.cost().rolled_back, part.cost().primary_rollbacks), (1, 1));
    assert_eq!((part.model.states[0].value, part.earliest()), (103, Some(SimTime(20))));
    assert!(part.run_batch(&ring, 8, END));
    assert_eq!((part.model.states[0].value, part.model.states[1].value), (103 * 3 + 2, 9));
    assert_eq!(part.cost().most_uncommitted, 4);
    // Nothing is committed that is not earlier than GVT, and what was run behind it waits with it.
    part.collect_fossils(&ring, SimTime(15));
    assert_eq!(part.model.events(), 1);
    part.collect_fossils(&ring, END);
    let times: Vec<u64> = part.model.seen.knocks.iter().map(|(key, ..)| key.time().0).collect();
    assert_eq!((times, part.model.events()), (vec![10, 15, 12, 20], 4));
}

#[test]
fn an_anti_message_cancels_what_waits_and_takes_back_what_was_run() {
    for was_run in [false, true] {
        let ring = Ring { places: 2, parts: 2, spread: 1, keeps: true };
        let mut parts = parts(ring, &[]);
        // Place 0 is that of part 0. It becomes 1, and sends on to place 1 at 10 + 1 + 1 % 4.
        parts[0].inbox.messages = vec![message(10, 7, 0, 1, 1)];
        parts[0].receive(&ring);
        assert!(parts[0].run_batch(&ring, 8, END));
        let sent = std::mem::take(&mut parts[0].outbox[1].messages);
        assert_eq!((sent.len(), sent[0].anti, sent[0].key.time()), (1, false, SimTime(12)));
        assert_eq!(parts[0].remote_events(), 1);
        parts[1].inbox.messages = sent;
        parts[1].receive(&ring);
        if was_run {
            assert!(parts[1].run_batch(&ring, 8, END));
            assert_eq!(parts[1].model.states[0].value, 1);
        }
        // One comes in front of it: what was sent was wrong.
        parts[0].inbox.messages = vec![message(5, 7, 0, 4, 0)];
        parts[0].receive(&ring);
        assert!(parts[0].run_batch(&ring, 8, END));
        let sent = std::mem::take(&mut parts[0].outbox[1].messages);
        let kinds: Vec<_> = sent.iter().map(|message| (message.anti, message.key.time().0)).collect();
        // Then it becomes 4 * 3 + 1, and what it sends at 10 + 1 + 13 % 4 is an end in the other part: with the same key.
        assert_eq!(kinds, [(true, 12), (false, 12)]);
        assert_eq!((parts[0].remote_events(), parts[0].cost().anti_messages), (1, 1));
        parts[1].inbox.messages = sent;
        parts[1].receive(&ring);
        assert!(!parts[1].run_batch(&ring, 8, END));
        assert_eq!(parts[1].model.states[0], State::default());
        let cost = parts[1].cost();
        assert_eq!((cost.rolled_back, cost.secondary_rollbacks), (u64::from(was_run), u64::from(was_run)));
        parts.iter_mut().for_each(|part| part.collect_fossils(&ring, END));
        assert_eq!((parts[0].model.seen.knocks.len(), parts[1].model.events()), (2, 1));
    }
}

/// What may be done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// One of three anti-messages is lost.
    AntiMessageLost,
    /// What is at GVT is committed.
    FossilsOneEventEarly,
    /// GVT forgets what is under way.
    MessagesUnderWayForgotten,
    /// What was sent later comes first.
    MessagesOvertaken,
    /// A place is not made what it was.
    StateNotSaved,
}

#[derive(Clone, Debug)]
struct Case {
    ring: Ring,
    inputs: Vec<Input>,
    /// Which part runs how many events, and whether it looks at its mail.
    steps: Vec<(u32, u32, bool)>,
    gvt_interval: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    (2u32..9, 2u32..5).prop_flat_map(|(places, parts)| {
        let parts = parts.min(places);
        let inputs = prop::collection::vec((0u64..60, 0..places, 0u64..50, 0u32..12), 1..12);
        let steps = prop::collection::vec((0..parts, 1u32..9, prop::bool::weighted(0.6)), 1..40);
        (inputs, steps, 1u64..4, 1usize..20).prop_map(move |(inputs, steps, spread, gvt_interval)| Case {
            ring: Ring { places, parts, spread, keeps: true },
            inputs,
            steps,
            gvt_interval,
        })
    })
}

/// What is committed by parts that take turns as `case` says, the states of the places in the end, and how many events were taken back.
fn time_warp(case: &Case, mistake: Option<Mistake>) -> (Seen, Vec<State>, u64) {
    let ring = Ring { keeps: mistake != Some(Mistake::StateNotSaved), ..case.ring };
    let mut parts = parts(ring, &case.inputs);
    let mut mailboxes: Vec<Mail<Knock, u64>> = parts.iter().map(|_| Mail::default()).collect();
    let mut antis = 0;
    // Whoever never has a turn in `steps` has one here.
    let turns = (0..ring.parts).map(|part| (part, 8, true));
    let steps: Vec<_> = case.steps.iter().copied().chain(turns).collect();
    for (number, (part, batch, looks)) in steps.iter().cycle().take(100_000).enumerate() {
        let number_of_part = *part as usize;
        let part = &mut parts[number_of_part];
        if *looks {
            part.inbox.append(&mut mailboxes[number_of_part]);
            if mistake == Some(Mistake::MessagesOvertaken) {
                part.inbox.messages.reverse();
            }
            part.receive(&ring);
        }
        part.run_batch(&ring, *batch, END);
        let mut outbox: Vec<_> = part.outbox.iter_mut().map(std::mem::take).collect();
        if mistake == Some(Mistake::AntiMessageLost) {
            outbox.iter_mut().for_each(|mail| {
                mail.messages.retain(|message| {
                    antis += u32::from(message.anti);
                    !message.anti || antis % 3 != 0
                });
            });
        }
        mailboxes.iter_mut().zip(&mut outbox).for_each(|(mailbox, mail)| mailbox.append(mail));
        if number % case.gvt_interval == 0 {
            if mistake != Some(Mistake::MessagesUnderWayForgotten) {
                parts.iter_mut().zip(&mut mailboxes).for_each(|(part, mailbox)| part.inbox.append(mailbox));
            }
            let under_way = mailboxes.iter().any(|mailbox| !mailbox.is_empty());
            let earliest = parts.iter().filter_map(Part::earliest).min();
            let early = u64::from(mistake == Some(Mistake::FossilsOneEventEarly));
            let gvt = earliest.map_or(END, |at| at.plus_ps(early));
            parts.iter_mut().for_each(|part| part.collect_fossils(&ring, gvt));
            if earliest.is_none() && !under_way {
                break;
            }
        }
    }
    let states = (0..ring.places).map(|place| parts[ring.part(place)].model.states[ring.local(place)]).collect();
    let rolled_back = parts.iter().map(|part| part.cost().rolled_back).sum();
    let mut all = Seen::default();
    for Part { model: Knocks { seen, .. }, .. } in parts {
        all.knocks.extend(seen.knocks);
        all.ends.extend(seen.ends);
        all.heard += seen.heard;
    }
    (all.sorted(), states, rolled_back)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_committed_is_what_happens_one_after_the_other(case in cases()) {
        let (seen, states) = in_order(case.ring, &case.inputs);
        let (committed, in_the_end, _) = time_warp(&case, None);
        prop_assert_eq!(committed, timed(&seen));
        prop_assert_eq!(in_the_end, states);
    }
}

/// Each mistake shows in one of a thousand cases at least, and most cases take something back.
#[test]
fn mistakes_are_found() {
    let mistakes = [
        Mistake::AntiMessageLost,
        Mistake::FossilsOneEventEarly,
        Mistake::MessagesUnderWayForgotten,
        Mistake::MessagesOvertaken,
        Mistake::StateNotSaved,
    ];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[9; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let cases: Vec<_> = (0..1_000).map(|_| cases().new_tree(&mut runner).unwrap().current()).collect();
    let expected: Vec<_> = cases.iter().map(|case| in_order(case.ring, &case.inputs)).collect();
    let taken_back = cases.iter().filter(|case| time_warp(case, None).2 > 0).count();
    assert!(taken_back > 300, "{taken_back} of 1000 cases take anything back");
    for mistake in mistakes {
        let found = cases.iter().zip(&expected).position(|(case, (seen, states))| {
            let wrong = panic::catch_unwind(AssertUnwindSafe(|| time_warp(case, Some(mistake))));
            wrong.is_err()
                || wrong.is_ok_and(|(committed, in_the_end, _)| committed != timed(seen) || in_the_end != *states)
        });
        println!("{mistake:?}: case {found:?}");
        assert!(found.is_some(), "{mistake:?} is not found among 1000 cases");
    }
}
