//! Parts in processes of their own, perhaps on several machines: who carries what they have for each other.

/// Carries letters between the processes (ranks) that run the parts of one network, a rank each. All ranks make the same calls in the same order, and
/// each call waits for all. A rank that cannot go on ends all of them: no call fails.
pub trait Carrier {
    /// Which rank this one is, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// Brings `letters`, one for each rank in their order, to those that they are for. Returns those that came, in the order of the ranks that sent them.
    fn exchange(&mut self, letters: Vec<Vec<u8>>) -> Vec<Vec<u8>>;

    /// Ends all ranks: something is wrong with what came.
    fn give_up(&self, reason: &str) -> !;

    /// Brings each rank's letter to rank 0, which gets all of them in the order of the ranks; the others get empty ones.
    fn gather(&mut self, letter: Vec<u8>) -> Vec<Vec<u8>> {
        let mut letters = vec![Vec::new(); self.ranks()];
        letters[0] = letter;
        self.exchange(letters)
    }

    /// Brings the letter of rank 0 to all ranks, whatever the others say.
    fn tell(&mut self, letter: &[u8]) -> Vec<u8> {
        let mine: &[u8] = if self.rank() == 0 { letter } else { &[] };
        let letters = vec![mine.to_vec(); self.ranks()];
        self.exchange(letters).into_iter().next().unwrap_or_default()
    }
}
