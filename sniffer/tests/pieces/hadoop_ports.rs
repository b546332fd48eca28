//! Which ports are Hadoop's by its configuration.

use std::fs;

use proptest::prelude::*;
use sniffer::hadoop_ports::{defaults, properties_of, read_folder};

fn site(properties: &[(&str, &str)]) -> String {
    let body: String = properties
        .iter()
        .map(|(name, value)| {
            format!("<property>\n <name>{name}</name><value>{value}</value><final>true</final></property>")
        })
        .collect();
    format!("<?xml version=\"1.0\"?>\n<!-- of our cluster --><configuration>{body}</configuration>")
}

#[test]
fn ports_are_read_from_all_site_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("core-site.xml", &site(&[("fs.defaultFS", "hdfs://nn.example.com:8121/"), ("io.file.buffer.size", "65536")]));
    write(
        "hdfs-site.xml",
        &site(&[
            ("dfs.datanode.address", "0.0.0.0:1004"),
            ("dfs.datanode.http.address", "${my.host.address}:1006"),
            ("my.host.address", "dn7"),
            ("dfs.namenode.shared.edits.dir", "qjournal://a:7485;b:7486;c:7487/cluster"),
            ("dfs.namenode.rpc-address.c1.nn1", "nn1:7020"),
            ("dfs.datanode.ipc.address", "0.0.0.0:0"),
        ]),
    );
    write(
        "yarn-site.xml",
        &site(&[
            ("yarn.nodemanager.address", "[::]:7041"),
            ("yarn.app.mapreduce.am.job.client.port-range", "50100-50102"),
        ]),
    );
    write("mapred-site.xml", &site(&[("mapreduce.shuffle.port", "7562"), ("mapred.job.tracker", "jt:7021")]));
    write("notes.xml", &site(&[("x.address", "h:1")]));
    let read = read_folder(folder.path()).unwrap();
    assert_eq!(read.problems, Vec::<String>::new());
    assert_eq!(read.ports.names(), ["1004", "1006", "7020-7021", "7041", "7485-7487", "7562", "8121", "50100-50102"]);
}

#[test]
fn what_cannot_be_used_is_told_by_file_and_value() {
    let folder = tempfile::tempdir().unwrap();
    assert!(read_folder(folder.path()).unwrap_err().to_string().contains("site.xml"));
    fs::write(folder.path().join("a-site.xml"), "<configuration><property>").unwrap();
    fs::write(folder.path().join("b-site.xml"), site(&[("x.address", "h:123456")])).unwrap();
    fs::write(folder.path().join("c-site.xml"), "<beans/>").unwrap();
    let problems = read_folder(folder.path()).unwrap().problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("a-site.xml"));
    assert!(problems[1].contains("c-site.xml") && problems[1].contains("<beans>"), "{problems:?}");
    assert!(problems[2].contains("x.address") && problems[2].contains("h:123456"));
}

#[test]
fn the_defaults_of_all_versions_are_known() {
    let ports = defaults();
    for port in [8020, 50_010, 50_020, 50_060, 50_070, 9866, 9867, 8032, 8042, 13_562, 10_020, 19_888] {
        assert!(ports.contains(port), "{port}");
    }
    assert!(!ports.contains(22) && !ports.contains(0) && !ports.contains(443));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,300}") {
        let _ = properties_of(&text);
        let folder = tempfile::tempdir().unwrap();
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('\0', "");
        fs::write(folder.path().join("x-site.xml"), site(&[("x.port", &escaped), ("y.address", &escaped)])).unwrap();
        let _ = read_folder(folder.path());
    }
}
