//! The event queue against what else could hold pending events: the hold model (take one out, put one in later) at
//! 10^3, 10^5 and 10^7 pending, over the increments of a fabric (most within some packet times, one in fifty a timer
//! far ahead).
//!
//!     cargo bench -p replay --bench queue

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use netsim::kernel::random::{below, draw};
use netsim::kernel::{EventQueue, Phase, Place};
use netsim::time::SimTime;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hint::black_box;

/// What a queue has to do here: keys are (time, place, number), events are a word.
trait Candidate {
    fn new() -> Self;
    fn push(&mut self, time: u64, place: u32, event: u64);
    fn pop(&mut self) -> Option<(u64, u64)>;
}

/// The kernel's: a wheel with a heap beyond.
struct Wheel(EventQueue<u64>);

impl Candidate for Wheel {
    fn new() -> Self {
        Self(EventQueue::new(HORIZON_PS))
    }

    fn push(&mut self, time: u64, place: u32, event: u64) {
        self.0.schedule(SimTime(time), Phase::Arrive, Place(place), event);
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        self.0.pop_until(SimTime::MAX).map(|(time, event)| (time.0, event))
    }
}

/// The standard library's heap.
struct Binary(BinaryHeap<Reverse<(u128, u64)>>, u64);

fn key(time: u64, place: u32, number: u64) -> u128 {
    u128::from(time) << 64 | u128::from(place) << 40 | u128::from(number & 0xff_ffff_ffff)
}

impl Candidate for Binary {
    fn new() -> Self {
        Self(BinaryHeap::new(), 0)
    }

    fn push(&mut self, time: u64, place: u32, event: u64) {
        self.1 += 1;
        self.0.push(Reverse((key(time, place, self.1), event)));
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        self.0.pop().map(|Reverse((key, event))| ((key >> 64) as u64, event))
    }
}

/// A heap with four children a node: half the levels, and a node's children side by side.
struct Quaternary(Vec<(u128, u64)>, u64);

impl Candidate for Quaternary {
    fn new() -> Self {
        Self(Vec::new(), 0)
    }

    fn push(&mut self, time: u64, place: u32, event: u64) {
        self.1 += 1;
        let entry = (key(time, place, self.1), event);
        let mut hole = self.0.len();
        self.0.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.0[parent].0 <= entry.0 {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = entry;
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        let first = *self.0.first()?;
        let last = self.0.pop()?;
        let len = self.0.len();
        if len > 0 {
            let mut hole = 0;
            while 4 * hole + 1 < len {
                let children = 4 * hole + 1..(4 * hole + 5).min(len);
                let least = children.min_by_key(|child| self.0[*child].0).unwrap_or(hole);
                if last.0 <= self.0[least].0 {
                    break;
                }
                self.0[hole] = self.0[least];
                hole = least;
            }
            self.0[hole] = last;
        }
        Some(((first.0 >> 64) as u64, first.1))
    }
}

/// A search tree.
struct Tree(BTreeMap<u128, u64>, u64);

impl Candidate for Tree {
    fn new() -> Self {
        Self(BTreeMap::new(), 0)
    }

    fn push(&mut self, time: u64, place: u32, event: u64) {
        self.1 += 1;
        self.0.insert(key(time, place, self.1), event);
    }

    fn pop(&mut self) -> Option<(u64, u64)> {
        self.0.pop_first().map(|(key, event)| ((key >> 64) as u64, event))
    }
}

/// 32 frames of 1,514 bytes at 10 Gbit/s, as the Ethernet fabric sets it.
const HORIZON_PS: u64 = 32 * 1_211_200;
const PLACES: u64 = 4_096;
const HOLDS: u64 = 100_000;

/// How far ahead the `count`th event is put.
fn increment(count: u64) -> u64 {
    let bits = draw(3, 0, count);
    match bits % 50 {
        0 => 200_000_000_000 + bits % 1_000_000_000,
        _ => 1_211_200 + below(draw(3, 1, count), 12 * 1_211_200),
    }
}

fn filled<Q: Candidate>(pending: u64) -> Q {
    let mut queue = Q::new();
    for count in 0..pending {
        queue.push(increment(count), (count % PLACES) as u32, count);
    }
    queue
}

fn hold<Q: Candidate>(queue: &mut Q, count: &mut u64) {
    for _ in 0..HOLDS {
        let Some((time, event)) = queue.pop() else { return };
        *count += 1;
        queue.push(time + increment(*count), (event % PLACES) as u32, *count);
    }
}

fn measure<Q: Candidate>(criterion: &mut Criterion, name: &str, sizes: &[u64]) {
    let mut group = criterion.benchmark_group("queue");
    group.sample_size(10).throughput(Throughput::Elements(HOLDS));
    for &pending in sizes {
        let mut queue: Q = filled(pending);
        let mut count = pending;
        // Until the queue is in its steady state: what was put in at first is out, and memory has been claimed.
        for _ in 0..(2 * pending / HOLDS).max(1) {
            hold(&mut queue, &mut count);
        }
        group.bench_function(BenchmarkId::new(name, pending), |bencher| {
            bencher.iter_batched(|| (), |()| hold(black_box(&mut queue), &mut count), BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn queues(criterion: &mut Criterion) {
    let sizes = [1_000, 100_000, 10_000_000];
    measure::<Wheel>(criterion, "wheel", &sizes);
    measure::<Binary>(criterion, "binary heap", &sizes);
    measure::<Quaternary>(criterion, "4-ary heap", &sizes);
    // At 10^7 it takes minutes to no purpose.
    measure::<Tree>(criterion, "B-tree", &sizes[..2]);
}

criterion_group!(benches, queues);
criterion_main!(benches);
