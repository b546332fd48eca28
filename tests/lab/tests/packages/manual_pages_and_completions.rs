//! Each page names all that `--help` does, and is read without a warning; each completion is a script of its shell.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::{skip_if, skipped};

use super::{PROGRAMS, built, done, is_there, not_built, text};

/// Options at the beginnings of lines of a help text.
fn options(help: &str) -> BTreeSet<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    lines.flat_map(|line| line.split([' ', ',', '='])).filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

fn subcommands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").collect()
}

fn examples(help: &str) -> Vec<&str> {
    let mut sections = help.split("\n\n").skip_while(|part| !part.starts_with("Example"));
    sections.next().into_iter().flat_map(|part| part.lines().skip(1)).map(str::trim).collect()
}

/// A page as it is read: `\-` is a hyphen that can be copied.
fn page(folder: &Path, name: &str) -> String {
    let text = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
    text.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\")
}

#[test]
fn each_page_names_all_that_help_does() {
    skip_if!(not_built());
    let (mut pages, mut shown) = (0, 0);
    for program in PROGRAMS {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| done(Command::new(built().join(program)).args(arguments).env("COLUMNS", "500"));
        run(&["man", "--out", folder.path().to_str().unwrap()]);
        let help = run(&["--help"]);
        let of_program = page(folder.path(), program);
        assert_eq!(of_program, run(&["man"]).replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\"));
        let names = subcommands(&help);
        assert!(names.len() >= 3, "{program}: {names:?}");
        for name in &names {
            assert!(of_program.contains(&format!("{program}-{name}(1)")), "{program} {name}");
            let (help, page) = (run(&[name, "--help"]), page(folder.path(), &format!("{program}-{name}")));
            let options = options(&help);
            assert!(options.contains("--help"), "{program} {name}: {help}");
            for option in options {
                assert!(page.contains(option), "{program} {name} {option}");
            }
            for example in examples(&help) {
                assert!(page.contains(example), "{program} {name}: {example}\n{page}");
                shown += 1;
            }
            assert!(*name == "completions" || page.contains(".SH EXAMPLES\n"), "{program} {name}: no examples");
        }
        pages += names.len() + 1;
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len() + 1, "{program}");
    }
    assert!(pages > 35 && shown > 60, "{pages} pages, {shown} lines of examples");
}

#[test]
fn each_page_is_read_without_a_warning() {
    skip_if!(not_built());
    let (man, groff) = (is_there("man"), is_there("groff"));
    if !man || !groff {
        skipped("a reader of manual pages that warns: no man, or no groff");
    }
    let folder = tempfile::tempdir().unwrap();
    for program in PROGRAMS {
        done(Command::new(built().join(program)).arg("man").arg("--out").arg(folder.path()));
    }
    // A reader that finds no fault with anything would find none here.
    let wrong = folder.path().join("wrong.1");
    fs::write(&wrong, ".TH wrong 1\n.SH NAME\nwrong \\- \\*[nothing]\n.nosuchrequest\n").unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mut faults = Vec::new();
        if man {
            let arguments = ["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"];
            let read = Command::new("man").args(arguments).arg(&path).env("MANROFFSEQ", "").output().unwrap();
            faults.push(String::from_utf8_lossy(&read.stderr).into_owned());
        }
        if groff {
            faults
                .push(text(&Command::new("groff").args(["-man", "-ww", "-Tutf8", "-z"]).arg(&path).output().unwrap()));
        }
        for fault in faults {
            assert_eq!(!fault.is_empty(), path == wrong, "{}: {fault}", path.display());
        }
    }
}

#[test]
fn each_completion_is_a_script_of_its_shell() {
    skip_if!(not_built());
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        if !is_there(shell) {
            skipped(format!("completions for {shell}: no {shell}"));
            continue;
        }
        for program in PROGRAMS {
            let script = done(Command::new(built().join(program)).args(["completions", shell]));
            let file = folder.path().join(program);
            fs::write(&file, &script).unwrap();
            done(Command::new(shell).arg("-n").arg(&file));
            assert!(script.contains("man") && script.contains("completions"), "{program} {shell}");
        }
    }
}
