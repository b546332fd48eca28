//! Processes that look like others: a user's own programs with the names and arguments of Hadoop's JVMs and of the agents.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::witness::STAY;

/// How many there are at a time.
const MAX_CHILDREN: usize = 16;
/// Bytes of an argument that is too long.
const LONG: usize = 100_000;

/// A process that pretends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pretence {
    /// A file of his own called `java`, with a DataNode's main class.
    DataNode,
    /// The same with the agent in its arguments, as a NameNode.
    WithAgent,
    /// A file of his own called `sniffer`, with its arguments.
    Sniffer,
    /// A main class and an argument of 100 KB.
    Long,
    /// A file called `java` in a user and network namespace of its own.
    OwnNamespace,
    /// The real sniffer, which waits for a pipe for ever.
    RealSniffer,
    /// The real dumpingd, writing into his home.
    RealDumpingd,
    /// A real JVM with the real agent.
    RealJvm,
}

impl Pretence {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::DataNode,
        Self::WithAgent,
        Self::Sniffer,
        Self::Long,
        Self::OwnNamespace,
        Self::RealSniffer,
        Self::RealDumpingd,
        Self::RealJvm,
    ];
}

/// Where programs and records are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The user's folder of programs.
    pub own: PathBuf,
    /// Where the agents lie.
    pub prefix: PathBuf,
    /// Where JVMs record.
    pub records: PathBuf,
    /// A folder of his for what real programs write.
    pub home: PathBuf,
}

/// His processes.
#[derive(Debug)]
pub struct Crowd {
    programs: Programs,
    children: Vec<(Pretence, Child)>,
}

impl Crowd {
    /// None yet.
    #[must_use]
    pub const fn new(programs: Programs) -> Self {
        Self { programs, children: Vec::new() }
    }

    /// Starts one more; of too many the oldest goes.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn add(&mut self, pretence: Pretence) -> std::io::Result<()> {
        self.children.retain_mut(|(_, child)| !matches!(child.try_wait(), Ok(Some(_))));
        // One real dumpingd is enough: each looks at all sockets of the host.
        if pretence == Pretence::RealDumpingd && self.children.iter().any(|(kind, _)| *kind == pretence) {
            return Ok(());
        }
        if self.children.len() >= MAX_CHILDREN {
            let (_, mut oldest) = self.children.remove(0);
            end(&mut oldest);
        }
        let child = self.command(pretence)?.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        self.children.push((pretence, child));
        Ok(())
    }

    /// Processes that run a real agent's program.
    #[must_use]
    pub fn agents(&self) -> Vec<(&'static str, u32)> {
        let name = |pretence: &Pretence| match pretence {
            Pretence::RealSniffer => Some("sniffer"),
            Pretence::RealDumpingd => Some("dumpingd"),
            _ => None,
        };
        self.children.iter().filter_map(|(pretence, child)| Some((name(pretence)?, child.id()))).collect()
    }

    /// Ends all.
    pub fn disperse(&mut self) {
        for (_, child) in &mut self.children {
            end(child);
        }
        self.children.clear();
    }

    fn command(&self, pretence: Pretence) -> std::io::Result<Command> {
        let Programs { own, prefix, records, home } = &self.programs;
        let java = own.join("java");
        let agent = format!("-javaagent:{}/lib/hadoptic-agent.jar=out={}", prefix.display(), records.display());
        let mut command;
        match pretence {
            Pretence::DataNode => {
                command = pretending(&java, "java");
                command.args(["-Dproc_datanode", STAY, "org.apache.hadoop.hdfs.server.datanode.DataNode"]);
            }
            Pretence::WithAgent => {
                command = pretending(&java, "java");
                command.args([&agent, STAY, "org.apache.hadoop.hdfs.server.namenode.NameNode"]);
            }
            Pretence::Sniffer => {
                command = pretending(&own.join("sniffer"), &prefix.join("bin/sniffer").to_string_lossy());
                command.args([STAY, "run", "--out"]).arg(records);
            }
            Pretence::Long => {
                command = pretending(&java, "java");
                command.args([STAY, &format!("org.apache.hadoop.{}", "A".repeat(LONG)), "-jar", &"b".repeat(LONG)]);
            }
            Pretence::OwnNamespace => {
                command = Command::new("unshare");
                command
                    .args(["--map-current-user", "--net"])
                    .arg(&java)
                    .args([STAY, "org.apache.hadoop.mapred.YarnChild"]);
            }
            Pretence::RealSniffer => {
                let pipe = home.join("pipe");
                // There already, the second time.
                let _ = mkfifo(&pipe, Mode::from_bits_truncate(0o600));
                command = Command::new(prefix.join("bin/sniffer"));
                command.arg("show").arg(pipe);
            }
            Pretence::RealDumpingd => {
                let out = home.join("own");
                fs::create_dir_all(&out)?;
                command = Command::new(prefix.join("bin/dumpingd"));
                command.args(["run", "--no-tracepoint", "--out"]).arg(out);
            }
            Pretence::RealJvm => {
                command = Command::new("java");
                command.args(["-Xmx32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", &agent, "-version"]);
            }
        }
        Ok(command)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.disperse();
    }
}

fn pretending(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    command.arg0(name);
    command
}

fn end(child: &mut Child) {
    // It has ended already, or does now.
    let _ = child.kill();
    let _ = child.wait();
}

/// Real user id of a process, also of one that does not show its owner in /proc; `None` = it is gone.
#[must_use]
pub fn user_of(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().next()?.parse().ok()
}

/// Start time of a process in ticks, by which the agents know it; 0 = it is gone.
#[must_use]
pub fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}
