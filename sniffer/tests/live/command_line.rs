//! The command line: what cannot run says why and how to go on, with exit code 2.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::support::copy_program;

const SNIFFER: &str = env!("CARGO_BIN_EXE_sniffer");

fn sniffer(arguments: &[&str]) -> Output {
    Command::new(SNIFFER).args(arguments).output().unwrap()
}

fn refusal(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    message
}

#[test]
fn help_and_completions_are_there() {
    for arguments in [["--help"].as_slice(), &["run", "--help"], &["completions", "bash"], &["interfaces", "--json"]] {
        let output = sniffer(arguments);
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    }
    let help = String::from_utf8(sniffer(&["run", "--help"]).stdout).unwrap();
    assert!(help.contains("128MiB") && help.contains("vlan"), "{help}");
    // An example a line, or several that end in a backslash.
    let examples: Vec<&str> = help.lines().skip_while(|line| *line != "Examples:").skip(1).collect();
    let begins = |line: &&&str| line.starts_with("  sniffer run --out ");
    assert!(examples.iter().filter(begins).count() >= 2, "{help}");
    for (line, next) in examples.iter().zip(examples.iter().skip(1)) {
        assert!(line.matches("sniffer run").count() <= 1 && line.len() <= 80, "{line}");
        assert_eq!(line.ends_with('\\'), next.starts_with("      "), "{line} {next}");
    }
}

#[test]
fn what_is_out_of_range_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("host");
    let out = out.to_str().unwrap();
    for (option, value, hint) in [
        ("--ring", "1KiB", "256KiB"),
        ("--ring", "much", "128MiB"),
        ("--snap-length", "10", "64"),
        ("--duration", "soon", "200ms"),
        ("--interface", "no-such-if", "no interface \"no-such-if\""),
    ] {
        let message = refusal(&sniffer(&["run", "--out", out, option, value]));
        assert!(message.contains(hint), "{option} {value}: {message}");
    }
    assert!(!std::path::Path::new(out).exists());
}

#[test]
#[ignore = "needs root: network namespaces and packets"]
fn a_filter_that_does_not_compile_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("host");
    let arguments = ["run", "--interface", "lo", "--ring", "1MiB", "--filter", "tpc", "--out", out.to_str().unwrap()];
    let message = refusal(&sniffer(&arguments));
    assert!(message.contains("\"tpc\"") && message.contains("pcap-filter"), "{message}");
    assert!(!out.exists());
}

#[test]
fn without_the_right_to_record_the_way_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("sniffer");
    copy_program(SNIFFER, &program);
    let mut command = Command::new(program);
    command.args(["run", "--interface", "lo", "--out"]).arg(folder.path().join("host"));
    if nix::unistd::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let message = refusal(&command.output().unwrap());
    assert!(message.contains("cap_net_raw"), "{message}");
    assert!(!folder.path().join("host").exists());
}

#[test]
fn showing_what_is_no_packet_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packets-eth0.hpk");
    let path = path.to_str().unwrap();
    let missing = refusal(&sniffer(&["show", path]));
    assert!(missing.contains(path), "{missing}");
    fs::write(path, "no packets").unwrap();
    let message = refusal(&sniffer(&["show", path, "--json"]));
    assert!(message.contains("not a packet file"), "{message}");
}
