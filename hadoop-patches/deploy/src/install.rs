//! `hadoptic install`: programs first, everywhere and verified; then the env files; `mapred-site.xml` last of all.

use std::collections::BTreeSet;

use trace::budget::Budget;

use crate::agents;
use crate::answer::HostAnswer;
use crate::change;
use crate::cluster::{Programs, reports, same_names};
use crate::edits::{self, AgentOption, Edit, Planned};
use crate::facts::{self, Facts};
use crate::fleet::{Fleet, Outcome};
use crate::installed::{FILE, Installed, StartedBy};
use crate::places::Places;
use crate::quote;
use crate::report::Report;
use crate::scripts;
use crate::ssh::{Session, SshError};
use crate::units;
use crate::versions::Generation;

/// What is to be installed, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where things lie on the host.
    pub places: Places,
    /// Whether shells and other clients get the agent too.
    pub clients: bool,
    /// Who starts the agents.
    pub started_by: StartedBy,
    /// As whom they go on once everything is open.
    pub run_as: String,
    /// The group that may start them, "" = that of `run_as`.
    pub group: String,
    /// What all that is recorded on a host may take, bytes; `None` = the programs' default, 0 = no limit.
    pub disk_limit: Option<u64>,
    /// What stays free on the file system, bytes; `None` = the programs' default, 0 = nothing.
    pub keep_free: Option<u64>,
    /// Record all TCP and not only Hadoop's.
    pub all_tcp: bool,
    /// More options of `sniffer run`.
    pub sniffer: Vec<String>,
    /// More options of `dumpingd run`.
    pub dumpingd: Vec<String>,
    /// Whether only the programs are brought, and no file of Hadoop is touched.
    pub programs_only: bool,
}

impl Settings {
    /// Whether who is not root shall start the programs.
    fn needs_capabilities(&self) -> bool {
        self.started_by == StartedBy::Daemons && (self.run_as != "root" || !self.group.is_empty())
    }

    /// The budget's share of a program, and what stays free, as options of it.
    fn limits(&self, share: impl Fn(&Budget) -> u64) -> Vec<String> {
        let share = |total_bytes| share(&Budget { total_bytes, keep_free_bytes: 0 });
        let limit = self.disk_limit.map(|bytes| format!("--disk-limit={}", share(bytes)));
        let free = self.keep_free.map(|bytes| format!("--keep-free={bytes}"));
        limit.into_iter().chain(free).collect()
    }

    /// Options of `sniffer run` on a host with this configuration of Hadoop's.
    fn sniffer_options(&self, conf: Option<&str>) -> Vec<String> {
        let mut options = Vec::new();
        if !self.all_tcp {
            options.push("--follow".to_owned());
            options.extend(conf.into_iter().flat_map(|conf| ["--hadoop-conf".to_owned(), conf.to_owned()]));
        }
        options.extend(["--jvm-records".to_owned(), self.places.jvm_dir()]);
        options.extend(self.limits(Budget::packets));
        options.push("--when-full=drop-oldest".to_owned());
        options.extend(self.sniffer.iter().cloned());
        options
    }

    /// Options of `dumpingd run`.
    fn dumpingd_options(&self) -> Vec<String> {
        [self.limits(Budget::sockets), self.dumpingd.clone()].concat()
    }

    /// What is remembered of an installation.
    #[must_use]
    pub fn installed(&self, generation: Generation, conf: Option<&str>) -> Installed {
        Installed {
            version: 1,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            prefix: self.places.prefix.clone(),
            capture_dir: self.places.capture_dir.clone(),
            conf_dir: conf.unwrap_or_default().to_owned(),
            generation,
            agent: agent_option(self),
            started_by: self.started_by,
            run_as: self.run_as.clone(),
            disk_limit: self.disk_limit,
            sniffer: self.sniffer_options(conf),
            dumpingd: self.dumpingd_options(),
            files: [].into(),
            edits: Vec::new(),
        }
    }
}

/// One host's plan.
#[derive(Clone)]
struct Plan {
    facts: Facts,
    generation: Generation,
    planned: Planned,
}

/// Of so many users of daemons a folder is made beforehand.
const MAX_DAEMON_USERS: usize = 32;

const UNTOUCHED: &str = "no env file and no mapred-site.xml was changed on any host; put this right and run install again, \
                         or leave the host out";

/// Installs on all hosts.
pub fn install(fleet: &Fleet, settings: &Settings, programs: &Programs) -> Report {
    let mut report =
        Report { command: "install", heads: vec!["hadoop", "configuration", "changed"], ..Report::default() };
    let locks = fleet.each("lock", |session| session.lock("install"));
    let plans = fleet.each_with("look", &locks, |session, lock| {
        agents::locked(lock)?;
        plan(session, settings)
    });
    report.hosts = reports(fleet, &plans, |plan| plan.facts.name.clone());
    report.problems = same_names(&report.hosts);
    for (host, plan) in report.hosts.iter_mut().zip(&plans) {
        let Ok(plan) = plan else { continue };
        let version =
            plan.facts.hadoop().map_or_else(|| plan.generation.name().to_owned() + ".x", |(_, version)| version);
        let changed: Vec<&str> = plan.planned.edits.iter().map(|edit| edit.name.as_str()).collect();
        host.fact("hadoop", &version);
        host.fact("conf_dir", &plan.facts.conf);
        host.fact("changed", &changed);
        let changed = if changed.is_empty() { "nothing: as it was".to_owned() } else { changed.join(" ") };
        host.cells = vec![version, plan.facts.conf.clone().unwrap_or_default(), changed];
    }
    let differ: Vec<_> = plans.iter().flatten().map(|plan| plan.generation).collect();
    if differ.windows(2).any(|pair| pair[0] != pair[1]) {
        report.problems.push("the hosts have different versions of Hadoop: install each group by itself".to_owned());
    }
    if stop::<()>(fleet, &mut report, &[], UNTOUCHED) {
        return report;
    }
    let plans: Vec<Plan> = plans.into_iter().filter_map(Result::ok).collect();
    // Everywhere the jar, before anything names it.
    let placed = fleet.each_with("programs", &plans, |session, plan| place(session, settings, programs, plan));
    if stop(fleet, &mut report, &placed, UNTOUCHED) {
        return report;
    }
    for (host, answer) in report.hosts.iter_mut().zip(placed.iter().flatten()) {
        host.fact("prepared_classes", answer.numbers("prepared").first());
        if let Some(reason) = answer.value("unprepared") {
            host.notes.push(format!("each JVM patches its classes itself, which costs it some 40 ms more: {reason}"));
        }
    }
    let edits: Vec<Vec<Edit>> = plans.iter().map(|plan| plan.planned.edits.clone()).collect();
    let staged = change::stage(fleet, &edits);
    if stop(fleet, &mut report, &staged, UNTOUCHED) {
        change::unstage(fleet, &edits);
        return report;
    }
    let written = fleet.each_with("remember", &plans, |session, plan| remember(session, settings, programs, plan));
    if stop(fleet, &mut report, &written, UNTOUCHED) {
        change::unstage(fleet, &edits);
        return report;
    }
    let [_, _, sum] = programs.sums();
    let jar = settings.places.jar();
    let set = change::commit(fleet, "env files", &edits, (&jar, &sum), |edit| !edit.is_of_tasks());
    if stop(fleet, &mut report, &set, "the env files are as they were; no mapred-site.xml was changed on any host") {
        report.problems.extend(change::undo(fleet, &edits, |edit| !edit.is_of_tasks()));
        change::unstage(fleet, &edits);
        return report;
    }
    // Once more: does every host have the jar still?
    let sure = change::commit(fleet, "verify", &edits, (&jar, &sum), |_| false);
    if stop(fleet, &mut report, &sure, "the env files are as they were; no mapred-site.xml was changed on any host") {
        report.problems.extend(change::undo(fleet, &edits, |edit| !edit.is_of_tasks()));
        change::unstage(fleet, &edits);
        return report;
    }
    let set = change::commit(fleet, "tasks", &edits, (&jar, &sum), Edit::is_of_tasks);
    if stop(fleet, &mut report, &set, "all files are as they were, as far as hosts can be reached") {
        report.problems.extend(change::undo(fleet, &edits, |_| true));
        change::unstage(fleet, &edits);
        return report;
    }
    report.notes.push(format!("brought were {}", programs.described));
    after(&mut report, settings, &plans);
    report
}

/// Puts failures into the report; whether there are any, or the user wants an end.
fn stop<T>(fleet: &Fleet, report: &mut Report, outcomes: &[Outcome<T>], consequence: &str) -> bool {
    for (host, outcome) in report.hosts.iter_mut().zip(outcomes) {
        if let Err(reason) = outcome {
            host.problem(reason.clone());
        }
    }
    if fleet.interrupted() {
        report.problems.push("interrupted".to_owned());
    }
    if report.ok() {
        return false;
    }
    report.problems.push(consequence.to_owned());
    true
}

fn plan(session: &Session, settings: &Settings) -> Result<Plan, SshError> {
    let what = "plan";
    let failed = |message: String| SshError::Failed { what: what.to_owned(), message };
    let facts = Facts::ask(session, &settings.places)?;
    let missing: Vec<&str> =
        ["sha256sum", "stat", "readlink", "head", "tail"].into_iter().filter(|tool| !facts.has_tool(tool)).collect();
    if !missing.is_empty() {
        return Err(failed(format!("the host lacks {}: install coreutils", missing.join(", "))));
    }
    if facts.conf.is_none() && !settings.programs_only {
        return Err(failed("Hadoop's configuration was not found: name it with --conf-dir".to_owned()));
    }
    if settings.started_by == StartedBy::Systemd && facts.answer.value("systemd").is_none() {
        return Err(failed("systemd does not run there: leave --systemd out".to_owned()));
    }
    if settings.needs_capabilities() && !(facts.has_tool("setcap") && facts.has_tool("setpriv")) {
        return Err(failed("--run-as and --group need setcap and setpriv there (libcap2-bin, util-linux)".to_owned()));
    }
    if let Some(path) = facts.answer.value("open_place") {
        return Err(failed(format!(
            "others than root can write on the way to {path}: choose another --prefix or --capture-dir, or chmod go-w its folders"
        )));
    }
    if let Some(path) = facts.answer.value("unsafe") {
        return Err(failed(format!(
            "{path}: several users can change what stands on the way there, so root writes nothing: chmod go-w its folders"
        )));
    }
    if let Some(path) = facts.answer.value("large") {
        return Err(failed(format!("{path} is larger than any configuration: look at it")));
    }
    if let Some(path) = facts.answer.value("unwritable") {
        return Err(failed(format!(
            "{path} cannot be written by root there: is it mounted read-only, or immutable (lsattr)?"
        )));
    }
    let generation = settings.places.generation.or_else(|| facts.hadoop().map(|(generation, _)| generation));
    let generation = generation.ok_or_else(|| {
        failed(
            "which version of Hadoop this is could not be found out: say it with --hadoop-version 1, 2 or 3".to_owned(),
        )
    })?;
    let option = AgentOption { agent: agent_option(settings), launcher: settings.places.launcher() };
    let planned = if settings.programs_only {
        Planned::default()
    } else {
        edits::install(&facts, generation, &option, settings.clients).map_err(failed)?
    };
    Ok(Plan { facts, generation, planned })
}

/// What JVMs get.
pub(crate) fn agent_option(settings: &Settings) -> String {
    let places = &settings.places;
    let mut option = format!("-javaagent:{}=out={}", places.jar(), places.jvm_dir());
    if settings.started_by == StartedBy::Daemons {
        let (prefix, capture) = (&places.prefix, &places.capture_dir);
        option.push_str(&format!(
            ",agents={capture}/%h,sniffer={prefix}/bin/start-sniffer,dumpingd={prefix}/bin/start-dumpingd"
        ));
    }
    let limits = [("limit", settings.disk_limit), ("keep_free", settings.keep_free)];
    for (name, bytes) in limits.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))) {
        option.push_str(&format!(",{name}={bytes}"));
    }
    option
}

/// Brings the programs, and has the host's Java patch Hadoop's classes beforehand.
fn place(session: &Session, settings: &Settings, programs: &Programs, plan: &Plan) -> Result<HostAnswer, SshError> {
    let (prefix, capture) = (settings.places.prefix.as_str(), settings.places.capture_dir.as_str());
    let what = "bring the programs";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let variables = [("PREFIX", prefix), ("CAPTURE", capture), ("SERVICE", settings.run_as.as_str())];
    let daemons = plan.facts.jvms.iter().filter(|jvm| jvm.is_daemon());
    let users: BTreeSet<String> = daemons.map(|jvm| jvm.user.clone()).filter(|user| is_plain(user)).collect();
    let users: Vec<String> = users.into_iter().take(MAX_DAEMON_USERS).collect();
    let printed = session.run(what, &variables, &users, scripts::PLACE_BEGIN)?;
    HostAnswer::parse("place_begin", &printed).map_err(failed)?;
    for (name, bytes) in programs.all() {
        session.put(bytes, &format!("{prefix}/new/{name}"))?;
    }
    let [sniffer, dumpingd, jar] = programs.sums();
    session.put(launcher(settings, &jar).as_bytes(), &format!("{prefix}/new/agent-option"))?;
    let group = match settings.group.as_str() {
        "" => group_of(session, &settings.run_as)?,
        group => group.to_owned(),
    };
    let java = plan.facts.answer.value("java").unwrap_or_default();
    if java.is_empty() {
        return Err(failed(
            "no Java was found that may be run: whether JVMs load the agent cannot be tried. Set JAVA_HOME in hadoop-env.sh, or \
             name one with --java"
                .to_owned(),
        ));
    }
    let variables = [
        ("PREFIX", prefix),
        ("CAPTURE", capture),
        ("GROUP", group.as_str()),
        ("CAPABILITIES", if settings.needs_capabilities() { "yes" } else { "no" }),
        ("JAVA", java),
        ("SUM_SNIFFER", sniffer.as_str()),
        ("SUM_DUMPINGD", dumpingd.as_str()),
        ("SUM_JAR", jar.as_str()),
    ];
    let printed = session.run(what, &variables, &[], scripts::PLACE_END)?;
    HostAnswer::parse("place_end", &printed).map_err(failed)
}

fn group_of(session: &Session, user: &str) -> Result<String, SshError> {
    let printed = session.run("find the user's group", &[("WHO", user)], &[], "id -gn -- \"$WHO\"")?;
    Ok(String::from_utf8_lossy(&printed).trim().to_owned())
}

/// Writes what will be changed to the host, before it is.
fn remember(session: &Session, settings: &Settings, programs: &Programs, plan: &Plan) -> Result<(), SshError> {
    let prefix = &settings.places.prefix;
    let [sum_sniffer, sum_dumpingd, sum_jar] = programs.sums();
    let installed = Installed {
        files: [
            (format!("{prefix}/bin/sniffer"), sum_sniffer),
            (format!("{prefix}/bin/dumpingd"), sum_dumpingd),
            (settings.places.jar(), sum_jar),
        ]
        .into(),
        edits: plan.planned.records.clone(),
        ..settings.installed(plan.generation, plan.facts.conf.as_deref())
    };
    for (name, bytes) in &plan.planned.backups {
        session.put(bytes, &format!("{prefix}/backup/{name}"))?;
    }
    let text = serde_json::to_vec_pretty(&installed)
        .map_err(|error| SshError::Failed { what: "remember".to_owned(), message: error.to_string() })?;
    session.put(&text, &format!("{prefix}/{FILE}.new"))?;
    session.run("remember", &[("FILE", &format!("{prefix}/{FILE}"))], &[], "mv -f -- \"$FILE.new\" \"$FILE\"")?;
    if settings.started_by == StartedBy::Daemons {
        let mut paths = Vec::new();
        for (name, options) in [("sniffer", &installed.sniffer), ("dumpingd", &installed.dumpingd)] {
            let path = format!("{prefix}/bin/start-{name}");
            session.put(starter(prefix, name, installed.service(), options).as_bytes(), &path)?;
            paths.push(path);
        }
        session.run("let daemons start the programs", &[], &paths, "chmod 755 -- \"$@\"")?;
    }
    if settings.started_by == StartedBy::Systemd {
        for (name, unit) in units::all(&installed) {
            session.put(unit.as_bytes(), &format!("/etc/systemd/system/{name}"))?;
        }
        let body = "chmod 644 /etc/systemd/system/hadoptic-sniffer.service /etc/systemd/system/hadoptic-dumpingd.service && systemctl daemon-reload";
        session.run("load the units", &[], &[], body)?;
    }
    Ok(())
}

/// The program that prints the agent's option where the jar is whole.
fn launcher(settings: &Settings, sum: &str) -> String {
    let jar = settings.places.jar();
    let option = agent_option(settings);
    let options = option.split_once(".jar=").map(|(_, options)| options).unwrap_or_default();
    let places = [("@JAR@", jar.as_str()), ("@SUM@", sum), ("@OPTIONS@", options)];
    let text = places.iter().fold(scripts::AGENT_OPTION.to_owned(), |text, (place, value)| text.replace(place, value));
    text.replace("@JVM@", &settings.places.jvm_dir())
}

/// A name of a user that can stand among arguments.
fn is_plain(name: &str) -> bool {
    !name.starts_with('-') && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// What a daemon starts: it knows no options but where to write, and the program takes this one's place.
fn starter(prefix: &str, name: &str, service: &str, options: &[String]) -> String {
    format!(
        "#!/bin/sh\n# Made by `hadoptic install`, taken away by `hadoptic remove`.\n\
         [ \"$(id -u)\" != 0 ] || set -- \"$@\" --user {service}\nexec {} \"$@\" {}\n",
        quote::word(&format!("{prefix}/bin/{name}")),
        quote::words(options)
    )
}

fn after(report: &mut Report, settings: &Settings, plans: &[Plan]) {
    for (host, plan) in report.hosts.iter_mut().zip(plans) {
        let without = facts::without_agent(&plan.facts.jvms);
        if !without.is_empty() {
            host.notes
                .push(format!("runs without the agent until it is restarted, or attached: {}", without.join(", ")));
        }
        host.fact("without_agent", &without);
    }
    if settings.programs_only {
        report.notes.push("only the programs were brought; no file of Hadoop's was changed".to_owned());
        return;
    }
    report.notes.push("daemons get the agent when they are started again: a rolling restart will do".to_owned());
    report.notes.push("jobs get it when they are submitted from one of these hosts from now on".to_owned());
    if settings.started_by == StartedBy::Daemons {
        report.notes.push("the first daemon of each host that is started again starts sniffer and dumpingd".to_owned());
        if !settings.needs_capabilities() {
            report.notes.push(
                "daemons that are not root cannot start them: --group NAME (the daemons' group) gives the programs file \
                 capabilities"
                    .to_owned(),
            );
        }
    } else {
        report.notes.push("next: hadoptic start, with the same hosts".to_owned());
    }
}
