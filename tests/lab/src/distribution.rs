//! The seam between the lab and versions of Hadoop: which jars, which daemons, how they are started, configured and
//! known to be ready. The rest of the lab asks here and knows no version.

use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};
use clap::ValueEnum;

use crate::conf_file::ConfFile;
use crate::daemon::DaemonKind;
use crate::encryption::Cipher;
use crate::layout::{Call, HOME};
use crate::plan::{HostPlan, Plan};
use crate::settings::Settings;
use crate::{environment, hadoop1, hadoop2, hadoop3};

/// A version of Hadoop that the lab can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Distribution {
    /// Apache Hadoop 1.2.1.
    #[value(name = "1.2.1")]
    V1_2_1,
    /// Apache Hadoop 2.10.2.
    #[value(name = "2.10.2")]
    V2_10_2,
    /// Apache Hadoop 3.3.6.
    #[value(name = "3.3.6")]
    V3_3_6,
    /// Apache Hadoop 3.4.2.
    #[value(name = "3.4.2")]
    V3_4_2,
    /// Apache Hadoop 3.5.0. Its example jobs are those of 3.4.2: Maven Central has none of 3.5.0.
    #[value(name = "3.5.0")]
    V3_5_0,
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
    /// Sort lines by their keys, which Hadoop's `HashPartitioner` shares out.
    Sort,
    /// Copy files within HDFS by a job of maps only.
    DistCp,
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
    /// Class that reads lines of a key, a tab and a value.
    pub key_value_input: &'static str,
    /// Class that writes them.
    pub text_output: &'static str,
}

impl Distribution {
    /// The version, as Hadoop writes it.
    #[must_use]
    pub const fn version(self) -> &'static str {
        match self {
            Self::V1_2_1 => "1.2.1",
            Self::V2_10_2 => "2.10.2",
            Self::V3_3_6 => "3.3.6",
            Self::V3_4_2 => "3.4.2",
            Self::V3_5_0 => "3.5.0",
        }
    }

    /// The Maven project that names the jars.
    #[must_use]
    pub const fn pom(self) -> &'static str {
        match self {
            Self::V1_2_1 => include_str!("../hadoop-1.2.1/pom.xml"),
            Self::V2_10_2 => include_str!("../hadoop-2.10.2/pom.xml"),
            Self::V3_3_6 => include_str!("../hadoop-3.3.6/pom.xml"),
            Self::V3_4_2 => include_str!("../hadoop-3.4.2/pom.xml"),
            Self::V3_5_0 => include_str!("../hadoop-3.5.0/pom.xml"),
        }
    }

    /// Names and bytes of the jars that this project has to bring, one a line.
    #[must_use]
    pub const fn jar_list(self) -> &'static str {
        match self {
            Self::V1_2_1 => include_str!("../hadoop-1.2.1/jars.txt"),
            Self::V2_10_2 => include_str!("../hadoop-2.10.2/jars.txt"),
            Self::V3_3_6 => include_str!("../hadoop-3.3.6/jars.txt"),
            Self::V3_4_2 => include_str!("../hadoop-3.4.2/jars.txt"),
            Self::V3_5_0 => include_str!("../hadoop-3.5.0/jars.txt"),
        }
    }

    /// Files beside the jars that have to be on the class path: name and contents.
    #[must_use]
    pub const fn web_files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::V1_2_1 => &[],
            Self::V2_10_2 | Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => hadoop3::WEB_FILES,
        }
    }

    /// The daemons, in the order in which they start; they stop the other way round.
    #[must_use]
    pub const fn daemons(self) -> &'static [DaemonKind] {
        match self {
            Self::V1_2_1 => hadoop1::DAEMONS,
            Self::V2_10_2 => hadoop2::DAEMONS,
            Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => hadoop3::DAEMONS,
        }
    }

    /// First number of the version.
    #[must_use]
    pub const fn major(self) -> u8 {
        match self {
            Self::V1_2_1 => 1,
            Self::V2_10_2 => 2,
            Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => 3,
        }
    }

    /// Jars and folders that all JVMs have on their class path, behind the configuration.
    #[must_use]
    pub fn class_path(self, cache: &Path) -> Vec<String> {
        let cache = cache.display();
        let pages = format!("{cache}/web");
        match self {
            Self::V1_2_1 => hadoop1::class_path(&pages, &format!("{cache}/lib"), self.jar_list()),
            Self::V2_10_2 | Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => vec![pages, format!("{cache}/lib/*")],
        }
    }

    /// The jar of the example jobs.
    #[must_use]
    pub const fn examples(self) -> &'static str {
        match self {
            Self::V1_2_1 => "hadoop-examples-1.2.1.jar",
            Self::V2_10_2 => "hadoop-mapreduce-examples-2.10.2.jar",
            Self::V3_3_6 => "hadoop-mapreduce-examples-3.3.6.jar",
            Self::V3_4_2 | Self::V3_5_0 => "hadoop-mapreduce-examples-3.4.2.jar",
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
            Client::Sort => job("sort"),
            Client::DistCp => Call::new("hadoop", &["distcp"]),
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
            // From 3.4 on YARN opens it for the application master by itself: MAPREDUCE-7449.
            Self::V3_3_6 => hadoop3::configuration_with(settings, plan, host, &hadoop3::OPEN_JAVA_LANG),
            Self::V3_4_2 | Self::V3_5_0 => hadoop3::configuration(settings, plan, host),
        };
        files.extend(environment::files(self.major(), self.daemons(), settings, host));
        files
    }

    /// Where job histories are once their job has ended.
    #[must_use]
    pub const fn histories(self) -> Histories {
        match self {
            Self::V1_2_1 => Histories::OnMaster(hadoop1::HISTORY_FOLDER),
            Self::V2_10_2 | Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => Histories::InHdfs(hadoop3::HISTORY_PATTERN),
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
                key_value_input: "org.apache.hadoop.mapred.KeyValueTextInputFormat",
                text_output: "org.apache.hadoop.mapred.TextOutputFormat",
            },
            Self::V2_10_2 | Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => &Names {
                maps: "mapreduce.job.maps",
                reduces: "mapreduce.job.reduces",
                sort_output_replication: Some("mapreduce.terasort.output.replication"),
                counts_rows: false,
                key_value_input: "org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat",
                text_output: "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",
            },
        }
    }

    /// The jar whose web pages have to lie on the class path as files; `None` = none.
    #[must_use]
    pub const fn web_jar(self) -> Option<&'static str> {
        match self {
            Self::V1_2_1 => Some("hadoop-core-1.2.1.jar"),
            Self::V2_10_2 | Self::V3_3_6 | Self::V3_4_2 | Self::V3_5_0 => None,
        }
    }

    /// Oldest and newest Java that runs it.
    #[must_use]
    pub const fn java_versions(self) -> (u32, u32) {
        match self {
            Self::V1_2_1 => (8, 17),
            Self::V2_10_2 | Self::V3_3_6 | Self::V3_4_2 => (8, 23),
            // Compiled for Java 17; asks no more for Subject.getSubject, which Java 24 refuses.
            Self::V3_5_0 => (17, 25),
        }
    }

    /// Folder of the jars in a cache folder.
    #[must_use]
    pub fn jars(self, cache: &Path) -> PathBuf {
        cache.join("lib")
    }

    /// Whether clusters of this version can encrypt by a cipher.
    ///
    /// # Errors
    /// If it encrypts nothing without Kerberos, or Hadoop's clients would end in the middle of their first block on that
    /// version of Java (its first number; `None` = not known yet).
    pub fn check_cipher(self, cipher: Cipher, java: Option<u32>) -> Result<()> {
        if self.major() <= 1 {
            return Err(LabError::Config(format!(
                "Hadoop {} encrypts nothing without Kerberos: --encrypted is for 2.10.2 and later",
                self.version()
            )));
        }
        // CryptoStreamUtils.freeDB: IllegalAccessError, seen on 17.
        let Some(java) = java.filter(|java| cipher == Cipher::Aes && self.major() == 2 && *java > 8) else {
            return Ok(());
        };
        Err(LabError::Config(format!(
            "Hadoop {} cannot encrypt blocks by AES on Java {java}: its clients reach for a class that Java closed with 9. \
             Take --encrypted=3des, or set JAVA_HOME to a Java 8",
            self.version()
        )))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_version_that_encrypts_nothing_is_refused() {
        let error = Distribution::V1_2_1.check_cipher(Cipher::Aes, None).unwrap_err().to_string();
        assert!(error.contains("1.2.1") && error.contains("2.10.2"), "{error}");
        Distribution::V2_10_2.check_cipher(Cipher::Rc4, Some(17)).unwrap();
    }

    #[test]
    fn a_java_on_which_clients_would_die_is_refused() {
        let error = Distribution::V2_10_2.check_cipher(Cipher::Aes, Some(17)).unwrap_err().to_string();
        assert!(error.contains("Java 17") && error.contains("--encrypted=3des"), "{error}");
        Distribution::V2_10_2.check_cipher(Cipher::Aes, Some(8)).unwrap();
        Distribution::V3_4_2.check_cipher(Cipher::Aes, Some(17)).unwrap();
    }
}
