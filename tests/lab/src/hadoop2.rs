//! Apache Hadoop 2.x: what differs from 3.x.

use crate::conf_file::ConfFile;
use crate::daemon::{DaemonKind, Ready};
use crate::hadoop3;
use crate::plan::{HostPlan, Plan};
use crate::settings::Settings;

/// The daemons. Ports are the version's defaults: those of DataNodes moved with 3.0.
pub const DAEMONS: &[DaemonKind] = &[
    DaemonKind { options: "HADOOP_NAMENODE_OPTS", ..hadoop3::DAEMONS[0] },
    hadoop3::DAEMONS[1],
    DaemonKind { options: "HADOOP_DATANODE_OPTS", ready: Ready::Listens(50020), ..hadoop3::DAEMONS[2] },
    hadoop3::DAEMONS[3],
    DaemonKind { options: "HADOOP_JOB_HISTORYSERVER_OPTS", ..hadoop3::DAEMONS[4] },
];

/// A host's configuration files. The application master makes its web page by reaching into `java.lang`, too.
#[must_use]
pub fn configuration(settings: &Settings, plan: &Plan, host: &HostPlan) -> Vec<ConfFile> {
    hadoop3::configuration_with(settings, plan, host, &hadoop3::OPEN_JAVA_LANG)
}
