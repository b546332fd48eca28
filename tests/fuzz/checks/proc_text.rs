//! Any text is read as the kernel's list of sockets, as a process's line of /proc/PID/stat, and as a command line; never a
//! panic, and of a command line nothing is kept but a name.

use dumpingd::stat::Stat;
use dumpingd::{main_class, proc_net};

/// What must hold for any input.
pub fn check(text: &str) {
    let listing = proc_net::parse(text);
    assert!(listing.sockets.len() <= text.lines().count());
    if let Some(stat) = Stat::parse(text.as_bytes()) {
        // Written again with what was understood of it, it is the same process.
        let Stat { command, state, parent, start_ticks, .. } = &stat;
        let flags = if stat.is_exiting { 4 } else { 0 };
        let again =
            format!("1 ({command}) {state} {parent} 0 0 0 0 {flags}{zeros} {start_ticks} 0", zeros = " 0".repeat(12));
        assert_eq!(Stat::parse(again.as_bytes()).as_ref(), Some(&stat), "{again}");
    }
    let arguments: Vec<&str> = text.split('\0').collect();
    if let Some(class) = main_class::of_command_line(&arguments) {
        // A name that stands there, and no option with what follows it.
        let dots = class.replace('.', "/");
        assert!(arguments.iter().any(|argument| argument.replace('.', "/").ends_with(&dots)));
    }
}
