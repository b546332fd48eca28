//! Apache Hadoop 3.x: HDFS, YARN and MapReduce as daemons of their own. Most of it holds for 2.x as well: `hadoop2`.
//!
//! Property names and defaults: the `*-default.xml` of the version. What differs from the defaults is said here with
//! its reason; all else is stock.

use crate::conf_file::{ConfFile, owned, site_xml};
use crate::daemon::{DaemonKind, Ready};
use crate::encryption;
use crate::layout::CONF;
use crate::plan::{HostPlan, Plan};
use crate::settings::Settings;

/// NameNode and DataNode refuse to start without these folders, which no jar has.
pub const WEB_FILES: &[(&str, &str)] = &[
    ("webapps/hdfs/index.html", "<html></html>\n"),
    ("webapps/datanode/index.html", "<html></html>\n"),
    ("webapps/secondary/index.html", "<html></html>\n"),
];

/// Heap of clients, MiB.
pub const CLIENT_HEAP_MIB: u32 = 256;

/// Files of finished jobs: first in `done_intermediate`, later moved by the JobHistoryServer.
pub const HISTORY_PATTERN: &str =
    "/tmp/hadoop-yarn/staging/history/{done_intermediate/*,done/*/*/*/*}/job_*.{jhist,xml}";

/// The folder of HDFS in which all of them are.
pub const HISTORY_FOLDER: &str = "/tmp/hadoop-yarn/staging/history";

/// The daemons. Ports are the version's defaults.
pub const DAEMONS: &[DaemonKind] = &[
    DaemonKind {
        role: "NameNode",
        main_class: "org.apache.hadoop.hdfs.server.namenode.NameNode",
        program: "hdfs",
        subcommand: "namenode",
        options: "HDFS_NAMENODE_OPTS",
        heap_mib: 256,
        on_master: true,
        wave: 0,
        ready: Ready::Listens(8020),
    },
    DaemonKind {
        role: "ResourceManager",
        main_class: "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
        program: "yarn",
        subcommand: "resourcemanager",
        options: "YARN_RESOURCEMANAGER_OPTS",
        heap_mib: 256,
        on_master: true,
        wave: 0,
        ready: Ready::Listens(8031),
    },
    DaemonKind {
        role: "DataNode",
        main_class: "org.apache.hadoop.hdfs.server.datanode.DataNode",
        program: "hdfs",
        subcommand: "datanode",
        options: "HDFS_DATANODE_OPTS",
        heap_mib: 192,
        on_master: false,
        wave: 1,
        ready: Ready::Listens(9867),
    },
    DaemonKind {
        role: "NodeManager",
        main_class: "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
        program: "yarn",
        subcommand: "nodemanager",
        options: "YARN_NODEMANAGER_OPTS",
        heap_mib: 256,
        on_master: false,
        wave: 1,
        ready: Ready::Says("Registered with ResourceManager as"),
    },
    DaemonKind {
        role: "JobHistoryServer",
        main_class: "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
        program: "mapred",
        subcommand: "historyserver",
        options: "MAPRED_HISTORYSERVER_OPTS",
        heap_mib: 192,
        on_master: true,
        wave: 1,
        ready: Ready::Listens(10020),
    },
];

/// Memory of a NodeManager's containers, MiB.
const NODE_MIB: u32 = 2048;
/// Of the application master's container.
const AM_MIB: u32 = 512;
/// Of a task's: four a host.
const TASK_MIB: u32 = 512;
/// Of a task's when it is to be the only one on its host beside an application master.
const QUIET_TASK_MIB: u32 = 1100;

/// Lets Hadoop reach into `java.lang`. Java 8 does not know the second option, and ignores it because of the first.
pub const OPEN_JAVA_LANG: [&str; 2] =
    ["-XX:+IgnoreUnrecognizedVMOptions", "--add-opens=java.base/java.lang=ALL-UNNAMED"];

/// A dozen JVMs share few cores: little compiling, one collecting thread, no files in /tmp that a kill leaves behind.
pub const LEAN_JVM: [&str; 4] =
    ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true"];

/// Options of a task's JVM.
#[must_use]
pub fn task_options(settings: &Settings, heap_mib: u32) -> String {
    let mut options = vec![format!("-Xmx{heap_mib}m")];
    options.extend(LEAN_JVM.iter().map(|option| (*option).to_owned()));
    options.extend(settings.jvm_options.iter().cloned());
    options.join(" ")
}

/// A host's configuration files.
#[must_use]
pub fn configuration(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<ConfFile> {
    configuration_with(settings, plan, host, &[])
}

/// The same, with options of the application master's JVM beside those of every task.
#[must_use]
pub fn configuration_with(settings: &Settings, plan: &Plan, host: &HostPlan, master_options: &[&str]) -> Vec<ConfFile> {
    let xml = |name, mut properties: Vec<(String, String)>| {
        if let Some(cipher) = settings.encrypted {
            properties.extend(match name {
                "core-site.xml" => encryption::core_site(),
                "hdfs-site.xml" => encryption::hdfs_site(cipher),
                "mapred-site.xml" => encryption::mapred_site(),
                _ => Vec::new(),
            });
        }
        properties.extend(settings.properties.iter().cloned());
        ConfFile { name, contents: site_xml(&properties) }
    };
    let mut files = vec![
        xml("core-site.xml", core_site(settings, plan, host)),
        xml("hdfs-site.xml", hdfs_site(settings, plan, host)),
        xml("yarn-site.xml", yarn_site(settings, plan, host)),
        xml("mapred-site.xml", mapred_site(settings, plan, master_options)),
        xml("capacity-scheduler.xml", capacity_scheduler()),
        ConfFile { name: "racks.table", contents: plan.rack_table() },
        ConfFile { name: "log4j.properties", contents: LOG4J.to_owned() },
    ];
    if settings.encrypted.is_some() {
        files.extend(encryption::files(&settings.work));
    }
    files
}

/// Logs to stderr.
pub const LOG4J: &str = "\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
";

fn core_site(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<(String, String)> {
    let folder = settings.host_folder(host);
    owned([
        ("fs.defaultFS", format!("hdfs://{}:8020", plan.master().name)),
        ("hadoop.tmp.dir", folder.join("hadoop").display().to_string()),
        ("net.topology.node.switch.mapping.impl", "org.apache.hadoop.net.TableMapping".into()),
        ("net.topology.table.file.name", format!("{CONF}/racks.table")),
    ])
}

fn hdfs_site(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<(String, String)> {
    let folder = settings.host_folder(host);
    let workers = plan.workers().len();
    owned([
        ("dfs.namenode.name.dir", format!("file://{}", folder.join("name").display())),
        ("dfs.datanode.data.dir", format!("file://{}", folder.join("data").display())),
        ("dfs.replication", workers.min(3).to_string()),
        // Ready as soon as all DataNodes are there, not half a minute later.
        ("dfs.namenode.safemode.extension", "0".into()),
        ("dfs.namenode.safemode.min.datanodes", workers.to_string()),
    ])
}

fn yarn_site(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<(String, String)> {
    let folder = settings.host_folder(host);
    owned([
        ("yarn.resourcemanager.hostname", plan.master().name.clone()),
        ("yarn.resourcemanager.connect.retry-interval.ms", "1000".into()),
        // Else all ResourceManagers of the machine share a folder in /tmp, and leave it.
        ("yarn.node-attribute.fs-store.root-dir", format!("file://{}", folder.join("node-attribute").display())),
        ("yarn.nodemanager.hostname", host.name.clone()),
        ("yarn.nodemanager.resource.memory-mb", NODE_MIB.to_string()),
        ("yarn.nodemanager.resource.cpu-vcores", "4".into()),
        ("yarn.scheduler.minimum-allocation-mb", "128".into()),
        ("yarn.nodemanager.vmem-check-enabled", "false".into()),
        ("yarn.nodemanager.aux-services", "mapreduce_shuffle".into()),
        ("yarn.nodemanager.local-dirs", folder.join("local").display().to_string()),
        ("yarn.nodemanager.log-dirs", folder.join("userlogs").display().to_string()),
        // The machine's disk is not the cluster's: a full one is no reason to call a host unhealthy.
        ("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "99.5".into()),
        // A NodeManager that ends waits so long for containers, also when there are none any more.
        ("yarn.nodemanager.process-kill-wait.ms", "500".into()),
        ("yarn.application.classpath", task_class_path(settings)),
    ])
}

fn mapred_site(settings: &Settings, plan: &Plan, master_options: &[&str]) -> Vec<(String, String)> {
    let address = &plan.master().name;
    let master = [master_options, &[&task_options(settings, 320)]].concat().join(" ");
    let task_mib = if settings.quiet { QUIET_TASK_MIB } else { TASK_MIB };
    let mut properties = owned([
        ("mapreduce.framework.name", "yarn".into()),
        ("mapreduce.application.classpath", task_class_path(settings)),
        ("mapreduce.jobhistory.address", format!("{address}:10020")),
        ("mapreduce.jobhistory.webapp.address", format!("{address}:19888")),
        ("mapreduce.client.submit.file.replication", plan.workers().len().min(3).to_string()),
        ("yarn.app.mapreduce.am.resource.mb", AM_MIB.to_string()),
        ("yarn.app.mapreduce.am.command-opts", master),
        ("yarn.app.mapreduce.am.job.client.port-range", "50100-50200".into()),
        ("mapreduce.map.memory.mb", task_mib.to_string()),
        ("mapreduce.reduce.memory.mb", task_mib.to_string()),
        ("mapreduce.map.java.opts", task_options(settings, 256)),
        ("mapreduce.reduce.java.opts", task_options(settings, 320)),
    ]);
    if settings.quiet {
        properties.extend(owned([
            ("mapreduce.job.reduce.slowstart.completedmaps", "1.0".into()),
            ("mapreduce.map.speculative", "false".into()),
            ("mapreduce.reduce.speculative", "false".into()),
        ]));
    }
    properties
}

/// Tasks find the configuration where their NodeManager says that it is.
fn task_class_path(settings: &Settings) -> String {
    format!("$HADOOP_CONF_DIR,{}/lib/*", settings.cache.display())
}

/// The scheduler does not start without its queues, and no jar has them.
fn capacity_scheduler() -> Vec<(String, String)> {
    owned([
        ("yarn.scheduler.capacity.root.queues", "default".into()),
        ("yarn.scheduler.capacity.root.default.capacity", "100".into()),
        ("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0".into()),
        // As in the file that the binary distribution ships.
        ("yarn.scheduler.capacity.node-locality-delay", "40".into()),
    ])
}
