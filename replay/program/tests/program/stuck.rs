//! Programs that do not come to their end.

use super::{run_with, schedule};

fn error(ranks: &[&str]) -> String {
    run_with(&schedule(ranks), 0).err().unwrap().to_string()
}

#[test]
fn it_is_said_who_waits_for_what() {
    let waits = error(&["c: calc 5;r: recv 4b from 1 tag 7;r requires c;d: calc 1;d requires r", "c: calc 1"]);
    assert!(waits.contains("rank 0 waits for ever for a message from rank 1 with tag 7 (operation 1"), "{waits}");
    let anybody = error(&["r: recv 4b from -1 tag 7"]);
    assert!(anybody.contains("a message from anybody with tag 7"), "{anybody}");
    // Each waits for the other: what the first waits for is said.
    let both = error(&[
        "r: recv 1b from 1 tag 0;s: send 1b to 1 tag 0;s requires r",
        "r: recv 1b from 0 tag 0;s: send 1b to 0 tag 0;s requires r",
    ]);
    assert!(both.contains("rank 0 waits for ever for a message from rank 1 with tag 0"), "{both}");
}

#[test]
fn a_circle_of_operations_is_named() {
    let circle = error(&["a: calc 1;b: calc 2;c: calc 3;a requires c;b requires a;c requires b"]);
    assert!(
        circle.contains("operations 0, 2, 1 of the program, of rank 0, wait for each other in a circle"),
        "{circle}"
    );
    let itself = error(&["a: calc 1", "a: calc 1;a requires a"]);
    assert!(itself.contains("operations 1 of the program, of rank 1"), "{itself}");
}

#[test]
fn messages_that_nobody_takes_or_that_are_too_large_are_told() {
    let left = error(&["s: send 4b to 1 tag 7", "c: calc 1"]);
    assert!(left.contains("the message that rank 0 sends to rank 1 with tag 7 (operation 0"), "{left}");
    let large = error(&["s: send 40b to 1 tag 7", "r: recv 39b from 0 tag 7"]);
    assert!(large.contains("rank 1 receives at most 39 bytes where rank 0 sends 40"), "{large}");
}
