//! A program: operations of ranks, and which wait for which.

use netsim::time::SimTime;

/// Ranks that a program may have.
pub const MAX_RANKS: u32 = 1 << 20;
/// Operations that a program may have: 7 GiB of memory.
const MAX_OPERATIONS: usize = 1 << 27;
/// Orders between operations that a program may have: 1.5 GiB of memory.
const MAX_ORDERS: usize = 1 << 27;
/// CPUs that a rank may name.
const MAX_CPUS: u32 = 1 << 16;

/// A rank of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankId(pub u32);

/// An operation of a program, by its place in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u32);

impl OperationId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Calculates.
    Calculate {
        /// For so long, in nanoseconds.
        ns: u64,
    },
    /// Sends a message.
    Send {
        /// To this rank.
        to: RankId,
        /// Of so many bytes.
        bytes: u64,
        /// What it is known by.
        tag: u64,
    },
    /// Receives a message.
    Receive {
        /// From this rank; `None` from any.
        from: Option<RankId>,
        /// Of at most so many bytes.
        bytes: u64,
        /// What it is known by.
        tag: u64,
    },
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Milestone {
    Begun,
    Ended,
}

/// An operation, where it is done and from when on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub operation: Operation,
    pub rank: RankId,
    /// One of its rank's.
    pub cpu: u32,
    /// It does not begin before.
    pub earliest: SimTime,
    /// It begins so long after the last of what it waits for, whatever its CPU does meanwhile.
    pub delay_ns: u64,
}

impl Placed {
    /// An operation on CPU 0 that waits for others alone.
    pub fn new(rank: RankId, operation: Operation) -> Self {
        Self { operation, rank, cpu: 0, earliest: SimTime::ZERO, delay_ns: 0 }
    }
}

/// By what a message is known to its receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MatchBy {
    /// No message is received: it has arrived, and that is all.
    #[default]
    Nothing,
    /// By sender and tag, as in MPI.
    Tag,
    /// By sender, tag and bytes, as in INSEE.
    TagAndBytes,
}

/// Operations of ranks, and which wait for which.
#[derive(Debug, Default)]
pub struct Program {
    ranks: u32,
    /// Ranks of each application, one behind the other; empty of one.
    applications: Vec<u32>,
    pub(crate) match_by: MatchBy,
    pub(crate) operations: Vec<Placed>,
    /// Who waits, for which moment of which: in the order of the latter once [`Program::finish`] was called.
    pub(crate) waits: Vec<(OperationId, Milestone, OperationId)>,
    /// Where in it those begin who wait for an operation's begin and for its end, operation by operation, and the end of the last.
    waits_begin: Vec<u32>,
    messages: u64,
    bytes: u64,
}

impl Program {
    pub(crate) fn new(match_by: MatchBy) -> Self {
        Self { match_by, ..Self::default() }
    }

    /// How many ranks it has.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// How many ranks each of its applications has, one behind the other.
    #[must_use]
    pub fn applications(&self) -> Vec<u32> {
        if self.applications.is_empty() { vec![self.ranks] } else { self.applications.clone() }
    }

    /// How many operations it has.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// How many messages it sends.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// How many bytes it sends.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Who does an operation, and what.
    #[must_use]
    pub fn operation(&self, id: OperationId) -> Option<(RankId, Operation)> {
        self.operations.get(id.index()).map(|placed| (placed.rank, placed.operation))
    }

    pub(crate) fn set_ranks(&mut self, ranks: u32) -> Result<(), String> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(format!("{ranks} ranks: from 1 to {MAX_RANKS} are possible"));
        }
        self.ranks = ranks;
        Ok(())
    }

    pub(crate) fn add(&mut self, placed: Placed) -> Result<OperationId, String> {
        if self.operations.len() >= MAX_OPERATIONS {
            return Err(format!("more than {MAX_OPERATIONS} operations"));
        }
        if placed.cpu >= MAX_CPUS {
            return Err(format!("CPU {}: a rank has at most {MAX_CPUS}", placed.cpu));
        }
        if let Operation::Send { bytes, .. } = placed.operation {
            self.messages += 1;
            self.bytes = self.bytes.checked_add(bytes).ok_or("all messages together have more than 2^64 bytes")?;
        }
        let id = OperationId(u32::try_from(self.operations.len()).map_err(|error| error.to_string())?);
        self.operations.push(placed);
        Ok(id)
    }

    pub(crate) fn wait(&mut self, waiting: OperationId, moment: Milestone, before: OperationId) -> Result<(), String> {
        if self.waits.len() >= MAX_ORDERS {
            return Err(format!("more than {MAX_ORDERS} orders between operations"));
        }
        self.waits.push((before, moment, waiting));
        Ok(())
    }

    /// The same program so many times, each with ranks of its own that follow those before.
    ///
    /// # Errors
    /// If that are too many ranks or operations.
    pub fn repeated(&self, times: u32) -> Result<Self, String> {
        if self.ranks.checked_mul(times).is_none_or(|ranks| ranks > MAX_RANKS) {
            return Err("that many ranks are not possible".to_owned());
        }
        Self::together(&vec![self; times as usize])
    }

    /// Several programs at once, each with ranks of its own that follow those before.
    ///
    /// # Errors
    /// If they know their messages by different things, or are too many ranks or operations.
    pub fn together(programs: &[&Self]) -> Result<Self, String> {
        let ranks = programs.iter().try_fold(0u32, |sum, program| sum.checked_add(program.ranks));
        let mut all = Self::new(programs.first().map_or_else(MatchBy::default, |first| first.match_by));
        all.set_ranks(ranks.ok_or("that many ranks are not possible")?)?;
        let mut before = 0;
        for program in programs {
            if program.match_by != all.match_by {
                return Err("programs whose messages are known by other things (GOAL, Dimemas and VEF: tags; trc, alog and kernels: tags and bytes; flows: nothing) do not run together"
                    .to_owned());
            }
            let rank = |rank: RankId| RankId(rank.0 + before);
            let first = u32::try_from(all.operations.len()).map_err(|error| error.to_string())?;
            for placed in &program.operations {
                let operation = match placed.operation {
                    Operation::Calculate { ns } => Operation::Calculate { ns },
                    Operation::Send { to, bytes, tag } => Operation::Send { to: rank(to), bytes, tag },
                    Operation::Receive { from, bytes, tag } => Operation::Receive { from: from.map(rank), bytes, tag },
                };
                all.add(Placed { operation, rank: rank(placed.rank), ..*placed })?;
            }
            for (earlier, moment, waiting) in &program.waits {
                all.wait(OperationId(waiting.0 + first), *moment, OperationId(earlier.0 + first))?;
            }
            all.applications.extend(program.applications());
            before += program.ranks;
        }
        Ok(all.finish())
    }

    /// Puts in order who waits for what; the same said twice counts once.
    pub(crate) fn finish(mut self) -> Self {
        self.waits.sort_unstable();
        self.waits.dedup();
        self.waits_begin = vec![0; 2 * self.operations.len() + 1];
        for (before, moment, _) in &self.waits {
            self.waits_begin[moment_index(*before, *moment) + 1] += 1;
        }
        let mut sum = 0;
        for begin in &mut self.waits_begin {
            sum += *begin;
            *begin = sum;
        }
        self
    }

    /// Who waits for a moment of an operation.
    pub(crate) fn waiting(&self, before: OperationId, moment: Milestone) -> impl Iterator<Item = OperationId> {
        let index = moment_index(before, moment);
        let (begin, end) = (self.waits_begin[index] as usize, self.waits_begin[index + 1] as usize);
        self.waits[begin..end].iter().map(|(_, _, waiting)| *waiting)
    }
}

/// The number of a moment of an operation among all of them.
fn moment_index(of: OperationId, moment: Milestone) -> usize {
    2 * of.index() + usize::from(moment == Milestone::Ended)
}
