//! The configuration that hosts get: right places, right agents, quiet when asked, the user's word last.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use lab::distribution::{Distribution, Settings};
use lab::plan::Plan;

fn settings() -> Settings {
    Settings {
        quiet: false,
        jvm_options: Vec::new(),
        properties: Vec::new(),
        java_home: PathBuf::from("/java"),
        cache: PathBuf::from("/cache"),
        work: PathBuf::from("/work"),
    }
}

/// A property's value in a host's file; the last one counts, as in Hadoop.
fn property(settings: &Settings, host: usize, file: &str, key: &str) -> Option<String> {
    let plan = Plan::new("lab", Some(9), 4).unwrap();
    let files = Distribution::V3_4_2.configuration(settings, &plan, &plan.hosts[host]);
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
fn the_agent_is_in_every_jvm_but_not_in_the_one_that_formats() {
    let mut settings = settings();
    let agent = "-javaagent:/a.jar=out=/c".to_owned();
    settings.jvm_options = vec![agent.clone()];
    for key in ["mapreduce.map.java.opts", "mapreduce.reduce.java.opts", "yarn.app.mapreduce.am.command-opts"] {
        assert!(property(&settings, 0, "mapred-site.xml", key).unwrap().contains(&agent), "{key}");
    }
    let plan = Plan::new("lab", Some(9), 4).unwrap();
    let version = Distribution::V3_4_2;
    for kind in version.daemons() {
        let arguments = version.daemon_arguments(&settings, plan.master(), kind);
        assert!(arguments.contains(&agent), "{}", kind.role);
        assert_eq!(arguments.last().unwrap(), kind.main_class);
    }
    assert!(!version.format_arguments(&settings, plan.master()).contains(&agent));
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
    for kind in Distribution::V3_4_2.daemons() {
        assert_eq!(trace::role::role_of_main_class(kind.main_class), Some(kind.role));
    }
}
