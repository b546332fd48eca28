//! A map's sort buffer: when it is spilled, and when the map waits for that.
//!
//! As in `MapTask.MapOutputBuffer`: a spill begins where `mapreduce.map.sort.spill.percent` of the buffer are full, the map goes
//! on in the rest of it, and stands still once all is full until the spill is done.

use trace::rows::Evidence;

use super::running::Running;
use super::state::Model;
use crate::kernel::{Cause, StepId};

/// The sort buffer of one map.
pub(super) struct SortBuffer {
    running: Running,
    /// Bytes that the map reads.
    input: u64,
    /// Bytes of its output, as they lie on its disk.
    output: u64,
    /// What its records take of the buffer altogether, bytes.
    records: f64,
    buffer: f64,
    spill: f64,
    /// How many spills there will be: none where no reduce wants them.
    count: usize,
    /// The step that ends each spill so far, and its bytes.
    spills: Vec<(StepId, u64)>,
}

impl SortBuffer {
    /// The input of which the records are in the first `number` spills.
    fn input_of(&self, number: usize) -> u64 {
        if number >= self.count {
            return self.input;
        }
        (number as f64 * self.spill / self.records * self.input as f64).min(self.input as f64) as u64
    }

    /// The output of the same.
    fn output_of(&self, number: usize) -> u64 {
        if number >= self.count {
            return self.output;
        }
        (self.output as f64 * number as f64 * self.spill / self.records) as u64
    }

    /// The spill that has to be done before the records of so much input have room; `None` if they have.
    pub(super) fn makes_room(&self, read: u64) -> Option<StepId> {
        let used = self.records * (read as f64 / self.input as f64);
        let needed = ((used - self.buffer) / self.spill).ceil();
        // Not a number where nothing is read.
        let needed = if needed > 0.0 { needed as usize } else { 0 };
        let last = needed.min(self.spills.len()).checked_sub(1)?;
        Some(self.spills[last].0)
    }

    /// The end of the last spill.
    pub(super) fn spilled(&self) -> Option<StepId> {
        self.spills.last().map(|(step, _)| *step)
    }

    /// The bytes of each spill.
    pub(super) fn sizes(&self) -> Vec<u64> {
        self.spills.iter().map(|(_, bytes)| *bytes).collect()
    }
}

impl Model {
    pub(super) fn sort_buffer(&self, running: Running, input: u64) -> SortBuffer {
        let number = running.actor.task.map_or(0, |task| self.tasks[task.index()].number);
        let records = (input as f64 * running.behaviour.buffer_use).round();
        let (buffer, spill) = (self.file.hadoop.sort_bytes() as f64, self.file.hadoop.spill_bytes() as f64);
        SortBuffer {
            running,
            input,
            output: self.map_output_bytes(running.app, number),
            records,
            buffer,
            spill,
            count: if self.apps[running.app as usize].reduces == 0 {
                0
            } else {
                ((records / spill).ceil() as usize).max(1)
            },
            spills: Vec::new(),
        }
    }

    /// A map has computed on its input up to `read`: what is full enough is sorted and written, one spill behind the other.
    pub(super) fn fill(&mut self, buffer: &mut SortBuffer, computed: StepId, read: u64) {
        let running = buffer.running;
        while buffer.spills.len() < buffer.count && buffer.input_of(buffer.spills.len() + 1) <= read {
            let number = buffer.spills.len();
            let bytes = buffer.output_of(number + 1) - buffer.output_of(number);
            let mut causes = vec![Cause::sent(computed, Evidence::Thread)];
            causes.extend(buffer.spills.last().map(|(before, _)| Cause::sent(*before, Evidence::Thread)));
            let work = self.computes(running.node, bytes, running.behaviour.sort_rate, running.factor);
            let sorted = self.mark("map.sort", running.actor, work, None, &causes);
            let work = self.writes(running.node, bytes);
            let cause = Cause::sent(sorted, Evidence::Thread);
            let spilled = self.mark("map.spill", running.actor, work, None, &[cause]);
            buffer.spills.push((spilled, bytes));
        }
    }
}
