//! The launcher takes a JVM's options from the same variables, in the same order, as the scripts of each version.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use lab::distribution::Distribution;
use lab::launcher;

/// What Java is called with, when Hadoop is called so with these files in its configuration.
fn called(version: Distribution, files: &[(&str, &str)], program: &str, arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    launcher::install(version, Path::new("/cache"), folder.path()).unwrap();
    fs::create_dir_all(path("java/bin")).unwrap();
    fs::write(path("java/bin/java"), "#!/bin/sh\necho \"CLASSPATH=${CLASSPATH:-}\"\nfor a; do echo \"$a\"; done\n")
        .unwrap();
    fs::set_permissions(path("java/bin/java"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(path("conf")).unwrap();
    for (name, contents) in files {
        fs::write(path("conf").join(name), contents).unwrap();
    }
    let output = Command::new(path("opt/hadoop/bin").join(program))
        .arg("--config")
        .arg(path("conf"))
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("JAVA_HOME", path("java"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Of the words that Java is called with, those that the configuration of a test set.
fn ours(words: &[String]) -> Vec<&str> {
    words.iter().filter_map(|word| word.strip_prefix("-Da=")).collect()
}

const HADOOP: (&str, &str) = (
    "hadoop-env.sh",
    "export HADOOP_OPTS=\"$HADOOP_OPTS -Da=all\" HADOOP_CLIENT_OPTS=-Da=client\n\
     export HADOOP_NAMENODE_OPTS=-Da=old-namenode HADOOP_JOBTRACKER_OPTS=-Da=jobtracker\n",
);
const YARN: (&str, &str) = (
    "yarn-env.sh",
    "export YARN_OPTS=-Da=yarn YARN_CLIENT_OPTS=-Da=yarn-client YARN_NODEMANAGER_OPTS='-Da=nodemanager -Xmx77m'\n",
);

#[test]
fn of_1_each_daemon_has_its_variable_and_tools_have_theirs() {
    let call = |arguments: &[&str]| called(Distribution::V1_2_1, &[HADOOP], "hadoop", arguments);
    let words = call(&["jobtracker"]);
    assert_eq!(ours(&words), ["all", "jobtracker"]);
    assert_eq!(words.last().unwrap(), "org.apache.hadoop.mapred.JobTracker");
    let at = words.iter().position(|word| word == "-classpath").unwrap();
    assert!(words[at + 1].contains("/conf:/cache/web:"), "{}", words[at + 1]);
    let words = call(&["fs", "-put", "a b", "*"]);
    assert_eq!(ours(&words), ["all", "client"]);
    assert_eq!(words[words.len() - 4..], ["org.apache.hadoop.fs.FsShell", "-put", "a b", "*"]);
    assert_eq!(ours(&call(&["some.Class"])), ["all"], "a class is no tool to 1.x");
}

#[test]
fn of_2_yarn_knows_its_own_variables_only_and_the_history_server_those_of_mapred() {
    let mapred = ("mapred-env.sh", "export HADOOP_JOB_HISTORYSERVER_OPTS=-Da=history\n");
    let call = |program, arguments: &[&str]| called(Distribution::V2_10_2, &[HADOOP, YARN, mapred], program, arguments);
    let words = call("yarn", &["nodemanager"]);
    assert_eq!(ours(&words), ["yarn", "nodemanager"]);
    let heaps: Vec<&String> = words.iter().filter(|word| word.starts_with("-Xmx")).collect();
    assert_eq!(heaps, ["-Xmx1000m", "-Xmx77m"], "the last one counts");
    assert_eq!(ours(&call("yarn", &["version"])), ["yarn", "yarn-client"]);
    assert_eq!(ours(&call("hdfs", &["namenode"])), ["all", "old-namenode"]);
    assert_eq!(ours(&call("mapred", &["historyserver"])), ["all", "history"]);
    assert_eq!(ours(&call("hadoop", &["jar", "x.jar", "job"])), ["all", "client"]);
    assert_eq!(ours(&call("hadoop", &["some.Class"])), ["all", "client"]);
}

#[test]
fn of_3_options_come_from_all_for_all_and_older_names_win() {
    let version = Distribution::V3_4_2;
    let own =
        ("hadoop-env.sh", "HADOOP_OPTS=-Da=all\nHADOOP_CLIENT_OPTS=-Da=client\nHDFS_NAMENODE_OPTS=-Da=namenode\n");
    let words = called(version, &[own], "hdfs", &["namenode", "-format"]);
    assert_eq!(ours(&words), ["all", "namenode"]);
    assert_eq!(words[words.len() - 2..], ["org.apache.hadoop.hdfs.server.namenode.NameNode", "-format"]);
    assert!(words[0].contains("/conf:/cache/web:/cache/lib/*"), "{}", words[0]);
    let renamed = ("hadoop-env.sh", "HDFS_NAMENODE_OPTS=-Da=namenode\nHADOOP_NAMENODE_OPTS=-Da=old\n");
    assert_eq!(ours(&called(version, &[renamed], "hdfs", &["namenode"])), ["old"]);
    let nodemanager = ("yarn-env.sh", "YARN_NODEMANAGER_OPTS=-Da=nodemanager\n");
    assert_eq!(ours(&called(version, &[own, nodemanager], "yarn", &["nodemanager"])), ["all", "nodemanager"]);
    assert_eq!(ours(&called(version, &[own, YARN], "yarn", &["nodemanager"])), ["yarn", "nodemanager"]);
    assert_eq!(ours(&called(version, &[own], "hadoop", &["fs", "-ls", "/"])), ["all", "client"]);
    let mapred = ("mapred-env.sh", "MAPRED_HISTORYSERVER_OPTS=-Da=history\nHADOOP_HEAPSIZE_MAX=33m\n");
    let words = called(version, &[own, mapred], "mapred", &["historyserver"]);
    assert_eq!(ours(&words), ["all", "history"]);
    assert!(words.contains(&"-Xmx33m".to_owned()));
}

#[test]
fn what_was_set_before_is_kept() {
    let twice = ("hadoop-env.sh", "export HADOOP_OPTS=\"-Da=file $HADOOP_OPTS\"\n");
    let conf = ("yarn-env.sh", "export HADOOP_OPTS=\"$HADOOP_OPTS -Da=second\"\n");
    let words = called(Distribution::V3_4_2, &[twice, conf], "yarn", &["resourcemanager"]);
    assert_eq!(ours(&words), ["file", "second"]);
}
