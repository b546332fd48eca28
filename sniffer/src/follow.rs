//! Follows what belongs to Hadoop's processes on this host: the configured ports, what dumpingd tells (`ports.json`), and
//! what the JVMs tell of themselves ([`jvms`]).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use trace::ports::{FILE, HadoopPorts};

use crate::hostile;
use crate::ports::{Followed, PortSet};
use jvms::JvmFolders;
use tail::{Ends, name};

pub mod jvms;
pub mod tail;

/// How often the files are looked at where the kernel tells at once of a new `ports.json`: JVMs' files grow all the time.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same where it does not (a folder on some network file systems).
pub const LOOK_OFTEN: Duration = Duration::from_millis(200);
/// What nobody tells of any more is followed so much longer: its last packets are still to come.
const GRACE: Duration = Duration::from_secs(30);
/// `ports.json` is no longer than this: some 70,000 connections.
const MAX_TOLD_BYTES: u64 = 8 << 20;
/// Connections that are followed for a while after dumpingd told of them last.
const MAX_FADING: usize = 32_768;
/// Summing up what is followed takes at most this part of the time.
const SUM_PART: u32 = 20;

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

/// What dumpingd tells, its names each once.
#[derive(Debug, Default)]
struct FollowedNames {
    listen: BTreeMap<u16, Arc<str>>,
    connections: HashMap<Ends, Arc<str>>,
}

impl FollowedNames {
    fn of(reported: HadoopPorts) -> Self {
        let mut names: HashMap<String, Arc<str>> = HashMap::new();
        let mut named =
            |text: &str| Arc::clone(names.entry(name(text)).or_insert_with_key(|text| text.as_str().into()));
        Self {
            listen: reported.listen.iter().map(|(port, who)| (*port, named(who))).collect(),
            connections: reported
                .connections
                .iter()
                .map(|open| ((open.local, open.remote), named(&open.owner)))
                .collect(),
        }
    }
}

/// Which state of a file was read: number, length, nanoseconds and seconds of its last change.
type State = (u64, u64, i64, i64);

/// Looks at the files.
#[derive(Debug)]
pub struct Follower {
    folder: PathBuf,
    base: PortSet,
    ephemeral_from: u16,
    shared: Arc<Shared>,
    reported: FollowedNames,
    reported_state: Option<State>,
    jvms: JvmFolders,
    /// Of what is no longer told: until when it is followed.
    fading_ports: HashMap<u16, (Arc<str>, Instant)>,
    fading_connections: HashMap<Ends, (Arc<str>, Instant)>,
    /// Whether something of the above has changed since it was summed up.
    is_news: bool,
    /// Not to be summed up again before, as that took its time.
    sums_next: Instant,
    /// Tells of files that are put into the folder under another name, as `ports.json` is.
    watch: Option<Inotify>,
    ports_problem: Option<String>,
}

impl Follower {
    /// Follows `ports.json` of `folder` and the JVMs' files below `jvm_records`, and always the ports of `base`.
    #[must_use]
    pub fn new(folder: &Path, jvm_records: &Path, base: PortSet, ephemeral_from: u16) -> Self {
        let mut follower = Self {
            folder: folder.to_owned(),
            base,
            ephemeral_from,
            shared: Arc::new(Shared::default()),
            reported: FollowedNames::default(),
            reported_state: None,
            jvms: JvmFolders::new(jvm_records, GRACE),
            fading_ports: HashMap::new(),
            fading_connections: HashMap::new(),
            is_news: true,
            sums_next: Instant::now(),
            watch: None,
            ports_problem: None,
        };
        follower.look();
        follower
    }

    /// Where it tells what is followed.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.ports_problem.iter().cloned().chain(self.jvms.problems()).collect()
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
    pub fn look_at_ports_file(&mut self) {
        // What is read here is not there any more for the next wait; what comes later is.
        while self.watch.as_ref().is_some_and(|watch| watch.read_events().is_ok()) {}
        if self.read_ports_file(Instant::now()) {
            self.sums_next = Instant::now();
        }
        self.publish();
    }

    /// Looks at all files and tells what is followed now.
    pub fn look(&mut self) {
        let now = Instant::now();
        self.read_ports_file(now);
        self.is_news |= self.jvms.look(now);
        let fading = self.fading_ports.len() + self.fading_connections.len();
        self.fading_ports.retain(|_, (_, until)| *until > now);
        self.fading_connections.retain(|_, (_, until)| *until > now);
        self.is_news |= self.fading_ports.len() + self.fading_connections.len() < fading;
        self.publish();
    }

    fn publish(&mut self) {
        let begun = Instant::now();
        if !self.is_news || begun < self.sums_next {
            return;
        }
        self.is_news = false;
        let followed = self.sum();
        self.shared.publish(followed);
        self.sums_next = begun + begun.elapsed() * SUM_PART;
    }

    fn sum(&self) -> Followed {
        let mut sum = Followed {
            ports: self.base.clone(),
            connections: HashMap::new(),
            listeners: BTreeMap::new(),
            ephemeral_from: self.ephemeral_from,
        };
        let fading = self.fading_ports.iter().map(|(port, (who, _))| (*port, who));
        let reported = self.reported.listen.iter().map(|(port, who)| (*port, who));
        for (port, who) in fading.chain(self.jvms.listen()).chain(reported) {
            sum.ports.insert(port);
            sum.listeners.insert(port, Arc::clone(who));
        }
        let fading = self.fading_connections.iter().map(|(ends, (who, _))| (*ends, who));
        let reported = self.reported.connections.iter().map(|(ends, who)| (*ends, who));
        for (ends, who) in fading.chain(self.jvms.opened()).chain(reported) {
            sum.connections.insert(ends, Arc::clone(who));
        }
        sum
    }

    /// Reads `ports.json`, if it is another one than the last time; whether something else is told by it.
    fn read_ports_file(&mut self, now: Instant) -> bool {
        let path = self.folder.join(FILE);
        let Ok(about) = fs::symlink_metadata(&path) else { return false };
        let state = (about.ino(), about.len(), about.mtime(), about.mtime_nsec());
        if self.reported_state == Some(state) {
            return false;
        }
        // Also where it cannot be used: it is looked at again when it is another one.
        self.reported_state = Some(state);
        let read = hostile::read_small(&path, MAX_TOLD_BYTES, false)
            .and_then(|text| Ok(serde_json::from_slice::<HadoopPorts>(&text)?));
        match read {
            Ok(reported) => {
                self.ports_problem = (reported.left_out > 0).then(|| {
                    format!(
                        "dumpingd tells nothing of {} ports and connections, as there are too many",
                        reported.left_out
                    )
                });
                let before = std::mem::replace(&mut self.reported, FollowedNames::of(reported));
                self.is_news = true;
                self.fade(before, now);
                true
            }
            Err(error) => {
                self.ports_problem = Some(format!("{} cannot be used: {error}", path.display()));
                false
            }
        }
    }

    fn fade(&mut self, before: FollowedNames, now: Instant) {
        for (port, who) in before.listen {
            if !self.reported.listen.contains_key(&port) {
                self.fading_ports.insert(port, (who, now + GRACE));
            }
        }
        for (ends, who) in before.connections {
            if !self.reported.connections.contains_key(&ends) && self.fading_connections.len() < MAX_FADING {
                self.fading_connections.insert(ends, (who, now + GRACE));
            }
        }
    }
}
