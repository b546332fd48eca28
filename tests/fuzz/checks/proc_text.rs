//! Any text is read as the kernel's list of sockets, and as a command line; never a panic, and of a command line nothing
//! is kept but a name.

use dumpingd::{main_class, proc_net};

/// What must hold for any input.
pub fn check(text: &str) {
    let listing = proc_net::parse(text);
    assert!(listing.sockets.len() <= text.lines().count());
    let arguments: Vec<&str> = text.split('\0').collect();
    if let Some(class) = main_class::of_command_line(&arguments) {
        // A name that stands there, and no option with what follows it.
        let dots = class.replace('.', "/");
        assert!(arguments.iter().any(|argument| argument.replace('.', "/").ends_with(&dots)));
    }
}
