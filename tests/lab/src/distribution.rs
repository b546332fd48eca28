//! The seam between the lab and versions of Hadoop: which jars, which daemons, how they are started, configured and
//! known to be ready. The rest of the lab asks here and knows no version.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::encryption::Cipher;
use crate::launcher::{self, Call, HOME};
use crate::plan::{HostPlan, Plan};
use crate::{hadoop1, hadoop2, hadoop3, host};

/// A version of Hadoop that the lab can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// Apache Hadoop 1.2.1.
    #[value(name = "1.2.1")]
    V1_2_1,
    /// Apache Hadoop 2.10.2.
    #[value(name = "2.10.2")]
    V2_10_2,
    /// Apache Hadoop 3.4.2.
    #[value(name = "3.4.2")]
    V3_4_2,
}

/// How a cluster is to behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// No speculation, reduces after the last map, one map or reduce a host at a time.
    pub quiet: bool,
    /// All is encrypted that can be without Kerberos, blocks by this.
    pub encrypted: Option<Cipher>,
    /// Options of every JVM of the cluster beside its own (the Java agent).
    pub jvm_options: Vec<String>,
    /// Properties of the user, over all others.
    pub properties: Vec<(String, String)>,
    /// Home of the Java runtime.
    pub java_home: PathBuf,
    /// Folder of the distribution's files.
    pub cache: PathBuf,
    /// Folder of the lab's files.
    pub work: PathBuf,
}

impl Settings {
    /// Folder of a host's files.
    #[must_use]
    pub fn host_folder(&self, host: &HostPlan) -> PathBuf {
        self.work.join(&host.name)
    }

    /// Folder of a host's configuration as the machine sees it; on the host it is [`launcher::CONF`].
    #[must_use]
    pub fn conf(&self, host: &HostPlan) -> PathBuf {
        host::root(&self.work, host).join(launcher::CONF.trim_start_matches('/'))
    }
}

/// A kind of daemon.
#[derive(Clone, Copy, Debug)]
pub struct DaemonKind {
    /// Role, as in the trace.
    pub role: &'static str,
    /// Main class.
    pub main_class: &'static str,
    /// Program of Hadoop's that starts it.
    pub program: &'static str,
    /// What that is told.
    pub subcommand: &'static str,
    /// Variable of the options of its JVM.
    pub options: &'static str,
    /// Heap, MiB.
    pub heap_mib: u32,
    /// Whether it runs on the master or on each worker.
    pub on_master: bool,
    /// Daemons of a lower wave have to be ready before those of a higher one start.
    pub wave: u8,
    /// When others can use it.
    pub ready: Ready,
}

/// How it shows that a daemon is ready, without talking to it (that would be in the capture).
#[derive(Clone, Copy, Debug)]
pub enum Ready {
    /// It listens on a TCP port.
    Listens(u16),
    /// Its log has said something.
    Says(&'static str),
}

/// What the lab has Hadoop's clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Generate rows for the sort.
    TeraGen,
    /// Sort them.
    TeraSort,
    /// Check that they are sorted.
    TeraValidate,
    /// Count words.
    WordCount,
    /// Files of HDFS.
    FsShell,
    /// Where blocks are.
    Fsck,
}

/// Where histories of jobs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Histories {
    /// In HDFS: a pattern that finds the files of all jobs.
    InHdfs(&'static str),
    /// On the master, anywhere in this folder of its logs.
    OnMaster(&'static str),
}

/// Names of properties that clients set, and what they cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// Number of maps.
    pub maps: &'static str,
    /// Number of reduces.
    pub reduces: &'static str,
    /// Replicas of the sort's output; `None` = always 1.
    pub sort_output_replication: Option<&'static str>,
    /// Whether the sort's check only says whether rows are in order, so that they have to be counted.
    pub counts_rows: bool,
}

/// A file of configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfFile {
    /// Its name in the configuration folder.
    pub name: &'static str,
    /// Its contents.
    pub contents: String,
}

impl Distribution {
    /// The version, as Hadoop writes it.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1_2_1 => "1.2.1",
            Self::V2_10_2 => "2.10.2",
            Self::V3_4_2 => "3.4.2",
        }
    }

    /// The Maven project that names the jars.
    #[must_use]
    pub const fn pom(self) -> &'static str {
        match self {
            Self::V1_2_1 => include_str!("../hadoop-1.2.1/pom.xml"),
            Self::V2_10_2 => include_str!("../hadoop-2.10.2/pom.xml"),
            Self::V3_4_2 => include_str!("../hadoop-3.4.2/pom.xml"),
        }
    }

    /// Names and bytes of the jars that this project has to bring, one a line.
    #[must_use]
    pub const fn jar_list(self) -> &'static str {
        match self {
            Self::V1_2_1 => include_str!("../hadoop-1.2.1/jars.txt"),
            Self::V2_10_2 => include_str!("../hadoop-2.10.2/jars.txt"),
            Self::V3_4_2 => include_str!("../hadoop-3.4.2/jars.txt"),
        }
    }

    /// Files beside the jars that have to be on the class path: name and contents.
    #[must_use]
    pub const fn web_files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::V1_2_1 => &[],
            Self::V2_10_2 | Self::V3_4_2 => hadoop3::WEB_FILES,
        }
    }

    /// The daemons, in the order in which they start; they stop the other way round.
    #[must_use]
    pub const fn daemons(self) -> &'static [DaemonKind] {
        match self {
            Self::V1_2_1 => hadoop1::DAEMONS,
            Self::V2_10_2 => hadoop2::DAEMONS,
            Self::V3_4_2 => hadoop3::DAEMONS,
        }
    }

    /// First number of the version.
    #[must_use]
    pub const fn major(self) -> u8 {
        match self {
            Self::V1_2_1 => 1,
            Self::V2_10_2 => 2,
            Self::V3_4_2 => 3,
        }
    }

    /// Jars and folders that all JVMs have on their class path, behind the configuration.
    #[must_use]
    pub fn class_path(self, cache: &Path) -> Vec<String> {
        let cache = cache.display();
        let pages = format!("{cache}/web");
        match self {
            Self::V1_2_1 => hadoop1::class_path(&pages, &format!("{cache}/lib"), self.jar_list()),
            Self::V2_10_2 | Self::V3_4_2 => vec![pages, format!("{cache}/lib/*")],
        }
    }

    /// The jar of the example jobs.
    #[must_use]
    pub const fn examples(self) -> &'static str {
        match self {
            Self::V1_2_1 => "hadoop-examples-1.2.1.jar",
            Self::V2_10_2 => "hadoop-mapreduce-examples-2.10.2.jar",
            Self::V3_4_2 => "hadoop-mapreduce-examples-3.4.2.jar",
        }
    }

    /// How a client is called on a host, before its own arguments.
    #[must_use]
    pub fn client(self, client: Client) -> Call {
        let job = |name| Call::new("hadoop", &["jar", &format!("{HOME}/lib/{}", self.examples()), name]);
        match client {
            Client::TeraGen => job("teragen"),
            Client::TeraSort => job("terasort"),
            Client::TeraValidate => job("teravalidate"),
            Client::WordCount => job("wordcount"),
            Client::FsShell => Call::new("hadoop", &["fs"]),
            Client::Fsck if self.major() == 1 => Call::new("hadoop", &["fsck"]),
            Client::Fsck => Call::new("hdfs", &["fsck"]),
        }
    }

    /// What formats the file system on the master before the first start.
    #[must_use]
    pub fn format(self) -> Call {
        let program = if self.major() == 1 { "hadoop" } else { "hdfs" };
        Call::new(program, &["namenode", "-format", "-force", "-nonInteractive"])
    }

    /// A host's configuration.
    #[must_use]
    pub fn configuration(self, settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<ConfFile> {
        let mut files = match self {
            Self::V1_2_1 => hadoop1::configuration(settings, plan, host),
            Self::V2_10_2 => hadoop2::configuration(settings, plan, host),
            Self::V3_4_2 => hadoop3::configuration(settings, plan, host),
        };
        files.extend(launcher::environment_files(self, settings, host));
        files
    }

    /// Where job histories are once their job has ended.
    #[must_use]
    pub const fn histories(self) -> Histories {
        match self {
            Self::V1_2_1 => Histories::OnMaster(hadoop1::HISTORY_FOLDER),
            Self::V2_10_2 | Self::V3_4_2 => Histories::InHdfs(hadoop3::HISTORY_PATTERN),
        }
    }

    /// How clients name what they are told.
    #[must_use]
    pub const fn names(self) -> &'static Names {
        match self {
            Self::V1_2_1 => &Names {
                maps: "mapred.map.tasks",
                reduces: "mapred.reduce.tasks",
                sort_output_replication: None,
                counts_rows: true,
            },
            Self::V2_10_2 | Self::V3_4_2 => &Names {
                maps: "mapreduce.job.maps",
                reduces: "mapreduce.job.reduces",
                sort_output_replication: Some("mapreduce.terasort.output.replication"),
                counts_rows: false,
            },
        }
    }

    /// The jar whose web pages have to lie on the class path as files; `None` = none.
    #[must_use]
    pub const fn web_jar(self) -> Option<&'static str> {
        match self {
            Self::V1_2_1 => Some("hadoop-core-1.2.1.jar"),
            Self::V2_10_2 | Self::V3_4_2 => None,
        }
    }

    /// Oldest and newest Java that runs it.
    #[must_use]
    pub const fn java_versions(self) -> (u32, u32) {
        match self {
            Self::V1_2_1 => (8, 17),
            Self::V2_10_2 | Self::V3_4_2 => (8, 23),
        }
    }

    /// Folder of the jars in a cache folder.
    #[must_use]
    pub fn jars(self, cache: &Path) -> PathBuf {
        cache.join("lib")
    }
}
