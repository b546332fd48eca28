//! `hadoptic remove`: first nothing names the jar any more, then the jar goes.

use crate::agents;
use crate::answer::HostAnswer;
use crate::change;
use crate::cluster::reports;
use crate::edits::{self, Edit};
use crate::facts::{Facts, Jvm};
use crate::fleet::Fleet;
use crate::installed::StartedBy;
use crate::places::Places;
use crate::report::Report;
use crate::scripts;
use crate::ssh::{Session, SshError};

/// What is to be removed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where things lie on the host.
    pub places: Places,
    /// Leave what was recorded.
    pub keep_captures: bool,
    /// Take the jar away although jobs run that were submitted with it.
    pub force: bool,
    /// How long the agents may take to end, seconds.
    pub wait_s: u64,
}

struct Before {
    facts: Facts,
    edits: Vec<Edit>,
}

/// Removes everything from all hosts that can be reached.
pub fn remove(fleet: &Fleet, settings: &Settings) -> Report {
    let mut report = Report { command: "remove", heads: vec!["restored", "captures"], ..Report::default() };
    let locks = fleet.each("lock", |session| session.lock("remove"));
    let before = fleet.each_with("look", &locks, |session, lock| {
        agents::locked(lock)?;
        let facts = Facts::ask(session, &settings.places)?;
        let edits = edits::remove(&facts).map_err(|message| SshError::Failed { what: "plan".to_owned(), message })?;
        Ok(Before { facts, edits })
    });
    report.hosts = reports(fleet, &before, |before| before.facts.name.clone());
    let edits: Vec<Vec<Edit>> =
        before.iter().map(|before| before.as_ref().map(|before| before.edits.clone()).unwrap_or_default()).collect();
    let mut good: Vec<bool> = before.iter().map(Result::is_ok).collect();
    let mut note = |report: &mut Report, outcomes: &[Result<(), String>]| {
        for ((host, good), outcome) in report.hosts.iter_mut().zip(&mut good).zip(outcomes) {
            if let (true, Err(reason)) = (*good, outcome) {
                host.problem(reason.clone());
                *good = false;
            }
        }
    };
    // A host that fails keeps what it has; the others go on: nothing of ours may stay where it need not.
    note(&mut report, &change::stage(fleet, &edits));
    note(&mut report, &change::commit(fleet, "tasks", &edits, ("", ""), Edit::is_of_tasks));
    note(&mut report, &change::commit(fleet, "env files", &edits, ("", ""), |edit| !edit.is_of_tasks()));
    // Jobs are submitted on one host and run on all: while one host names the jar, all have to keep it.
    let all_restored = good.iter().all(|good| *good);
    let with: Vec<(Option<Facts>, bool)> = before
        .into_iter()
        .zip(&good)
        .map(|(before, good)| (before.ok().filter(|_| *good).map(|before| before.facts), all_restored))
        .collect();
    let wiped = fleet.each_with("remove", &with, |session, (facts, all_restored)| match facts {
        Some(facts) => wipe(session, settings, facts, *all_restored),
        None => Ok(Wiped::default()),
    });
    for ((host, wiped), edits) in report.hosts.iter_mut().zip(&wiped).zip(&edits) {
        let restored: Vec<&str> = edits.iter().map(|edit| edit.name.as_str()).collect();
        host.fact("restored", &restored);
        host.fact("captures_kept", settings.keep_captures);
        host.cells = vec![
            if restored.is_empty() { "nothing to restore".to_owned() } else { restored.join(" ") },
            if settings.keep_captures { "kept" } else { "gone" }.to_owned(),
        ];
        match wiped {
            Ok(wiped) => {
                host.notes.extend(wiped.notes.clone());
                wiped.problems.iter().for_each(|problem| host.problem(problem.clone()));
            }
            Err(reason) if host.ok => host.problem(reason.clone()),
            Err(_) => {}
        }
    }
    if !all_restored {
        change::unstage(fleet, &edits);
        report.problems.push(
            "some hosts still name the jar, and jobs submitted there need it on all: it was left everywhere. Put this right \
             and run remove again"
                .to_owned(),
        );
    }
    report
}

#[derive(Clone, Debug, Default)]
struct Wiped {
    notes: Vec<String>,
    problems: Vec<String>,
}

fn wipe(session: &Session, settings: &Settings, facts: &Facts, all_restored: bool) -> Result<Wiped, SshError> {
    let mut wiped = Wiped::default();
    if let Some(installed) = &facts.installed {
        agents::stop_quietly(session, installed, settings.wait_s)?;
    }
    let named =
        |jvms: &[&Jvm]| jvms.iter().map(|jvm| format!("{} {}", jvm.role, jvm.pid)).collect::<Vec<_>>().join(", ");
    let with_agent: Vec<&Jvm> = facts.jvms.iter().filter(|jvm| jvm.agent != "no").collect();
    let (jobs, others): (Vec<&Jvm>, Vec<&Jvm>) = with_agent.into_iter().partition(|jvm| jvm.is_of_a_job());
    let mut keep_jar = !all_restored;
    if !jobs.is_empty() && !settings.force {
        keep_jar = true;
        wiped.problems.push(format!(
            "jobs run that were submitted with the agent ({}): their next tasks need the jar, so it stays. Run remove again when \
             they have ended (or now with --force: those tasks will fail)",
            named(&jobs)
        ));
    }
    if !others.is_empty() {
        wiped.notes.push(format!(
            "have the agent loaded until they are restarted, and go on writing: {}. Restart them; then nothing is left",
            named(&others)
        ));
    }
    let systemd = facts.installed.as_ref().is_some_and(|installed| installed.started_by == StartedBy::Systemd);
    let yes = |is: bool| if is { "yes" } else { "no" };
    let places = &settings.places;
    let variables = [
        ("PREFIX", places.prefix.as_str()),
        ("CAPTURE", places.capture_dir.as_str()),
        // Without a word of ours, what lies there is not known to be ours.
        ("KEEP_CAPTURES", yes(settings.keep_captures || facts.installed.is_none())),
        ("KEEP_JAR", yes(keep_jar)),
        ("SYSTEMD", yes(systemd)),
    ];
    let what = "take the programs away";
    let printed = session.run(what, &variables, &[], scripts::WIPE)?;
    let answer =
        HostAnswer::parse("wipe", &printed).map_err(|message| SshError::Failed { what: what.to_owned(), message })?;
    if !settings.keep_captures && !keep_jar {
        wiped.notes.extend(answer.all("left").map(|left| format!("holds things of others, which stay: {left}")));
    }
    Ok(wiped)
}
