//! What `--help` prints can be read on a terminal of 80 columns: examples stand in lines that fit, and prose is wrapped
//! once, by the terminal's width.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

use hadoptic_tests::program;

const COMMANDS: [(&str, &[&str]); 2] = [
    ("merger", &["", "build", "check", "digest", "export", "network", "strip"]),
    (
        "replay",
        &[
            "",
            "run",
            "compare",
            "predict",
            "report",
            "dimemas",
            "lightness",
            "peers",
            "topology",
            "routing",
            "congestion",
            "coflow",
            "program",
            "generate",
            "experiments",
            "tables",
        ],
    ),
];

fn help(name: &str, command: &str, columns: &str) -> String {
    let mut call = Command::new(program(name).unwrap());
    call.env("COLUMNS", columns).args(Some(command).filter(|command| !command.is_empty())).arg("--help");
    let output = call.output().unwrap();
    assert!(output.status.success(), "{name} {command} --help");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn examples_fit_a_terminal_and_prose_is_wrapped_once() {
    let mut examples = 0;
    for (name, commands) in COMMANDS {
        for command in commands {
            let narrow = help(name, command, "80");
            for line in narrow.lines().filter(|line| line.starts_with(&format!("  {name} "))) {
                assert!(line.chars().count() <= 80, "{name} {command}: {line}");
                examples += 1;
            }
            let wide = help(name, command, "100");
            let mut lines = wide.lines().skip_while(|line| !line.starts_with("Example")).peekable();
            while let Some(line) = lines.next() {
                // A line of an example that was broken has no end of its own.
                let continues = line.starts_with("  ") && !line.ends_with('\\');
                let next = lines.peek().copied().unwrap_or_default();
                let broken = continues && next.starts_with("--");
                assert!(!broken, "{name} {command}: {line:?} is broken before {next:?}");
                // A sentence that a person broke is broken again by the terminal: a short line in the middle of it.
                let prose = !line.starts_with(' ') && !line.is_empty() && !next.is_empty() && !next.starts_with(' ');
                let short = line.chars().count() < 60 && !line.ends_with(['.', ':']);
                assert!(!(prose && short), "{name} {command}: {line:?} is broken before {next:?}");
            }
        }
    }
    assert!(examples >= 15, "{examples} examples");
}

#[test]
fn a_reader_who_has_enough_is_no_failure() {
    for (name, _) in COMMANDS {
        let script = format!(
            "{} completions bash | head -c 1 > /dev/null; exit ${{PIPESTATUS[0]}}",
            program(name).unwrap().display()
        );
        let output = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn benchmarks_explain_themselves_and_refuse_what_they_do_not_know() {
    let help = help("benchmarks", "", "80");
    for option in ["--out", "--runs", "--criterion", "--only", "--insee"] {
        assert!(help.contains(option), "{option}: {help}");
    }
    assert!(help.contains("benchmarks --only goal"), "{help}");
    for (arguments, reason) in [
        (&["--runs", "0"][..], "a number from 1 on is needed"),
        (&["--runs", "few"], "a number from 1 on is needed"),
        (&["--fast"], "--fast"),
        (&["--only", "no-such-benchmark"], "no benchmark has that in its name"),
    ] {
        let output = Command::new(program("benchmarks").unwrap()).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(reason), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
