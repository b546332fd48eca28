//! What dumpingd writes: `sockets.jsonl`, one JSON object a line.
//!
//! A socket is named by its network namespace and its two addresses; a process by its pid and its start time, because
//! both pids and ports are used again.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// One line of `sockets.jsonl`. Times `t` are nanoseconds since the epoch, by the host's wall clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "snake_case")]
pub enum SocketRecord {
    /// The first line of each run of the agent (an agent that was restarted appends another).
    Header {
        /// When the agent started.
        t: u64,
        /// Format version, 1.
        version: u32,
        /// Host name.
        host: String,
        /// Interval between scans, milliseconds.
        interval_ms: u64,
        /// Clock ticks a second of `start_ticks`.
        ticks_per_second: u64,
        /// When the host booted, nanoseconds since the epoch (`btime` of /proc/stat).
        boot_ns: u64,
    },
    /// A scan ended.
    Scan {
        /// When it began.
        t: u64,
        /// Network namespace, by inode.
        netns: u64,
        /// TCP sockets that it saw.
        sockets: u64,
        /// CPU time that it took, microseconds.
        cpu_us: u64,
    },
    /// A Hadoop process, or another one that owns a TCP socket; once each, and again if it becomes another program.
    Process {
        /// When it was first seen.
        t: u64,
        /// Which process.
        #[serde(flatten)]
        owner: Owner,
        /// Its network namespace, by inode.
        netns: u64,
        /// Main class, without arguments; of a process that is no JVM the name of its executable.
        main: String,
        /// Role (`trace::role`); "other" = known not to be Hadoop's.
        role: String,
        /// User id.
        uid: u32,
        /// Its pid as it sees itself, where that is another one (the innermost `NSpid` of /proc/PID/status: a container).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ns_pid: Option<u32>,
    },
    /// A TCP socket that listens; it owns what it accepts.
    Listen {
        /// When it was seen.
        t: u64,
        /// Network namespace, by inode.
        netns: u64,
        /// Address and port on which it listens.
        local: SocketAddr,
        /// Socket inode.
        inode: u64,
        /// Who listens; `None` = unknown.
        #[serde(flatten)]
        owner: Option<Owner>,
    },
    /// A TCP socket with a peer, whenever something about it changed between two scans.
    Socket {
        /// When it was seen.
        t: u64,
        /// Network namespace, by inode.
        netns: u64,
        /// This side.
        local: SocketAddr,
        /// The other side.
        remote: SocketAddr,
        /// State as the kernel names it ("ESTABLISHED", "TIME_WAIT").
        state: String,
        /// Socket inode; 0 = none any more.
        inode: u64,
        /// Who has it open; `None` = unknown.
        #[serde(flatten)]
        owner: Option<Owner>,
        /// The kernel's counters.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tcp: Option<TcpCounters>,
    },
    /// A TCP socket died (the kernel's broadcast), with its last counters.
    Died {
        /// When the news came.
        t: u64,
        /// Network namespace, by inode.
        netns: u64,
        /// This side.
        local: SocketAddr,
        /// The other side.
        remote: SocketAddr,
        /// The kernel's counters.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        tcp: Option<TcpCounters>,
    },
    /// Something was lost: netlink messages that did not fit into the socket's buffer, unreadable processes.
    Lost {
        /// When it was noticed.
        t: u64,
        /// What was lost, as a clause.
        what: String,
        /// How many (of what cannot be counted: 1 for each notice).
        count: u64,
    },
}

impl SocketRecord {
    /// Reads a line. Most lines tell of sockets: by how they begin these are read without the detour on which others find out what
    /// they are.
    ///
    /// # Errors
    /// If it is no record.
    pub fn of_line(line: &[u8]) -> serde_json::Result<Self> {
        /// The fields of [`SocketRecord::Socket`].
        #[derive(Deserialize)]
        struct Socket {
            t: u64,
            netns: u64,
            local: SocketAddr,
            remote: SocketAddr,
            state: String,
            inode: u64,
            pid: Option<u32>,
            start_ticks: Option<u64>,
            tcp: Option<TcpCounters>,
        }
        /// The fields of [`SocketRecord::Died`].
        #[derive(Deserialize)]
        struct Died {
            t: u64,
            netns: u64,
            local: SocketAddr,
            remote: SocketAddr,
            tcp: Option<TcpCounters>,
        }
        /// The fields of [`SocketRecord::Scan`].
        #[derive(Deserialize)]
        struct Scan {
            t: u64,
            netns: u64,
            sockets: u64,
            cpu_us: u64,
        }
        if line.starts_with(b"{\"k\":\"scan\",")
            && let Ok(Scan { t, netns, sockets, cpu_us }) = serde_json::from_slice(line)
        {
            return Ok(Self::Scan { t, netns, sockets, cpu_us });
        }
        if line.starts_with(b"{\"k\":\"socket\",")
            && let Ok(socket) = serde_json::from_slice(line)
        {
            let Socket { t, netns, local, remote, state, inode, pid, start_ticks, tcp } = socket;
            let owner = pid.zip(start_ticks).map(|(pid, start_ticks)| Owner { pid, start_ticks });
            return Ok(Self::Socket { t, netns, local, remote, state, inode, owner, tcp });
        }
        if line.starts_with(b"{\"k\":\"died\",")
            && let Ok(Died { t, netns, local, remote, tcp }) = serde_json::from_slice(line)
        {
            return Ok(Self::Died { t, netns, local, remote, tcp });
        }
        serde_json::from_slice(line)
    }
}

/// A process, by what never comes twice on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// Process id as the machine counts.
    pub pid: u32,
    /// Start time in clock ticks since boot (field 22 of /proc/PID/stat).
    pub start_ticks: u64,
}

/// Counters of `tcp_info` (linux/tcp.h). Bytes are payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpCounters {
    /// `tcpi_bytes_sent`: payload sent, with retransmissions.
    pub bytes_sent: u64,
    /// `tcpi_bytes_retrans`.
    pub bytes_retrans: u64,
    /// `tcpi_bytes_acked`: counts SYN and FIN as one byte each.
    pub bytes_acked: u64,
    /// `tcpi_bytes_received`: counts the FIN as one byte.
    pub bytes_received: u64,
    /// `tcpi_rtt`, microseconds, smoothed.
    pub rtt_us: u32,
    /// `tcpi_min_rtt`, microseconds.
    pub min_rtt_us: u32,
    /// `tcpi_total_retrans`, segments.
    pub total_retrans: u32,
    /// `tcpi_snd_mss`, bytes.
    pub snd_mss: u32,
    /// `tcpi_busy_time`: with data in flight or to send, microseconds.
    pub busy_us: u64,
    /// `tcpi_rwnd_limited`, microseconds.
    pub rwnd_limited_us: u64,
    /// `tcpi_sndbuf_limited`, microseconds.
    pub sndbuf_limited_us: u64,
}
