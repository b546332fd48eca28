//! Matchings of senders with receivers.

use std::collections::VecDeque;

use super::demand_matrix::DemandMatrix;

/// A matching that grows along augmenting paths, over pairs with at least some demand.
pub(super) struct Matching {
    /// By sender.
    pub to: Vec<Option<usize>>,
    /// By receiver.
    from: Vec<Option<usize>>,
}

impl Matching {
    pub fn new(size: usize) -> Self {
        Self { to: vec![None; size], from: vec![None; size] }
    }

    /// Parts pairs with a demand of less than `least`.
    pub fn part(&mut self, demand: &DemandMatrix, least: u64) {
        for from in 0..self.to.len() {
            if let Some(to) = self.to[from]
                && demand.get(from, to) < least
            {
                self.to[from] = None;
                self.from[to] = None;
            }
        }
    }

    /// Whether all senders could be matched over pairs with a demand of at least `least`.
    pub fn complete(&mut self, demand: &DemandMatrix, least: u64) -> bool {
        (0..self.to.len()).all(|from| self.to[from].is_some() || self.augment(demand, least, from))
    }

    /// Matches one sender more, by breadth-first search.
    fn augment(&mut self, demand: &DemandMatrix, least: u64, start: usize) -> bool {
        let size = self.to.len();
        let mut reached_from: Vec<Option<usize>> = vec![None; size];
        let mut senders = VecDeque::from([start]);
        while let Some(from) = senders.pop_front() {
            for to in 0..size {
                if reached_from[to].is_some() || demand.get(from, to) < least {
                    continue;
                }
                reached_from[to] = Some(from);
                match self.from[to] {
                    Some(next) => senders.push_back(next),
                    None => {
                        self.turn(&reached_from, to);
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Turns the path that ends at this receiver.
    fn turn(&mut self, reached_from: &[Option<usize>], end: usize) {
        let mut end = Some(end);
        while let Some(to) = end {
            let Some(from) = reached_from[to] else { return };
            end = self.to[from].replace(to);
            self.from[to] = Some(from);
        }
    }
}

/// The perfect matching with the most demand, by sender: Kuhn and Munkres with potentials, O(n³).
pub(super) fn heaviest(demand: &DemandMatrix) -> Vec<usize> {
    let size = demand.size();
    let cost = |from: usize, to: usize| -i128::from(demand.get(from, to));
    // Senders and receivers count from 1; 0 is where a search begins.
    let (mut of_sender, mut of_receiver) = (vec![0_i128; size + 1], vec![0_i128; size + 1]);
    let mut sender_of = vec![0; size + 1];
    for sender in 1..=size {
        sender_of[0] = sender;
        let mut slack = vec![i128::MAX; size + 1];
        let mut came_from = vec![0; size + 1];
        let mut is_done = vec![false; size + 1];
        let mut receiver = 0;
        while sender_of[receiver] != 0 {
            is_done[receiver] = true;
            let current = sender_of[receiver];
            let (mut least, mut next) = (i128::MAX, 0);
            for to in (1..=size).filter(|&to| !is_done[to]) {
                let reduced = cost(current - 1, to - 1) - of_sender[current] - of_receiver[to];
                if reduced < slack[to] {
                    (slack[to], came_from[to]) = (reduced, receiver);
                }
                if slack[to] < least {
                    (least, next) = (slack[to], to);
                }
            }
            for to in 0..=size {
                if is_done[to] {
                    of_sender[sender_of[to]] += least;
                    of_receiver[to] -= least;
                } else if slack[to] < i128::MAX {
                    slack[to] -= least;
                }
            }
            receiver = next;
        }
        while receiver != 0 {
            let before = came_from[receiver];
            sender_of[receiver] = sender_of[before];
            receiver = before;
        }
    }
    let mut matched = vec![0; size];
    for to in 1..=size {
        matched[sender_of[to] - 1] = to - 1;
    }
    matched
}
