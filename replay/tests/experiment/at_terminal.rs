//! The program at a terminal, where it shows how far it is and Ctrl-C ends it.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// How a program ended.
pub struct Ended {
    pub code: Option<i32>,
    /// What the terminal showed, progress bars included.
    pub shown: String,
    /// Its standard output.
    pub printed: Value,
}

/// Runs `replay` in `folder` at a terminal of its own (script, util-linux), and presses Ctrl-C as soon as what it shows is `enough`.
pub fn interrupted(folder: &Path, arguments: &[&str], enough: impl Fn(&str) -> bool) -> Ended {
    let words: Vec<String> =
        [env!("CARGO_BIN_EXE_replay")].iter().chain(arguments).map(|word| format!("'{word}'")).collect();
    let line = format!("exec {} > printed.json", words.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]).current_dir(folder);
    let mut script = script.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keyboard, mut screen) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
    let (mut shown, mut some) = (Vec::new(), [0; 4096]);
    while !enough(&String::from_utf8_lossy(&shown)) {
        let count = screen.read(&mut some).unwrap();
        assert!(count > 0, "ended by itself: {}", String::from_utf8_lossy(&shown));
        shown.extend(&some[..count]);
    }
    keyboard.write_all(b"\x03").unwrap();
    screen.read_to_end(&mut shown).unwrap();
    Ended {
        code: script.wait().unwrap().code(),
        shown: String::from_utf8_lossy(&shown).into_owned(),
        printed: serde_json::from_slice(&fs::read(folder.join("printed.json")).unwrap()).unwrap(),
    }
}

/// What a terminal of `columns` shows of what a command prints, without its colours.
pub fn shown(folder: &Path, columns: u32, arguments: &[&str]) -> String {
    let line =
        format!("stty cols {columns}; exec {} {} 2>/dev/null", env!("CARGO_BIN_EXE_replay"), arguments.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]).current_dir(folder);
    let output = script.env("SHELL", "/bin/sh").env("NO_COLOR", "1").env("TERM", "xterm").stdin(Stdio::null()).output();
    String::from_utf8(output.unwrap().stdout).unwrap().replace('\r', "")
}

/// The largest number that was shown before `unit`.
pub fn counted(shown: &str, unit: &str) -> f64 {
    let before = shown.match_indices(unit).map(|(at, _)| &shown[..at]);
    let words = before.filter_map(|text| text.rsplit(|letter: char| !letter.is_ascii_digit() && letter != '.').next());
    words.filter_map(|word| word.parse().ok()).fold(0.0, f64::max)
}
