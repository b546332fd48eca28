//! What the JVMs of a host tell of themselves: `DIR/UID/jvm-PID-TICKS.jsonl`, a folder for each user.
//!
//! Anybody may write there. Each user's files count against that user's bounds, so that one with a million files or
//! connections keeps nobody else's from being followed, and what is over is forgotten.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use trace::agent::now_ns;

use super::tail::{Ends, JvmTail};
use crate::hostile::{FileStatus, Folder, Names};

/// Users whose JVMs are followed at once; the lowest numbers, as those that a user can make for himself (/etc/subuid)
/// are high.
const MAX_USERS: usize = 256;
/// Connections of all JVMs that are remembered: of each user an equal share, the oldest go first.
const MAX_CONNECTIONS: usize = 32_768;
/// The same of one user, where there are few.
const MAX_CONNECTIONS_OF_USER: usize = 8192;
/// JVMs that are followed at once; of each user an equal share.
const MAX_JVMS: usize = 4096;
/// The same of one user, where there are few.
const MAX_JVMS_OF_USER: usize = 512;
/// Ports on which the JVMs of one user listen.
const MAX_PORTS_OF_USER: usize = 256;
/// Names that are read of the common folder at each look; the next look goes on behind them.
const NAMES_AT_ONCE: usize = 4096;
/// Names that are read of a user's folder when it has changed.
const MAX_NAMES_OF_USER: usize = 16_384;
/// Files of all users that were read to their end or are none of a JVM's; beyond that some are looked at again.
const MAX_DONE: usize = 65_536;
/// Listing a user's folder takes at most this part of the time.
const LISTING_PART: u32 = 100;
/// Folders that may not be read and are told of by name.
const MAX_UNREADABLE: usize = 16;
/// Bytes read of one file, of one user's and of all at each look.
const FILE_BYTES_AT_ONCE: usize = 1 << 20;
const USER_BYTES_AT_ONCE: usize = 2 << 20;
const BYTES_AT_ONCE: usize = 8 << 20;
/// A JVM that lives writes more often (`Writer.SIGN_OF_LIFE_NS`); one that was killed is forgotten after this time.
const SILENT_NS: i64 = 600_000_000_000;
/// Names that come within this time of a listing may not be in it, as clocks of file systems are coarse.
const COARSE_NS: i64 = 2_000_000_000;

/// A connection that a JVM opened or accepted.
#[derive(Debug)]
struct Opened {
    ends: Ends,
    /// Number of the JVM's file.
    by: u64,
    who: Arc<str>,
}

/// A JVM's file, and until when it is followed once the JVM has ended.
#[derive(Debug)]
struct Jvm {
    tail: JvmTail,
    /// How long nothing had been written when it was last looked at.
    silent: Duration,
    until: Option<Instant>,
}

/// The JVMs of one user.
#[derive(Debug, Default)]
struct User {
    jvms: BTreeMap<String, Jvm>,
    opened: VecDeque<Opened>,
    /// Numbers of files that need not be looked at again.
    done: HashSet<u64>,
    /// When its folder was last listed; `None` = it has to be.
    listed_ns: Option<i64>,
    /// Not to be listed again before, as that took its time.
    lists_next: Option<Instant>,
    left_out: u64,
    first_left_out: String,
    crowded: bool,
}

/// Follows them.
#[derive(Debug)]
pub struct JvmFolders {
    path: PathBuf,
    users: BTreeMap<String, User>,
    names: Option<Names>,
    /// With whose folder the next look begins.
    next: String,
    /// What is still told is followed so much longer when its JVM has ended.
    grace: Duration,
    too_many_users: bool,
    unreadable: Option<String>,
    /// Users' folders that may not be read, and why.
    unreadable_users: BTreeMap<String, String>,
}

impl JvmFolders {
    /// Those of the folder at `path`, which need not be there yet.
    #[must_use]
    pub fn new(path: &Path, grace: Duration) -> Self {
        Self {
            path: path.to_owned(),
            users: BTreeMap::new(),
            names: None,
            next: String::new(),
            grace,
            too_many_users: false,
            unreadable: None,
            unreadable_users: BTreeMap::new(),
        }
    }

    /// Reads what is new; whether something else is told now.
    pub fn look(&mut self, now: Instant) -> bool {
        let folder = match Folder::open(&self.path) {
            Ok(folder) => folder,
            Err(error) => {
                self.unreadable = (error.kind() != io::ErrorKind::NotFound).then(|| error.to_string());
                return !std::mem::take(&mut self.users).is_empty();
            }
        };
        self.unreadable = None;
        let mut is_news = self.discover(&folder);
        let limits = Limits::of(self.users.len());
        let mut bytes_left = BYTES_AT_ONCE;
        let later: Vec<String> = self.users.range(self.next.clone()..).map(|(name, _)| name.clone()).collect();
        let sooner: Vec<String> = self.users.range(..self.next.clone()).map(|(name, _)| name.clone()).collect();
        let mut done: usize = self.users.values().map(|user| user.done.len()).sum();
        for name in later.into_iter().chain(sooner) {
            let Some(user) = self.users.get_mut(&name) else { continue };
            if bytes_left == 0 {
                // Whoever had no turn this time has the first one next time.
                self.next = name;
                break;
            }
            let before = user.done.len();
            match open_of_user(&folder, &name) {
                Ok((folder, uid)) => {
                    let may_read = USER_BYTES_AT_ONCE.min(bytes_left);
                    let mut look = ScanPass { now, uid, limits, grace: self.grace, bytes_left: may_read };
                    is_news |= user.look(&folder, &mut look, done < MAX_DONE);
                    bytes_left -= may_read - look.bytes_left;
                }
                Err(_) => {
                    // It is gone, or another one: if it can be used it is found again.
                    is_news = true;
                    self.users.remove(&name);
                    continue;
                }
            }
            done = done + user.done.len() - before;
        }
        is_news
    }

    /// Looks for users that are not known yet: at the next names of the folder, whoever made these.
    fn discover(&mut self, folder: &Folder) -> bool {
        if self.names.is_none() {
            self.names = folder.names().ok();
        }
        let mut is_news = false;
        for _ in 0..NAMES_AT_ONCE {
            let Some(name) = self.names.as_mut().and_then(Iterator::next) else {
                self.names = None;
                break;
            };
            let Some(uid) = uid_of(&name) else { continue };
            if self.users.contains_key(&name) {
                continue;
            }
            match open_of_user(folder, &name) {
                Ok(_) => {
                    self.unreadable_users.remove(&name);
                }
                Err(error) => {
                    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
                    if is_denied && self.unreadable_users.len() < MAX_UNREADABLE {
                        self.unreadable_users.insert(name, error.to_string());
                    }
                    continue;
                }
            }
            if self.users.len() >= MAX_USERS {
                self.too_many_users = true;
                let highest = self.users.keys().max_by_key(|name| uid_of(name)).cloned();
                let Some(highest) = highest.filter(|highest| uid_of(highest) > Some(uid)) else { continue };
                self.users.remove(&highest);
            }
            is_news = true;
            self.users.insert(name, User::default());
        }
        is_news
    }

    /// Ports on which JVMs listen, and who.
    pub fn listen(&self) -> impl Iterator<Item = (u16, &Arc<str>)> {
        self.users.values().flat_map(|user| {
            let ports = user.jvms.values().flat_map(|jvm| jvm.tail.listen.iter().map(|port| (*port, &jvm.tail.who)));
            ports.take(MAX_PORTS_OF_USER)
        })
    }

    /// Connections that they opened and accepted, and who.
    pub fn opened(&self) -> impl Iterator<Item = (Ends, &Arc<str>)> {
        self.users.values().flat_map(|user| user.opened.iter().map(|opened| (opened.ends, &opened.who)))
    }

    /// What is left out, in words: a sentence a user at most.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let path = self.path.display();
        let mut problems: Vec<String> = Vec::new();
        problems.extend(
            self.unreadable
                .iter()
                .map(|why| format!("{path} cannot be read: {why}; the ports of JVMs are told by dumpingd only")),
        );
        problems.extend(self.unreadable_users.iter().map(|(name, why)| {
            format!(
                "{path}/{name} cannot be read: {why}; the ports of its JVMs are told by dumpingd only. Its group has to be \
                 ours: that of {path}, if that folder has the mode 3777"
            )
        }));
        if self.too_many_users {
            problems.push(format!("{path}: more than {MAX_USERS} users: the JVMs of some are not followed"));
        }
        for (name, user) in &self.users {
            if user.left_out > 0 {
                problems.push(format!(
                    "{path}/{name}: {} files are left out, first {}; the ports of these JVMs are told by dumpingd only",
                    user.left_out, user.first_left_out
                ));
            }
            if user.crowded {
                problems.push(format!(
                    "{path}/{name}: more JVMs at once than are followed: the ports of some are told by dumpingd only"
                ));
            }
        }
        problems
    }
}

/// Shares of one user.
#[derive(Clone, Copy, Debug)]
struct Limits {
    jvms: usize,
    connections: usize,
}

impl Limits {
    fn of(users: usize) -> Self {
        let share = |all: usize, most: usize| (all / users.max(1)).min(most);
        Self { jvms: share(MAX_JVMS, MAX_JVMS_OF_USER), connections: share(MAX_CONNECTIONS, MAX_CONNECTIONS_OF_USER) }
    }
}

/// One look at one user's files.
struct ScanPass {
    now: Instant,
    uid: u32,
    limits: Limits,
    grace: Duration,
    bytes_left: usize,
}

impl User {
    fn look(&mut self, folder: &Folder, look: &mut ScanPass, may_remember: bool) -> bool {
        let mut is_news = false;
        let is_changed = |listed: i64| folder.modified_ns.saturating_add(COARSE_NS) > listed;
        if self.listed_ns.is_none_or(is_changed) && self.lists_next.is_none_or(|next| next <= look.now) {
            self.listed_ns = Some(i64::try_from(now_ns()).unwrap_or(i64::MAX));
            let begun = Instant::now();
            self.list(folder, look);
            self.lists_next = Some(look.now + begun.elapsed() * LISTING_PART);
        }
        let names: Vec<String> = self.jvms.keys().cloned().collect();
        for name in names {
            let Some(jvm) = self.jvms.get_mut(&name) else { continue };
            let outcome =
                if jvm.until.is_some() { Ok(false) } else { read(jvm, folder, &name, look, &mut self.opened) };
            match outcome {
                Ok(changed) => is_news |= changed,
                Err(error) if error.kind() == io::ErrorKind::NotFound => jvm.until = Some(look.now + look.grace),
                Err(error) => {
                    self.left_out += 1;
                    if self.first_left_out.is_empty() {
                        self.first_left_out = format!("{name}: {error}");
                    }
                    jvm.until = Some(look.now);
                }
            }
            if jvm.tail.has_ended && jvm.until.is_none() {
                jvm.until = Some(look.now + look.grace.saturating_sub(jvm.silent));
            }
            if jvm.until.is_some_and(|until| until <= look.now) {
                let inode = jvm.tail.inode;
                self.jvms.remove(&name);
                self.opened.retain(|opened| opened.by != inode);
                if may_remember {
                    self.done.insert(inode);
                }
                // There is room for another one.
                self.listed_ns = None;
                is_news = true;
            }
            let over = self.opened.len().saturating_sub(look.limits.connections);
            self.opened.drain(..over);
        }
        is_news
    }

    /// Makes room for a JVM that lives: one that has ended is not followed on for its last packets.
    fn forget_an_ended_one(&mut self) -> bool {
        let ended = self.jvms.iter().find(|(_, jvm)| jvm.until.is_some()).map(|(name, _)| name.clone());
        let Some(jvm) = ended.and_then(|name| self.jvms.remove(&name)) else { return false };
        self.opened.retain(|opened| opened.by != jvm.tail.inode);
        self.done.insert(jvm.tail.inode);
        true
    }

    /// Takes up files that were written lately; where there are too many, those that were written last.
    fn list(&mut self, folder: &Folder, look: &ScanPass) {
        let Ok(mut names) = folder.names() else { return };
        let mut there = HashSet::new();
        let oldest_ns = i64::try_from(now_ns()).unwrap_or(i64::MAX).saturating_sub(SILENT_NS);
        let mut fresh: Vec<(i64, String, u64)> = Vec::new();
        for name in names.by_ref().take(MAX_NAMES_OF_USER).filter(|name| is_jvm_file(name)) {
            let Ok(status) = folder.status(&name) else { continue };
            there.insert(status.inode);
            if status.modified_ns >= oldest_ns && !self.done.contains(&status.inode) && !self.jvms.contains_key(&name) {
                fresh.push((status.modified_ns, name, status.inode));
            }
        }
        self.done.retain(|inode| there.contains(inode));
        fresh.sort_unstable_by(|one, other| other.cmp(one));
        self.crowded |= names.next().is_some();
        for (_, name, inode) in fresh {
            if self.jvms.len() >= look.limits.jvms && !self.forget_an_ended_one() {
                self.crowded = true;
                break;
            }
            self.jvms.insert(name, Jvm { tail: JvmTail::new(inode), silent: Duration::ZERO, until: None });
        }
    }
}

/// Reads on in a JVM's file; whether it tells something else now. One that is silent has ended.
fn read(
    jvm: &mut Jvm,
    folder: &Folder,
    name: &str,
    look: &mut ScanPass,
    opened: &mut VecDeque<Opened>,
) -> io::Result<bool> {
    let status: FileStatus = folder.status(name)?;
    status.check(look.uid)?;
    if status.inode != jvm.tail.inode {
        return Err(io::ErrorKind::NotFound.into());
    }
    let silent_ns = i64::try_from(now_ns()).unwrap_or(0).saturating_sub(status.modified_ns);
    jvm.silent = Duration::from_nanos(u64::try_from(silent_ns).unwrap_or(0));
    if status.length <= jvm.tail.offset() {
        jvm.tail.has_ended |= silent_ns > SILENT_NS;
        return Ok(false);
    }
    let most = FILE_BYTES_AT_ONCE.min(look.bytes_left);
    if most == 0 {
        return Ok(false);
    }
    let (file, _) = folder.file(name, look.uid)?;
    let mut ends = Vec::new();
    let (taken, changed) = jvm.tail.read(&file, most, &mut ends)?;
    look.bytes_left = look.bytes_left.saturating_sub(taken);
    let is_news = changed || !ends.is_empty();
    let over = ends.len().saturating_sub(look.limits.connections);
    for ends in ends.drain(..).skip(over) {
        opened.push_back(Opened { ends, by: jvm.tail.inode, who: Arc::clone(&jvm.tail.who) });
    }
    Ok(is_news)
}

/// The folder of a user, whose number is its name; and the number.
fn open_of_user(all: &Folder, name: &str) -> io::Result<(Folder, u32)> {
    let uid = uid_of(name).ok_or_else(|| io::Error::other("is no number of a user"))?;
    let folder = all.folder(name)?;
    if folder.owner != uid {
        return Err(io::Error::other(format!("belongs to user {}", folder.owner)));
    }
    Ok((folder, uid))
}

/// `UID`, or `UID.1` to `UID.9` where somebody else had made that first.
fn uid_of(name: &str) -> Option<u32> {
    let (number, again) = name.split_once('.').unwrap_or((name, "1"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = number == "0" || !number.starts_with('0');
    let fits = is_number(number) && is_canonical && again.len() == 1 && is_number(again) && again != "0";
    number.parse().ok().filter(|_| fits)
}

/// `jvm-PID-TICKS.jsonl`.
fn is_jvm_file(name: &str) -> bool {
    let numbers = name.strip_prefix("jvm-").and_then(|rest| rest.strip_suffix(".jsonl"));
    numbers.is_some_and(|numbers| {
        (1..=40).contains(&numbers.len()) && numbers.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte))
    })
}
