//! Bad arguments end in an error that says what is wrong and what to do, with exit code 2, and touch nothing.

use std::collections::BTreeSet;

#[test]
fn each_bad_argument_is_named_with_the_way_out() {
    let cases = [
        ("run --links fast --prefix tbad", "100mbit"),
        ("run --size 12 --prefix tbad", "128MB"),
        ("run --delay 5ms --prefix tbad", "netem"),
        ("run --workers 0 --prefix tbad", "from 1 to"),
        ("run --prefix Bad-Name", "small letters"),
        ("run --workers 2 --output-replication 3 --prefix tbad", "only 2 workers"),
        ("run --set novalue --prefix tbad", "KEY=VALUE"),
        ("run --capture /dev/null/x --no-agents --prefix tbad", "/dev/null/x"),
        ("run --hadoop 0.20 --prefix tbad", "3.4.2"),
        ("down --prefix ..", "small letters"),
    ];
    for (arguments, expected) in cases {
        let output = crate::common::run(arguments);
        let said = crate::common::stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(expected), "{arguments}: {expected:?} is not in {said}");
    }
    assert_eq!(crate::common::traces("tbad", &BTreeSet::new(), None), crate::common::Traces::default());
}

#[test]
fn missing_agents_are_named_with_how_to_build_them() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("capture");
    let arguments = format!("run --prefix tbad --agent-jar none.jar --capture {}", capture.display());
    let output = crate::common::run(&arguments);
    let said = crate::common::stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("none.jar") && said.contains("mvn"), "{said}");
}

#[test]
fn a_capture_folder_with_something_in_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("old"), "").unwrap();
    let arguments = format!("run --prefix tbad --no-agents --capture {}", folder.path().display());
    let output = crate::common::run(&arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(crate::common::stderr(&output).contains("not empty"));
    assert!(folder.path().join("old").exists());
}

#[test]
fn help_teaches_with_examples() {
    let output = crate::common::run("--help");
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Examples:") && text.contains("--capture"), "{text}");
}
