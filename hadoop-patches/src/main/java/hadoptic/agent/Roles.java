package hadoptic.agent;

/** Which part a JVM plays in a Hadoop cluster, told by its main class; the same table as {@code trace::role}. */
public final class Roles {
    private static final String[] TASKS_AND_DAEMONS = {
        "org.apache.hadoop.hdfs.server.namenode.NameNode",
        "org.apache.hadoop.hdfs.server.namenode.SecondaryNameNode",
        "org.apache.hadoop.hdfs.server.datanode.DataNode",
        "org.apache.hadoop.hdfs.qjournal.server.JournalNode",
        "org.apache.hadoop.hdfs.tools.DFSZKFailoverController",
        "org.apache.hadoop.hdfs.server.balancer.Balancer",
        "org.apache.hadoop.mapred.JobTracker",
        "org.apache.hadoop.mapred.TaskTracker",
        "org.apache.hadoop.mapred.Child",
        "org.apache.hadoop.mapred.YarnChild",
        "org.apache.hadoop.mapreduce.v2.app.MRAppMaster",
        "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer",
        "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
        "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
        "org.apache.hadoop.yarn.server.nodemanager.containermanager.localizer.ContainerLocalizer",
    };

    private Roles() {}

    /** Role by main class, "" = none of Hadoop's. */
    public static String of(String mainClass) {
        for (String known : TASKS_AND_DAEMONS) {
            if (known.equals(mainClass)) {
                return known.substring(known.lastIndexOf('.') + 1);
            }
        }
        return mainClass.startsWith("org.apache.hadoop.") ? "Client" : "";
    }

    /** Whether a role lives as long as the cluster and not as long as a job. */
    public static boolean isDaemon(String role) {
        switch (role) {
            case "NameNode": case "SecondaryNameNode": case "DataNode": case "JournalNode":
            case "DFSZKFailoverController": case "JobTracker": case "TaskTracker": case "JobHistoryServer":
            case "ResourceManager": case "NodeManager":
                return true;
            default:
                return false;
        }
    }
}
