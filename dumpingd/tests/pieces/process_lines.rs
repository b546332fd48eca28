//! `/proc/PID/stat` is read as it is, whatever a program calls itself.

use dumpingd::stat::Stat;
use proptest::prelude::*;

#[test]
fn a_name_with_brackets_and_blanks_is_a_name() {
    let line = b"4711 (a) Z 1 (b)) S 17 4711 4711 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 31 0 987654 1 2 3\n";
    let stat = Stat::parse(line).unwrap();
    assert_eq!((stat.command.as_str(), stat.state, stat.parent), ("a) Z 1 (b)", 'S', 17));
    assert_eq!((stat.is_exiting, stat.start_ticks), (false, 987_654));
    assert!(stat.still_runs());
    let line = b"1 (x) R 0 1 1 0 -1 4194308 1 2 3 4 5 6 7 8 20 0 31 0 5 1 2 3\n";
    assert!(!Stat::parse(line).unwrap().still_runs(), "it gives up what it has");
}

#[test]
fn it_says_what_others_read_of_this_process() {
    let ours = Stat::read(std::process::id()).unwrap();
    let theirs = procfs::process::Process::myself().unwrap().stat().unwrap();
    assert_eq!((ours.command, ours.start_ticks), (theirs.comm, theirs.starttime));
    assert_eq!(i64::from(ours.parent), i64::from(theirs.ppid));
    assert!(Stat::read(u32::MAX).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Stat::parse(&text);
    }

    #[test]
    fn nor_does_one_that_is_nearly_right(text in "[0-9]{1,3} \\([a-z() ]{0,5}\\)? ?[SZ]?( -?[0-9]{1,12}){0,25}") {
        let _ = Stat::parse(text.as_bytes());
    }
}
