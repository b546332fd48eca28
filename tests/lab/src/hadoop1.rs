//! Apache Hadoop 1.x: HDFS, and MapReduce with a JobTracker and TaskTrackers.
//!
//! Property names and defaults: the `*-default.xml` of 1.2.1. What differs from the defaults is said here with its
//! reason; all else is stock.

use crate::conf_file::{ConfFile, owned, site_xml};
use crate::daemon::{DaemonKind, Ready};
use crate::hadoop3;
use crate::layout::CONF;
use crate::plan::{HostPlan, Plan};
use crate::settings::Settings;

/// Port of the JobTracker's RPC, which has no default.
const JOB_TRACKER_PORT: u16 = 8021;

/// The daemons. Ports are the version's defaults.
pub const DAEMONS: &[DaemonKind] = &[
    DaemonKind { program: "hadoop", options: "HADOOP_NAMENODE_OPTS", ..hadoop3::DAEMONS[0] },
    DaemonKind {
        role: "SecondaryNameNode",
        main_class: "org.apache.hadoop.hdfs.server.namenode.SecondaryNameNode",
        program: "hadoop",
        subcommand: "secondarynamenode",
        options: "HADOOP_SECONDARYNAMENODE_OPTS",
        heap_mib: 192,
        on_master: true,
        wave: 1,
        ready: Ready::Listens(50090),
    },
    DaemonKind {
        program: "hadoop",
        options: "HADOOP_DATANODE_OPTS",
        ready: Ready::Listens(50020),
        ..hadoop3::DAEMONS[2]
    },
    // It looks for the file system once, and then not before ten seconds have passed: the DataNodes come first.
    DaemonKind {
        role: "JobTracker",
        main_class: "org.apache.hadoop.mapred.JobTracker",
        program: "hadoop",
        subcommand: "jobtracker",
        options: "HADOOP_JOBTRACKER_OPTS",
        heap_mib: 256,
        on_master: true,
        wave: 2,
        ready: Ready::Says("Starting RUNNING"),
    },
    DaemonKind {
        role: "TaskTracker",
        main_class: "org.apache.hadoop.mapred.TaskTracker",
        program: "hadoop",
        subcommand: "tasktracker",
        options: "HADOOP_TASKTRACKER_OPTS",
        heap_mib: 256,
        on_master: false,
        wave: 2,
        ready: Ready::Listens(50060),
    },
];

/// Folder of the master's, below its logs, in which the JobTracker keeps the histories of jobs.
pub const HISTORY_FOLDER: &str = "history";

/// The class path. Two libraries for web pages are among the jars, which must not be mixed: the jars are named in their
/// order, behind the pages.
#[must_use]
pub fn class_path(pages: &str, jars: &str, list: &str) -> Vec<String> {
    let names = list.lines().filter_map(|line| line.split(' ').next());
    std::iter::once(pages.to_owned()).chain(names.map(|name| format!("{jars}/{name}"))).collect()
}

/// A host's configuration files.
#[must_use]
pub fn configuration(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<ConfFile> {
    let xml = |name, mut properties: Vec<(String, String)>| {
        properties.extend(settings.properties.iter().cloned());
        ConfFile { name, contents: site_xml(&properties) }
    };
    vec![
        xml("core-site.xml", core_site(settings, plan, host)),
        xml("hdfs-site.xml", hdfs_site(settings, plan, host)),
        xml("mapred-site.xml", mapred_site(settings, plan, host)),
        ConfFile { name: RACKS, contents: rack_script(plan) },
        ConfFile { name: "log4j.properties", contents: hadoop3::LOG4J.to_owned() },
    ]
}

/// A script that answers with the racks of the hosts that are asked for: this version has no table.
const RACKS: &str = "racks.sh";

fn rack_script(plan: &Plan) -> String {
    let mut script = String::from("#!/bin/sh\nfor host; do\n    case $host in\n");
    for host in &plan.hosts {
        script.push_str(&format!("    {} | {}) echo {} ;;\n", host.name, host.address, host.rack_path()));
    }
    script.push_str("    *) echo /default-rack ;;\n    esac\ndone\n");
    script
}

fn core_site(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<(String, String)> {
    owned([
        ("fs.default.name", format!("hdfs://{}:8020", plan.master().name)),
        ("hadoop.tmp.dir", settings.host_folder(host).join("hadoop").display().to_string()),
        ("topology.script.file.name", format!("{CONF}/{RACKS}")),
    ])
}

fn hdfs_site(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<(String, String)> {
    let folder = settings.host_folder(host);
    let workers = plan.workers().len();
    owned([
        ("dfs.name.dir", folder.join("name").display().to_string()),
        ("dfs.data.dir", folder.join("data").display().to_string()),
        ("dfs.replication", workers.min(3).to_string()),
        // The SecondaryNameNode and fsck ask there.
        ("dfs.http.address", format!("{}:50070", plan.master().name)),
        // Ready as soon as all DataNodes are there, not half a minute later.
        ("dfs.safemode.extension", "0".into()),
        ("dfs.namenode.safemode.min.datanodes", workers.to_string()),
    ])
}

fn mapred_site(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<(String, String)> {
    let folder = settings.host_folder(host);
    let mut properties = owned([
        ("mapred.job.tracker", format!("{}:{JOB_TRACKER_PORT}", plan.master().name)),
        ("mapred.local.dir", folder.join("local").display().to_string()),
        // In HDFS, so the same on every host.
        ("mapred.system.dir", "/mapred/system".into()),
        ("mapreduce.jobtracker.staging.root.dir", "/mapred/staging".into()),
        ("mapred.submit.replication", plan.workers().len().min(3).to_string()),
        ("mapred.child.java.opts", hadoop3::task_options(settings, 256)),
    ]);
    if settings.quiet {
        properties.extend(owned([
            ("mapred.tasktracker.map.tasks.maximum", "1".into()),
            ("mapred.tasktracker.reduce.tasks.maximum", "1".into()),
            ("mapred.reduce.slowstart.completed.maps", "1.0".into()),
            ("mapred.map.tasks.speculative.execution", "false".into()),
            ("mapred.reduce.tasks.speculative.execution", "false".into()),
        ]));
    }
    properties
}
