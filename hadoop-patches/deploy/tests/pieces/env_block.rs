//! The block in env files: what is put in can be taken out, whatever the file.

use deploy::env_block::{BlockError, install, is_in, remove};
use deploy::versions::{Generation, env_lines};
use proptest::prelude::*;

fn lines() -> Vec<String> {
    vec!["a=1".to_owned(), "export A=\"$a $A\"".to_owned()]
}

/// Pieces that make files which are hard to put lines behind.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\\".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"export X=\"1\"".to_vec()),
        Just(b"# >>> conda".to_vec()),
        Just(b" # >>> hadoptic".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat()).prop_filter("a block", |f| !is_in(f))
}

proptest! {
    #[test]
    fn taken_out_the_file_is_what_it_was(file in file()) {
        let installed = install(&file, &lines()).unwrap();
        prop_assert!(is_in(&installed));
        prop_assert!(installed.starts_with(&file));
        prop_assert_eq!(remove(&installed).unwrap(), file);
    }

    #[test]
    fn twice_is_once(file in file()) {
        let once = install(&file, &lines()).unwrap();
        prop_assert_eq!(install(&once, &lines()).unwrap(), once);
    }

    #[test]
    fn other_lines_take_the_place_of_those_before(file in file()) {
        let first = install(&file, &lines()).unwrap();
        let second = install(&first, &["b=2".to_owned()]).unwrap();
        prop_assert_eq!(&second, &install(&file, &["b=2".to_owned()]).unwrap());
        prop_assert_eq!(remove(&second).unwrap(), file);
    }

    #[test]
    fn what_others_put_behind_the_block_stays_a_line_of_its_own(file in file(), line in "[a-z ]{1,9}") {
        let mut installed = install(&file, &lines()).unwrap();
        installed.extend_from_slice(format!("{line}\n").as_bytes());
        let left = remove(&installed).unwrap();
        prop_assert!(left.starts_with(&file));
        let ends = format!("\n{line}\n");
        prop_assert!(file.is_empty() || left.ends_with(ends.as_bytes()));
    }
}

#[test]
fn half_a_block_is_left_to_people() {
    assert_eq!(install(b"a\n# >>> hadoptic: set\nb\n", &lines()), Err(BlockError::NoEnd(2)));
    assert_eq!(remove(b"a\n# <<< hadoptic\n"), Err(BlockError::NoBegin(2)));
    let twice = b"# >>> hadoptic\n# <<< hadoptic\n# >>> hadoptic\n# <<< hadoptic\n";
    assert_eq!(remove(twice), Err(BlockError::Twice(3)));
}

/// What a shell makes of an env file, read twice as Hadoop 2 does.
fn shell(env: &str, show: &str) -> String {
    let folder = std::env::temp_dir().join(format!("hadoptic-env-{}-{}", std::process::id(), env.len()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("hadoop-env.sh");
    std::fs::write(&file, env).unwrap();
    let script =
        format!("set -u; . \"$0\"; export YARN_CLIENT_OPTS_SEEN=1; sh -c '. \"$0\"; printf %s \"{show}\"' \"$0\"");
    let output = std::process::Command::new("sh").args(["-c", &script]).arg(&file).env_clear().output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A program that prints the agent's option, as the one on the hosts does where the jar is whole.
fn launcher() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/agent_option.sh").to_owned()
}

#[test]
fn where_the_launcher_is_gone_a_file_sets_nothing_and_says_nothing() {
    let all = env_lines(Generation::Three, &[], "/opt/nowhere/bin/agent-option", true);
    let text = String::from_utf8(install(b"", &all[0].1).unwrap()).unwrap();
    assert_eq!(shell(&text, "${HDFS_NAMENODE_OPTS-none}|${HADOOP_CLIENT_OPTS-none}"), "none|none");
}

fn env(generation: Generation, before: &str, clients: bool) -> String {
    let all = env_lines(generation, &[], &launcher(), clients);
    assert_eq!(all.len(), 1);
    String::from_utf8(install(before.as_bytes(), &all[0].1).unwrap()).unwrap()
}

#[test]
fn a_file_that_is_read_twice_names_the_agent_once_and_keeps_what_was_set() {
    let text = env(Generation::Two, "export HADOOP_NAMENODE_OPTS=\"-Xmx1g ${HADOOP_NAMENODE_OPTS-}\"", true);
    let options = shell(&text, "${HADOOP_NAMENODE_OPTS}");
    assert_eq!(options.matches("-javaagent:").count(), 1, "{options}");
    assert!(options.contains("-Xmx1g"));
    assert_eq!(shell(&text, "${YARN_NODEMANAGER_OPTS}"), "-javaagent:/opt/h/lib/hadoptic-agent.jar=out=/c");
}

#[test]
fn in_hadoop_3_the_older_name_gets_the_agent_where_it_is_set() {
    let text = env(Generation::Three, "export HADOOP_DATANODE_OPTS=-Xmx1g\n", true);
    assert_eq!(
        shell(&text, "${HADOOP_DATANODE_OPTS}|${HDFS_DATANODE_OPTS-}|${HDFS_NAMENODE_OPTS}"),
        "-Xmx1g -javaagent:/opt/h/lib/hadoptic-agent.jar=out=/c||-javaagent:/opt/h/lib/hadoptic-agent.jar=out=/c"
    );
}

#[test]
fn hadoop_3_gets_no_second_set_of_client_options_unless_there_is_one() {
    let text = env(Generation::Three, "", true);
    assert_eq!(shell(&text, "${YARN_CLIENT_OPTS-none}"), "none");
    let text = env(Generation::Three, "YARN_CLIENT_OPTS=-Xmx2g\n", true);
    assert!(shell(&text, "${YARN_CLIENT_OPTS}").starts_with("-Xmx2g -javaagent:"));
}

#[test]
fn an_agent_in_hadoop_opts_is_not_given_a_second_time() {
    let text = env(Generation::Three, "export HADOOP_OPTS=-javaagent:/x/hadoptic-agent.jar=out=/d\n", true);
    assert_eq!(shell(&text, "${HDFS_NAMENODE_OPTS-none}"), "none");
}

#[test]
fn clients_can_be_left_out() {
    for generation in [Generation::One, Generation::Two, Generation::Three] {
        assert_eq!(shell(&env(generation, "", false), "${HADOOP_CLIENT_OPTS-none}"), "none");
        assert!(shell(&env(generation, "", true), "${HADOOP_CLIENT_OPTS-none}").contains("javaagent"));
    }
}
