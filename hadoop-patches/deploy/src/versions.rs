//! What carries a JVM's options in each version of Hadoop: variables of the `*-env.sh`, properties of `mapred-site.xml`.
//!
//! Sources: `bin/hadoop`, `hdfs`, `yarn`, `mapred` and `libexec/*.sh` of 1.2.1, 2.10.2 and 3.4.2; `MRJobConfig` of 2.10.2
//! and 3.4.2 (the defaults of the `admin` properties stand in the code, not in mapred-default.xml); `MapTaskRunner` of 1.2.1.

use serde::{Deserialize, Serialize};

/// The agent's file name, by which a JVM's options are known to have it already.
pub const JAR: &str = "hadoptic-agent.jar";

/// Below the prefix: the program that prints the option which loads the agent, if the jar is whole.
pub const LAUNCHER: &str = "bin/agent-option";

/// What stands in place of the option where a shell reads it.
#[must_use]
pub fn launched(prefix: &str) -> String {
    format!("$({prefix}/{LAUNCHER})")
}

/// Versions that are configured alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Generation {
    /// 0.20 and 1.x.
    #[serde(rename = "1")]
    One,
    /// 2.x.
    #[serde(rename = "2")]
    Two,
    /// 3.x.
    #[serde(rename = "3")]
    Three,
}

impl Generation {
    /// That of a version such as "3.4.2", "2.10.2-amzn-1", "0.20.205.0"; `None` = unknown.
    #[must_use]
    pub fn of_version(version: &str) -> Option<Self> {
        let mut numbers = version.split(|c: char| !c.is_ascii_digit());
        match (numbers.next()?, numbers.next()) {
            ("0", Some("20" | "20S")) | ("1", _) => Some(Self::One),
            ("2", _) => Some(Self::Two),
            ("3", _) => Some(Self::Three),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Two => "2",
            Self::Three => "3",
        }
    }
}

/// How a variable of an env file gets the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// It is appended.
    Append,
    /// Hadoop 3 lets the older name, if it is set, take the place of the newer one.
    UnlessOlder(&'static str),
    /// Set, it takes the place of HADOOP_CLIENT_OPTS; unset, it must stay so.
    IfSet,
}

/// A file in the configuration's folder and the variables that are set there.
type EnvFile = (&'static str, &'static [(&'static str, Rule)], &'static [(&'static str, Rule)]);

/// Daemons' variables, then clients'.
const ONE: &[EnvFile] = &[(
    "hadoop-env.sh",
    &[
        ("HADOOP_NAMENODE_OPTS", Rule::Append),
        ("HADOOP_SECONDARYNAMENODE_OPTS", Rule::Append),
        ("HADOOP_DATANODE_OPTS", Rule::Append),
        ("HADOOP_JOBTRACKER_OPTS", Rule::Append),
        ("HADOOP_TASKTRACKER_OPTS", Rule::Append),
        ("HADOOP_JOB_HISTORYSERVER_OPTS", Rule::Append),
    ],
    &[("HADOOP_CLIENT_OPTS", Rule::Append), ("HADOOP_BALANCER_OPTS", Rule::Append)],
)];

const TWO: &[EnvFile] = &[
    (
        "hadoop-env.sh",
        &[
            ("HADOOP_NAMENODE_OPTS", Rule::Append),
            ("HADOOP_SECONDARYNAMENODE_OPTS", Rule::Append),
            ("HADOOP_DATANODE_OPTS", Rule::Append),
            ("HADOOP_JOURNALNODE_OPTS", Rule::Append),
            ("HADOOP_ZKFC_OPTS", Rule::Append),
        ],
        &[("HADOOP_CLIENT_OPTS", Rule::Append), ("HADOOP_BALANCER_OPTS", Rule::Append)],
    ),
    (
        "yarn-env.sh",
        &[("YARN_RESOURCEMANAGER_OPTS", Rule::Append), ("YARN_NODEMANAGER_OPTS", Rule::Append)],
        &[("YARN_CLIENT_OPTS", Rule::Append)],
    ),
    ("mapred-env.sh", &[("HADOOP_JOB_HISTORYSERVER_OPTS", Rule::Append)], &[]),
];

const THREE: &[EnvFile] = &[
    (
        "hadoop-env.sh",
        &[
            ("HDFS_NAMENODE_OPTS", Rule::UnlessOlder("HADOOP_NAMENODE_OPTS")),
            ("HDFS_SECONDARYNAMENODE_OPTS", Rule::UnlessOlder("HADOOP_SECONDARYNAMENODE_OPTS")),
            ("HDFS_DATANODE_OPTS", Rule::UnlessOlder("HADOOP_DATANODE_OPTS")),
            ("HDFS_JOURNALNODE_OPTS", Rule::UnlessOlder("HADOOP_JOURNALNODE_OPTS")),
            ("HDFS_ZKFC_OPTS", Rule::UnlessOlder("HADOOP_ZKFC_OPTS")),
        ],
        &[("HADOOP_CLIENT_OPTS", Rule::Append), ("HDFS_BALANCER_OPTS", Rule::UnlessOlder("HADOOP_BALANCER_OPTS"))],
    ),
    (
        "yarn-env.sh",
        &[
            ("YARN_RESOURCEMANAGER_OPTS", Rule::UnlessOlder("HADOOP_RESOURCEMANAGER_OPTS")),
            ("YARN_NODEMANAGER_OPTS", Rule::UnlessOlder("HADOOP_NODEMANAGER_OPTS")),
        ],
        &[("YARN_CLIENT_OPTS", Rule::IfSet)],
    ),
    (
        "mapred-env.sh",
        &[("MAPRED_HISTORYSERVER_OPTS", Rule::UnlessOlder("HADOOP_JOB_HISTORYSERVER_OPTS"))],
        &[("MAPRED_CLIENT_OPTS", Rule::IfSet)],
    ),
];

fn table(generation: Generation) -> &'static [EnvFile] {
    match generation {
        Generation::One => ONE,
        Generation::Two => TWO,
        Generation::Three => THREE,
    }
}

/// The env files that a version reads.
#[must_use]
pub fn env_files(generation: Generation) -> Vec<&'static str> {
    table(generation).iter().map(|(file, _, _)| *file).collect()
}

/// The lines for each env file. A file that is not there is not made for its own sake: hadoop-env.sh, which every script
/// reads, takes its lines.
#[must_use]
pub fn env_lines(
    generation: Generation,
    there: &[&str],
    launcher: &str,
    clients: bool,
) -> Vec<(&'static str, Vec<String>)> {
    let mut files: Vec<(&'static str, Vec<String>)> = Vec::new();
    for (file, daemons, tools) in table(generation) {
        let file = if there.contains(file) { file } else { "hadoop-env.sh" };
        let variables = daemons.iter().chain(tools.iter().filter(|_| clients));
        let lines: Vec<String> = variables.flat_map(|(name, rule)| lines_for(name, *rule)).collect();
        match files.iter_mut().find(|(other, _)| *other == file) {
            Some((_, before)) => before.extend(lines),
            None => {
                // Where the program or the jar is missing, nothing is added.
                let asked = format!("hadoptic_agent=; [ ! -x {launcher} ] || hadoptic_agent=$({launcher})");
                files.push((file, [vec![asked], lines].concat()));
            }
        }
    }
    files
}

/// Scripts read these files more than once, with what they exported before: a JVM must not get the agent twice.
fn lines_for(variable: &str, rule: Rule) -> Vec<String> {
    let append = |variable: &str| {
        vec![
            format!("case \"${{hadoptic_agent:+set}} ${{HADOOP_OPTS-}} ${{{variable}-}}\" in ' '* | *{JAR}*) ;;"),
            format!("*) export {variable}=\"${{{variable}:+${variable} }}$hadoptic_agent\" ;; esac"),
        ]
    };
    let if_set = |variable: &str| format!("if [ -n \"${{{variable}-}}\" ]; then");
    let fi = || "fi".to_owned();
    match rule {
        Rule::Append => append(variable),
        Rule::UnlessOlder(older) => {
            [vec![if_set(older)], append(older), vec!["else".to_owned()], append(variable), vec![fi()]].concat()
        }
        Rule::IfSet => [vec![if_set(variable)], append(variable), vec![fi()]].concat(),
    }
}

/// A property that carries options of task JVMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// Its value where the file does not name it; `None`: then it is left out.
    pub default: Option<&'static str>,
}

const ADMIN_DEFAULT: &str = "-Djava.net.preferIPv4Stack=true -Dhadoop.metrics.log.level=WARN";

/// The properties of `mapred-site.xml`. Those of 2.x and 3.x come before the options that jobs bring, and survive them;
/// 1.x has none such: a job that sets its own options runs without the agent.
#[must_use]
pub fn properties(generation: Generation) -> &'static [Property] {
    match generation {
        Generation::One => &[
            Property { name: "mapred.child.java.opts", default: Some("-Xmx200m") },
            // Set, they take the place of the one above.
            Property { name: "mapred.map.child.java.opts", default: None },
            Property { name: "mapred.reduce.child.java.opts", default: None },
        ],
        Generation::Two | Generation::Three => &[
            Property { name: "mapreduce.admin.map.child.java.opts", default: Some(ADMIN_DEFAULT) },
            Property { name: "mapreduce.admin.reduce.child.java.opts", default: Some(ADMIN_DEFAULT) },
            Property { name: "yarn.app.mapreduce.am.admin-command-opts", default: Some("") },
        ],
    }
}
