//! What `merger build` says of what it made.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use trace::manifest::Loss;

use crate::built_trace::WrittenTrace;
use crate::check::table_parts::{bytes, plain};
use crate::memory::Foreseen;
use crate::temporary;

/// A trace in a few figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Folder of the trace.
    pub trace: PathBuf,
    /// Packets read.
    pub packets: u64,
    /// Wall time, seconds.
    pub wall_s: f64,
    /// What the merge was said to take of memory before it began, bytes; 0 = nothing was asked.
    pub memory_estimate_bytes: u64,
    /// The most that it took, bytes; 0 = not known.
    pub memory_peak_bytes: u64,
    /// What its temporary files were said to take before it began, bytes.
    pub temporary_estimate_bytes: u64,
    /// The most that lay in them at one time, bytes.
    pub temporary_peak_bytes: u64,
    /// First to last packet, seconds.
    pub duration_s: f64,
    /// Host whose clock is the reference.
    pub reference_host: String,
    /// Hosts: what was added to each clock at the start (ns), its drift (ppm), and how far off it may be (ns).
    pub clocks: BTreeMap<String, (i64, f64, u64)>,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
    /// Payload bytes by protocol.
    pub bytes_by_protocol: BTreeMap<String, u64>,
    /// What was lost on the way.
    pub losses: Vec<Loss>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Summary {
    /// Of a trace that was written to a folder.
    #[must_use]
    pub fn new(written: WrittenTrace, trace: PathBuf, wall_s: f64, foreseen: Foreseen) -> Self {
        let WrittenTrace { manifest, rows, bytes_by_protocol, packets, clocks } = written;
        Self {
            trace,
            packets,
            wall_s,
            memory_estimate_bytes: foreseen.memory_bytes,
            memory_peak_bytes: trace::memory::peak_bytes(),
            temporary_estimate_bytes: foreseen.temporary_bytes,
            temporary_peak_bytes: temporary::peak_bytes(),
            duration_s: manifest.end_ns.saturating_sub(manifest.start_ns) as f64 / 1e9,
            reference_host: manifest.reference_host,
            clocks: clocks
                .into_iter()
                .map(|clock| (clock.host, (clock.offset_ns, clock.drift_ppm, clock.uncertainty_ns)))
                .collect(),
            rows,
            bytes_by_protocol,
            losses: manifest.losses,
            notes: manifest.notes,
        }
    }

    /// As tables and lines for people.
    #[must_use]
    pub fn show(&self) -> String {
        let mut hosts = plain();
        hosts.set_header(["host", "clock moved by (ns)", "drift (ppm)", "uncertainty (ns)"]);
        for (host, (offset_ns, drift_ppm, uncertainty_ns)) in &self.clocks {
            let name = if *host == self.reference_host { format!("{host} (reference)") } else { host.clone() };
            hosts.add_row([name, offset_ns.to_string(), format!("{drift_ppm:.3}"), uncertainty_ns.to_string()]);
        }
        let mut tables = plain();
        tables.set_header(["table", "rows"]);
        for (table, rows) in &self.rows {
            tables.add_row([table.clone(), bytes(*rows)]);
        }
        let mut protocols = plain();
        protocols.set_header(["protocol", "payload bytes"]);
        for (protocol, count) in &self.bytes_by_protocol {
            protocols.add_row([protocol.clone(), bytes(*count)]);
        }
        let mut out = format!("{hosts}\n\n{tables}\n\n{protocols}\n\n");
        for loss in &self.losses {
            out += &format!("lost: {}: {} {}\n", loss.what, loss.count, loss.unit);
        }
        for note in &self.notes {
            out += &format!("note: {note}\n");
        }
        out += &format!(
            "{}: {} packets over {:.1} s, merged in {:.1} s ({:.2} million packets a second) with up \
             to {} MiB of memory ({} foreseen) and {} MiB in temporary files ({} foreseen)\n",
            self.trace.display(),
            bytes(self.packets),
            self.duration_s,
            self.wall_s,
            self.packets as f64 / 1e6 / self.wall_s.max(1e-9),
            self.memory_peak_bytes >> 20,
            self.memory_estimate_bytes >> 20,
            self.temporary_peak_bytes >> 20,
            self.temporary_estimate_bytes >> 20
        );
        out
    }
}
