//! `hadoptic check`: everything that install and start will need, looked at before anything is changed.

use crate::answer::HostAnswer;
use crate::clock::{self, Offset};
use crate::cluster::{Programs, reports, same_names};
use crate::edits::{self, AgentOption};
use crate::facts::{self, Facts};
use crate::fleet::Fleet;
use crate::places::Places;
use crate::report::{HostReport, Report, size};
use crate::scripts;
use crate::ssh::{Session, SshError};

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where things lie on the host.
    pub places: Places,
    /// Less room than this in the capture folder is a problem, bytes.
    pub need_free: u64,
    /// Clocks that differ by more are noted, nanoseconds.
    pub most_skew_ns: u64,
    /// Leave out the trial of the programs, for which they are copied there and taken away again.
    pub quick: bool,
}

struct HostFindings {
    facts: Facts,
    clock: Result<Offset, String>,
    tried: Option<HostAnswer>,
    sudo: bool,
    user: String,
}

/// Looks at all hosts.
pub fn check(fleet: &Fleet, settings: &Settings, programs: Option<&Programs>) -> Report {
    let seen = fleet.each("check", |session| look(session, settings, programs));
    let mut report = Report {
        command: "check",
        heads: vec!["name", "hadoop", "java", "machine", "free", "clock", "tracepoint", "installed"],
        ..Report::default()
    };
    report.hosts = reports(fleet, &seen, |seen| seen.facts.name.clone());
    report.problems = same_names(&report.hosts);
    for (host, seen) in report.hosts.iter_mut().zip(&seen) {
        if let Ok(seen) = seen {
            judge(host, seen, settings, programs);
        }
    }
    let mut versions: Vec<_> = seen.iter().flatten().filter_map(|seen| seen.facts.hadoop()).map(|(of, _)| of).collect();
    versions.dedup();
    if versions.len() > 1 {
        report.problems.push("the hosts have different versions of Hadoop: install each group by itself".to_owned());
    }
    if let (Some(programs), false) = (programs, settings.quick) {
        report.notes.push(format!("tried were {}", programs.described));
    }
    if let Some(spread) =
        spread(&seen.iter().flatten().filter_map(|seen| seen.clock.as_ref().ok().copied()).collect::<Vec<_>>())
    {
        report.notes.push(format!(
            "clocks differ by at most {} ms among these hosts; captures are aligned by their packets, so this needs no cure \
             unless it is seconds",
            spread / 1_000_000
        ));
    }
    report
}

fn look(session: &Session, settings: &Settings, programs: Option<&Programs>) -> Result<HostFindings, SshError> {
    let facts = Facts::ask(session, &settings.places)?;
    let clock = clock::offset(session).map_err(|error| error.to_string());
    let tried = match programs {
        Some(programs) if !settings.quick => Some(try_programs(session, settings, programs, &facts)?),
        _ => None,
    };
    Ok(HostFindings { facts, clock, tried, sudo: session.by_sudo(), user: session.user.clone() })
}

/// Copies the programs beside their later place, runs them, and takes them away.
fn try_programs(
    session: &Session,
    settings: &Settings,
    programs: &Programs,
    facts: &Facts,
) -> Result<HostAnswer, SshError> {
    let what = "try the programs";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let printed = session.run(what, &[("PREFIX", &settings.places.prefix)], &[], scripts::FIT)?;
    let answer = HostAnswer::parse("fit", &printed).map_err(failed)?;
    let folder = answer.value("folder").unwrap_or_default().to_owned();
    if !folder.contains("/.hadoptic-check.") {
        return Err(failed("the host named no folder".to_owned()));
    }
    let copied: Result<(), SshError> =
        programs.all().iter().try_for_each(|(name, bytes)| session.put(bytes, &format!("{folder}/{name}")));
    let variables = [("FOLDER", folder.as_str()), ("JAVA", facts.answer.value("java").unwrap_or_default())];
    // Also takes the folder away.
    let printed = session.run(what, &variables, &programs.sums(), scripts::TRY);
    copied?;
    HostAnswer::parse("try", &printed?).map_err(failed)
}

fn judge(host: &mut HostReport, seen: &HostFindings, settings: &Settings, programs: Option<&Programs>) {
    let facts = &seen.facts;
    let value = |key| facts.answer.value(key).unwrap_or_default();
    if value("system") != "Linux" {
        host.problem(format!("runs {}: the agents need Linux", value("system")));
    }
    for tool in ["sha256sum", "stat", "readlink", "head", "tail"] {
        if !facts.has_tool(tool) {
            host.problem(format!("has no {tool}: install coreutils"));
        }
    }
    for path in facts.answer.all("unwritable") {
        host.problem(format!("{path} cannot be written by root: is it mounted read-only, or immutable (lsattr)?"));
    }
    for path in facts.answer.all("open_place") {
        host.problem(format!(
            "others than root can write on the way to {path}: choose another --prefix or --capture-dir, or chmod go-w its folders"
        ));
    }
    for path in facts.answer.all("unsafe").chain(facts.answer.all("large")) {
        host.problem(format!(
            "{path} was left alone: several users can change what stands on the way there, or it is larger than any configuration"
        ));
    }
    let java = value("java_version").to_owned();
    if value("java").is_empty() {
        host.problem("no Java was found: set JAVA_HOME in hadoop-env.sh to an absolute path, or name one with --java");
    }
    for java in facts.answer.all("java_refused") {
        host.notes.push(format!("{java} was not run: more than one user can change it or what it loads"));
    }
    if !matches!(value("java_keeper"), "" | "0") {
        host.notes.push(format!(
            "{} can be changed by user {}, and was run with his rights only: no class is patched beforehand there",
            value("java"),
            value("java_keeper")
        ));
    }
    let hadoop = facts.hadoop();
    if facts.conf.is_none() {
        host.problem("Hadoop's configuration was not found: name it with --conf-dir");
    }
    match (settings.places.generation.or(hadoop.as_ref().map(|(generation, _)| *generation)), &facts.conf) {
        (None, _) => host
            .problem("which version of Hadoop this is could not be found out: say it with --hadoop-version 1, 2 or 3"),
        (Some(generation), Some(_)) => {
            let (jar, folder) = (settings.places.jar(), settings.places.jvm_dir());
            let option =
                AgentOption { agent: format!("-javaagent:{jar}=out={folder}"), launcher: settings.places.launcher() };
            if let Err(problem) = edits::install(facts, generation, &option, true) {
                host.problem(problem);
            }
        }
        (Some(_), None) => {}
    }
    let free = facts.answer.numbers("disk").first().copied().unwrap_or(0) * 1024;
    if free < settings.need_free {
        host.problem(format!(
            "{} are free where {} will lie, {} are wanted: choose another --capture-dir, or say --need-free",
            size(free),
            settings.places.capture_dir,
            size(settings.need_free)
        ));
    }
    let tracepoint = value("tracepoint");
    if tracepoint == "no" {
        host.notes.push(
            "the kernel's tracepoint of TCP states is not there: connections that end between two scans have an owner only \
             where one end listens or a JVM tells of them"
                .to_owned(),
        );
    }
    let clock = judge_clock(host, &seen.clock, settings);
    if let (Some(tried), Some(_)) = (&seen.tried, programs) {
        for wrong in tried.all("wrong") {
            host.problem(format!("{wrong} did not arrive as it was sent"));
        }
        for bad in tried.all("bad") {
            host.problem(format!(
                "does not run there: {bad}; bring static ones built for {} (`make static`, then --programs target/static)",
                value("machine")
            ));
        }
        for left in tried.all("left") {
            host.problem(format!("{left}, in which the programs were tried, could not be removed again"));
        }
        host.fact("sniffer", tried.value("sniffer"));
        host.fact("dumpingd", tried.value("dumpingd"));
        host.fact("jar_loads", tried.value("loads") == Some("yes"));
    }
    if seen.sudo {
        host.notes.push(format!("{} becomes root by sudo", seen.user));
    }
    let without = facts::without_agent(&facts.jvms);
    if !without.is_empty() {
        host.notes.push(format!("runs without the agent: {}", without.join(", ")));
    }
    let installed = facts.installed.as_ref().map_or_else(String::new, |installed| installed.program.clone());
    host.cells = vec![
        facts.name.clone(),
        hadoop.as_ref().map(|(_, version)| version.clone()).unwrap_or_default(),
        java.split('"').nth(1).unwrap_or(&java).to_owned(),
        value("machine").to_owned(),
        size(free),
        clock,
        tracepoint.to_owned(),
        if installed.is_empty() { "no".to_owned() } else { installed.clone() },
    ];
    host.fact("machine", value("machine"));
    host.fact("kernel", value("kernel"));
    host.fact("libc", value("libc"));
    host.fact("java", value("java"));
    host.fact("java_version", &java);
    host.fact("hadoop", hadoop.map(|(_, version)| version));
    host.fact("conf_dir", &facts.conf);
    host.fact("free_bytes", free);
    host.fact("tracepoint", tracepoint);
    host.fact("installed", &installed);
    host.fact("clock", seen.clock.as_ref().ok());
    host.fact("jvms", &facts.jvms);
}

fn judge_clock(host: &mut HostReport, clock: &Result<Offset, String>, settings: &Settings) -> String {
    match clock {
        Ok(clock) => {
            let least = clock.offset_ns.unsigned_abs().saturating_sub(clock.uncertainty_ns.unsigned_abs());
            if least > settings.most_skew_ns {
                host.notes.push(format!(
                    "its clock is {} from this machine's: let NTP or chrony set it before long recordings",
                    offset(*clock)
                ));
            }
            offset(*clock)
        }
        Err(reason) => {
            host.notes.push(format!("its clock could not be compared: {reason}"));
            "?".to_owned()
        }
    }
}

/// "+1.2 ms ± 0.3 ms".
#[must_use]
pub fn offset(clock: Offset) -> String {
    let tenth = |ns: i64| (ns + ns.signum() * 50_000) / 100_000;
    let (offset, sure) = (tenth(clock.offset_ns), tenth(clock.uncertainty_ns).max(1));
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{sign}{}.{} ms ± {}.{} ms", offset.abs() / 10, offset.abs() % 10, sure / 10, sure % 10)
}

fn spread(clocks: &[Offset]) -> Option<u64> {
    let most = clocks.iter().map(|clock| clock.offset_ns + clock.uncertainty_ns).max()?;
    let least = clocks.iter().map(|clock| clock.offset_ns - clock.uncertainty_ns).min()?;
    (clocks.len() > 1).then(|| most.abs_diff(least))
}
