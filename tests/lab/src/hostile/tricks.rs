//! What a hostile user does, one trick at a time. He has no rights but an ordinary account's: most of what he tries is refused.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use nix::sys::signal::kill;
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use serde::{Deserialize, Serialize};

use super::processes::{Crowd, Pretence, Programs, ticks, user_of};
use super::records::{Claim, Forgery};
use super::{HOME, UID};
use crate::text::Numbers;

/// Names that the agents' files have, had, or may have.
const NAMES: [&str; 22] = [
    "sniffer.json",
    "dumpingd.json",
    "ports.json",
    "sockets.jsonl",
    "sockets.000001.jsonl",
    "agents.lock",
    "sniffer.lock",
    "dumpingd.lock",
    "sniffer.log",
    "dumpingd.log",
    "sniffer.json.new",
    ".sniffer.json.new",
    ".ports.json.new",
    "packets-x.hpk",
    "packets-eth0.hpk",
    "packets-eth0.000001.hpk",
    ".packets-v1.hpk.new",
    ".packets-eth0.hpk.new",
    ".packets-lo.000001.hpk.new",
    "jvm-9-1.jsonl",
    "daemon-9-1",
    "m1",
];
/// What links of his lead to.
const TARGETS: [&str; 6] =
    ["/etc/passwd", "/etc/hadoop/conf/mapred-site.xml", "/etc/never-there", "/dev/zero", "/proc/self/mem", "."];
/// Bytes that his real files have at most, all together. Then the oldest go.
const MAX_BYTES: u64 = 96 << 20;
/// Files of one swarm, more than the sniffer followed JVMs.
const SWARM: u32 = 4_500;
/// Connections of one burst to himself, and to Hadoop's daemons.
const BURST: u32 = 1_000;
const KNOCKS: u32 = 20;
/// Locks that he holds.
const MAX_HELD: usize = 64;
/// What he remembers of what was not refused.
const MAX_ACHIEVED: usize = 100;
/// Rounds of one race.
const RACES: u32 = 200;
/// Apparent size of what has no blocks.
const TERABYTES: u64 = 5 << 40;
const GIGABYTES: u64 = 3 << 30;
/// Where Hadoop's daemons listen.
const PORTS: [u16; 5] = [8020, 9866, 8030, 8031, 13_562];
/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_millis(200);

/// What he does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Trick {
    /// Links with the agents' names to files of root's, to devices, to themselves.
    Links,
    /// Second names for files of root's.
    SecondNames,
    /// Pipes with the agents' names.
    Pipes,
    /// Files of terabytes without a block.
    Sparse,
    /// Folders with the agents' names.
    Folders,
    /// Records that no JVM wrote.
    Records,
    /// A file of records with gigabytes without a block.
    SparseRecords,
    /// More files of JVMs than anybody follows.
    Swarm,
    /// Locks that say who the agents are.
    Locks,
    /// The folders of other users, before these come, and what they take.
    OthersFolders,
    /// His own folder of records as a link, a file, a folder open to all.
    OwnFolder,
    /// A file of records and a link to a secret, in turns.
    Race,
    /// Processes with names of others.
    Processes,
    /// Connections, opened and closed.
    Connections,
    /// What he may not: write, rename, remove what is the agents', end them.
    Forbidden,
}

impl Trick {
    /// All of them, in the order of the first round.
    pub const ALL: [Self; 15] = [
        Self::OthersFolders,
        Self::Processes,
        Self::Locks,
        Self::Pipes,
        Self::Sparse,
        Self::SparseRecords,
        Self::Records,
        Self::Links,
        Self::SecondNames,
        Self::Folders,
        Self::Swarm,
        Self::Race,
        Self::OwnFolder,
        Self::Connections,
        Self::Forbidden,
    ];

    /// Its name on a command line.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A user at work.
#[derive(Debug)]
pub struct Trickster {
    capture: PathBuf,
    prefix: PathBuf,
    claim: Claim,
    numbers: Numbers,
    crowd: Crowd,
    planted: VecDeque<(PathBuf, u64)>,
    held: VecDeque<File>,
    achieved: Vec<String>,
}

impl Trickster {
    /// One on a host, who knows of another one.
    #[must_use]
    pub fn new(capture: &Path, prefix: &Path, claim: Claim, seed: u64) -> Self {
        let home = PathBuf::from(HOME);
        let own = home.join("bin");
        let programs = Programs { own, prefix: prefix.to_owned(), records: capture.join("jvm"), home };
        Self {
            capture: capture.to_owned(),
            prefix: prefix.to_owned(),
            claim,
            numbers: Numbers::new(seed),
            crowd: Crowd::new(programs),
            planted: VecDeque::new(),
            held: VecDeque::new(),
            achieved: Vec::new(),
        }
    }

    /// Any of some tricks.
    pub fn any(&mut self, tricks: &[Trick]) -> Trick {
        self.one_of(tricks)
    }

    /// What he did that he may not.
    #[must_use]
    pub fn achieved(&self) -> &[String] {
        &self.achieved
    }

    /// Does one.
    ///
    /// # Errors
    /// If it was refused.
    pub fn play(&mut self, trick: Trick) -> io::Result<()> {
        match trick {
            Trick::Links => self.links(),
            Trick::SecondNames => self.second_names(),
            Trick::Pipes => self.pipes(),
            Trick::Sparse => self.sparse("packets-x.hpk", TERABYTES),
            Trick::SparseRecords => self.sparse("jvm-9-1.jsonl", GIGABYTES),
            Trick::Folders => self.folders(),
            Trick::Records => self.records(),
            Trick::Swarm => self.swarm(),
            Trick::Locks => self.locks(),
            Trick::OthersFolders => self.others_folders(),
            Trick::OwnFolder => self.own_folder_otherwise(),
            Trick::Race => self.race(),
            Trick::Processes => self.processes(),
            Trick::Connections => self.connections(),
            Trick::Forbidden => self.forbidden(),
        }
    }

    /// All pretences that need nothing of the agents', before there are any.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn pretend(&mut self) -> io::Result<()> {
        for pretence in [Pretence::DataNode, Pretence::WithAgent, Pretence::Sniffer, Pretence::Long] {
            self.crowd.add(pretence)?;
        }
        Ok(())
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.numbers.next_u64()).unwrap_or(usize::MAX) % end.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len());
        all[at]
    }

    /// Folders where the agents or the JVMs write, or did, where what is his may lie, and where nothing of his may.
    fn places(&self) -> Vec<PathBuf> {
        let jvm = self.capture.join("jvm");
        vec![
            self.capture.clone(),
            self.capture.join(&self.claim.host),
            jvm.clone(),
            jvm.join(UID.to_string()),
            jvm.join("0"),
            self.prefix.clone(),
            self.prefix.join("run"),
            "/etc/hadoop/conf".into(),
        ]
    }

    /// Does something in each place; it has worked if it did in one.
    fn everywhere(&mut self, mut plant: impl FnMut(&mut Self, &Path) -> io::Result<()>) -> io::Result<()> {
        let mut all = Err(io::Error::from(io::ErrorKind::NotFound));
        for place in self.places() {
            let done = plant(self, &place);
            all = all.or(done);
        }
        all
    }

    /// A free place of a name: what is his goes.
    fn clear(path: &Path) {
        let is_folder = path.symlink_metadata().is_ok_and(|there| there.is_dir());
        // What is not his stays, and planting is refused then.
        let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }

    fn links(&mut self) -> io::Result<()> {
        self.everywhere(|user, place| {
            let (name, target) = (user.one_of(&NAMES), user.one_of(&TARGETS));
            Self::clear(&place.join(name));
            symlink(target, place.join(name))
        })
    }

    fn second_names(&mut self) -> io::Result<()> {
        self.everywhere(|user, place| {
            let (name, target) = (user.one_of(&NAMES), user.one_of(&TARGETS));
            Self::clear(&place.join(name));
            fs::hard_link(target, place.join(name))
        })
    }

    fn pipes(&mut self) -> io::Result<()> {
        self.everywhere(|user, place| {
            for name in ["sniffer.json", "dumpingd.json", "ports.json", "jvm-8-1.jsonl", user.one_of(&NAMES)] {
                Self::clear(&place.join(name));
                mkfifo(&place.join(name), Mode::from_bits_truncate(0o666))?;
            }
            Ok(())
        })
    }

    fn sparse(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        self.everywhere(|user, place| {
            for name in [name, user.one_of(&NAMES)] {
                Self::clear(&place.join(name));
                File::create_new(place.join(name))?.set_len(bytes)?;
            }
            Ok(())
        })
    }

    fn folders(&mut self) -> io::Result<()> {
        self.everywhere(|user, place| {
            let name = user.one_of(&NAMES);
            Self::clear(&place.join(name));
            fs::create_dir(place.join(name))?;
            File::create(place.join(name).join("inside")).map(drop)
        })
    }

    /// His own folder of records as the agent would make it, or where JVMs wrote before there was one.
    fn spool(&self) -> io::Result<PathBuf> {
        let jvm = self.capture.join("jvm");
        if !jvm.is_dir() {
            return Ok(self.capture.join(&self.claim.host));
        }
        let own = jvm.join(UID.to_string());
        if !own.symlink_metadata().is_ok_and(|there| there.is_dir()) {
            Self::clear(&own);
            DirBuilder::new().mode(0o750).create(&own)?;
        }
        Ok(own)
    }

    /// Bytes that are really there: of too many the oldest go.
    fn note(&mut self, path: PathBuf) {
        let bytes = fs::metadata(&path).map_or(0, |about| about.len());
        self.planted.push_back((path, bytes));
        while self.planted.iter().map(|(_, bytes)| bytes).sum::<u64>() > MAX_BYTES {
            if let Some((oldest, _)) = self.planted.pop_front() {
                Self::clear(&oldest);
            }
        }
    }

    fn records(&mut self) -> io::Result<()> {
        let spool = self.spool()?;
        for forgery in Forgery::ALL {
            let ticks = 1 + self.below(1000);
            let path = spool.join(format!("jvm-{}-{ticks}.jsonl", self.claim.pid));
            Self::clear(&path);
            let file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&path)?;
            let mut out = BufWriter::new(file);
            forgery.write(&self.claim, &mut self.numbers, &mut out)?;
            out.flush()?;
            self.note(path);
        }
        Ok(())
    }

    fn swarm(&mut self) -> io::Result<()> {
        let spool = self.spool()?;
        for number in 0..SWARM {
            let path = spool.join(format!("jvm-{}-7.jsonl", 100_000 + number));
            if !path.exists() {
                fs::write(path, b"{\"k\":\"header\"}\n")?;
            }
        }
        Ok(())
    }

    fn locks(&mut self) -> io::Result<()> {
        let agents = self.crowd.agents();
        let text: String = agents.iter().map(|(name, pid)| format!("{name} {pid} {} 1\n", ticks(*pid))).collect();
        self.everywhere(|user, place| {
            for name in ["agents.lock", "sniffer.pid", "dumpingd.pid"] {
                Self::clear(&place.join(name));
                let mut file = File::create_new(place.join(name))?;
                file.write_all(text.as_bytes())?;
                // Held as well: who waits for it waits for ever.
                if file.try_lock().is_ok() {
                    user.held.push_back(file);
                }
                if user.held.len() > MAX_HELD {
                    user.held.pop_front();
                }
            }
            Ok(())
        })
    }

    fn others_folders(&mut self) -> io::Result<()> {
        let jvm = self.capture.join("jvm");
        let mut all = Ok(());
        for uid in ["0", "0.1", "1000", "65534"] {
            all = all.and(DirBuilder::new().mode(0o777).create(jvm.join(uid)));
            // What their files take, as he would have it.
            all = all.and(symlink(u64::MAX.to_string(), jvm.join(format!(".used-{uid}"))));
        }
        all
    }

    fn own_folder_otherwise(&mut self) -> io::Result<()> {
        let own = self.capture.join("jvm").join(UID.to_string());
        let aside = self.capture.join("jvm").join(format!("{UID}.9"));
        Self::clear(&aside);
        fs::rename(&own, &aside)?;
        match self.below(4) {
            0 => symlink("/etc", &own),
            1 => symlink(self.capture.join(&self.claim.host), &own),
            2 => File::create(&own).map(drop),
            _ => fs::create_dir(&own).and_then(|()| fs::set_permissions(&own, fs::Permissions::from_mode(0o777))),
        }
    }

    fn race(&mut self) -> io::Result<()> {
        let spool = self.spool()?;
        let (path, aside) = (spool.join("jvm-5-5.jsonl"), spool.join("jvm-5-6.jsonl"));
        for round in 0..RACES {
            Self::clear(&aside);
            match round % 3 {
                0 => symlink("/etc/shadow", &aside)?,
                1 => fs::write(&aside, b"{\"k\":\"header\"}\n")?,
                _ => mkfifo(&aside, Mode::from_bits_truncate(0o666))?,
            }
            fs::rename(&aside, &path)?;
        }
        Ok(())
    }

    fn processes(&mut self) -> io::Result<()> {
        let mut all = Ok(());
        for _ in 0..3 {
            let pretence = self.one_of(&Pretence::ALL);
            all = all.and(self.crowd.add(pretence));
        }
        for pretence in [Pretence::RealSniffer, Pretence::RealDumpingd] {
            if self.crowd.agents().is_empty() {
                all = all.and(self.crowd.add(pretence));
            }
        }
        all
    }

    fn connections(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        for _ in 0..BURST {
            drop(TcpStream::connect(address)?);
            drop(listener.accept()?);
        }
        for _ in 0..KNOCKS {
            let port = self.one_of(&PORTS);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            // Whether somebody listens there or not.
            let _ = TcpStream::connect_timeout(&address, PATIENCE);
        }
        Ok(())
    }

    /// Tries what must be refused, and remembers what was not.
    fn forbidden(&mut self) -> io::Result<()> {
        let before = self.achieved.len();
        for path in self.places().iter().flat_map(|place| NAMES.map(|name| place.join(name))) {
            let opened = OpenOptions::new().append(true).custom_flags(nix::libc::O_NONBLOCK).open(&path);
            if opened.is_ok_and(|file| file.metadata().is_ok_and(|about| about.uid() != UID && about.is_file())) {
                self.achieved.push(format!("may write to {}", path.display()));
            }
        }
        let (host, prefix) = (self.capture.join(&self.claim.host), self.prefix.clone());
        let tries = [
            ("rename the agents' folder", fs::rename(&host, self.capture.join("gone"))),
            ("rename the programs' folder", fs::rename(prefix.join("bin"), prefix.join("gone"))),
            ("remove the jar", fs::remove_file(prefix.join("lib/hadoptic-agent.jar"))),
            ("write patches", fs::write(prefix.join("lib/hadoptic-agent.jar.patches"), b"")),
            ("read packets", File::open(host.join("packets-eth0.hpk")).map(drop)),
        ];
        let worked = tries.into_iter().filter(|(_, tried)| tried.is_ok());
        self.achieved.extend(worked.map(|(what, _)| format!("could {what}")));
        for pid in fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok()) {
            let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let is_anothers = user_of(pid).is_some_and(|user| user != UID);
            if is_anothers && matches!(program.trim(), "sniffer" | "dumpingd") && kill(Pid::from_raw(pid), None).is_ok()
            {
                self.achieved.push(format!(
                    "could send a signal to {}, which is user {:?}'s",
                    program.trim(),
                    user_of(pid)
                ));
            }
        }
        self.achieved.truncate(MAX_ACHIEVED);
        if self.achieved.len() > before { Ok(()) } else { Err(io::Error::from(io::ErrorKind::PermissionDenied)) }
    }
}
