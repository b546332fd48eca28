//! Any text is read as an experiment, a sweep and an override, or refused; never a panic.

use replay::experiment::{Override, Sweep};

/// What must hold for any input.
pub fn check(text: &str) {
    let (text, change) = text.split_once('\0').unwrap_or((text, ""));
    let changes: Vec<Override> = change.parse().into_iter().collect();
    if let Ok(sweep) = Sweep::parse(text, "fuzz.toml", &changes) {
        let effective = sweep.to_toml().expect("what was read can be written");
        Sweep::parse(&effective, "effective.toml", &[]).expect("what was written can be read");
    }
}
