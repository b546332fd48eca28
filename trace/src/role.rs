//! Which part a process plays in a Hadoop cluster, told by its main class.

/// The role of a JVM by its main class: the class's simple name, with the names that people use for tasks.
///
/// Returns `None` for classes that are not Hadoop's. Main classes as in Apache Hadoop 1.2.1 to 3.4.
#[must_use]
pub fn role_of_main_class(main_class: &str) -> Option<&'static str> {
    Some(match main_class {
        "org.apache.hadoop.hdfs.server.namenode.NameNode" => "NameNode",
        "org.apache.hadoop.hdfs.server.namenode.SecondaryNameNode" => "SecondaryNameNode",
        "org.apache.hadoop.hdfs.server.datanode.DataNode"
        | "org.apache.hadoop.hdfs.server.datanode.SecureDataNodeStarter" => "DataNode",
        "org.apache.hadoop.hdfs.qjournal.server.JournalNode" => "JournalNode",
        "org.apache.hadoop.hdfs.tools.DFSZKFailoverController" => "DFSZKFailoverController",
        "org.apache.hadoop.hdfs.server.balancer.Balancer" => "Balancer",
        "org.apache.hadoop.mapred.JobTracker" => "JobTracker",
        "org.apache.hadoop.mapred.TaskTracker" => "TaskTracker",
        "org.apache.hadoop.mapred.Child" => "Child",
        "org.apache.hadoop.mapred.YarnChild" => "YarnChild",
        "org.apache.hadoop.mapreduce.v2.app.MRAppMaster" => "MRAppMaster",
        "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer" => "JobHistoryServer",
        "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager" => "ResourceManager",
        "org.apache.hadoop.yarn.server.nodemanager.NodeManager" => "NodeManager",
        "org.apache.hadoop.yarn.server.nodemanager.containermanager.localizer.ContainerLocalizer" => {
            "ContainerLocalizer"
        }
        other if other.starts_with("org.apache.hadoop.") => "Client",
        _ => return None,
    })
}

/// The roles of Hadoop's own processes.
pub const ROLES: [&str; 16] = [
    "NameNode",
    "SecondaryNameNode",
    "DataNode",
    "JournalNode",
    "DFSZKFailoverController",
    "Balancer",
    "JobTracker",
    "TaskTracker",
    "Child",
    "YarnChild",
    "MRAppMaster",
    "JobHistoryServer",
    "ResourceManager",
    "NodeManager",
    "ContainerLocalizer",
    "Client",
];

/// Whether a role computes nothing of a job's own: daemons and masters, which pass on what others told them.
#[must_use]
pub fn only_coordinates(role: &str) -> bool {
    role == "MRAppMaster" || is_daemon(role)
}

/// Whether a role is a daemon: a process that lives as long as the cluster and not as long as a job.
#[must_use]
pub fn is_daemon(role: &str) -> bool {
    matches!(
        role,
        "NameNode"
            | "SecondaryNameNode"
            | "DataNode"
            | "JournalNode"
            | "DFSZKFailoverController"
            | "JobTracker"
            | "TaskTracker"
            | "JobHistoryServer"
            | "ResourceManager"
            | "NodeManager"
    )
}
