//! The systemd units: what systemd itself says of them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use test_support::skip;

fn units(more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hadoptic")).arg("units").args(more).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn options_reach_the_command_line_as_they_were_given() {
    let text = units(&["--disk-limit", "20GiB", "--conf-dir", "/etc/my hadoop", "--sniffer-option=--port=9$9%"]);
    let line = text.lines().find(|line| line.starts_with("ExecStart=") && line.contains("bin/sniffer")).unwrap();
    assert_eq!(
        line,
        "ExecStart=/opt/hadoptic/bin/sniffer run --out /var/lib/hadoptic/capture/%H --follow --hadoop-conf \"/etc/my hadoop\" \
         --jvm-records /var/lib/hadoptic/capture/jvm --disk-limit=13421772800 --when-full=drop-oldest --port=9$$9%%"
    );
}

#[test]
fn an_agent_of_its_own_user_gives_way_to_hadoop_where_memory_is_short() {
    let text = units(&["--sniffer-option=--hold-memory=256MiB"]);
    for line in ["User=hadoptic", "OOMScoreAdjust=500", "ProtectSystem=strict", "NoNewPrivileges=yes"] {
        assert_eq!(text.lines().filter(|other| *other == line).count(), 2, "{line}: {text}");
    }
    assert!(text.contains("MemoryMax=1280M\n") && text.contains("MemoryMax=256M\n"), "{text}");
    let capabilities = |program: &str| {
        let unit = text.split("# /etc/systemd/system/").find(|unit| unit.contains(program)).unwrap();
        unit.lines().find(|line| line.starts_with("AmbientCapabilities=")).unwrap().to_owned()
    };
    assert!(
        !capabilities("bin/sniffer").contains("DAC") && !capabilities("bin/sniffer").contains("SYS_ADMIN"),
        "{text}"
    );
    let text = units(&["--run-as", "root"]);
    assert!(!text.contains("User=") && text.contains("--user root"), "{text}");
}

#[test]
fn those_of_a_package_need_nothing_that_it_does_not_bring() {
    let text = units(&["--packaged"]);
    assert!(!text.contains("/opt/hadoptic") && !text.contains("User=") && !text.contains("append:"), "{text}");
    for name in ["sniffer", "dumpingd"] {
        let line = format!("ExecStart=/usr/bin/{name} run --out /var/lib/hadoptic/capture/%H --user root");
        assert_eq!(text.matches(&line).count(), 1, "{text}");
    }
    assert_eq!(text.matches("\nStateDirectory=hadoptic/capture/%H\n").count(), 2, "{text}");
    let folder = tempfile::tempdir().unwrap();
    assert!(units(&["--packaged", "--out", folder.path().to_str().unwrap()]).is_empty());
    let unit = fs::read_to_string(folder.path().join("hadoptic-sniffer.service")).unwrap();
    assert!(unit.starts_with("[Unit]\n") && text.contains(&unit), "{unit}");
}

#[test]
fn systemd_finds_no_fault_with_them() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip!("no systemd-analyze");
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("p");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    for name in ["sniffer", "dumpingd"] {
        let program = prefix.join("bin").join(name);
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for user in ["root", "daemon"] {
        let text = units(&["--prefix", prefix.to_str().unwrap(), "--run-as", user]);
        for part in text.split("# /etc/systemd/system/").skip(1) {
            let (name, unit) = part.split_once('\n').unwrap();
            let file = folder.path().join(name);
            fs::write(&file, unit).unwrap();
            let output =
                Command::new("systemd-analyze").args(["verify", "--recursive-errors=no"]).arg(&file).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let ours: Vec<&str> = said.lines().filter(|line| line.contains("hadoptic")).collect();
            assert!(ours.is_empty(), "{ours:?}");
        }
    }
}
