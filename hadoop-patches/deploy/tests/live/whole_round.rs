//! Everything in turn, over real sshds, on the configurations of the three generations of Hadoop.

use std::fs;

use crate::support::{Kind, Rig, differ, missing};
use serde_json::Value;
use test_support::skip_if;

fn round(generation: &str) {
    let rig = Rig::new(2, generation);
    // Modes and owners stay with the files.
    crate::support::sh(&format!("chown 1:1 {0}; chmod 640 {0}", rig.of("h1").join("conf/hadoop-env.sh").display()));
    let before: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();

    let checked = rig.ok("check", &[]);
    for host in checked["hosts"].as_array().unwrap() {
        assert_eq!(host["jar_loads"], true, "{host:#}");
        assert!(host["clock"]["uncertainty_ns"].as_i64().unwrap() > 0);
    }
    let after: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    assert_eq!(differ(&before, &after), [""; 0], "check changes nothing");

    rig.ok("install", &[]);
    let installed: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    let file = |name: &str| {
        fs::read(rig.of("h1").join("conf").join(name)).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap()
    };
    assert!(file("hadoop-env.sh").contains("# >>> hadoptic"));
    let (option, times) = if generation == "1" { ("-javaagent:", 1) } else { ("/opt/hadoptic/bin/agent-option)", 3) };
    assert_eq!(file("mapred-site.xml").matches(option).count(), times);
    let (mode, owner, _) = installed[0]["conf/hadoop-env.sh"];
    assert_eq!((mode & 0o777, owner), (0o640, 1));

    let again = rig.ok("install", &[]);
    assert!(
        again["hosts"].as_array().unwrap().iter().all(|host| host["changed"] == Value::Array(Vec::new())),
        "{again:#}"
    );
    let twice: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    assert_eq!(differ(&installed, &twice), [""; 0], "install twice is install once");

    let started = rig.ok("start", &[]);
    assert_eq!(started["hosts"][0]["started"], true);
    let again = rig.ok("start", &[]);
    assert_eq!(again["hosts"][0]["started"], false);
    assert_eq!(again["hosts"][0]["sniffer"], started["hosts"][0]["sniffer"]);

    // Hadoop's port, so that it is recorded.
    rig.on("h1", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8020' || true");
    crate::support::wait_until("packets are counted", || {
        rig.ok("status", &[])["hosts"][0]["packets"].as_u64().unwrap() > 0
    });
    let status = rig.ok("status", &[]);
    for host in status["hosts"].as_array().unwrap() {
        assert!(host["sniffer_runs"]["pid"].as_u64().unwrap() > 0);
        assert!(host["scans"].as_u64().unwrap() > 0);
        assert!(host["used_bytes"].as_u64().unwrap() > 0);
        assert_eq!(host["lost"], 0);
    }

    rig.ok("stop", &[]);
    let stopped = rig.ok("stop", &[]);
    assert_eq!(stopped["hosts"][0]["ran"], false);
    rig.ok("status", &[]);

    let out = rig.path("capture");
    rig.ok("collect", &["--out", out.to_str().unwrap()]);
    for host in &rig.hosts {
        let there = rig.of(host).join("cap").join(host);
        for name in ["sniffer.json", "dumpingd.json", "sockets.jsonl", "packets-lo.hpk"] {
            assert_eq!(fs::read(out.join(host).join(name)).unwrap(), fs::read(there.join(name)).unwrap(), "{name}");
        }
    }

    rig.ok("remove", &[]);
    let after: Vec<_> = rig.hosts.iter().map(|host| rig.tree(host)).collect();
    assert_eq!(differ(&before, &after), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn hadoop_1() {
    skip_if!(missing(Kind::Plain));
    round("1");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn hadoop_2() {
    skip_if!(missing(Kind::Plain));
    round("2");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn hadoop_3() {
    skip_if!(missing(Kind::Plain));
    round("3");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn what_others_change_in_the_meantime_stays() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "2");
    let conf = rig.of("h1").join("conf");
    let before = fs::read_to_string(conf.join("mapred-site.xml")).unwrap();
    rig.ok("install", &["--no-clients"]);
    let env = fs::read(conf.join("yarn-env.sh")).unwrap();
    fs::write(conf.join("yarn-env.sh"), [&env[..], b"export LATER=1\n"].concat()).unwrap();
    let site = fs::read_to_string(conf.join("mapred-site.xml")).unwrap();
    let added = "<property><name>later</name><value>1</value></property>\n</configuration>";
    fs::write(conf.join("mapred-site.xml"), site.replace("</configuration>", added)).unwrap();
    rig.ok("install", &[]);
    let record = rig.of("h1").join("cap/jvm/0/jvm-1-1.jsonl");
    fs::create_dir(record.parent().unwrap()).unwrap();
    fs::write(&record, "{}").unwrap();
    rig.ok("remove", &["--keep-captures"]);
    assert_eq!(
        fs::read_to_string(conf.join("yarn-env.sh")).unwrap(),
        "YARN_NODEMANAGER_OPTS=-Xmx512m\nexport LATER=1\n"
    );
    assert_eq!(fs::read_to_string(conf.join("mapred-site.xml")).unwrap(), before.replace("</configuration>", added));
    assert!(record.is_file());
    assert!(!rig.of("h1").join("opt/hadoptic").exists());
}
