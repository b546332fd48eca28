//! What `ss`, `lsof` and `tcplife` print, as records of sockets and owners.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use trace::socket::{Owner, SocketRecord, TcpCounters};

use super::flows::canonical;
use super::life::Columns;
use super::sense::MAX_COUNT;
use crate::time_text::time_ns as time;

/// Records of a listing. Processes get a record each with the command's name as main class and no role.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// Records, in the order of the listing.
    pub records: Vec<SocketRecord>,
    /// Lines that were not understood.
    pub ignored_lines: u64,
    /// The first line that is to tell a time and does not: number (from 1) and text.
    pub wrong_time: Option<(u64, String)>,
    /// Such lines, and what stands below them until the next time.
    pub lines_without_time: u64,
}

impl Listed {
    fn process(&mut self, seen: &mut BTreeSet<u32>, t: u64, pid: u32, command: &str) {
        if seen.insert(pid) {
            self.records.push(SocketRecord::Process {
                t,
                owner: Owner { pid, start_ticks: 0 },
                netns: 0,
                main: command.into(),
                role: String::new(),
                uid: 0,
                ns_pid: None,
            });
        }
    }

    fn socket(&mut self, t: u64, local: SocketAddr, remote: Option<SocketAddr>, about: SocketLine) {
        self.records.push(match remote {
            None => SocketRecord::Listen { t, netns: 0, local, inode: 0, owner: about.owner },
            Some(remote) => SocketRecord::Socket {
                t,
                netns: 0,
                local,
                remote,
                state: about.state,
                inode: 0,
                owner: about.owner,
                tcp: about.tcp,
            },
        });
    }
}

#[derive(Default)]
struct SocketLine {
    state: String,
    owner: Option<Owner>,
    tcp: Option<TcpCounters>,
}

/// Reads a listing line by line.
pub(super) struct Reader {
    listed: Listed,
    /// Processes that have been told of.
    seen: BTreeSet<u32>,
    /// Time of the output that is being read; `None` = it is not known.
    t: Option<u64>,
    /// Lines so far.
    lines: u64,
    format: Format,
}

/// Who prints, and what stands above the next line.
enum Format {
    Ss,
    Lsof(Lsof),
    /// The columns of the last header.
    Life(Option<Columns>),
}

/// A process and one of its files, as far as `lsof` has told of them.
#[derive(Default)]
struct Lsof {
    pid: Option<u32>,
    command: String,
    name: String,
    state: String,
}

impl Reader {
    /// Of outputs of `ss -tanpeiO`, each after a line with its time.
    pub fn ss() -> Self {
        Self::of(Format::Ss)
    }

    fn of(format: Format) -> Self {
        Self { listed: Listed::default(), seen: BTreeSet::new(), t: None, lines: 0, format }
    }

    /// Of outputs of `lsof -nP -iTCP -F pcnTf`, each after a line with its time.
    pub fn lsof() -> Self {
        Self::of(Format::Lsof(Lsof::default()))
    }

    /// Of `tcplife` and its like, a line with its time before each connection, or each few of them.
    pub fn life() -> Self {
        Self::of(Format::Life(None))
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let line = line.trim_end_matches(['\n', '\r']);
        self.lines += 1;
        if line.trim().is_empty() {
            return;
        }
        if let Some(text) = line.strip_prefix('#') {
            self.end_file();
            self.t = time(text);
            if self.t.is_none() {
                self.listed.wrong_time.get_or_insert_with(|| (self.lines, line.chars().take(80).collect()));
            }
        }
        let t = match (self.t, &self.listed.wrong_time) {
            (Some(t), _) => t,
            // What stands before the first time is taken to have been there from the beginning.
            (None, None) => 0,
            (None, Some(_)) => {
                self.listed.lines_without_time += 1;
                return;
            }
        };
        if line.starts_with('#') {
            return;
        }
        let mut format = std::mem::replace(&mut self.format, Format::Ss);
        match &mut format {
            Format::Ss => self.ss_line(t, line),
            Format::Lsof(lsof) => self.lsof_line(t, lsof, line),
            Format::Life(columns) => self.life_line(t, columns, line),
        }
        self.format = format;
    }

    /// The file of which `lsof` told last, if it did.
    fn end_file(&mut self) {
        if let Format::Lsof(lsof) = &mut self.format {
            lsof_file(&mut self.listed, &mut self.seen, self.t.unwrap_or(0), lsof);
            lsof.name.clear();
            lsof.state.clear();
        }
    }

    /// The records of what was read since this was asked last: those of a whole listing have no room in memory.
    pub fn records(&mut self) -> impl Iterator<Item = SocketRecord> {
        self.listed.records.drain(..)
    }

    /// What the lines told.
    pub fn end(mut self) -> Listed {
        self.end_file();
        self.listed
    }

    fn ss_line(&mut self, t: u64, line: &str) {
        if !line.starts_with("State") && ss_line(&mut self.listed, &mut self.seen, t, line).is_none() {
            self.listed.ignored_lines += 1;
        }
    }

    /// A connection is told of when it ends, or when it begins: it is taken to have been there in the middle of its life.
    fn life_line(&mut self, t: u64, columns: &mut Option<Columns>, line: &str) {
        if let Some(header) = Columns::of_header(line) {
            *columns = Some(header);
            return;
        }
        let Some(told) = columns.as_ref().and_then(|columns| columns.read(line)) else {
            self.listed.ignored_lines += 1;
            return;
        };
        let t = t.saturating_sub(told.life_ns / 2);
        self.listed.process(&mut self.seen, t, told.pid, &told.command);
        let owner = Some(Owner { pid: told.pid, start_ticks: 0 });
        self.listed.socket(t, told.local, Some(told.remote), SocketLine { owner, ..SocketLine::default() });
    }

    fn lsof_line(&mut self, t: u64, lsof: &mut Lsof, line: &str) {
        if line.starts_with(['f', 'p']) {
            lsof_file(&mut self.listed, &mut self.seen, t, lsof);
            lsof.name.clear();
            lsof.state.clear();
        }
        let (field, value) = line.split_at_checked(1).unwrap_or(("", ""));
        match field {
            "p" => {
                lsof.pid = value.parse().ok();
                lsof.command.clear();
            }
            "c" => value.clone_into(&mut lsof.command),
            "n" => value.clone_into(&mut lsof.name),
            "T" => {
                if let Some(text) = value.strip_prefix("ST=") {
                    text.clone_into(&mut lsof.state);
                }
            }
            "f" | "" => {}
            _ => self.listed.ignored_lines += 1,
        }
    }
}

fn ss_line(listed: &mut Listed, seen: &mut BTreeSet<u32>, t: u64, line: &str) -> Option<()> {
    let mut words = line.split_whitespace();
    let state = match words.next()? {
        "LISTEN" => "LISTEN",
        "ESTAB" => "ESTABLISHED",
        "TIME-WAIT" => "TIME_WAIT",
        other => other,
    };
    let (local, remote) = (words.nth(2)?, words.next()?);
    let local = address(local)?;
    let remote = if state == "LISTEN" { None } else { Some(address(remote)?) };
    let mut about = SocketLine { state: state.to_owned(), ..SocketLine::default() };
    let mut counters = TcpCounters::default();
    let mut counted = false;
    for word in words {
        if let Some(users) = word.strip_prefix("users:((") {
            for user in users.split("),(") {
                if let Some((command, pid)) = ss_user(user) {
                    listed.process(seen, t, pid, command);
                    // The last one listed has had it longest where a socket was inherited.
                    about.owner = Some(Owner { pid, start_ticks: 0 });
                }
            }
        } else if let Some((name, value)) = word.split_once(':') {
            counted |= count(&mut counters, name, value);
        }
    }
    about.tcp = counted.then_some(counters);
    listed.socket(t, local, remote, about);
    Some(())
}

/// `"java",pid=4711,fd=3`.
fn ss_user(user: &str) -> Option<(&str, u32)> {
    let (command, rest) = user.strip_prefix('"')?.split_once('"')?;
    let pid = rest.split("pid=").nth(1)?.split(',').next()?;
    Some((command, pid.trim_end_matches(')').parse().ok()?))
}

fn count(counters: &mut TcpCounters, name: &str, value: &str) -> bool {
    let number = || value.parse::<u64>().unwrap_or(0).min(MAX_COUNT);
    let microseconds = |text: &str| text.parse::<f64>().map_or(0, |ms| (ms * 1000.0) as u32);
    match name {
        "bytes_sent" => counters.bytes_sent = number(),
        "bytes_retrans" => counters.bytes_retrans = number(),
        "bytes_acked" => counters.bytes_acked = number(),
        "bytes_received" => counters.bytes_received = number(),
        "mss" => counters.snd_mss = u32::try_from(number()).unwrap_or(0),
        "rtt" => counters.rtt_us = microseconds(value.split('/').next().unwrap_or("")),
        "minrtt" => counters.min_rtt_us = microseconds(value),
        _ => return false,
    }
    true
}

/// `10.0.0.1:22`, `*:22`, `127.0.0.53%lo:53`, `[::ffff:10.0.0.1]:22`, `[fe80::1%eth0]:22`.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let port = if port == "*" { 0 } else { port.parse().ok()? };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.split('%').next().unwrap_or(host);
    let ip = match host {
        "*" | "" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        other => other.parse::<IpAddr>().ok()?,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

fn lsof_file(listed: &mut Listed, seen: &mut BTreeSet<u32>, t: u64, lsof: &Lsof) {
    let Lsof { pid, command, name, state } = lsof;
    let Some(pid) = *pid else { return };
    if name.is_empty() {
        return;
    }
    listed.process(seen, t, pid, command);
    let about = SocketLine { state: state.to_owned(), owner: Some(Owner { pid, start_ticks: 0 }), tcp: None };
    let ends = match name.split_once("->") {
        Some((local, remote)) => address(local).zip(address(remote)).map(|(local, remote)| (local, Some(remote))),
        None => address(name).map(|local| (local, None)),
    };
    match ends {
        Some((local, remote)) => listed.socket(t, local, remote, about),
        None => listed.ignored_lines += 1,
    }
}
