//! A daemon that dies: the lab names it, shows the end of its log, and takes everything down.

use std::io::Read;

use nix::sys::signal::{Signal, kill};

const PREFIX: &str = "tdead";

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn a_killed_name_node_is_named_with_the_end_of_its_log() {
    let _turn = crate::common::turn();
    let (mut child, mut said) = crate::common::start_until(
        &format!(
            "run --prefix {PREFIX} --workers 1 --size 1MB --output-replication 1 --links unshaped --uplink unshaped"
        ),
        "starting DataNode",
    );
    let inodes = crate::common::inodes_of(PREFIX);
    let work = crate::common::work_of(PREFIX);
    let name_node = lab::lease::processes_in(&format!("{PREFIX}-m1")).unwrap().into_iter().find(|pid| {
        let class = lab::process::main_class(pid.as_raw().cast_unsigned());
        class.is_some_and(|class| class.ends_with(".NameNode"))
    });
    kill(name_node.unwrap(), Signal::SIGKILL).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{rest}");
    assert!(rest.contains("NameNode on m1 ended with"), "{rest}");
    assert!(rest.contains("INFO"), "the log is not shown: {rest}");
    assert_eq!(crate::common::traces(PREFIX, &inodes, Some(&work)), crate::common::Traces::default());
}
