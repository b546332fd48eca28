//! What a command says at its end: a table for people, one JSON object for programs.

use std::io::{self, Write as _};

use comfy_table::{ContentArrangement, LineStyle, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What came of a host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostReport {
    /// As the operator named it.
    pub host: String,
    /// As it names itself, "" = not asked.
    pub name: String,
    /// Whether everything is as it should be.
    pub ok: bool,
    /// What is not, each with the way out.
    pub problems: Vec<String>,
    /// What is good to know.
    pub notes: Vec<String>,
    /// What the command found out, by name.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
    /// What stands in the table.
    #[serde(skip)]
    pub cells: Vec<String>,
}

impl HostReport {
    /// For a host of which all is well so far.
    #[must_use]
    pub fn of(host: &str) -> Self {
        Self { host: host.to_owned(), ok: true, ..Self::default() }
    }

    /// Something is wrong.
    pub fn problem(&mut self, problem: impl Into<String>) {
        self.ok = false;
        self.problems.push(problem.into());
    }

    /// Remembers a finding for programs.
    pub fn fact(&mut self, name: &str, value: impl Serialize) {
        self.facts.insert(name.to_owned(), serde_json::to_value(value).unwrap_or(Value::Null));
    }
}

/// What came of a command.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its name.
    pub command: &'static str,
    /// Heads of the table, without the host's.
    pub heads: Vec<&'static str>,
    /// Each host.
    pub hosts: Vec<HostReport>,
    /// What concerns all.
    pub problems: Vec<String>,
    /// What is good to know.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether everything is as it should be.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.problems.is_empty() && self.hosts.iter().all(|host| host.ok)
    }

    /// Prints it. Problems and notes are lines below the table, so that long ones stay readable.
    ///
    /// # Errors
    /// If standard output takes no more.
    pub fn print(&self, as_json: bool) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if as_json {
            let object = json!({
                "command": self.command, "ok": self.ok(), "hosts": self.hosts,
                "problems": self.problems, "notes": self.notes,
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&object)?)?;
            return Ok(());
        }
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["host", ""].into_iter().chain(self.heads.iter().copied()));
        for host in &self.hosts {
            let state = if host.ok { "ok" } else { "FAILED" };
            let cells = host.cells.iter().map(String::as_str).chain(std::iter::repeat(""));
            table.add_row([host.host.as_str(), state].into_iter().chain(cells.take(self.heads.len())));
        }
        writeln!(out, "{table}")?;
        for host in &self.hosts {
            for problem in &host.problems {
                writeln!(out, "{}: {}", host.host, printable(problem))?;
            }
            for note in &host.notes {
                writeln!(out, "{}: note: {}", host.host, printable(note))?;
            }
        }
        for problem in &self.problems {
            writeln!(out, "{}", printable(problem))?;
        }
        for note in &self.notes {
            writeln!(out, "note: {}", printable(note))?;
        }
        Ok(())
    }
}

/// Hosts are not trusted with the operator's terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Bytes as people read them.
#[must_use]
pub fn size(bytes: u64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 10_000 {
            return format!("{value} {unit}");
        }
        value = (value + 512) / 1024;
    }
    format!("{value} TiB")
}
