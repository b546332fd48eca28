//! What an ordinary user of a host may try: with processes, links, pipes and files of his own. Nothing of his is run, followed
//! or believed by root, and nobody else loses anything.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::support::{Kind, Rig, differ, missing, problems, sh, wait_until};
use test_support::skip_if;

/// Somebody without any right.
const USER: u32 = 65534;

/// A command of his on a host.
fn as_user(rig: &Rig, command: &str) -> Child {
    let quoted = command.replace('\'', "'\\''");
    let command = format!("cd /; exec setpriv --reuid={USER} --regid={USER} --clear-groups sh -c '{quoted}'");
    rig.enter("h1", &command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn end(mut child: Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

/// A folder of his with a program `bin/java` in it, which writes down by whom it was run.
fn own_java(rig: &Rig) -> Result<(), &'static str> {
    let home = rig.of("h1").join("home");
    fs::create_dir_all(home.join("bin")).unwrap();
    let source = rig.path("java.c");
    let seen = rig.there("home/seen");
    fs::write(
        &source,
        format!(
            "#include <stdio.h>\n#include <unistd.h>\nint main(int n, char **words) {{ FILE *f = fopen(\"{seen}\", \"a\");\n\
             fprintf(f, \"%d\\n\", (int)geteuid()); fclose(f); if (n > 3) sleep(600); return 0; }}\n"
        ),
    )
    .unwrap();
    let made = std::process::Command::new("cc").arg("-o").arg(home.join("bin/java")).arg(&source).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("no C compiler");
    }
    fs::write(home.join("seen"), "").unwrap();
    sh(&format!("chown -R {USER}:{USER} {0}; chmod 666 {0}/seen", home.display()));
    Ok(())
}

/// Users by whom the program was run.
fn run_by(rig: &Rig) -> Vec<String> {
    let seen = fs::read_to_string(rig.of("h1").join("home/seen")).unwrap();
    seen.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_process_that_calls_itself_a_daemon_has_nothing_run_as_root() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    skip_if!(own_java(&rig).err());
    let java = rig.there("home/bin/java");
    let daemon = as_user(&rig, &format!("exec {java} -cp x org.apache.hadoop.hdfs.server.datanode.DataNode"));
    wait_until("it runs", || !run_by(&rig).is_empty());
    rig.run("check", &[]);
    let by = run_by(&rig);
    assert!(by.iter().all(|uid| *uid == USER.to_string()), "check had his program run by {by:?}");
    rig.ok("install", &[]);
    rig.ok("start", &[]);
    // Into it the agent is loaded with his rights, if he lets it.
    rig.run("start", &["--attach"]);
    rig.ok("status", &[]);
    rig.ok("remove", &[]);
    let by = run_by(&rig);
    assert!(by.iter().all(|uid| *uid == USER.to_string()), "his program was run by {by:?}");
    end(daemon);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_java_that_others_can_change_runs_with_their_rights() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    skip_if!(own_java(&rig).err());
    let conf = rig.of("h1").join("conf/hadoop-env.sh");
    let home = rig.there("home");
    fs::write(&conf, format!("export HADOOP_OS_TYPE=${{HADOOP_OS_TYPE:-$(uname -s)}}\nexport JAVA_HOME={home}\n"))
        .unwrap();
    let report = rig.wrong("check", &[]);
    assert!(problems(&report).contains("does not load the agent"), "{report:#}");
    assert!(report["hosts"][0]["notes"].to_string().contains(&format!("can be changed by user {USER}")), "{report:#}");
    rig.wrong("install", &[]);
    let by = run_by(&rig);
    assert!(!by.is_empty() && by.iter().all(|uid| *uid == USER.to_string()), "it was run by {by:?}");
    // The operator names one that root alone can change.
    let java = fs::canonicalize("/usr/bin/java").unwrap();
    rig.ok("install", &["--java", java.to_str().unwrap()]);
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn agents_that_another_user_has_started_are_not_taken_for_ours() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let (capture, elsewhere) = (rig.there("cap/h1"), rig.there("elsewhere"));
    sh(&format!("mkdir -m 777 {}", rig.of("h1").join("elsewhere").display()));
    let program = rig.there("opt/hadoptic/bin/dumpingd");
    let own = as_user(&rig, &format!("exec {program} run --out {elsewhere}/h1"));
    wait_until("his runs", || rig.of("h1").join("elsewhere/h1/dumpingd.json").exists());
    // He says so where agents are looked for, if he can.
    let line = format!(
        "set -- $(sed 's/.*) //' /proc/{0}/stat); echo \"dumpingd {0} ${{20}} 1\" >{capture}/agents.lock",
        own.id()
    );
    as_user(&rig, &line).wait().unwrap();
    let report = rig.ok("start", &[]);
    assert_ne!(report["hosts"][0]["dumpingd"].as_u64(), Some(u64::from(own.id())), "{report:#}");
    let report = rig.ok("stop", &[]);
    assert_eq!(report["hosts"][0]["ran"], true);
    end(own);
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn links_in_a_configuration_folder_of_another_user_lead_root_nowhere() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    let (conf, victim, secret) = (rig.there("conf"), rig.there("victim"), rig.there("secret"));
    let with_version = ["--hadoop-version", "3"];
    let of = |name: &str| rig.of("h1").join(name);
    fs::write(of("victim"), "root's").unwrap();
    fs::write(of("secret"), "# root's secret\n").unwrap();
    sh(&format!("chmod 600 {}; chown -R {USER}:{USER} {}", of("secret").display(), of("conf").display()));
    // He plants his link again and again: the file that is laid beside is his to replace at any moment.
    let planting = as_user(&rig, &format!("while :; do ln -sfn {victim} {conf}/hadoop-env.sh.hadoptic-new; done"));
    rig.run("install", &["--timeout", "60"]);
    assert_eq!(fs::read_to_string(of("victim")).unwrap(), "root's");
    end(planting);
    rig.run("remove", &[]);
    assert_eq!(fs::read_to_string(of("victim")).unwrap(), "root's");

    // What root alone may read is not read for him.
    let quiet = "rm -rf hadoop-env.sh* && cp /etc/hostname hadoop-env.sh";
    as_user(&rig, &format!("cd {conf} && {quiet} && ln -sfn {secret} yarn-env.sh")).wait().unwrap();
    rig.run("install", &with_version);
    rig.run("remove", &[]);
    assert_eq!(fs::read_to_string(of("secret")).unwrap(), "# root's secret\n");
    let conf_files = fs::read_dir(of("conf")).unwrap().map(|entry| entry.unwrap().path());
    let regular = conf_files.filter(|path| fs::symlink_metadata(path).unwrap().is_file());
    for path in regular {
        assert!(!fs::read_to_string(&path).unwrap().contains("secret"), "{}", path.display());
    }

    // A folder of his without tricks is worked in as he does himself.
    as_user(&rig, &format!("cd {conf} && rm -f yarn-env.sh")).wait().unwrap();
    let before = rig.tree("h1");
    rig.ok("install", &with_version);
    assert!(fs::read_to_string(of("conf/hadoop-env.sh")).unwrap().contains("# >>> hadoptic"));
    assert_eq!(fs::metadata(of("conf/mapred-site.xml")).unwrap().uid(), USER);
    rig.ok("remove", &[]);
    assert_eq!(differ(&[before], &[rig.tree("h1")]), [""; 0], "nothing is left");
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_manifest_without_end_or_in_place_of_which_there_is_a_pipe_holds_nobody_up() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let manifest = rig.of("h1").join("cap/h1/sniffer.json").display().to_string();
    for plant in ["truncate -s 3G", "mkfifo", "ln -s /dev/zero"] {
        sh(&format!("rm -f {manifest}; {plant} {manifest}"));
        for command in ["status", "stop"] {
            let report = rig.run(command, &["--timeout", "30"]).1;
            assert!(!problems(&report).contains("no answer within"), "{plant}, {command}: {report:#}");
        }
    }
    sh(&format!("rm -f {manifest}"));
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn an_answer_without_end_is_cut_off() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    let fake = rig.path("uname");
    fs::write(
        &fake,
        "#!/bin/sh\n[ \"$1\" = -r ] || exec /usr/bin/uname \"$@\"\nhead -c 100000000 /dev/zero | tr '\\0' x\n",
    )
    .unwrap();
    let mount = "mount -t tmpfs tmpfs /usr/local; mkdir /usr/local/bin; install -m 755";
    rig.on("h1", &format!("{mount} {} /usr/local/bin/uname", fake.display()));
    let report = rig.wrong("check", &["--quick"]);
    assert!(
        problems(&report).contains("the host's answer is longer than"),
        "{}",
        report["hosts"][0]["problems"].to_string().len()
    );
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_sparse_file_of_a_user_stays_where_it_is_and_takes_nothing_from_others() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let shared = rig.of("h1").join("cap/jvm");
    // Where an earlier version has no folder for it, he writes into the one that is open to all.
    let folder = if shared.is_dir() { rig.there("cap/jvm") + "/65534" } else { rig.there("cap/h1") };
    let write = format!(
        "umask 027; mkdir {folder}; cd {folder} && echo '{{}}' >jvm-2-2.jsonl && chmod 640 *; truncate -s 3G jvm-1-1.jsonl"
    );
    as_user(&rig, &write).wait().unwrap();
    let out = rig.path("capture");
    let report = rig.wrong("collect", &["--out", out.to_str().unwrap()]);
    assert!(
        problems(&report).contains("1 files of user 65534 (3072 MiB) are more than is fetched of one"),
        "{report:#}"
    );
    assert_eq!(fs::read_to_string(out.join("h1/jvm/65534/jvm-2-2.jsonl")).unwrap(), "{}\n");
    assert!(!out.join("h1/jvm/65534/jvm-1-1.jsonl").exists());
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn of_thousands_of_folders_that_a_user_makes_ten_are_his_and_the_others_nobodys() {
    const FLOOD: u64 = 5_000;
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let made = as_user(
        &rig,
        &format!(
            "umask 027; cd {} && seq -f {USER}.%.0f {FLOOD} | xargs mkdir && seq -f 70%06.0f {FLOOD} | xargs mkdir && mkdir {USER} && \
             for folder in {USER}*; do echo '{{}}' >$folder/jvm-1-1.jsonl || exit 1; done",
            rig.there("cap/jvm")
        ),
    )
    .wait()
    .unwrap();
    assert!(made.success());
    let roots = rig.of("h1").join("cap/jvm/0");
    sh(&format!("mkdir -p {0}; chmod 2750 {0}; echo '{{}}' >{0}/jvm-9-9.jsonl", roots.display()));
    let his: Vec<String> = [USER.to_string()].into_iter().chain((1..=9).map(|n| format!("{USER}.{n}"))).collect();
    let nobodys = 2 * FLOOD + 1 - his.len() as u64;

    let (_, report) = rig.run("status", &[]);
    assert_eq!(report["hosts"][0]["odd"], nobodys, "{report:#}");
    let out = rig.path("capture");
    let report = rig.ok("collect", &["--out", out.to_str().unwrap()]);
    assert_eq!(report["hosts"][0]["odd"], nobodys, "{report:#}");
    let entries = fs::read_dir(out.join("h1/jvm")).unwrap();
    let mut fetched: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    fetched.sort();
    assert_eq!(fetched, [vec!["0".to_owned()], his].concat());
    assert_eq!(fs::read_to_string(out.join("h1/jvm/0/jvm-9-9.jsonl")).unwrap(), "{}\n");
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_file_that_becomes_a_link_or_a_pipe_while_it_is_fetched_discloses_nothing() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let (folder, secret) = (rig.there("cap/jvm/65534"), rig.there("secret"));
    fs::write(rig.of("h1").join("secret"), "root's secret\n").unwrap();
    sh(&format!("chmod 600 {}", rig.of("h1").join("secret").display()));
    let turning = as_user(
        &rig,
        &format!(
            "umask 027; mkdir {folder}; cd {folder}; while :; do echo 'his own words' >new; mv -f new jvm-1-1.jsonl; \
             ln -s {secret} new; mv -f new jvm-1-1.jsonl; mkfifo new; mv -f new jvm-1-1.jsonl; done"
        ),
    );
    for number in 0..6 {
        let out = rig.path(&format!("capture-{number}"));
        let (code, _) = rig.run("collect", &["--out", out.to_str().unwrap(), "--timeout", "60"]);
        assert!(code == 0 || code == 1);
        let fetched = fs::read_to_string(out.join("h1/jvm/65534/jvm-1-1.jsonl")).unwrap_or_default();
        assert!(!fetched.contains("secret"), "{fetched}");
    }
    end(turning);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn two_who_change_a_host_at_a_time_do_not_meet() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    // The first is held up in the middle: its `sync` waits for a file.
    let go_on = rig.path("go-on");
    let fake = rig.path("sync");
    fs::write(&fake, format!("#!/bin/sh\n: >{0}.waits; while [ ! -e {0} ]; do sleep 0.1; done\n", go_on.display()))
        .unwrap();
    let mount = "mount -t tmpfs tmpfs /usr/local; mkdir /usr/local/bin; install -m 755";
    rig.on("h1", &format!("{mount} {} /usr/local/bin/sync", fake.display()));
    let mut first = rig.command("install", &["--json"]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the first is in the middle", || Path::new(&format!("{}.waits", go_on.display())).exists());
    for command in ["install", "start", "remove"] {
        let report = rig.wrong(command, &[]);
        assert!(problems(&report).contains("another one changes this host (hadoptic install, process"), "{report:#}");
    }
    fs::write(&go_on, "").unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(0));
    rig.ok("remove", &[]);
}

/// Mode and owner.
fn mode_of(rig: &Rig, path: &str) -> (u32, u32) {
    let about = fs::symlink_metadata(rig.of("h1").join(path)).unwrap();
    (about.permissions().mode() & 0o7777, about.uid())
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn folders_are_whose_files_they_hold_and_the_user_of_the_agents_goes_with_them() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    let users = || ["passwd", "group"].map(|name| fs::read_to_string(rig.etc("h1", name)).unwrap());
    let before = users();
    rig.ok("install", &[]);
    let service = users()[0].lines().find(|line| line.starts_with("hadoptic:")).unwrap().to_owned();
    let fields: Vec<&str> = service.split(':').collect();
    let uid: u32 = fields[2].parse().unwrap();
    assert!(fields[6].ends_with("nologin") && uid != 0, "{service}");
    assert_eq!(mode_of(&rig, "cap"), (0o755, 0));
    assert_eq!(mode_of(&rig, "cap/h1"), (0o750, uid));
    assert_eq!(mode_of(&rig, "cap/jvm"), (0o3777, 0));
    let report = rig.ok("start", &[]);
    for agent in ["sniffer", "dumpingd"] {
        let process = format!("/proc/{}", report["hosts"][0][agent]);
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        assert!(status.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{status}");
        assert_eq!(fs::read_to_string(format!("{process}/oom_score_adj")).unwrap().trim(), "500");
    }
    // A user has a place for his records, and none among the agents' files.
    let mine = as_user(
        &rig,
        &format!("mkdir {0}/jvm/65534 && ! ls {0}/h1 && ! mkdir {0}/h2 && : >{0}/done", rig.there("cap")),
    );
    assert!(!mine.wait_with_output().unwrap().status.success());
    assert_eq!(mode_of(&rig, "cap/jvm/65534").1, USER);
    assert!(!rig.of("h1").join("cap/h2").exists() && !rig.of("h1").join("cap/done").exists());
    rig.ok("remove", &[]);
    assert_eq!(users(), before);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn what_an_earlier_version_left_open_to_all_is_locked_and_can_be_collected() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    sh(&format!(
        "mkdir -m 1777 {0}; mkdir -m 1777 {0}/h1; cd {0}/h1; echo packets >packets-lo.hpk; chmod 600 packets-lo.hpk; \
         echo '{{}}' >jvm-1-1.jsonl; chmod 600 jvm-1-1.jsonl; mkfifo sniffer.json; echo >packets-planted.hpk; \
         chown {USER}:{USER} jvm-1-1.jsonl sniffer.json packets-planted.hpk; ln /etc/hostname packets-x.hpk || true",
        rig.of("h1").join("cap").display()
    ));
    let victim = fs::metadata("/etc/hostname").unwrap().uid();
    rig.ok("install", &[]);
    assert_eq!(mode_of(&rig, "cap/h1").0, 0o750);
    let out = rig.path("capture");
    rig.ok("collect", &["--out", out.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(out.join("h1/packets-lo.hpk")).unwrap(), "packets\n");
    assert_eq!(fs::read_to_string(out.join("h1/jvm/65534/jvm-1-1.jsonl")).unwrap(), "{}\n");
    assert!(!out.join("h1/packets-planted.hpk").exists() && !out.join("h1/packets-x.hpk").exists());
    assert_eq!(fs::metadata("/etc/hostname").unwrap().uid(), victim);
    // The agents of this version begin in it.
    fs::remove_file(rig.of("h1").join("cap/h1/packets-lo.hpk")).unwrap();
    rig.ok("start", &[]);
    rig.ok("stop", &[]);
    rig.ok("remove", &[]);
}

#[test]
#[ignore = "needs root: hosts in namespaces, with an sshd each"]
fn a_jar_that_is_missing_or_damaged_ends_no_jvm_and_is_said_once() {
    skip_if!(missing(Kind::Plain));
    let rig = Rig::new(1, "3");
    rig.ok("install", &[]);
    let site = fs::read_to_string(rig.of("h1").join("conf/mapred-site.xml")).unwrap();
    let value = site.lines().find(|line| line.contains("<value>-Djava.net")).unwrap().trim();
    let options = value.trim_start_matches("<value>").trim_end_matches("</value>");
    // A daemon, and a task as YARN's launch_container.sh starts it.
    let daemon = format!(". {}/hadoop-env.sh; exec java ${{HDFS_DATANODE_OPTS-}} -version", rig.there("conf"));
    let task = format!("exec /bin/bash -c \"java {options} -version\"");
    let run = |command: &str| {
        let output = rig.on("h1", command);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let records = || {
        fs::read_dir(rig.of("h1").join("cap/jvm/0")).map_or(0, |entries| {
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("jvm-")).count()
        })
    };
    assert!(run(&daemon).0 && run(&task).0);
    assert_eq!(records(), 2, "both have the agent");
    let jar = rig.of("h1").join("opt/hadoptic/lib/hadoptic-agent.jar");
    let whole = fs::read(&jar).unwrap();
    for damage in [Some(whole[..whole.len() / 2].to_vec()), None] {
        match &damage {
            Some(half) => fs::write(&jar, half).unwrap(),
            None => fs::remove_file(&jar).unwrap(),
        }
        for command in [&daemon, &task] {
            let (well, said) = run(command);
            assert!(well, "{said}");
        }
        assert_eq!(records(), 2, "without the agent");
    }
    let said = [run(&daemon).1, run(&task).1].concat();
    assert!(!said.contains("hadoptic"), "it was said before: {said}");
    let report = rig.wrong("status", &[]);
    assert!(problems(&report).contains("the jar is missing"), "{report:#}");
    assert_eq!(report["hosts"][0]["without_jar"], serde_json::json!(["0"]), "{report:#}");
    // Repaired, it is loaded again.
    rig.ok("install", &[]);
    assert!(run(&task).0);
    assert_eq!(records(), 3);
    // Without the program that asks, too.
    rig.ok("remove", &["--keep-captures"]);
    assert!(run(&daemon).0 && run(&task).0);
}
