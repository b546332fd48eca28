//! Records on their way to the disk: what could not be written and what had to go is counted, marked where it happened, and
//! told in the manifest.

use std::time::Instant;

use trace::agent::now_ns;
use trace::agent_error::AgentError;
use trace::manifest::MAX_PROBLEMS;
use trace::socket::SocketRecord;

use super::Run;
use crate::cadence::REST;
use crate::log::Counts;
use crate::network_namespace::NetworkNamespace;
use crate::quota::RECORDS;

const UNWRITTEN: &str = "records that could not be written";
const REMOVED: &str = "records in the oldest files, which were removed to keep within the limit of the disk";

impl Run {
    pub(super) fn lost(&mut self, t: u64, what: &str, count: u64) {
        if count > 0 {
            self.record(&SocketRecord::Lost { t, what: what.to_owned(), count });
            self.problem(format!("lost: {what}"));
        }
    }

    pub(super) fn record(&mut self, record: &SocketRecord) {
        if let Err(error) = self.log.write(record) {
            self.problem(format!("a record could not be made: {error}"));
        }
    }

    /// Hands records to the operating system, and closes the file if it is large.
    pub(super) fn flush(&mut self) -> Result<(), AgentError> {
        self.flush_batch();
        if self.log.is_full() && Instant::now() >= self.begins_next {
            self.begin_file()?;
        }
        Ok(())
    }

    /// Begins another file with all that there is: it can be read without those before it.
    fn begin_file(&mut self) -> Result<(), AgentError> {
        if let Err(error) = self.log.close_file() {
            self.problem(format!("{RECORDS} could not be closed when it was large: {error}"));
            return Ok(());
        }
        let header = self.header.at(now_ns());
        self.record(&header);
        self.flush_batch();
        self.namespaces.iter_mut().for_each(NetworkNamespace::tell_all_again);
        let cpu = self.scan(false)?;
        self.flush_batch();
        self.log.has_begun();
        // Whoever fills files shall not make scans take all of a processor.
        self.begins_next = Instant::now() + cpu * REST;
        Ok(())
    }

    /// What could not be written is marked as soon as it can again, and so is what was removed.
    fn flush_batch(&mut self) {
        if let Err(error) = self.log.flush() {
            self.problem(format!("records were lost because {RECORDS} could not be written: {error}"));
        }
        let counts = self.log.counts();
        let unwritten = counts.unwritten - self.marked.unwritten;
        let removed = counts.removed.records - self.marked.removed.records;
        if unwritten == 0 && removed == 0 {
            return;
        }
        let t = now_ns();
        for (what, count) in [(UNWRITTEN, unwritten), (REMOVED, removed)] {
            if count > 0 {
                self.record(&SocketRecord::Lost { t, what: what.to_owned(), count });
            }
        }
        if self.log.flush().is_ok() {
            // Marks may have made files go again: these are marked the next time.
            self.marked = counts;
        } else {
            // The mark is none of the records that are missing.
            self.marked.unwritten += self.log.counts().unwritten - counts.unwritten;
        }
    }

    /// Brings what the manifest says of records up to date.
    pub(super) fn count_records(&mut self) {
        let Counts { records, unwritten, removed } = self.log.counts();
        self.manifest.records = records;
        self.manifest.unwritten = unwritten;
        (self.manifest.removed_files, self.manifest.removed_records) = (removed.files, removed.records);
        self.manifest.disk_bytes = self.log.disk_bytes();
    }

    pub(super) fn problem(&mut self, problem: String) {
        if self.manifest.problems.len() < MAX_PROBLEMS && !self.manifest.problems.contains(&problem) {
            self.manifest.problems.push(problem);
        }
    }

    /// What is no fault, but the reader should know; once.
    pub(super) fn note(&mut self, note: String) {
        if self.manifest.notes.len() < MAX_PROBLEMS && !self.manifest.notes.contains(&note) {
            self.manifest.notes.push(note);
        }
    }
}
