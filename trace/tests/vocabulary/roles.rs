//! Roles of processes by their main class.

use trace::role::{is_daemon, role_of_main_class};

#[test]
fn hadoops_main_classes_have_roles_and_others_have_none() {
    for (class, role) in [
        ("org.apache.hadoop.hdfs.server.datanode.DataNode", Some("DataNode")),
        ("org.apache.hadoop.hdfs.server.datanode.SecureDataNodeStarter", Some("DataNode")),
        ("org.apache.hadoop.mapred.YarnChild", Some("YarnChild")),
        ("org.apache.hadoop.mapred.Child", Some("Child")),
        ("org.apache.hadoop.util.RunJar", Some("Client")),
        ("org.apache.spark.deploy.SparkSubmit", None),
        ("", None),
    ] {
        assert_eq!(role_of_main_class(class), role, "{class}");
    }
    assert!(is_daemon("NodeManager") && !is_daemon("YarnChild") && !is_daemon("other"));
}
