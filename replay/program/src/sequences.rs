//! Ranks that each do one operation after the other, as programs with blocking receives do.

use crate::builder::{MAX_RANKS, MatchBy, Milestone, Operation, Placed, Program, RankId};

/// Operations of all ranks together: 2 GiB of memory.
pub(crate) const MAX_OPERATIONS: usize = 1 << 26;

/// A list of operations for each rank. A receive is posted when what stands before it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequences {
    ranks: Vec<Vec<Operation>>,
    operations: usize,
    match_by: MatchBy,
}

impl Sequences {
    pub(crate) fn new(ranks: u32, match_by: MatchBy) -> Result<Self, String> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(format!("{ranks} ranks: from 1 to {MAX_RANKS} are possible"));
        }
        Ok(Self { ranks: vec![Vec::new(); ranks as usize], operations: 0, match_by })
    }

    /// The operations of each rank.
    #[must_use]
    pub fn ranks(&self) -> &[Vec<Operation>] {
        &self.ranks
    }

    /// More ranks, which do nothing yet, so that there is a rank of this number.
    pub(crate) fn grow_to(&mut self, rank: RankId) -> Result<(), String> {
        if rank.0 >= MAX_RANKS {
            return Err(format!("rank {}: from 0 to {} are possible", rank.0, MAX_RANKS - 1));
        }
        if self.ranks.len() <= rank.0 as usize {
            self.ranks.resize(rank.0 as usize + 1, Vec::new());
        }
        Ok(())
    }

    /// Another operation of a rank. What a rank says to itself is left out.
    pub(crate) fn push(&mut self, rank: RankId, operation: Operation) -> Result<(), String> {
        let other = match operation {
            Operation::Calculate { .. } => None,
            Operation::Send { to, .. } => Some(to),
            Operation::Receive { from, .. } => from,
        };
        let ranks = self.ranks.len();
        if let Some(missing) = [Some(rank), other].into_iter().flatten().find(|rank| rank.0 as usize >= ranks) {
            return Err(format!("rank {}: there are {ranks} ranks, from 0", missing.0));
        }
        if other == Some(rank) {
            return Ok(());
        }
        if self.operations >= MAX_OPERATIONS {
            return Err(format!("more than {MAX_OPERATIONS} operations"));
        }
        self.operations += 1;
        self.ranks[rank.0 as usize].push(operation);
        Ok(())
    }

    /// The program in which each operation begins when the one before it has ended.
    ///
    /// # Errors
    /// If all messages together have more than 2^64 bytes.
    pub fn program(&self) -> Result<Program, String> {
        let mut program = Program::new(self.match_by);
        program.set_ranks(u32::try_from(self.ranks.len()).map_err(|error| error.to_string())?)?;
        for (rank, operations) in (0..).map(RankId).zip(&self.ranks) {
            let mut before = None;
            for operation in operations {
                let id = program.add(Placed::new(rank, *operation))?;
                if let Some(before) = before.replace(id) {
                    program.wait(id, Milestone::Ended, before)?;
                }
            }
        }
        Ok(program.finish())
    }
}
