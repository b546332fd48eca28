//! `hadoptic start` and `stop`: sniffer and dumpingd, once on each host.

use serde_json::json;
use trace::manifest::{DumpingdManifest, SnifferManifest};

use crate::answer::HostAnswer;
use crate::cluster::reports;
use crate::facts::{self, Facts};
use crate::fleet::{Fleet, Outcome};
use crate::installed::{Installed, StartedBy};
use crate::places::Places;
use crate::report::Report;
use crate::scripts;
use crate::ssh::{HostLock, Session, SshError};

const AGENTS: [&str; 2] = ["sniffer", "dumpingd"];

fn failed(what: &str) -> impl Fn(String) -> SshError {
    let what = what.to_owned();
    move |message| SshError::Failed { what: what.clone(), message }
}

fn installed(facts: &Facts, prefix: &str) -> Result<Installed, SshError> {
    facts.installed.clone().ok_or_else(|| {
        failed("look")(format!(
            "nothing is installed in {prefix}: run hadoptic install first, or say the same --prefix"
        ))
    })
}

/// Goes on only where the host could be locked.
///
/// # Errors
/// Why it could not.
pub(crate) fn locked(lock: &Outcome<HostLock>) -> Result<(), SshError> {
    lock.as_ref().map(drop).map_err(|reason| SshError::Reported(reason.clone()))
}

struct Started {
    facts: Facts,
    /// Of the sniffer, then of dumpingd.
    pids: Vec<Option<u64>>,
    began: bool,
    by_daemons: bool,
    unattached: Vec<String>,
}

/// Starts the agents where they do not run.
pub fn start(fleet: &Fleet, places: &Places, attach: bool, wait_s: u64) -> Report {
    let locks = fleet.each("lock", |session| session.lock("start"));
    let outcomes = fleet.each_with("start", &locks, |session, lock| {
        locked(lock)?;
        start_on(session, places, attach, wait_s)
    });
    let mut report = Report { command: "start", heads: vec!["sniffer", "dumpingd", ""], ..Report::default() };
    report.hosts = reports(fleet, &outcomes, |started| started.facts.name.clone());
    for (host, outcome) in report.hosts.iter_mut().zip(&outcomes) {
        let Ok(started) = outcome else { continue };
        host.cells = started.pids.iter().map(|pid| pid.map_or_else(String::new, |pid| pid.to_string())).collect();
        let missing = started.pids.contains(&None);
        let state = match (started.began, missing) {
            (true, _) => "started",
            (false, false) => "ran already",
            (false, true) => "the host's daemons start them",
        };
        host.cells.push(state.to_owned());
        for (agent, pid) in AGENTS.iter().zip(&started.pids) {
            host.fact(agent, pid);
        }
        host.fact("by_daemons", started.by_daemons);
        if missing {
            host.notes.push("the next Hadoop daemon that is started here with the agent starts them".to_owned());
        }
        host.fact("started", started.began);
        started.unattached.iter().for_each(|problem| host.problem(problem.clone()));
        let without = facts::without_agent(&started.facts.jvms);
        if !without.is_empty() {
            host.notes.push(format!(
                "runs without the agent: {}. Restart it (a rolling restart will do), or hadoptic start --attach",
                without.join(", ")
            ));
        }
        host.fact("without_agent", without);
    }
    report
}

fn start_on(session: &Session, places: &Places, attach: bool, wait_s: u64) -> Result<Started, SshError> {
    let mut facts = Facts::ask(session, places)?;
    let installed = installed(&facts, &places.prefix)?;
    let by_daemons = installed.started_by == StartedBy::Daemons;
    let mut started =
        Started { facts: facts.clone(), pids: Vec::new(), began: false, by_daemons, unattached: Vec::new() };
    if by_daemons {
        let variables = [("PREFIX", installed.prefix.as_str()), ("CAPTURE", installed.capture_dir.as_str())];
        let printed = session.run("look which agents run", &variables, &[], scripts::RUNS)?;
        let answer = HostAnswer::parse("runs", &printed).map_err(failed("look which agents run"))?;
        started.pids = AGENTS.iter().map(|agent| answer.numbers(agent).first().copied()).collect();
    } else {
        // dumpingd first: it tells the sniffer whose ports are Hadoop's.
        for (name, options) in [("dumpingd", &installed.dumpingd), ("sniffer", &installed.sniffer)] {
            let what = format!("start {name}");
            let wait = wait_s.to_string();
            let variables = [
                ("NAME", name),
                ("PREFIX", installed.prefix.as_str()),
                ("CAPTURE", installed.capture_dir.as_str()),
                ("SERVICE", installed.service()),
                ("SYSTEMD", if installed.started_by == StartedBy::Systemd { "yes" } else { "no" }),
                ("WAIT", wait.as_str()),
            ];
            let printed = session.run(&what, &variables, options, scripts::START)?;
            let answer = HostAnswer::parse("start", &printed).map_err(failed(&what))?;
            started.pids.insert(0, answer.numbers("pid").first().copied());
            started.began |= answer.value("began") == Some("yes");
        }
    }
    if attach {
        started.unattached = attach_to_all(session, &installed, &facts);
        facts = Facts::ask(session, places)?;
        started.facts = facts;
    }
    Ok(started)
}

/// Loads the agent into the daemons that run without it, with the rights of their users. Says of which it could not.
fn attach_to_all(session: &Session, installed: &Installed, facts: &Facts) -> Vec<String> {
    let jar = format!("{}/lib/{}", installed.prefix, crate::versions::JAR);
    let options = installed.agent.split_once(".jar=").map(|(_, options)| options).unwrap_or_default().to_owned();
    let without = facts.jvms.iter().filter(|jvm| jvm.is_daemon() && jvm.agent == "no");
    let attached = without.map(|jvm| {
        let pid = jvm.pid.to_string();
        let variables = [("PID", pid.as_str()), ("WHO", &jvm.user), ("JAR", &jar), ("OPTIONS", &options)];
        session.run(&format!("attach to {} {pid}", jvm.role), &variables, &[], scripts::ATTACH).map(drop)
    });
    attached.filter_map(Result::err).map(|error| error.to_string()).collect()
}

struct Stopped {
    name: String,
    ran: bool,
    sniffer: Option<SnifferManifest>,
    dumpingd: Option<DumpingdManifest>,
    unclean: Vec<String>,
    by_daemons: bool,
}

/// Stops the agents and waits until they have ended in order.
pub fn stop(fleet: &Fleet, places: &Places, wait_s: u64) -> Report {
    let locks = fleet.each("lock", |session| session.lock("stop"));
    let outcomes = fleet.each_with("stop", &locks, |session, lock| {
        locked(lock)?;
        stop_on(session, places, wait_s)
    });
    let mut report =
        Report { command: "stop", heads: vec!["packets", "lost", "connections traced", ""], ..Report::default() };
    report.hosts = reports(fleet, &outcomes, |stopped| stopped.name.clone());
    for (host, outcome) in report.hosts.iter_mut().zip(&outcomes) {
        let Ok(stopped) = outcome else { continue };
        let counts = stopped.sniffer.as_ref().map(|manifest| manifest.interfaces.iter().map(|i| i.counts));
        let packets: u64 = counts.clone().map(|all| all.map(|counts| counts.packets).sum()).unwrap_or(0);
        let lost: u64 = counts.map(|all| all.map(|counts| counts.lost()).sum()).unwrap_or(0);
        let traced = stopped.dumpingd.as_ref().map_or(0, |manifest| manifest.traced);
        let state = if stopped.ran { "stopped" } else { "did not run" };
        host.cells = vec![packets.to_string(), lost.to_string(), traced.to_string(), state.to_owned()];
        host.fact("ran", stopped.ran);
        host.fact("sniffer", json!({ "packets": packets, "lost": lost }));
        host.fact("dumpingd", json!({ "traced": traced }));
        for problem in &stopped.unclean {
            host.problem(problem.clone());
        }
        if stopped.by_daemons {
            host.notes.push("the next Hadoop daemon that is started here with the agent starts them again".to_owned());
        }
        let problems = stopped.sniffer.iter().flat_map(|m| &m.problems).map(|p| format!("sniffer: {p}"));
        let problems =
            problems.chain(stopped.dumpingd.iter().flat_map(|m| &m.problems).map(|p| format!("dumpingd: {p}")));
        host.notes.extend(problems);
    }
    report
}

fn stop_on(session: &Session, places: &Places, wait_s: u64) -> Result<Stopped, SshError> {
    let facts = Facts::ask(session, places)?;
    let installed = installed(&facts, &places.prefix)?;
    stop_agents(session, &installed, &facts.name, wait_s)
}

/// Also for `remove`.
pub(crate) fn stop_quietly(session: &Session, installed: &Installed, wait_s: u64) -> Result<(), SshError> {
    stop_agents(session, installed, "", wait_s).map(drop)
}

fn stop_agents(session: &Session, installed: &Installed, name: &str, wait_s: u64) -> Result<Stopped, SshError> {
    let by_daemons = installed.started_by == StartedBy::Daemons;
    let mut stopped =
        Stopped { name: name.to_owned(), ran: false, sniffer: None, dumpingd: None, unclean: Vec::new(), by_daemons };
    let wait = wait_s.to_string();
    for agent in AGENTS {
        let what = format!("stop {agent}");
        let variables = [
            ("NAME", agent),
            ("PREFIX", installed.prefix.as_str()),
            ("CAPTURE", installed.capture_dir.as_str()),
            ("SYSTEMD", if installed.started_by == StartedBy::Systemd { "yes" } else { "no" }),
            ("WAIT", wait.as_str()),
        ];
        let printed = session.run(&what, &variables, &[], scripts::STOP)?;
        let answer = HostAnswer::parse("stop", &printed).map_err(failed(&what))?;
        let ran = answer.value("was") == Some("running");
        stopped.ran |= ran;
        let manifest = answer.file(&format!("{agent}.json")).map(|file| file.bytes.as_slice());
        let says: Option<serde_json::Value> = manifest.and_then(|text| serde_json::from_slice(text).ok());
        if ran && says.is_none_or(|says| says["ended"] != true) {
            stopped.unclean.push(format!(
                "{agent} ended without saying so: its last batch may be missing, the rest can be read ({})",
                installed.log(agent, name)
            ));
        }
        let Some(file) = answer.file(&format!("{agent}.json")) else { continue };
        if agent == "sniffer" {
            stopped.sniffer = serde_json::from_slice(&file.bytes).ok();
        } else {
            stopped.dumpingd = serde_json::from_slice(&file.bytes).ok();
        }
    }
    Ok(stopped)
}
