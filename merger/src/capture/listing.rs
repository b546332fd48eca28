//! What `ss` and `lsof` print, as records of sockets and owners.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use trace::socket::{Owner, SocketRecord, TcpCounters};

use super::flows::canonical;

/// Records of a listing. Processes get a record each with the command's name as main class and no role.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// Records, in the order of the listing.
    pub records: Vec<SocketRecord>,
    /// Lines that were not understood.
    pub ignored_lines: u64,
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

    fn socket(&mut self, t: u64, local: SocketAddr, remote: Option<SocketAddr>, about: About) {
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
struct About {
    state: String,
    owner: Option<Owner>,
    tcp: Option<TcpCounters>,
}

/// `# <nanoseconds since the epoch>`.
fn stamp(line: &str) -> Option<u64> {
    line.strip_prefix('#')?.trim().parse().ok()
}

/// Reads outputs of `ss -tanpeiO`, each after a line with its time.
pub(super) fn ss(text: &str) -> Listed {
    let mut listed = Listed::default();
    let mut seen = BTreeSet::new();
    let mut t = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(time) = stamp(line) {
            t = time;
        } else if !line.starts_with("State") && ss_line(&mut listed, &mut seen, t, line).is_none() {
            listed.ignored_lines += 1;
        }
    }
    listed
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
    let mut about = About { state: state.to_owned(), ..About::default() };
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
    let number = || value.parse::<u64>().unwrap_or(0);
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

/// Reads outputs of `lsof -nP -iTCP -F pcnTf`, each after a line with its time.
pub(super) fn lsof(text: &str) -> Listed {
    let mut listed = Listed::default();
    let mut seen = BTreeSet::new();
    let mut t = 0;
    let (mut pid, mut command) = (None, String::new());
    let (mut name, mut state) = (String::new(), String::new());
    for line in text.lines() {
        let begins_anew = line.starts_with(['f', 'p', '#']);
        if begins_anew {
            lsof_file(&mut listed, &mut seen, t, pid, &command, &name, &state);
            name.clear();
            state.clear();
        }
        let (field, value) = line.split_at_checked(1).unwrap_or(("", ""));
        match field {
            "#" => t = value.trim().parse().unwrap_or(t),
            "p" => {
                pid = value.parse().ok();
                command.clear();
            }
            "c" => value.clone_into(&mut command),
            "n" => value.clone_into(&mut name),
            "T" => {
                if let Some(text) = value.strip_prefix("ST=") {
                    text.clone_into(&mut state);
                }
            }
            "f" | "" => {}
            _ => listed.ignored_lines += 1,
        }
    }
    lsof_file(&mut listed, &mut seen, t, pid, &command, &name, &state);
    listed
}

fn lsof_file(
    listed: &mut Listed,
    seen: &mut BTreeSet<u32>,
    t: u64,
    pid: Option<u32>,
    command: &str,
    name: &str,
    state: &str,
) {
    let Some(pid) = pid else { return };
    if name.is_empty() {
        return;
    }
    listed.process(seen, t, pid, command);
    let about = About { state: state.to_owned(), owner: Some(Owner { pid, start_ticks: 0 }), tcp: None };
    let ends = match name.split_once("->") {
        Some((local, remote)) => address(local).zip(address(remote)).map(|(local, remote)| (local, Some(remote))),
        None => address(name).map(|local| (local, None)),
    };
    match ends {
        Some((local, remote)) => listed.socket(t, local, remote, about),
        None => listed.ignored_lines += 1,
    }
}
