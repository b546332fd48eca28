//! A lab that was killed leaves daemons and namespaces; `lab down` and the next lab of its prefix remove them, and only those.

use std::collections::BTreeSet;

const PREFIX: &str = "tkill";
const OTHER: &str = "tkill2";

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn down_removes_what_a_kill_left_and_nothing_of_others() {
    let _turn = crate::common::turn();
    let start = |prefix: &str| {
        let arguments = format!(
            "run --prefix {prefix} --workers 1 --size 1MB --output-replication 1 --links unshaped --uplink unshaped"
        );
        let started = crate::common::start_until(&arguments, "starting NameNode");
        crate::common::wait_for_a_process(prefix);
        started
    };
    let (mut other, said) = start(OTHER);
    // A lab goes on when nobody listens any more.
    drop(said);
    let mut killed = start(PREFIX).0;
    let inodes = crate::common::inodes_of(PREFIX);
    let work = crate::common::work_of(PREFIX);
    killed.kill().unwrap();
    killed.wait().unwrap();

    let left = crate::common::traces(PREFIX, &inodes, Some(&work));
    assert_eq!(left.namespaces.len(), 3, "{left:?}");
    assert!(!left.processes.is_empty() && !left.work.is_empty(), "{left:?}");

    let refused = crate::common::run(&format!("down --prefix {OTHER}"));
    assert_eq!(refused.status.code(), Some(2), "a lab that runs was taken down");
    assert!(crate::common::stderr(&refused).contains(&other.id().to_string()));

    let output = crate::common::run(&format!("down --prefix {PREFIX}"));
    assert_eq!(output.status.code(), Some(0), "{}", crate::common::stderr(&output));
    assert_eq!(crate::common::traces(PREFIX, &inodes, Some(&work)), crate::common::Traces::default());
    let neighbour = crate::common::traces(OTHER, &BTreeSet::new(), None);
    assert!(neighbour.namespaces.len() == 3 && !neighbour.processes.is_empty(), "{neighbour:?}");

    other.kill().unwrap();
    other.wait().unwrap();
    // The next lab of the prefix removes it too, and has its claim, as the only lab there is.
    let mut next = start(OTHER).0;
    let neighbour = crate::common::traces(OTHER, &BTreeSet::new(), None);
    assert_eq!(neighbour.claims.len(), 2, "{neighbour:?}");
    let refused = crate::common::run(&format!("down --prefix {OTHER}"));
    assert_eq!(refused.status.code(), Some(2), "a lab that runs was taken down");
    next.kill().unwrap();
    next.wait().unwrap();
    assert_eq!(crate::common::run(&format!("down --prefix {OTHER}")).status.code(), Some(0));
    assert_eq!(crate::common::traces(OTHER, &BTreeSet::new(), None), crate::common::Traces::default());
}

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn namespaces_of_others_stay_and_are_told() {
    let _turn = crate::common::turn();
    let name = "tstrange-own";
    lab::tool::run("ip", &["netns", "add", name]).unwrap();
    let down = crate::common::run("down --prefix tstrange");
    let run = crate::common::run("run --prefix tstrange --workers 1 --output-replication 1");
    let left = crate::common::traces("tstrange", &BTreeSet::new(), None);
    lab::tool::run("ip", &["netns", "del", name]).unwrap();

    assert_eq!(down.status.code(), Some(0), "{}", crate::common::stderr(&down));
    assert_eq!(run.status.code(), Some(2));
    assert!(crate::common::stderr(&run).contains(name), "{}", crate::common::stderr(&run));
    assert_eq!(left, crate::common::Traces { namespaces: vec![name.to_owned()], ..crate::common::Traces::default() });
}
