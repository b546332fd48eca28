//! Programs of known communication, INSEE's kernels: [`KernelKind`] says who sends to whom.
//!
//! Ranks of meshes and tori count along x first: rank `x + y X + z X Y`.

use netsim::kernel::random;

use crate::builder::{MatchBy, Operation, RankId};
use crate::sequences::Sequences;

/// What ranks say to one another. N is the number of ranks; each step of a rank follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// Rank i sends to i+1, ..., i+N-1 (mod N), then receives from all of these.
    AllToAll,
    /// All send to rank 0, which receives from 1, ..., N-1.
    AllToOne,
    /// Rank 0 sends to all others.
    OneToAll,
    /// A reduction by a binomial tree (N is a power of 2): in step n, ranks with bit n set send to the rank without it and are done.
    BinaryTree,
    /// In step n each sends to the rank that differs in bit n, and receives from it (N is a power of 2).
    Butterfly,
    /// Each sends to all its neighbours on a mesh, then receives from them.
    Mesh,
    /// Side rounds: each sends in + direction of each dimension, the last first, then receives from - direction.
    Torus,
    /// One round: each sends to all its neighbours on a torus, then receives from them.
    TorusAll,
    /// A wave front from the corner of a mesh: each receives from - direction of each dimension, the last first, then sends in + direction.
    Sweep,
    /// Rounds of such wave fronts one after the other.
    Waterfall,
    /// A body of each rank goes half round a ring of ranks, then back to its owner (N is even).
    NBodies,
    /// Random pairs of ranks, each a message, one after the other.
    Gups,
    /// Random pairs; after `coupled` of them each rank sends what it has to send, then receives.
    Random,
}

/// A kernel and its size.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Who sends to whom.
    pub kind: KernelKind,
    /// Ranks along each dimension; their product is N. One dimension where the kind has no grid.
    pub sides: Vec<u32>,
    /// Bytes of each message.
    pub bytes: u64,
    /// Wave fronts of [`KernelKind::Waterfall`], pairs of [`KernelKind::Gups`] and [`KernelKind::Random`].
    pub rounds: u32,
    /// Pairs of [`KernelKind::Random`] after which ranks exchange.
    pub coupled: u32,
    /// Nanoseconds that a rank calculates before each send, for each byte of it. INSEE's traces have 10.
    pub compute_ns_per_byte: u64,
    /// What random pairs are drawn with.
    pub seed: u64,
}

impl Kernel {
    /// The program.
    ///
    /// # Errors
    /// If the kind cannot be made of that many ranks, or has too many operations.
    pub fn sequences(&self) -> Result<Sequences, String> {
        let ranks = self.sides.iter().try_fold(1u32, |product, side| product.checked_mul(*side));
        let ranks = ranks.ok_or("that many ranks are not possible")?;
        let mut made = KernelBuilder { kernel: self, ranks, sequences: Sequences::new(ranks, MatchBy::TagAndBytes)? };
        match self.kind {
            KernelKind::AllToAll => made.all_to_all(),
            KernelKind::AllToOne => (1..ranks).try_for_each(|rank| made.message(rank, 0, 0)),
            KernelKind::OneToAll => (1..ranks).try_for_each(|rank| made.message(0, rank, 0)),
            KernelKind::BinaryTree => made.binary_tree(),
            KernelKind::Butterfly => made.butterfly(),
            KernelKind::Mesh => made.neighbours(false),
            KernelKind::TorusAll => made.neighbours(true),
            KernelKind::Torus => made.torus(),
            KernelKind::Sweep => made.sweep(0),
            KernelKind::Waterfall => (0..u64::from(self.rounds)).try_for_each(|round| made.sweep(round)),
            KernelKind::NBodies => made.n_bodies(),
            KernelKind::Gups => made.gups(),
            KernelKind::Random => made.random(),
        }?;
        Ok(made.sequences)
    }
}

struct KernelBuilder<'k> {
    kernel: &'k Kernel,
    ranks: u32,
    sequences: Sequences,
}

impl KernelBuilder<'_> {
    fn send(&mut self, from: u32, to: u32, tag: u64) -> Result<(), String> {
        if from == to {
            return Ok(());
        }
        let bytes = self.kernel.bytes;
        let ns = self.kernel.compute_ns_per_byte.checked_mul(bytes).ok_or("a calculation is too long")?;
        if ns > 0 {
            self.sequences.push(RankId(from), Operation::Calculate { ns })?;
        }
        self.sequences.push(RankId(from), Operation::Send { to: RankId(to), bytes, tag })
    }

    fn receive(&mut self, to: u32, from: u32, tag: u64) -> Result<(), String> {
        let operation = Operation::Receive { from: Some(RankId(from)), bytes: self.kernel.bytes, tag };
        self.sequences.push(RankId(to), operation)
    }

    /// The next step of both ranks.
    fn message(&mut self, from: u32, to: u32, tag: u64) -> Result<(), String> {
        self.send(from, to, tag)?;
        self.receive(to, from, tag)
    }

    fn all_to_all(&mut self) -> Result<(), String> {
        for rank in 0..self.ranks {
            let others = (1..self.ranks).map(|far| (u64::from(rank) + u64::from(far)) % u64::from(self.ranks));
            let others: Vec<u32> = others.map(|other| u32::try_from(other).unwrap_or(0)).collect();
            others.iter().try_for_each(|other| self.send(rank, *other, rank.into()))?;
            others.iter().try_for_each(|other| self.receive(rank, *other, (*other).into()))?;
        }
        Ok(())
    }

    /// How many bits number the ranks.
    fn bits(&self) -> Result<u32, String> {
        if self.ranks.is_power_of_two() {
            Ok(self.ranks.trailing_zeros())
        } else {
            Err(format!("{} ranks: this kernel needs a power of 2", self.ranks))
        }
    }

    fn binary_tree(&mut self) -> Result<(), String> {
        for bit in 0..self.bits()? {
            let step = 1 << bit;
            (0..self.ranks).step_by(2 << bit).try_for_each(|rank| self.message(rank + step, rank, 0))?;
        }
        Ok(())
    }

    fn butterfly(&mut self) -> Result<(), String> {
        for bit in 0..self.bits()? {
            for rank in 0..self.ranks {
                self.send(rank, rank ^ (1 << bit), bit.into())?;
                self.receive(rank, rank ^ (1 << bit), bit.into())?;
            }
        }
        Ok(())
    }

    /// The rank one step along a dimension, round the edge if `wraps`.
    fn neighbour(&self, rank: u32, dimension: usize, forward: bool, wraps: bool) -> Option<u32> {
        let side = self.kernel.sides[dimension];
        let stride: u32 = self.kernel.sides[..dimension].iter().product();
        let at = rank / stride % side;
        let next = match (forward, wraps) {
            (true, _) if at + 1 < side => at + 1,
            (false, _) if at > 0 => at - 1,
            (true, true) => 0,
            (false, true) => side - 1,
            (_, false) => return None,
        };
        Some(rank - at * stride + next * stride)
    }

    fn neighbours(&mut self, wraps: bool) -> Result<(), String> {
        let directions: Vec<(usize, bool)> =
            (0..self.kernel.sides.len()).flat_map(|dimension| [(dimension, true), (dimension, false)]).collect();
        for rank in 0..self.ranks {
            let of = |(dimension, forward): &(usize, bool)| self.neighbour(rank, *dimension, *forward, wraps);
            let all: Vec<u32> = directions.iter().filter_map(of).collect();
            all.iter().try_for_each(|other| self.send(rank, *other, 0))?;
            all.iter().try_for_each(|other| self.receive(rank, *other, 0))?;
        }
        Ok(())
    }

    fn torus(&mut self) -> Result<(), String> {
        let sides = self.kernel.sides.len();
        for round in 0..u64::from(self.kernel.sides[0]) {
            for rank in 0..self.ranks {
                let of = |forward: bool| {
                    let made = &*self;
                    (0..sides).rev().filter_map(move |dimension| made.neighbour(rank, dimension, forward, true))
                };
                let (ahead, behind): (Vec<u32>, Vec<u32>) = (of(true).collect(), of(false).collect());
                ahead.iter().try_for_each(|other| self.send(rank, *other, round))?;
                behind.iter().try_for_each(|other| self.receive(rank, *other, round))?;
            }
        }
        Ok(())
    }

    fn sweep(&mut self, round: u64) -> Result<(), String> {
        let sides = self.kernel.sides.len();
        for rank in 0..self.ranks {
            for dimension in (0..sides).rev() {
                if let Some(behind) = self.neighbour(rank, dimension, false, false) {
                    self.receive(rank, behind, round)?;
                }
            }
            for dimension in 0..sides {
                if let Some(ahead) = self.neighbour(rank, dimension, true, false) {
                    self.send(rank, ahead, round)?;
                }
            }
        }
        Ok(())
    }

    fn n_bodies(&mut self) -> Result<(), String> {
        if !self.ranks.is_multiple_of(2) {
            return Err(format!("{} ranks: this kernel needs an even number", self.ranks));
        }
        let (ranks, half) = (self.ranks, self.ranks / 2);
        for rank in 0..ranks {
            let behind = |far: u32| (rank + ranks - far) % ranks;
            self.send(rank, (rank + 1) % ranks, rank.into())?;
            for far in 1..half {
                self.receive(rank, behind(1), behind(far).into())?;
                self.send(rank, (rank + 1) % ranks, behind(far).into())?;
            }
            let owner = behind(half);
            self.receive(rank, behind(1), owner.into())?;
            self.send(rank, owner, owner.into())?;
            self.receive(rank, owner, rank.into())?;
        }
        Ok(())
    }

    /// The pair of a number: two different ranks.
    fn pair(&self, number: u32) -> Result<(u32, u32), String> {
        if self.ranks < 2 {
            return Err("1 rank: this kernel needs two".to_owned());
        }
        let draw = |count: u64, bound: u32| {
            let drawn = random::below(random::draw(self.kernel.seed, number.into(), count), bound.into());
            u32::try_from(drawn).unwrap_or(0)
        };
        let from = draw(0, self.ranks);
        let to = draw(1, self.ranks - 1);
        Ok((from, if to < from { to } else { to + 1 }))
    }

    fn gups(&mut self) -> Result<(), String> {
        for number in 0..self.kernel.rounds {
            let (from, to) = self.pair(number)?;
            self.message(from, to, number.into())?;
        }
        Ok(())
    }

    fn random(&mut self) -> Result<(), String> {
        if self.kernel.coupled == 0 {
            return Err("0 coupled messages: ranks have to exchange after 1 or more".to_owned());
        }
        let mut number = 0;
        while number < self.kernel.rounds {
            let end = number.saturating_add(self.kernel.coupled).min(self.kernel.rounds);
            let pairs = (number..end)
                .map(|one| Ok((one, self.pair(one)?)))
                .collect::<Result<Vec<(u32, (u32, u32))>, String>>()?;
            pairs.iter().try_for_each(|(one, (from, to))| self.send(*from, *to, (*one).into()))?;
            pairs.iter().try_for_each(|(one, (from, to))| self.receive(*to, *from, (*one).into()))?;
            number = end;
        }
        Ok(())
    }
}
