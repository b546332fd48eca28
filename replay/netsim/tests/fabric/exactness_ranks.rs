//! `store-and-forward` by ranks beside its run in windows by one process: the same packets, the same figures; and letters between ranks that are lost or
//! spoiled.

use crate::exactness::listed::{listed, stops, without_answers};
use crate::exactness::networks::stored_networks;
use crate::exactness::{Case, networks_config};
use crate::exactness_windows::{packet_bytes, windows};
use crate::flit_model::traffic::Seen;
use netsim::fabric::store_and_forward::StoreAndForwardConfig;
use netsim::fabric::store_and_forward::windows::Windowed;
use netsim::fabric::windows::{Carrier, WindowedRun};
use netsim::network::NetworkFigures;
use netsim::time::SimTime;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What becomes of a letter on its way.
#[derive(Clone, Copy, Debug)]
enum Mishap {
    /// Nothing is left of it.
    Lost,
    /// It lacks so many bytes at its end, but has one at least.
    Cut(usize),
    /// There are bytes more at its end.
    Longer,
    /// A byte of it is another one.
    Changed(usize, u8),
}

impl Mishap {
    fn befalls(self, letter: &mut Vec<u8>) {
        let length = letter.len();
        match self {
            Self::Lost => letter.clear(),
            Self::Cut(bytes) => letter.truncate(length.saturating_sub(bytes).max(1)),
            Self::Longer => letter.extend([0; 8]),
            Self::Changed(byte, bits) => letter[byte % length] ^= bits,
        }
    }
}

/// Ranks that are threads.
struct Threads {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
    /// What befalls which of the letters of more than 16 bytes that this rank writes to others, counted from 1.
    mishap: Option<(usize, Mishap)>,
    written: usize,
    befell: Arc<AtomicBool>,
}

/// `ranks` of them. The mishap befalls the last one.
fn threads(ranks: usize, mishap: Option<(usize, Mishap)>, befell: &Arc<AtomicBool>) -> Vec<Threads> {
    let mishap = |rank: usize| mishap.filter(|_| rank + 1 == ranks);
    let carrier = |rank| Threads {
        rank,
        to: Vec::new(),
        from: Vec::new(),
        mishap: mishap(rank),
        written: 0,
        befell: Arc::clone(befell),
    };
    let mut all: Vec<_> = (0..ranks).map(carrier).collect();
    for from in 0..ranks {
        for to in 0..ranks {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

/// A rank has ended all of them. Thrown.
#[derive(Clone, Copy, Debug, PartialEq)]
struct GaveUp;

fn give_up() -> ! {
    panic::resume_unwind(Box::new(GaveUp))
}

impl Carrier for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    fn give_up(&self, _reason: &str) -> ! {
        give_up()
    }

    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        for (rank, mut letter) in letters.into_iter().enumerate() {
            if rank != self.rank && letter.len() > 16 {
                self.written += 1;
                if let Some((number, mishap)) = self.mishap
                    && number == self.written
                {
                    self.befell.store(true, Ordering::Relaxed);
                    mishap.befalls(&mut letter);
                }
            }
            // Whoever has ended takes nothing and sends nothing.
            self.to[rank].send(letter).unwrap_or_else(|_| give_up());
        }
        self.from.iter().map(|from| from.recv().unwrap_or_else(|_| give_up())).collect()
    }
}

/// What a run shows, as [`windows`] does; nothing if there are more ranks than parts.
type Shown = Option<(Seen, NetworkFigures, Vec<Vec<u64>>)>;

/// What a run by `ranks` ranks shows, and whether the mishap befell a letter.
fn by_ranks(
    case: &Case<StoreAndForwardConfig>,
    ranks: usize,
    stops: &[u64],
    mishap: Option<(usize, Mishap)>,
) -> (Result<Shown, GaveUp>, bool) {
    let rank = |carrier| {
        let network = Windowed::new(&case.config, &case.hosts).unwrap();
        network.into_rank(carrier, &packet_bytes(case), |_| listed(&case.traffic))
    };
    let befell = Arc::default();
    let mut carriers = threads(ranks, mishap, &befell).into_iter();
    let first = carriers.next().unwrap();
    let head = || {
        let mut run = rank(first)?.into_head(Seen::default());
        let mut bytes = Vec::new();
        for stop in stops {
            assert!(!run.run_before(SimTime(*stop), |_| false));
            bytes.push(run.lane_bytes(SimTime(*stop)));
        }
        run.run_before(SimTime::LATEST, |_| false);
        let figures = run.take_figures();
        Some((run.into_observer().sorted(), figures, bytes))
    };
    let (shown, others) = thread::scope(|scope| {
        let serve = |carrier| scope.spawn(move || rank(carrier).map(|rank| rank.serve()));
        let others: Vec<_> = carriers.map(serve).collect();
        let shown = panic::catch_unwind(AssertUnwindSafe(head));
        (shown, others.into_iter().map(|other| other.join().map(|_| None)).collect::<Vec<_>>())
    });
    // A panic that is none of ours goes on.
    let thrown = |what: Box<dyn std::any::Any + Send>| match what.downcast::<GaveUp>() {
        Ok(gave_up) => *gave_up,
        Err(panicked) => panic::resume_unwind(panicked),
    };
    let mut all: Vec<Result<Shown, GaveUp>> =
        [shown].into_iter().chain(others).map(|ran| ran.map_err(thrown)).collect();
    let shown = match all.iter().position(Result::is_err) {
        Some(gave_up) => all.swap_remove(gave_up),
        None => all.swap_remove(0),
    };
    (shown, befell.load(Ordering::Relaxed))
}

const REGRESSIONS: &str = "tests/regressions/fabric_exactness_ranks.txt";

/// Ranks wait for each other several times a window: fewer networks than those of one thread, whose number follows PROPTEST_CASES as theirs does.
fn ranks_config() -> ProptestConfig {
    let config = networks_config(0, REGRESSIONS);
    ProptestConfig { cases: config.cases.div_ceil(8), ..config }
}

proptest! {
    #![proptest_config(ranks_config())]

    #[test]
    fn ranks_show_in_nothing(case in without_answers(stored_networks()), stops in stops()) {
        let expected = windows(&case, 1, 1, &stops);
        for ranks in [1, 2, 4] {
            let (ran, _) = by_ranks(&case, ranks, &stops, None);
            if let Some(shown) = ran.unwrap() {
                prop_assert_eq!(&shown, &expected, "{} ranks", ranks);
            }
        }
    }
}

/// What two ranks show on some networks, always the same ones, when one of the mishaps befalls one of the first letters; beside what is right.
fn mishaps(networks: usize, mishaps: &[Mishap], mut look: impl FnMut(Result<Shown, GaveUp>, &Shown)) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = without_answers(stored_networks());
    for _ in 0..networks {
        let case = strategy.new_tree(&mut runner).unwrap().current();
        let right = by_ranks(&case, 2, &[], None).0.unwrap();
        if right.is_none() {
            continue;
        }
        for letter in 1..=6 {
            for mishap in mishaps {
                let (shown, befell) = by_ranks(&case, 2, &[], Some((letter, *mishap)));
                if befell {
                    look(shown, &right);
                }
            }
        }
    }
}

#[test]
fn a_letter_that_is_lost_shows() {
    let (mut lost, mut unseen) = (0, 0);
    mishaps(10, &[Mishap::Lost], |shown, right| {
        lost += 1;
        unseen += u32::from(shown.as_ref() == Ok(right));
    });
    // That a message is under way which ends at another rank is told to meters alone.
    assert!(lost >= 30 && unseen <= lost / 4, "of {lost} letters {unseen} were not missed");
}

#[test]
fn a_letter_of_another_length_ends_all_ranks() {
    let mut spoiled = 0;
    let cuts = [1, 16, 76, usize::MAX].map(Mishap::Cut);
    mishaps(10, &[&cuts[..], &[Mishap::Longer]].concat(), |shown, _| {
        spoiled += 1;
        assert_eq!(shown.err(), Some(GaveUp));
    });
    assert!(spoiled >= 150, "{spoiled} letters");
}

/// Ranks that write each other what is wrong come to an end all the same: some in time, some not.
#[test]
fn whatever_letters_say_ranks_end_without_a_panic() {
    let changes = (0..40).map(|change| Mishap::Changed(change * 7, 1 << (change % 8)));
    let far = (0..20).map(|change| Mishap::Changed(change * 13, 255));
    let changes: Vec<_> = changes.chain(far).collect();
    let (mut changed, mut seen) = (0, 0);
    mishaps(5, &changes, |shown, _| {
        changed += 1;
        seen += u32::from(shown.is_err());
    });
    assert!(changed >= 500 && seen >= changed / 4, "of {changed} letters {seen} were refused");
}
