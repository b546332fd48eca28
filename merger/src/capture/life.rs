//! What `tcplife`, `tcpconnect` and `tcpaccept` print, of bcc and of bpftrace: a line a connection, below a header that names the columns.

use std::net::{IpAddr, SocketAddr};

use super::flows::canonical;

/// A connection may live for so long at most, milliseconds: a year.
const MAX_LIFE_MS: f64 = 366.0 * 86_400e3;

/// Where the columns stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    separator: Option<char>,
    count: usize,
    pid: usize,
    /// The command, which may have blanks in it.
    command: usize,
    local: (usize, usize),
    remote: (usize, usize),
    /// How long it lived, milliseconds.
    life: Option<usize>,
}

/// A connection of which a line tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoggedConnection {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// Nanoseconds; 0 = the line does not tell.
    pub(super) life_ns: u64,
}

impl Columns {
    /// Those of a header; `None` if the line is none, or one that does not name all that is needed.
    pub(super) fn of_header(line: &str) -> Option<Self> {
        let separator = line.contains(',').then_some(',');
        let names = words(line, separator);
        let at = |wanted: &[&str]| names.iter().position(|name| wanted.contains(name));
        Some(Self {
            separator,
            count: names.len(),
            pid: at(&["PID"])?,
            command: at(&["COMM"])?,
            local: (at(&["LADDR", "SADDR"])?, at(&["LPORT", "SPORT"])?),
            remote: (at(&["RADDR", "DADDR"])?, at(&["RPORT", "DPORT"])?),
            life: at(&["MS"]),
        })
    }

    /// A connection; `None` if the line is none.
    pub(super) fn read(&self, line: &str) -> Option<LoggedConnection> {
        let words = words(line, self.separator);
        // A command's further words move what stands behind it.
        let more = words.len().checked_sub(self.count)?;
        let word = |column: usize| words[if column > self.command { column + more } else { column }];
        let address = |(host, port): (usize, usize)| {
            let host = word(host).split('%').next()?.parse::<IpAddr>().ok()?;
            Some(canonical(SocketAddr::new(host, word(port).parse().ok()?)))
        };
        let life_ms = match self.life {
            Some(life) => word(life).parse::<f64>().ok().filter(|ms| (0.0..=MAX_LIFE_MS).contains(ms))?,
            None => 0.0,
        };
        Some(LoggedConnection {
            pid: word(self.pid).parse().ok()?,
            command: words[self.command..=self.command + more].join(" "),
            local: address(self.local)?,
            remote: address(self.remote)?,
            life_ns: (life_ms * 1e6) as u64,
        })
    }
}

fn words(line: &str, separator: Option<char>) -> Vec<&str> {
    match separator {
        Some(separator) => line.split(separator).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    const TCPLIFE: &str = "PID   COMM       LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS";

    fn read(header: &str, line: &str) -> Option<(u32, String, String, String, u64)> {
        let told = Columns::of_header(header)?.read(line)?;
        Some((told.pid, told.command, told.local.to_string(), told.remote.to_string(), told.life_ns))
    }

    fn wanted(command: &str, life_ns: u64) -> Option<(u32, String, String, String, u64)> {
        Some((4711, command.into(), "10.0.0.1:40000".into(), "10.0.0.2:8020".into(), life_ns))
    }

    #[test]
    fn each_tools_columns_are_found_by_their_header() {
        let line = "4711 java 10.0.0.1 40000 10.0.0.2 8020 12 3 5.25";
        assert_eq!(read(TCPLIFE, line), wanted("java", 5_250_000));
        // bcc: -T, -w, -s.
        let timed = "TIME     PID   COMM       IP LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS";
        assert_eq!(
            read(timed, "12:00:01 4711 java 4 10.0.0.1 40000 10.0.0.2 8020 12 3 5.25"),
            wanted("java", 5_250_000)
        );
        let csv = "PID,COMM,IP,LADDR,LPORT,RADDR,RPORT,TX_KB,RX_KB,MS";
        assert_eq!(read(csv, "4711,java,4,10.0.0.1,40000,10.0.0.2,8020,12,3,5.25"), wanted("java", 5_250_000));
        // bpftrace: tcpconnect.bt, tcpaccept.bt.
        let connect = "TIME     PID      COMM             SADDR        SPORT  DADDR        DPORT";
        assert_eq!(read(connect, "12:00:01 4711 java 10.0.0.1 40000 10.0.0.2 8020"), wanted("java", 0));
        let accept = "TIME     PID     COMM           RADDR      RPORT  LADDR      LPORT  BL";
        assert_eq!(read(accept, "12:00:01 4711 java 10.0.0.2 8020 10.0.0.1 40000 0/128"), wanted("java", 0));
    }

    #[test]
    fn a_command_may_have_blanks_and_an_address_may_be_ipv6() {
        let line = "4711 IPC Server hand 10.0.0.1 40000 10.0.0.2 8020 0 0 1";
        assert_eq!(read(TCPLIFE, line), wanted("IPC Server hand", 1_000_000));
        let (.., local, remote, _) = read(TCPLIFE, "1 x ::ffff:10.0.0.1 40000 fd00::2 8020 0 0 1").unwrap();
        assert_eq!((local.as_str(), remote.as_str()), ("10.0.0.1:40000", "[fd00::2]:8020"));
    }

    #[test]
    fn what_is_no_line_or_no_header_is_none() {
        for line in
            ["", "4711 java", "x java 10.0.0.1 40000 10.0.0.2 8020 1 1 1", "1 a 10.0.0.1 99999 10.0.0.2 1 1 1 1"]
        {
            assert_eq!(read(TCPLIFE, line), None, "{line}");
        }
        for life in ["-1", "NaN", "1e300"] {
            assert_eq!(read(TCPLIFE, &format!("1 a 10.0.0.1 1 10.0.0.2 1 1 1 {life}")), None, "{life}");
        }
        // tcpconnect of bcc without -L tells no local port.
        assert_eq!(Columns::of_header("PID    COMM         IP SADDR            DADDR            DPORT"), None);
    }
}
