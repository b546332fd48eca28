//! Follows what belongs to Hadoop's processes on this host: the configured ports, what dumpingd tells (`ports.json`), and
//! what the JVMs tell of themselves (`jvm-PID-TICKS.jsonl`).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::OFlag;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use trace::jvm::JvmRecord;
use trace::ports::{FILE, HadoopPorts};

use crate::ports::{Followed, PortSet};

/// How often the files are looked at where the kernel tells at once of a new `ports.json`: JVMs' files grow all the time.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same where it does not (a folder on some network file systems).
pub const LOOK_OFTEN: Duration = Duration::from_millis(200);
/// What nobody tells of any more is followed so much longer: its last packets are still to come.
const GRACE: Duration = Duration::from_secs(30);
/// Bytes taken of one file at once: no file can keep us busy.
const AT_ONCE_BYTES: u64 = 1 << 20;
/// A line that is longer is no record of ours.
const LONGEST_LINE_BYTES: usize = 64 << 10;
/// Connections that JVMs told of, remembered at most; the oldest go first.
const CONNECTIONS: usize = 65_536;
/// JVMs' files that are read at most: container users make these.
const FILES: usize = 4096;

/// What is followed now, for the threads of the interfaces.
#[derive(Debug, Default)]
pub struct Shared {
    version: AtomicU64,
    followed: Mutex<Arc<Followed>>,
}

impl Shared {
    /// A number that is another one whenever something has changed.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What is followed.
    #[must_use]
    pub fn followed(&self) -> Arc<Followed> {
        self.followed.lock().map(|followed| Arc::clone(&followed)).unwrap_or_default()
    }

    fn publish(&self, followed: Followed) {
        if let Ok(mut current) = self.followed.lock() {
            if **current == followed {
                return;
            }
            *current = Arc::new(followed);
        }
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// From here on the kernel gives ports to whoever asks.
#[must_use]
pub fn ephemeral_from() -> u16 {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    // Linux' own default, where it does not tell.
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768)
}

/// Looks at the files.
#[derive(Debug)]
pub struct Follower {
    folder: PathBuf,
    base: PortSet,
    ephemeral_from: u16,
    shared: Arc<Shared>,
    told: HadoopPorts,
    told_at: Option<SystemTime>,
    jvms: HashMap<String, JvmTail>,
    /// Of what is no longer told: until when it is followed.
    fading_ports: HashMap<u16, (String, Instant)>,
    fading_connections: HashMap<(SocketAddr, SocketAddr), (String, Instant)>,
    /// Whether something of the above has changed since it was summed up.
    is_news: bool,
    /// Tells of files that are put into the folder under another name, as `ports.json` is.
    watch: Option<Inotify>,
    problems: Vec<String>,
}

impl Follower {
    /// Follows the files of `folder`, and always the ports of `base`.
    #[must_use]
    pub fn new(folder: &Path, base: PortSet, ephemeral_from: u16) -> Self {
        let mut follower = Self {
            folder: folder.to_owned(),
            base,
            ephemeral_from,
            shared: Arc::new(Shared::default()),
            told: HadoopPorts::default(),
            told_at: None,
            jvms: HashMap::new(),
            fading_ports: HashMap::new(),
            fading_connections: HashMap::new(),
            is_news: true,
            watch: None,
            problems: Vec::new(),
        };
        follower.look();
        follower
    }

    /// Where it tells what is followed.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// What went wrong, in words, each once.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Hears from now on when dumpingd tells something; the folder has to be there.
    pub fn watch(&mut self) {
        let watch = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).and_then(|watch| {
            watch.add_watch(&self.folder, AddWatchFlags::IN_MOVED_TO)?;
            Ok(watch)
        });
        self.watch = watch.ok();
        self.look();
    }

    /// What to wait for, and how long at most, before looking again.
    #[must_use]
    pub fn waits_for(&self) -> (Option<BorrowedFd<'_>>, Duration) {
        match &self.watch {
            Some(watch) => (Some(watch.as_fd()), LOOK_EVERY),
            None => (None, LOOK_OFTEN),
        }
    }

    /// Looks at what dumpingd tells, and tells what is followed now.
    pub fn look_at_told(&mut self) {
        // What is read here is not there any more for the next wait; what comes later is.
        while self.watch.as_ref().is_some_and(|watch| watch.read_events().is_ok()) {}
        self.read_told(Instant::now());
        self.publish();
    }

    /// Looks at all files and tells what is followed now.
    pub fn look(&mut self) {
        let now = Instant::now();
        self.read_told(now);
        self.read_jvms(now);
        let fading = self.fading_ports.len() + self.fading_connections.len();
        self.fading_ports.retain(|_, (_, until)| *until > now);
        self.fading_connections.retain(|_, (_, until)| *until > now);
        self.is_news |= self.fading_ports.len() + self.fading_connections.len() < fading;
        self.publish();
    }

    fn publish(&mut self) {
        if std::mem::take(&mut self.is_news) {
            let followed = self.sum();
            self.shared.publish(followed);
        }
    }

    fn sum(&self) -> Followed {
        let mut sum = Followed {
            ports: self.base.clone(),
            connections: HashMap::new(),
            listeners: BTreeMap::new(),
            ephemeral_from: self.ephemeral_from,
        };
        let fading = self.fading_ports.iter().map(|(port, (who, _))| (*port, who));
        let of_jvms = self.jvms.values().flat_map(|jvm| jvm.listen.iter().map(|port| (*port, &jvm.who)));
        let told = self.told.listen.iter().map(|(port, who)| (*port, who));
        for (port, who) in fading.chain(of_jvms).chain(told) {
            sum.ports.insert(port);
            sum.listeners.insert(port, who.clone());
        }
        let fading = self.fading_connections.iter().map(|(ends, (who, _))| (*ends, who));
        let of_jvms = self.jvms.values().flat_map(|jvm| jvm.open.iter().map(|ends| (*ends, &jvm.who)));
        let told = self.told.connections.iter().map(|open| ((open.local, open.remote), &open.owner));
        for (ends, who) in fading.chain(of_jvms).chain(told) {
            sum.connections.insert(ends, who.clone());
        }
        sum
    }

    fn read_told(&mut self, now: Instant) {
        let path = self.folder.join(FILE);
        let Ok(at) = fs::symlink_metadata(&path).and_then(|about| about.modified()) else { return };
        if self.told_at == Some(at) {
            return;
        }
        let read = open_regular(&path).and_then(|file| Ok(serde_json::from_reader(io::BufReader::new(file))?));
        match read {
            Ok(told) => {
                let before: HadoopPorts = std::mem::replace(&mut self.told, told);
                self.told_at = Some(at);
                self.is_news = true;
                self.fade(before, now);
            }
            Err(error) => self.problem(format!("{} cannot be used: {error}", path.display())),
        }
    }

    fn fade(&mut self, before: HadoopPorts, now: Instant) {
        for (port, who) in before.listen {
            if !self.told.listen.contains_key(&port) {
                self.fading_ports.insert(port, (who, now + GRACE));
            }
        }
        for open in before.connections {
            if !self.told.connections.contains(&open) {
                self.fading_connections.insert((open.local, open.remote), (open.owner, now + GRACE));
            }
        }
    }

    fn read_jvms(&mut self, now: Instant) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("jvm-") && name.ends_with(".jsonl") && !self.jvms.contains_key(&name) {
                if self.jvms.len() >= FILES {
                    self.problem(format!("more than {FILES} files of JVMs: the ports of some are not followed"));
                    break;
                }
                self.jvms.insert(name, JvmTail::default());
            }
        }
        let mut problems = Vec::new();
        for (name, jvm) in &mut self.jvms {
            match jvm.read(&self.folder.join(name)) {
                Ok(grew) => self.is_news |= grew,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => problems
                    .push(format!("{name} cannot be read: {error}; the ports of this JVM are told by dumpingd only")),
            }
            if jvm.ended {
                for port in std::mem::take(&mut jvm.listen) {
                    self.fading_ports.insert(port, (jvm.who.clone(), now + GRACE));
                }
                for ends in std::mem::take(&mut jvm.open) {
                    self.fading_connections.insert(ends, (jvm.who.clone(), now + GRACE));
                }
            }
        }
        problems.into_iter().for_each(|problem| self.problem(problem));
    }

    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) && self.problems.len() < 100 {
            self.problems.push(problem);
        }
    }
}

/// Opens a file that others may have made: no link, no pipe.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    Ok(file)
}

/// One JVM's file, read as it grows.
#[derive(Debug, Default)]
struct JvmTail {
    offset: u64,
    rest: Vec<u8>,
    who: String,
    listen: Vec<u16>,
    open: VecDeque<(SocketAddr, SocketAddr)>,
    ended: bool,
}

impl JvmTail {
    /// Takes what was added; false = nothing.
    fn read(&mut self, path: &Path) -> io::Result<bool> {
        if self.ended || fs::symlink_metadata(path)?.len() <= self.offset {
            return Ok(false);
        }
        let mut file = open_regular(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        self.offset += file.take(AT_ONCE_BYTES).read_to_end(&mut bytes)? as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if self.rest.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.rest);
                self.take(&line);
            } else if self.rest.len() > LONGEST_LINE_BYTES {
                // What follows up to the next end of a line is no record either.
                self.rest.truncate(1);
            }
        }
        Ok(true)
    }

    /// Most lines are of calls and blocks: they are told by their beginning, which costs no parsing.
    fn take(&mut self, line: &[u8]) {
        let kind = line.strip_prefix(b"{\"k\":\"");
        let is_wanted = |kind: &[u8]| {
            [&b"header\""[..], b"listen\"", b"open\"", b"accept\"", b"end\""].iter().any(|k| kind.starts_with(k))
        };
        if kind.is_some_and(|kind| !is_wanted(kind)) {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(JvmRecord::Header { pid, role, .. }) => self.who = format!("{role} {pid}"),
            Ok(JvmRecord::Listen { local, .. }) => {
                if let Some(local) = address(&local)
                    && !self.listen.contains(&local.port())
                    && self.listen.len() < 256
                {
                    self.listen.push(local.port());
                }
            }
            Ok(JvmRecord::Open { local, remote, .. } | JvmRecord::Accept { local, remote, .. }) => {
                if let (Some(local), Some(remote)) = (address(&local), address(&remote)) {
                    self.open.push_back((local, remote));
                    if self.open.len() > CONNECTIONS {
                        self.open.pop_front();
                    }
                }
            }
            Ok(JvmRecord::End { .. }) => self.ended = true,
            _ => {}
        }
    }
}

/// "ip:port", IPv6 with or without brackets.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    let ip: std::net::IpAddr = ip.trim_matches(['[', ']']).parse().ok()?;
    Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?))
}
