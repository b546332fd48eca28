//! MPI as the carrier of letters: one message from each rank to each other one for each exchange.

use std::io::{self, Write as _};
use std::thread;
use std::time::Duration;

use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec as _;
use mpi::request::{Request, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination as _, Source as _};
use mpi::{Count, Rank};
use netsim::fabric::windows::Carrier;

/// So long `mpirun` has to pass on what a rank wrote: what it has not read when one aborts it throws away.
const PASSED_ON: Duration = Duration::from_secs(1);

/// All processes that `mpirun` has started. MPI ends them all when a call of one of them fails.
pub struct Mpi {
    world: SimpleCommunicator,
}

impl Mpi {
    pub fn new(universe: &Universe) -> Self {
        Self { world: universe.world() }
    }

    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// How many of the ranks run on this machine. All ranks have to ask.
    pub fn on_this_machine(&self) -> usize {
        place(self.world.split_shared(0).size())
    }

    /// All ranks but this one.
    fn others(&self) -> impl Iterator<Item = Rank> {
        let own = self.world.rank();
        (0..self.world.size()).filter(move |rank| *rank != own)
    }
}

/// The place of `rank` in a list of all.
fn place(rank: Rank) -> usize {
    usize::try_from(rank).unwrap_or(0)
}

/// What `ready` gives as soon as it does. Libraries of MPI wait at full speed; where ranks are more than cores, others need the core.
fn wait<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(there) = ready() {
            return there;
        }
        thread::yield_now();
    }
}

/// Waits until `request` is through.
fn finish<'a, D: ?Sized, S: mpi::request::Scope<'a>>(request: Request<'a, D, S>) {
    let mut request = Some(request);
    wait(|| match request.take()?.test() {
        Ok(_) => Some(()),
        Err(still) => {
            request = Some(still);
            None
        }
    });
}

impl Carrier for Mpi {
    fn rank(&self) -> usize {
        place(self.world.rank())
    }

    fn ranks(&self) -> usize {
        place(self.world.size())
    }

    fn give_up(&self, reason: &str) -> ! {
        // At once: all ranks may say why, and the first that aborts ends those that are still writing.
        let _ = io::stderr().write_all(format!("netsim-rank: {reason}\n").as_bytes());
        thread::sleep(PASSED_ON);
        self.world.abort(2)
    }

    fn exchange(&mut self, mut letters: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        // MPI counts to 2^31.
        if letters.iter().any(|letter| Count::try_from(letter.len()).is_err()) {
            self.give_up("a letter of more than 2 GiB: take more ranks");
        }
        let mut came: Vec<Vec<u8>> = letters.iter().map(|_| Vec::new()).collect();
        came[self.rank()] = std::mem::take(&mut letters[self.rank()]);
        scope(|scope| {
            let send = |rank| self.world.process_at_rank(rank).immediate_send(scope, &letters[place(rank)][..]);
            let sent: Vec<_> = self.others().map(send).collect();
            for rank in self.others() {
                let from = self.world.process_at_rank(rank);
                let (letter, _) = wait(|| from.immediate_matched_probe()).matched_receive_vec();
                came[place(rank)] = letter;
            }
            sent.into_iter().for_each(finish);
        });
        came
    }
}
