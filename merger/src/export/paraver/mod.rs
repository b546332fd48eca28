//! Paraver: `.prv` (records), `.pcf` (labels and colours), `.row` (names of the rows), `.cfg` (ready views).
//!
//! A node is a host, a task a Hadoop process, a thread a lane of it (`lanes/`): a Java thread, or several that were
//! never at work at the same time. Each lane has a CPU of its own on its node, so that rows of CPUs do not overlap. A
//! communication is a message between two Hadoop processes, from the lane that sent it to the lane that it was for,
//! where spans tell these, else from and to a process' first lane. Times are nanoseconds since the trace's start.

mod codes;
mod labels;
mod records;
mod views;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use trace::rows::Trace;

use super::file::{ExportError, write};
use super::lanes::Lanes;
use records::Records;

/// Most threads that a standard build of Paraver takes.
const MAX_ROWS: usize = 65_535;

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Paraver {
    /// Processes.
    pub processes: u64,
    /// Rows: threads or lanes.
    pub rows: u64,
    /// Lines of the `.prv` file but its first.
    pub records: u64,
    /// Views.
    pub views: u64,
}

/// Writes `OUT.prv`, `OUT.pcf`, `OUT.row`, and a view a file into the folder `OUT.views`.
///
/// # Errors
/// If the trace has no Hadoop process or too many of them, or a file cannot be written.
pub fn paraver(trace: &Trace, out: &Path) -> Result<Paraver, ExportError> {
    let lanes = Lanes::new(trace, MAX_ROWS)?;
    let records = Records::new(trace, &lanes);
    write(&with_extension(out, "prv"), |file| records.write(&lanes, file))?;
    write(&with_extension(out, "pcf"), |file| file.write_all(labels::configuration(&records.labels).as_bytes()))?;
    write(&with_extension(out, "row"), |file| file.write_all(labels::rows(trace, &lanes).as_bytes()))?;
    let folder = with_extension(out, "views");
    for view in &views::VIEWS {
        write(&folder.join(view.file), |file| file.write_all(view.text().as_bytes()))?;
    }
    let (processes, rows) = (lanes.tasks.len() as u64, lanes.rows() as u64);
    Ok(Paraver { processes, rows, records: records.count(), views: views::VIEWS.len() as u64 })
}

/// "run" becomes "run.prv", and "run.prv" stays so; "run.1" becomes "run.1.prv".
fn with_extension(out: &Path, extension: &str) -> PathBuf {
    let known = out.extension().is_some_and(|own| own == "prv" || own == "pcf" || own == "row");
    if known {
        return out.with_extension(extension);
    }
    let mut name = out.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}
