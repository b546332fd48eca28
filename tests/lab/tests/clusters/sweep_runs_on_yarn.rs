//! Containers of YARN's distributed shell on a real cluster: a sweep of a recorded job, as docs/replay.md has it, of which they
//! leave what one process leaves; and digests of what their hosts recorded, as docs/digests.md has it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::recording::{answer, built, tables};

const PREFIX: &str = "tyarn";
const CONTAINERS: usize = 3;

#[test]
#[ignore = "needs root: hosts in namespaces"]
fn parts_of_a_sweep_are_containers() {
    let _turn = crate::common::turn();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    // Containers run as the cluster's user, and see the machine's files.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let capture = repository.join("tests/golden/terasort");
    answer("merger", &["build", capture.to_str().unwrap(), "--out", &path("trace")]);
    let jar = distributed_shell(folder.path());
    let sweep = repository.join("replay/experiments/sweeps/host-links.toml");
    let sweep = sweep.to_str().unwrap();
    let script = format!(
        "#!/bin/sh\nexec {} run {sweep} --trace {} --out {} --threads 1 --part $((YARN_SHELL_ID - 1))/{CONTAINERS}\n",
        built("replay").display(),
        path("trace"),
        path("results"),
    );
    fs::write(path("part.sh"), script).unwrap();

    let arguments = format!("up --prefix {PREFIX} --workers 2 --links unshaped --uplink unshaped");
    let (mut child, said) = crate::common::start_until(&arguments, "a shell on a host");
    let inodes = crate::common::inodes_of(PREFIX);
    let work = crate::common::work_of(PREFIX);
    let client = format!(
        "hadoop jar {jar} org.apache.hadoop.yarn.applications.distributedshell.Client -jar {jar} -num_containers {CONTAINERS} \
         -master_memory 512 -container_memory 512 -shell_script {}",
        path("part.sh")
    );
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(work.join("ssh/config")).args(["m1", &client]).stdin(Stdio::null());
    let output = ssh.output().unwrap();
    let digested = digest_on_yarn(&work, &repository, &jar, folder.path());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    drop(said);
    child.wait().unwrap();
    assert_eq!(crate::common::traces(PREFIX, &inodes, Some(&work)), crate::common::Traces::default());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    digested.unwrap();
    let trace_of = |capture: &str| {
        for entry in fs::read_dir(repository.join("tests/golden/terasort/job")).unwrap() {
            let (entry, job) = (entry.unwrap(), folder.path().join(capture).join("job"));
            fs::create_dir_all(&job).unwrap();
            fs::copy(entry.path(), job.join(entry.file_name())).unwrap();
        }
        let out = path(&format!("{capture}.trace"));
        answer("merger", &["build", &path(capture), "--out", &out]);
        tables(Path::new(&out))
    };
    assert_eq!(trace_of("digests"), trace_of("recorded"));

    let trace = path("trace");
    let run = |out: &str, more: &[&str]| {
        let arguments = [&["run", sweep, "--trace", &trace, "--out", out, "--json"], more].concat();
        let mut summary = answer("replay", &arguments);
        for point in summary["points"].as_array_mut().unwrap() {
            // How long the replay itself took.
            point.as_object_mut().unwrap().remove("wall_s").unwrap();
        }
        summary
    };
    let gathered = run(&path("results"), &["--gather"]);
    assert_eq!(gathered["points"].as_array().unwrap().len(), 6, "{gathered:#}");
    assert_eq!(gathered, run(&path("at-once"), &[]));
}

/// Gives both workers what the golden terasort's recorded, as their agents would have left it, has YARN make digests of it, and
/// fetches them.
fn digest_on_yarn(work: &Path, repository: &Path, jar: &str, folder: &Path) -> Result<(), String> {
    let ssh = |host: &str, command: &str| {
        let mut ssh = Command::new("ssh");
        let output = ssh.arg("-F").arg(work.join("ssh/config")).args([host, command]).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if output.status.success() { Ok(said) } else { Err(format!("{host}: {command}: {said}")) }
    };
    let golden = repository.join("tests/golden/terasort");
    let golden = golden.display();
    for worker in ["w1", "w2"] {
        let (there, here) = ("/var/lib/hadoptic/capture", folder.join("recorded").join(worker));
        let layout = "mkdir -p \"$0/jvm/0\" && cp \"$1\"/* \"$0\" && mv \"$0\"/jvm-* \"$0/jvm/0\"";
        let make = Command::new("sh").args(["-ec", layout]).arg(&here).arg(format!("{golden}/{worker}")).status();
        assert!(make.is_ok_and(|status| status.success()));
        let here = here.display();
        ssh(worker, &format!("mkdir -p {there} && cp -r {here} {there} && mv {there}/{worker}/jvm {there}"))?;
    }
    let script = repository.join("hadoop-patches/deploy/yarn/digest-on-yarn.sh");
    let call = format!(
        "{} --jar {jar} --merger {} --hosts 2 --container-memory 1200 --hdfs /digests --out {}",
        script.display(),
        built("merger").display(),
        folder.join("digests").display()
    );
    ssh("m1", &call).map(drop)
}

/// The jar of YARN's distributed shell, from Maven Central.
fn distributed_shell(folder: &Path) -> String {
    let version = "3.4.2";
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "dependency:copy"]);
    maven.arg(format!("-Dartifact=org.apache.hadoop:hadoop-yarn-applications-distributedshell:{version}"));
    maven.arg(format!("-DoutputDirectory={}", folder.display())).current_dir(folder);
    let output = maven.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    format!("{}/hadoop-yarn-applications-distributedshell-{version}.jar", folder.display())
}
