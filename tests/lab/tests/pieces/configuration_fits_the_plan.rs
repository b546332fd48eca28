//! The configuration that hosts get: right places, right agents, quiet when asked, the user's word last.

use std::path::PathBuf;

use lab::conf_file::ConfFile;
use lab::distribution::Distribution;
use lab::encryption::Cipher;
use lab::plan::Plan;
use lab::settings::Settings;

const ALL: [Distribution; 5] =
    [Distribution::V1_2_1, Distribution::V2_10_2, Distribution::V3_3_6, Distribution::V3_4_2, Distribution::V3_5_0];

fn settings() -> Settings {
    Settings {
        quiet: false,
        encrypted: None,
        jvm_options: Vec::new(),
        properties: Vec::new(),
        java_home: PathBuf::from("/java"),
        cache: PathBuf::from("/cache"),
        work: PathBuf::from("/work"),
    }
}

/// A property's value in a host's file; the last one counts, as in Hadoop.
fn property(settings: &Settings, host: usize, file: &str, key: &str) -> Option<String> {
    property_of(Distribution::V3_4_2, settings, host, file, key)
}

/// The same of any version.
fn property_of(version: Distribution, settings: &Settings, host: usize, file: &str, key: &str) -> Option<String> {
    let plan = Plan::new("lab", Some(9), 4).unwrap();
    let files = version.configuration(settings, &plan, &plan.hosts[host]);
    let contents = &files.iter().find(|f| f.name == file).unwrap().contents;
    let begin = format!("<name>{key}</name><value>");
    let (_, rest) = contents.rsplit_once(&begin)?;
    Some(rest.split_once("</value>").unwrap().0.to_owned())
}

#[test]
fn all_hosts_know_the_master_and_keep_their_files_apart() {
    let settings = settings();
    for host in 0..5 {
        let master = property(&settings, host, "core-site.xml", "fs.defaultFS");
        assert_eq!(master.as_deref(), Some("hdfs://m1:8020"));
    }
    let folders = (1..5).map(|h| property(&settings, h, "hdfs-site.xml", "dfs.datanode.data.dir"));
    let folders: std::collections::BTreeSet<_> = folders.collect();
    assert_eq!(folders.len(), 4);
    let shared = property(&settings, 0, "yarn-site.xml", "yarn.node-attribute.fs-store.root-dir");
    assert_eq!(shared.as_deref(), Some("file:///work/m1/node-attribute"));
}

#[test]
fn quiet_means_no_speculation_and_reduces_after_the_maps() {
    let slow_start = "mapreduce.job.reduce.slowstart.completedmaps";
    let mut settings = settings();
    assert_eq!(property(&settings, 1, "mapred-site.xml", slow_start), None);
    settings.quiet = true;
    let get = |key| property(&settings, 1, "mapred-site.xml", key);
    assert_eq!(get(slow_start).as_deref(), Some("1.0"));
    assert_eq!(get("mapreduce.map.speculative").as_deref(), Some("false"));
    let task: u32 = get("mapreduce.map.memory.mb").unwrap().parse().unwrap();
    let node = property(&settings, 1, "yarn-site.xml", "yarn.nodemanager.resource.memory-mb");
    let node: u32 = node.unwrap().parse().unwrap();
    assert!(task * 2 > node, "two tasks fit on a host");
}

#[test]
fn the_agent_is_in_every_jvm() {
    let mut settings = settings();
    let agent = "-javaagent:/a.jar=out=/c".to_owned();
    settings.jvm_options = vec![agent.clone()];
    for key in ["mapreduce.map.java.opts", "mapreduce.reduce.java.opts", "yarn.app.mapreduce.am.command-opts"] {
        assert!(property(&settings, 0, "mapred-site.xml", key).unwrap().contains(&agent), "{key}");
    }
    let children = property_of(Distribution::V1_2_1, &settings, 1, "mapred-site.xml", "mapred.child.java.opts");
    assert!(children.unwrap().contains(&agent));
    for version in ALL {
        for file in env_files(version, &settings) {
            let general = if (version, file.name) == (Distribution::V2_10_2, "yarn-env.sh") {
                "YARN_OPTS"
            } else {
                "HADOOP_OPTS"
            };
            let is_in = file.contents.lines().any(|line| line.contains(general) && line.contains(&agent));
            let holds_it = file.name == "hadoop-env.sh" || general == "YARN_OPTS";
            assert_eq!(is_in, holds_it, "{version:?} {}: {}", file.name, file.contents);
        }
    }
}

fn env_files(version: Distribution, settings: &Settings) -> Vec<ConfFile> {
    let plan = Plan::new("lab", Some(9), 4).unwrap();
    let mut files = version.configuration(settings, &plan, plan.master());
    files.retain(|file| file.name.ends_with("-env.sh"));
    files
}

#[test]
fn each_daemons_memory_stands_in_the_variable_of_its_version() {
    let line = |version, file: &str, variable: &str| {
        let files = env_files(version, &settings());
        let contents = files.into_iter().find(|f| f.name == file).unwrap().contents;
        contents.lines().find(|line| line.starts_with(&format!("export {variable}="))).map(str::to_owned)
    };
    for (version, file, variable, heap) in [
        (Distribution::V1_2_1, "hadoop-env.sh", "HADOOP_JOBTRACKER_OPTS", "-Xmx256m"),
        (Distribution::V1_2_1, "hadoop-env.sh", "HADOOP_SECONDARYNAMENODE_OPTS", "-Xmx192m"),
        (Distribution::V2_10_2, "hadoop-env.sh", "HADOOP_DATANODE_OPTS", "-Xmx192m"),
        (Distribution::V2_10_2, "yarn-env.sh", "YARN_NODEMANAGER_OPTS", "-Xmx256m"),
        (Distribution::V2_10_2, "mapred-env.sh", "HADOOP_JOB_HISTORYSERVER_OPTS", "-Xmx192m"),
        (Distribution::V3_4_2, "hadoop-env.sh", "HDFS_NAMENODE_OPTS", "-Xmx256m"),
        (Distribution::V3_4_2, "yarn-env.sh", "YARN_RESOURCEMANAGER_OPTS", "-Xmx256m"),
        (Distribution::V3_4_2, "mapred-env.sh", "MAPRED_HISTORYSERVER_OPTS", "-Xmx192m"),
    ] {
        let found = line(version, file, variable);
        assert!(found.as_deref().is_some_and(|line| line.contains(heap)), "{version:?} {variable}: {found:?}");
    }
    assert_eq!(env_files(Distribution::V1_2_1, &settings()).len(), 1, "1.x knows no other");
}

#[test]
fn the_users_property_wins_and_is_escaped() {
    let mut settings = settings();
    settings.properties = vec![("fs.defaultFS".to_owned(), "x".to_owned()), ("a".to_owned(), "1<2 & 3".to_owned())];
    assert_eq!(property(&settings, 1, "core-site.xml", "fs.defaultFS").as_deref(), Some("x"));
    assert_eq!(property(&settings, 1, "core-site.xml", "a").as_deref(), Some("1&lt;2 &amp; 3"));
}

#[test]
fn every_daemon_kind_has_a_role_that_the_trace_knows() {
    for kind in ALL.iter().flat_map(|version| version.daemons()) {
        assert_eq!(trace::role::role_of_main_class(kind.main_class), Some(kind.role));
    }
}

#[test]
fn hadoop_1_has_the_names_of_its_own_time() {
    let settings = settings();
    let get = |file, key| property_of(Distribution::V1_2_1, &settings, 2, file, key);
    assert_eq!(get("core-site.xml", "fs.default.name").as_deref(), Some("hdfs://m1:8020"));
    assert_eq!(get("mapred-site.xml", "mapred.job.tracker").as_deref(), Some("m1:8021"));
    let plan = Plan::new("lab", Some(9), 4).unwrap();
    let files = Distribution::V1_2_1.configuration(&settings, &plan, &plan.hosts[2]);
    let racks = &files.iter().find(|file| file.name == "racks.sh").unwrap().contents;
    assert!(racks.contains("w3 | 10.9.2.13) echo /r2 ;;"), "{racks}");
    assert!(get("core-site.xml", "topology.script.file.name").unwrap().ends_with("/etc/hadoop/conf/racks.sh"));
}

#[test]
fn all_that_hadoop_encrypts_is_asked_for_and_keys_are_where_the_hosts_see_them() {
    let mut settings = settings();
    let get = |settings: &Settings, file, key| property(settings, 2, file, key);
    assert_eq!(get(&settings, "hdfs-site.xml", "dfs.encrypt.data.transfer"), None);
    settings.encrypted = Some(Cipher::Aes);
    for (file, key, value) in [
        ("core-site.xml", "hadoop.rpc.protection", "privacy"),
        ("hdfs-site.xml", "dfs.encrypt.data.transfer", "true"),
        ("hdfs-site.xml", "dfs.block.access.token.enable", "true"),
        ("hdfs-site.xml", "dfs.encrypt.data.transfer.cipher.suites", "AES/CTR/NoPadding"),
        ("mapred-site.xml", "mapreduce.shuffle.ssl.enabled", "true"),
        ("ssl-server.xml", "ssl.server.keystore.location", "/work/keys/keys.p12"),
        ("ssl-client.xml", "ssl.client.truststore.location", "/work/keys/trusted.p12"),
    ] {
        assert_eq!(get(&settings, file, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(get(&settings, "ssl-client.xml", "ssl.client.keystore.location"), None, "tasks need no key");
}

#[test]
fn the_class_path_of_hadoop_1_names_each_jar() {
    let class_path = Distribution::V1_2_1.class_path(&PathBuf::from("/cache"));
    assert_eq!(class_path[0], "/cache/web");
    assert!(class_path.iter().any(|entry| entry == "/cache/lib/hadoop-core-1.2.1.jar"));
    assert!(class_path.iter().all(|entry| !entry.contains('*')), "jars in any order break its web pages");
}
