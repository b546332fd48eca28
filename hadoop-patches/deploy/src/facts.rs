//! What is known of a host before anything is done there.

use serde::Serialize;

use crate::answer::HostAnswer;
use crate::digest;
use crate::installed::{FILE, Installed};
use crate::places::Places;
use crate::scripts;
use crate::ssh::{Session, SshError};
use crate::versions::Generation;

/// Hadoop's configuration files that can be edited.
pub const EDITABLE: [&str; 4] = ["hadoop-env.sh", "yarn-env.sh", "mapred-env.sh", "mapred-site.xml"];

/// A process that calls itself one of Hadoop's JVMs: any user's may, so nothing is believed of it that root acts on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Jvm {
    /// Process id.
    pub pid: u32,
    /// Its user.
    pub user: String,
    /// Role, by main class.
    pub role: String,
    /// "yes" = started with the agent, "attached" = it came later, "no".
    pub agent: String,
    /// Version of Hadoop, "-" = not told.
    pub hadoop: String,
}

impl Jvm {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let pid = words.next()?.parse().ok()?;
        let _ticks = words.next()?;
        let user = words.next()?.to_owned();
        let role = trace::role::role_of_main_class(words.next()?)?.to_owned();
        let agent = words.next()?.to_owned();
        Some(Self { pid, user, role, agent, hadoop: words.next()?.to_owned() })
    }

    /// Whether it lives as long as the cluster.
    #[must_use]
    pub fn is_daemon(&self) -> bool {
        trace::role::is_daemon(&self.role)
    }

    /// Whether it belongs to a job.
    #[must_use]
    pub fn is_of_a_job(&self) -> bool {
        matches!(self.role.as_str(), "MRAppMaster" | "YarnChild" | "Child")
    }
}

/// Daemons that run without the agent, as "ROLE PID".
#[must_use]
pub fn without_agent(jvms: &[Jvm]) -> Vec<String> {
    let without = jvms.iter().filter(|jvm| jvm.is_daemon() && jvm.agent == "no");
    without.map(|jvm| format!("{} {}", jvm.role, jvm.pid)).collect()
}

/// All of Hadoop's JVMs that a script told of.
#[must_use]
pub fn jvms(answer: &HostAnswer) -> Vec<Jvm> {
    answer.all("jvm").filter_map(Jvm::parse).collect()
}

/// What a host told.
#[derive(Clone, Debug)]
pub struct Facts {
    /// As the agents name it.
    pub name: String,
    /// What the host said, whole.
    pub answer: HostAnswer,
    /// Hadoop's configuration as it is named there.
    pub conf: Option<String>,
    /// What an earlier run left.
    pub installed: Option<Installed>,
    /// Hadoop's JVMs.
    pub jvms: Vec<Jvm>,
}

impl Facts {
    /// Asks a host; its configuration is the one that was named, else that of an earlier run, else the one found.
    ///
    /// # Errors
    /// If the host does not answer as expected.
    pub fn ask(session: &Session, places: &Places) -> Result<Self, SshError> {
        let facts = Self::ask_of(session, places, &places.conf_dir)?;
        match &facts.installed {
            Some(installed) if places.conf_dir.is_empty() && facts.conf.as_ref() != Some(&installed.conf_dir) => {
                Self::ask_of(session, places, &installed.conf_dir)
            }
            _ => Ok(facts),
        }
    }

    /// With this configuration, "" = the one found.
    fn ask_of(session: &Session, places: &Places, conf: &str) -> Result<Self, SshError> {
        let what = "look at the host";
        let variables = [
            ("PREFIX", places.prefix.as_str()),
            ("CAPTURE", places.capture_dir.as_str()),
            ("CONF", conf),
            ("JAVA_GIVEN", places.java.as_str()),
        ];
        let printed = session.run(what, &variables, &[], scripts::PROBE)?;
        Self::parse(&printed).map_err(|message| SshError::Failed { what: what.to_owned(), message })
    }

    /// Reads a host's answer.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(printed: &[u8]) -> Result<Self, String> {
        let answer = HostAnswer::parse("probe", printed)?;
        let installed = answer.file(FILE).map(|file| Installed::parse(&file.bytes)).transpose()?;
        let name = answer.value("name").unwrap_or_default().to_owned();
        if name.is_empty() || name.contains(['/', ' ']) || name.starts_with('.') {
            return Err(format!("its own name is \"{name}\""));
        }
        Ok(Self { name, conf: answer.value("conf").map(str::to_owned), jvms: jvms(&answer), installed, answer })
    }

    /// The version of Hadoop, and whence it is known: running JVMs first, then jars, then the configuration. Processes that
    /// say different things are not believed: one of them may be anybody's.
    #[must_use]
    pub fn hadoop(&self) -> Option<(Generation, String)> {
        let known = |version: &str| Some((Generation::of_version(version)?, version.to_owned()));
        let running: Vec<_> = self.jvms.iter().filter_map(|jvm| known(&jvm.hadoop)).collect();
        let agree = running.windows(2).all(|pair| pair[0].0 == pair[1].0);
        if let Some(version) = running.into_iter().next().filter(|_| agree) {
            return Some(version);
        }
        if let Some(version) = self.answer.all("hadoop").find_map(known) {
            return Some(version);
        }
        let file = |name| self.answer.file(name).map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        let env = file("hadoop-env.sh").unwrap_or_default();
        let site = file("mapred-site.xml").unwrap_or_default();
        if env.contains("HDFS_NAMENODE_OPTS") || env.contains("HADOOP_OS_TYPE") {
            return Some((Generation::Three, "3.x, as hadoop-env.sh has it".to_owned()));
        }
        if site.contains("mapred.job.tracker") || env.contains("HADOOP_JOBTRACKER_OPTS") {
            return Some((Generation::One, "1.x, as its configuration has it".to_owned()));
        }
        if site.contains("mapreduce.framework.name") && env.contains("HADOOP_NAMENODE_OPTS") {
            return Some((Generation::Two, "2.x, as its configuration has it".to_owned()));
        }
        None
    }

    /// Whether the host has a program.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        self.answer.all("tool").any(|tool| tool == name)
    }

    /// Checksum of a configuration file as it is, "-" = there is none.
    #[must_use]
    pub fn sum(&self, name: &str) -> String {
        self.answer.file(name).map_or_else(|| "-".to_owned(), |file| digest::of(&file.bytes))
    }

    /// As whom a configuration file may be replaced or made; `None` = several users can change what stands on the way there.
    #[must_use]
    pub fn keeper(&self, name: &str) -> Option<u32> {
        match self.answer.file(name) {
            Some(file) => Some(file.keeper),
            None => self.answer.missing.get(name).copied().flatten(),
        }
    }

    /// Where a configuration file lies, or would lie.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        match self.answer.file(name) {
            Some(file) => file.path.clone(),
            None => format!("{}/{name}", self.answer.value("conf_real").unwrap_or_default()),
        }
    }
}
