//! What the jobs of a file come to before they run: tasks, bytes and steps.

use std::collections::BTreeMap;

use crate::config::JobFile;
use crate::job::Job;

/// Steps of a task beside its bytes: its container, its calls, its end.
const TASK_STEPS: f64 = 20.0;

/// Counts are fractions, as selectivities are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExpectedJob {
    pub(crate) maps: f64,
    pub(crate) reduces: f64,
    /// Bytes that the maps read.
    input: f64,
    /// Bytes that the reduces fetch.
    shuffled: f64,
    /// Bytes of the output, one copy.
    output: f64,
    /// Files of the output.
    writers: f64,
}

impl ExpectedJob {
    /// Maps of a job that reads this one's output: one for each block of each of its files.
    fn output_blocks(&self, block_bytes: f64) -> f64 {
        if self.writers == 0.0 { 0.0 } else { self.writers * (self.output / self.writers / block_bytes).ceil() }
    }
}

impl JobFile {
    /// In the order of the file.
    pub(crate) fn expected_jobs(&self) -> Vec<ExpectedJob> {
        let block = self.hadoop.block_bytes as f64;
        let mut by_name: BTreeMap<&str, ExpectedJob> = BTreeMap::new();
        let mut expected = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            let before = job.input_of.as_deref().and_then(|name| by_name.get(name));
            let (input, maps) = match (job.input, before) {
                (Some(input), _) => {
                    let bytes = input.0 as f64;
                    (bytes, (bytes / job.map_bytes(self.hadoop.block_bytes)).ceil())
                }
                (None, Some(before)) => (before.output, before.output_blocks(block)),
                (None, None) => (0.0, 0.0),
            };
            let this = self.expected_job(job, input, maps);
            by_name.insert(&job.name, this);
            expected.push(this);
        }
        expected
    }

    fn expected_job(&self, job: &Job, input: f64, maps: f64) -> ExpectedJob {
        let reduces = f64::from(job.reduces);
        let map_output = input * job.map_output;
        let compressed = if self.hadoop.compress { job.compressed } else { 1.0 };
        let (shuffled, output, writers) = if job.reduces == 0 {
            (0.0, map_output, maps)
        } else {
            (map_output * compressed, map_output * job.reduce_output, reduces)
        };
        ExpectedJob { maps, reduces, input, shuffled, output, writers }
    }

    /// How many steps the tasks of all jobs take, heartbeats apart.
    pub(crate) fn expected_steps(&self) -> f64 {
        let piece = self.cluster.piece.0 as f64;
        let block = self.hadoop.block_bytes as f64;
        let steps = |(job, expected): (&Job, ExpectedJob)| {
            let ExpectedJob { maps, reduces, input, shuffled, output, writers } = expected;
            let spills = input * job.buffer_use.unwrap_or(job.map_output) / self.hadoop.spill_bytes() as f64;
            let copies = f64::from(self.replication_of(job));
            let mapping = maps * TASK_STEPS + 2.0 * input / piece + 3.0 * spills;
            let shuffling = 2.0 * maps * reduces + shuffled / piece;
            let reducing = reduces * TASK_STEPS + 2.0 * shuffled / piece;
            let writing = 3.0 * copies * (output / piece + output / block + writers);
            mapping + shuffling + reducing + writing
        };
        self.jobs.iter().zip(self.expected_jobs()).map(steps).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_chained_job_has_a_map_for_each_block_of_each_file_before_it() {
        // 100 reduces write 1 GiB: files of 10.24 MiB, each a block of its own.
        let chain = "[cluster]\nnodes = 4\n[[job]]\nname = \"first\"\ninput = \"1GiB\"\nreduces = 100\n\
                     [[job]]\ninput_of = \"first\"\nreduces = 3\n[[job]]\ninput_of = \"job-2\"\nreduces = 0\n";
        let jobs = JobFile::parse(chain).unwrap().expected_jobs();
        assert_eq!(
            jobs.iter().map(|job| (job.maps, job.reduces)).collect::<Vec<_>>(),
            [(8.0, 100.0), (100.0, 3.0), (9.0, 0.0)]
        );
        // What maps wrote: a file of each.
        let maps_only = "[cluster]\nnodes = 4\n[[job]]\nname = \"first\"\ninput = \"1GiB\"\nreduces = 0\nmap_output = 2.5\n\
                         [[job]]\ninput_of = \"first\"\n";
        let jobs = JobFile::parse(maps_only).unwrap().expected_jobs();
        assert_eq!(jobs.iter().map(|job| job.maps).collect::<Vec<_>>(), [8.0, 24.0]);
    }

    #[test]
    fn a_chain_beyond_all_numbers_is_refused() {
        let link = |number: usize| format!("[[job]]\ninput_of = \"job-{number}\"\nmap_output = 1e3\nreduces = 0\n");
        let chain: String = (1..200).map(link).collect();
        let error = JobFile::parse(&format!("[cluster]\nnodes = 4\n[[job]]\n{chain}")).unwrap_err().to_string();
        assert!(error.contains("so many tasks"), "{error}");
    }
}
