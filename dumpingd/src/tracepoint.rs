//! The kernel's tracepoint for changes of TCP states, `sock:inet_sock_set_state`, through tracefs: whose connection it is
//! is known the moment it is opened, however short it lives.
//!
//! A ring buffer of our own (an "instance") is made and taken away again; one that a killed run left is taken away by the
//! next. Where tracefs is not mounted it is mounted in a mount namespace of this process only: nobody else sees it.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::time::{ClockId, clock_gettime};
use trace::agent::now_ns;

use crate::ring::{Change, Event, Format, parse_page};

/// Where tracefs is mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENT: &str = "events/sock/inet_sock_set_state";
/// Opening, opened, failed, listening; TCP only. The numbers are those of net/tcp_states.h.
const FILTER: &str = "protocol == 6 && (newstate == 2 || newstate == 10 || oldstate == 2)";
/// Ring buffer for each CPU, KiB: some 10,000 events.
const BUFFER_KIB: u32 = 1024;
/// Pages are no longer (they are those of memory, 4 KiB, unless the kernel was told otherwise).
const PAGE_BYTES: usize = 64 << 10;
/// Pages taken of one CPU at once.
const PAGES_AT_ONCE: usize = 256;
/// Instances of ours are named so, with the pid and start time of the process.
const PREFIX: &str = "hadoptic-";
/// A connection whose beginning was on another CPU may come before it; it waits for so many looks.
const LOOKS: u8 = 3;

/// A socket that a thread opened or on which it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// When, nanoseconds since the epoch.
    pub t: u64,
    /// The thread.
    pub thread: u32,
    /// This side.
    pub local: SocketAddr,
    /// The other side; `None` = it listens.
    pub remote: Option<SocketAddr>,
    /// Whether the other side let it in: knocking at a closed door is traffic as well.
    pub connected: bool,
}

/// What the tracepoint told since the last look.
#[derive(Debug, Default)]
pub struct TracepointEvents {
    /// Sockets, in order.
    pub opened: Vec<Opened>,
    /// Threads that have begun to connect: they may end before their connection is open.
    pub connecting: Vec<u32>,
    /// Events that did not fit into the ring buffer.
    pub missed: u64,
}

/// Joins the events of a connection.
#[derive(Debug, Default)]
pub struct Joiner {
    connecting: HashMap<u64, u32>,
    early: Vec<(Event, u8)>,
}

/// Sockets that connect at the same time at most.
const CONNECTING: usize = 65_536;

impl Joiner {
    /// Takes events, in the order of their times; `wall_ns` is what to add to get nanoseconds since the epoch.
    pub fn join(&mut self, events: &[Event], wall_ns: i128) -> Vec<Opened> {
        let mut opened = Vec::new();
        let wall = |t: u64| u64::try_from(i128::from(t) + wall_ns).unwrap_or(0);
        let mut early = std::mem::take(&mut self.early);
        for event in events {
            match event.change {
                Change::Connecting => {
                    if self.connecting.len() >= CONNECTING {
                        self.connecting.clear();
                    }
                    self.connecting.insert(event.socket, event.thread);
                }
                Change::Connected | Change::Failed => early.push((*event, 0)),
                Change::Listening => opened.push(Opened {
                    t: wall(event.time_ns),
                    thread: event.thread,
                    local: event.local,
                    remote: None,
                    connected: false,
                }),
                Change::Other => {}
            }
            // At once: the address may be that of another socket a moment later.
            early.retain(|(ended, _)| {
                let Some(thread) = self.connecting.remove(&ended.socket) else { return true };
                let (t, local, remote) = (wall(ended.time_ns), ended.local, Some(ended.remote));
                // One that failed on this host already has sent nothing, and has no ports.
                if local.port() != 0 && ended.remote.port() != 0 {
                    let connected = ended.change == Change::Connected;
                    opened.push(Opened { t, thread, local, remote, connected });
                }
                false
            });
        }
        self.early = early.into_iter().map(|(event, looks)| (event, looks + 1)).filter(|e| e.1 < LOOKS).collect();
        opened
    }
}

/// The tracepoint, being read.
pub struct Tracepoint {
    instance: PathBuf,
    format: Format,
    cpus: Vec<File>,
    joiner: Joiner,
    page: Vec<u8>,
    /// Written at the end: by then there may be no right any more to open them.
    switches: Vec<(File, &'static str)>,
}

impl Tracepoint {
    /// Begins to listen. Has to be called before the process has other threads: it may move into a mount namespace.
    ///
    /// # Errors
    /// If the kernel has no such tracepoint, or does not let us.
    pub fn open() -> io::Result<Self> {
        let tracefs = tracefs()?;
        remove_stale(&tracefs);
        let me = procfs::process::Process::myself().and_then(|me| me.stat()).map_err(io::Error::other)?;
        let instance = tracefs.join("instances").join(format!("{PREFIX}{}-{}", me.pid, me.starttime));
        fs::create_dir(&instance).map_err(|error| about(&instance, error))?;
        let mut tracepoint = Self {
            instance,
            format: Format::default(),
            cpus: Vec::new(),
            joiner: Joiner::default(),
            page: vec![0; PAGE_BYTES],
            switches: Vec::new(),
        };
        tracepoint.begin()?;
        Ok(tracepoint)
    }

    fn begin(&mut self) -> io::Result<()> {
        let text = fs::read_to_string(self.instance.join(EVENT).join("format"))
            .map_err(|error| about(&self.instance.join(EVENT), error))?;
        self.format = Format::parse(&text).ok_or_else(|| io::Error::other("the tracepoint has another format"))?;
        self.set("trace_clock", "mono")?;
        self.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        // Wake up for a single event; older kernels know no such file and wake up for each anyway.
        let _ = self.set("buffer_percent", "0");
        self.set(&format!("{EVENT}/filter"), FILTER)?;
        let mut cpus: Vec<PathBuf> =
            fs::read_dir(self.instance.join("per_cpu"))?.flatten().map(|entry| entry.path()).collect();
        cpus.sort();
        for cpu in cpus {
            let path = cpu.join("trace_pipe_raw");
            let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            self.cpus.push(file.map_err(|error| about(&path, error))?);
        }
        let enable = format!("{EVENT}/enable");
        self.switches = vec![(self.open_to_write(&enable)?, "0"), (self.open_to_write("buffer_size_kb")?, "1")];
        self.set(&enable, "1")
    }

    /// Where instances are made and taken away.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.instance.parent()
    }

    fn open_to_write(&self, name: &str) -> io::Result<File> {
        let path = self.instance.join(name);
        OpenOptions::new().write(true).open(&path).map_err(|error| about(&path, error))
    }

    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        self.open_to_write(name)?.write_all(value.as_bytes()).map_err(|error| about(&self.instance.join(name), error))
    }

    /// What to wait for.
    pub fn waits_for(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.cpus.iter().map(AsFd::as_fd)
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// If the kernel's files fail.
    pub fn take(&mut self) -> io::Result<TracepointEvents> {
        let mut taken = TracepointEvents::default();
        let mut events = Vec::new();
        for cpu in &mut self.cpus {
            for _ in 0..PAGES_AT_ONCE {
                match cpu.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => {
                        let page = parse_page(&self.format, &self.page[..length]);
                        events.extend(page.events);
                        taken.missed += page.missed;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        events.sort_by_key(|event| event.time_ns);
        taken.connecting = events.iter().filter(|e| e.change == Change::Connecting).map(|e| e.thread).collect();
        taken.opened = self.joiner.join(&events, wall_minus_monotonic());
        Ok(taken)
    }
}

impl Drop for Tracepoint {
    fn drop(&mut self) {
        for (mut switch, value) in std::mem::take(&mut self.switches) {
            let _ = switch.write_all(value.as_bytes());
        }
        self.cpus.clear();
        // Another user than root may not: then it stays, switched off and empty, until the next run.
        let _ = fs::remove_dir(&self.instance);
    }
}

fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Nanoseconds to add to the monotonic clock to get the wall clock.
fn wall_minus_monotonic() -> i128 {
    let monotonic = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| std::time::Duration::from(t).as_nanos());
    i128::from(now_ns()) - i128::try_from(monotonic).unwrap_or(0)
}

/// Where tracefs is; mounted for this process only if it is nowhere.
fn tracefs() -> io::Result<PathBuf> {
    let mounted = || PLACES.iter().map(PathBuf::from).find(|place| place.join("instances").is_dir());
    if let Some(place) = mounted() {
        return Ok(place);
    }
    let place = Path::new(PLACES[0]);
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: nix::Error| io::Error::other(format!("tracefs is not mounted, and {what} failed: {error}"))
    };
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("a mount namespace of our own"))?;
    let nothing: Option<&str> = None;
    // What others mount later is still seen here; what is mounted here is not seen by them.
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_SLAVE, nothing)
        .map_err(failed("mounting it privately"))?;
    mount(
        Some("tracefs"),
        place,
        Some("tracefs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
        nothing,
    )
    .map_err(failed("mounting it"))?;
    mounted().ok_or_else(|| io::Error::other("tracefs has no instances in this kernel"))
}

/// Takes away what killed runs left: an instance that nobody reads costs every connection of the machine a little.
fn remove_stale(tracefs: &Path) {
    for entry in fs::read_dir(tracefs.join("instances")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((pid, ticks)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else { continue };
        let (Ok(pid), Ok(ticks)) = (pid.parse::<i32>(), ticks.parse::<u64>()) else { continue };
        let alive = procfs::process::Process::new(pid)
            .and_then(|process| process.stat())
            .is_ok_and(|stat| stat.starttime == ticks && stat.state != 'Z');
        if !alive {
            // The kernel refuses while somebody reads it: one whose process is not seen from here, in a container.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
