//! JVMs of the lab: started in a host's namespace, watched, and stopped.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::error::{Context, LabError, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Lines of a log that an error shows.
const TAIL_LINES: usize = 25;

/// A process of the lab. It is told to end when dropped.
#[derive(Debug)]
pub struct Process {
    what: String,
    host: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a program that runs on a host; what it prints goes into `log`.
    ///
    /// It leads a process group of its own, so that Ctrl-C reaches the lab alone and the lab decides on the order.
    ///
    /// # Errors
    /// If it cannot be started or the log cannot be made.
    pub fn start(what: &str, host: &str, mut command: Command, log: &Path) -> Result<Self> {
        let out = File::create(log).at("cannot write", log)?;
        command.stdin(Stdio::null()).stdout(out.try_clone().at("cannot write", log)?).stderr(out).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {what}"))?;
        Ok(Self { what: what.to_owned(), host: host.to_owned(), child, log: log.to_owned(), ended: None })
    }

    /// What it is, for people: "DataNode on w1".
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} on {}", self.what, self.host)
    }

    /// The host that it runs on.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, `None` while it runs.
    ///
    /// # Errors
    /// If the system cannot tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().with_context(|| format!("cannot look after {}", self.name()))?;
        }
        Ok(self.ended)
    }

    /// What it printed so far.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn output(&self) -> Result<String> {
        let bytes = fs::read(&self.log).at("cannot read", &self.log)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// An error that names it and shows the end of what it printed.
    #[must_use]
    pub fn failure(&self, happened: &str) -> LabError {
        LabError::Failed(format!("{} {happened}; the end of its log:\n{}", self.name(), self.tail()))
    }

    /// An error that names it, says how it ended, and shows the end of what it printed.
    #[must_use]
    pub fn ended_badly(&self, status: ExitStatus) -> LabError {
        LabError::Command { command: self.name(), status, said: format!("the end of its log:\n{}", self.tail()) }
    }

    fn tail(&self) -> String {
        tail(&self.log).unwrap_or_else(|error| format!("(its log: {error})"))
    }

    /// Asks it to end. That it is gone already is no failure.
    pub fn ask_to_end(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends it.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        if self.ended.is_none()
            && let Ok(pid) = i32::try_from(self.child.id())
        {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Not waited for here: the lease ends whatever is left in the namespaces, and waits.
        if matches!(self.ended(), Ok(None)) {
            self.ask_to_end();
        }
    }
}

/// The last lines of a file, however long it is.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(16 * 1024)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

/// Whether something listens on a TCP port in the namespace of a process, from `/proc`, without a packet.
#[must_use]
pub fn listens(pid: u32, port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|table| {
        fs::read_to_string(format!("/proc/{pid}/net/{table}"))
            .is_ok_and(|text| text.lines().skip(1).any(|line| is_listener(line, port)))
    })
}

/// A line of `/proc/net/tcp`: number, local, remote, state (0A = listening), ...
fn is_listener(line: &str, port: u16) -> bool {
    let mut fields = line.split_whitespace().skip(1);
    let local = fields.next().unwrap_or_default();
    let state = fields.nth(1).unwrap_or_default();
    state == "0A" && local.ends_with(&format!(":{port:04X}"))
}

/// Main class of a JVM by its command line; `None` when it is none.
#[must_use]
pub fn main_class(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments: Vec<String> =
        bytes.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    let (program, rest) = arguments.split_first()?;
    if Path::new(program).file_name()? != "java" {
        return None;
    }
    let mut rest = rest.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-cp" | "-classpath" | "--class-path" => {
                rest.next();
            }
            option if option.starts_with('-') => {}
            class => return Some(class.to_owned()),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let listening = "   0: 0100010A:1F54 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1";
        let established =
            "   1: 0100010A:1F54 0200010A:C001 01 00000000:00000000 00:00000000 00000000     0        0 1";
        assert!(is_listener(listening, 8020));
        assert!(!is_listener(listening, 8021));
        assert!(!is_listener(established, 8020));
        assert!(!is_listener("", 8020));
    }

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let text: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        fs::write(&path, text).unwrap();
        let tail = tail(&path).unwrap();
        assert!(tail.ends_with("line 4999"));
        assert_eq!(tail.lines().count(), TAIL_LINES);
    }
}
