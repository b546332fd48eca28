//! Ctrl-C while daemons run: the lab ends with an error and takes everything with it.

use std::io::Read;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PREFIX: &str = "tint";

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn nothing_stays_after_an_interrupt_while_daemons_start() {
    let _turn = crate::common::turn();
    let (mut child, mut said) = crate::common::start_until(
        &format!(
            "run --prefix {PREFIX} --workers 1 --size 1MB --output-replication 1 --links unshaped --uplink unshaped"
        ),
        "starting NameNode",
    );
    crate::common::wait_for_a_process(PREFIX);
    let inodes = crate::common::inodes_of(PREFIX);
    let work = crate::common::work_of(PREFIX);
    let running = crate::common::traces(PREFIX, &inodes, Some(&work));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();

    assert_eq!(running.namespaces.len(), 3, "{running:?}");
    assert!(!running.processes.is_empty() && !running.work.is_empty(), "{running:?}");
    assert_eq!(status.code(), Some(2), "{rest}");
    assert!(rest.contains("stopped by a signal"), "{rest}");
    assert_eq!(crate::common::traces(PREFIX, &inodes, Some(&work)), crate::common::Traces::default());
}
