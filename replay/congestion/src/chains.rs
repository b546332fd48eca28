//! Chains of messages that wait for each other.

use crate::Pair;

/// What a rank's send holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sends {
    /// Its receiver alone: the sender goes on at once.
    #[default]
    Free,
    /// The sender's next level, too.
    Serial,
}

/// When each rank has what was sent to it, where a message takes as long as its congestion is.
#[derive(Debug)]
pub(crate) struct Chains {
    sends: Sends,
    /// When each rank goes on with the next level; one place for each rank of the first pattern.
    reached: Vec<u64>,
    later: Vec<u64>,
}

impl Chains {
    pub(crate) fn new(ranks: u32, sends: Sends) -> Self {
        Self { sends, reached: vec![0; ranks as usize], later: vec![0; ranks as usize] }
    }

    /// Begins a run.
    pub(crate) fn begin(&mut self) {
        self.reached.fill(0);
        self.later.fill(0);
    }

    /// Goes on by a level; the first pattern's messages are in front.
    pub(crate) fn level(&mut self, pairs: &[Pair], weights: &[u32]) {
        let of_others = |pair: &Pair| pair.from as usize >= self.reached.len();
        let first = &pairs[..pairs.iter().position(of_others).unwrap_or(pairs.len())];
        for (pair, weight) in first.iter().zip(weights) {
            let arrival = self.reached[pair.from as usize] + u64::from(*weight);
            let receiver = &mut self.later[pair.to as usize];
            *receiver = arrival.max(*receiver);
            if self.sends == Sends::Serial {
                let sender = &mut self.later[pair.from as usize];
                *sender = arrival.max(*sender);
            }
        }
        // Nobody goes back: only those of this level differ.
        for pair in first {
            self.reached[pair.to as usize] = self.later[pair.to as usize];
            self.reached[pair.from as usize] = self.later[pair.from as usize];
        }
    }

    /// The longest chain of the run.
    pub(crate) fn longest(&self) -> u64 {
        self.reached.iter().copied().max().unwrap_or(0)
    }
}
