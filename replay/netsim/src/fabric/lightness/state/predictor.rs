//! Elephants and mice by prediction: what a message is taken for before it is over, by those that went before it.
//!
//! Messages of a [`Class`] are taken to be like each other. A message is taken for the class' exponential moving average: `m + (s - m) / h`,
//! rounded up, after a message of `s` bytes, with a history of `h` messages; the first one's own size after that. It is learned of
//! when its last byte is handed over. The first of a class, of which nothing is known yet, is taken for nothing.
//!
//! A message begins with the first bytes that are handed over to a flow when the one before it is complete. One that is not
//! complete when bytes of another size come is over with what there was. What has no bytes is not learned of.

use crate::network::FlowKind;
use std::collections::BTreeMap;

/// What messages that are taken to be like each other have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// The rack from which they come, and that to which they go.
    pub from: u32,
    pub to: u32,
    pub kind: FlowKind,
    /// Whether the server of a connection sends them.
    pub by_server: bool,
}

/// A message of which not all was handed over.
#[derive(Clone, Copy, Debug)]
pub struct OpenMessage {
    /// Bytes of all of it.
    total: u64,
    handed_over: u64,
    predicted: u64,
}

/// What was learned: from one rack to another one of at most eight classes.
pub struct Predictor {
    history: u32,
    threshold: u64,
    /// By class, the average of its messages in bytes.
    averages: BTreeMap<Class, u64>,
    /// Messages that are over.
    pub messages: u64,
    /// Those of `threshold` bytes or more that were taken for less.
    pub elephants_missed: u64,
    /// Those of less that were taken for `threshold` bytes or more.
    pub mice_mistaken: u64,
}

impl Predictor {
    /// One that knows nothing yet; `history` is not 0.
    pub fn new(history: u32, threshold: u64) -> Self {
        Self { history, threshold, averages: BTreeMap::new(), messages: 0, elephants_missed: 0, mice_mistaken: 0 }
    }

    /// A part of `bytes` of a message of `of_bytes` is handed over to a flow of which `begun` is what is not complete: the size for which the
    /// message is taken.
    pub fn part(&mut self, begun: &mut Option<OpenMessage>, class: Class, bytes: u64, of_bytes: u64) -> u64 {
        let total = of_bytes.max(bytes);
        let goes_on = begun.take_if(|begun| begun.total == total && total - begun.handed_over >= bytes);
        let before = goes_on.unwrap_or_else(|| {
            if let Some(unfinished) = begun.take() {
                self.learn(class, unfinished);
            }
            OpenMessage { total, handed_over: 0, predicted: self.averages.get(&class).copied().unwrap_or(0) }
        });
        let now = OpenMessage { handed_over: before.handed_over + bytes, ..before };
        if now.handed_over < total {
            *begun = Some(now);
        } else {
            self.learn(class, now);
        }
        now.predicted
    }

    /// A message is over.
    fn learn(&mut self, class: Class, message: OpenMessage) {
        let size = message.handed_over;
        if size == 0 {
            return;
        }
        self.messages += 1;
        match (message.predicted >= self.threshold, size >= self.threshold) {
            (false, true) => self.elephants_missed += 1,
            (true, false) => self.mice_mistaken += 1,
            _ => {}
        }
        let history = u128::from(self.history);
        let average = self.averages.entry(class).or_insert(size);
        let sum = u128::from(*average) * (history - 1) + u128::from(size);
        *average = u64::try_from(sum.div_ceil(history)).unwrap_or(u64::MAX);
    }
}
