//! Heads that have not committed themselves: none of the lanes that they may take has room.
//!
//! A head looks again whenever one of these lanes may have room. Until then it stands in the list of each of their links.

/// Who waits for room.
pub(super) struct Undecided {
    /// For each link, the queues whose heads wait for room on one of its lanes.
    by_link: Vec<Vec<u32>>,
    /// For each queue whether its head waits; entries of queues whose head has gone on are left in the lists.
    waits: Vec<bool>,
}

impl Undecided {
    /// Nobody waits.
    pub fn new(links: usize, queues: usize) -> Self {
        Self { by_link: vec![Vec::new(); links], waits: vec![false; queues] }
    }

    /// The head of `queue` has to choose from now on.
    pub fn begin(&mut self, queue: u32) {
        self.waits[queue as usize] = true;
    }

    /// The head of `queue` has chosen.
    pub fn end(&mut self, queue: u32) {
        self.waits[queue as usize] = false;
    }

    /// Appends the queues whose heads wait for room on a lane of `link` to `choosing`.
    pub fn look_again(&mut self, link: u32, choosing: &mut Vec<u32>) {
        choosing.extend(self.by_link[link as usize].drain(..).filter(|queue| self.waits[*queue as usize]));
    }

    /// The head of `queue` waits for room on a lane of `link`, too.
    pub fn wait(&mut self, queue: u32, link: u32) {
        let list = &mut self.by_link[link as usize];
        if !list.contains(&queue) {
            list.push(queue);
        }
    }
}
