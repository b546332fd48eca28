//! The main class is found in command lines as Hadoop's scripts and containers write them; nothing else leaks out.

use dumpingd::main_class::of_command_line;
use proptest::prelude::*;

fn main_class(line: &str) -> Option<String> {
    of_command_line(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn the_main_class_is_behind_the_options() {
    for (line, main) in [
        (
            "/usr/lib/jvm/java-17/bin/java -Dproc_datanode -Djava.net.preferIPv4Stack=true -Xmx192m \
             org.apache.hadoop.hdfs.server.datanode.DataNode",
            "org.apache.hadoop.hdfs.server.datanode.DataNode",
        ),
        ("java -cp /a:/b --add-opens=java.base/java.lang=ALL-UNNAMED a.b.Main secret", "a.b.Main"),
        ("java --class-path /a --add-opens java.base/java.lang=ALL-UNNAMED a.b.Main$Inner", "a.b.Main$Inner"),
        ("java -javaagent:/x.jar=out=/c -server a.b.Main -cp q", "a.b.Main"),
        ("java -Dpassword=hunter2 -jar /opt/app.jar --password hunter2", "app.jar"),
        ("java -m mod/a.b.Main", "a.b.Main"),
        ("java --module=mod/a.b.Main x", "a.b.Main"),
        (
            "jsvc.exec -Dproc_datanode -outfile /l/o -errfile /l/e -pidfile /r/p -nodetach -user hdfs -cp /a \
             org.apache.hadoop.hdfs.server.datanode.SecureDataNodeStarter",
            "org.apache.hadoop.hdfs.server.datanode.SecureDataNodeStarter",
        ),
    ] {
        assert_eq!(main_class(line).as_deref(), Some(main), "{line}");
    }
}

#[test]
fn what_names_no_class_gives_none() {
    for line in ["java", "java -version", "java -cp /a", "java @/etc/args hunter2", "java /tmp/Main.java", "java -jar"]
    {
        assert_eq!(main_class(line), None, "{line}");
    }
    assert_eq!(of_command_line::<&str>(&[]), None);
}

#[test]
fn a_jar_or_module_with_a_name_of_100_kb_is_cut() {
    let long = "ü".repeat(50_000);
    for line in [vec!["java", "-jar", &long], vec!["java", "-m", &long], vec!["java", "--module", &long]] {
        let name = of_command_line(&line).unwrap();
        assert!(long.starts_with(&name) && name.len() <= 512, "{} bytes", name.len());
    }
}

proptest! {
    #[test]
    fn arguments_behind_the_class_never_show(secret in "[a-z]{8,20}", options in 0usize..4) {
        let mut line = vec!["java".to_owned()];
        line.extend((0..options).map(|i| format!("-Dkey{i}={secret}")));
        line.extend(["a.Main".to_owned(), secret.clone(), format!("--token={secret}")]);
        prop_assert_eq!(of_command_line(&line), Some("a.Main".to_owned()));
    }

    #[test]
    fn any_command_line_is_survived(arguments in prop::collection::vec("\\PC{0,12}", 0..8)) {
        let _ = of_command_line(&arguments);
    }
}
