//! Which receive takes which message.

use super::run;

#[test]
fn messages_wait_for_their_receive_and_receives_for_their_message() {
    // The message is there at 1,001; its receive is posted at 5,000.
    let ran = run(&["s: send 1b to 1 tag 0", "c: calc 5000;r: recv 1b from 0 tag 0;r requires c"]);
    assert_eq!((ran.messages_ns[0].2, ran.ranks_ns[1]), (1_001, 5_000));
}

#[test]
fn tags_and_sources_tell_messages_apart() {
    // Each of both waits for the message that comes last.
    let ran = run(&[
        "a: send 1b to 1 tag 1;w: calc 7000;b: send 1b to 1 tag 2;b requires w",
        "r: recv 1b from 0 tag 2;c: calc 10;c requires r;q: recv 1b from 0 tag 1",
    ]);
    assert_eq!(ran.ranks_ns[1], 7_000 + 1_001 + 10);
}

#[test]
fn receives_take_messages_in_the_order_in_which_they_were_posted() {
    // Of two from anybody and one from rank 0, all with one tag, the first of the file takes the first message.
    let ran = run(&[
        "s: send 1b to 2 tag 0",
        "w: calc 400;s: send 1b to 2 tag 0;s requires w",
        "a: recv 1b from -1 tag 0;x: calc 50;x requires a;b: recv 1b from 1 tag 0;y: calc 6 cpu 1;y requires b",
    ]);
    assert_eq!(ran.ranks_ns[2], 400 + 1_001 + 6);
    // The message of rank 1 comes first: the receive from anybody takes it, and nobody is left for rank 0's but the other.
    let ran = run(&[
        "w: calc 400;s: send 1b to 2 tag 0;s requires w",
        "s: send 1b to 2 tag 0",
        "b: recv 1b from 0 tag 0;y: calc 6;y requires b;a: recv 1b from -1 tag 0;x: calc 900 cpu 1;x requires a",
    ]);
    assert_eq!(ran.ranks_ns[2], 1_001 + 900);
}

#[test]
fn of_messages_that_wait_a_receive_from_anybody_takes_the_earliest() {
    let ran = run(&[
        "w: calc 400;s: send 1b to 2 tag 0;s requires w",
        "s: send 1b to 2 tag 0",
        "c: calc 9000;a: recv 1b from -1 tag 0;a requires c;b: recv 1b from 0 tag 0;b requires a;z: calc 5;z requires b",
    ]);
    assert_eq!(ran.ranks_ns[2], 9_005);
}

#[test]
fn a_rank_may_send_to_itself() {
    let ran = run(&["s: send 10b to 0 tag 4;r: recv 10b from 0 tag 4;c: calc 1;c requires r"]);
    assert_eq!(ran.end_ns, 1_011);
}

#[test]
fn many_receives_and_messages_of_a_rank_find_each_other_in_any_order() {
    let tag = |place: u32| place * 7 % 40;
    let sends: Vec<String> = (0..40).map(|place| format!("s{place}: send 1b to 1 tag {}", tag(place))).collect();
    for from in ["0", "-1"] {
        let receive = |tag: u32| {
            format!("r{tag}: recv 1b from {from} tag {tag};x{tag}: calc {}0 cpu {tag};x{tag} requires r{tag}", tag + 1)
        };
        let receives: Vec<String> = (0..40).map(receive).collect();
        let ran = run(&[&sends.join(";"), &receives.join(";")]);
        // Byte by byte, one message after the other.
        let last = (0..40).map(|place| 1_001 + u64::from(place) + 10 * u64::from(tag(place) + 1)).max();
        assert_eq!(Some(ran.ranks_ns[1]), last, "receives from {from} that are posted before");
        let later: Vec<String> = (0..40).map(|tag| format!("r{tag} requires c")).collect();
        let ran = run(&[&sends.join(";"), &format!("c: calc 9000 cpu 40;{};{}", receives.join(";"), later.join(";"))]);
        assert_eq!(ran.ranks_ns[1], 9_000 + 400, "receives from {from} that are posted behind");
    }
}
