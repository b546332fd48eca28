//! The histories of jobs, into the capture's `job/`.

use indicatif::ProgressBar;

use super::choose;
use super::settings::{History, Settings};
use super::transfer::{self, Fetched, Source};
use crate::answer::HostAnswer;
use crate::fleet::Fleet;
use crate::quote;
use crate::report::Report;
use crate::scripts;
use crate::ssh::{Reader, Session, SshError};

/// Fetches the histories of jobs into the capture's `job/`.
pub(super) fn fetch_all(fleet: &Fleet, settings: &Settings, history: &History, report: &mut Report) {
    if !fleet.hosts.iter().any(|(host, _)| *host == history.host) {
        report
            .problems
            .push(format!("--job-history names {}, which is none of the hosts: add it with --also", history.host));
        return;
    }
    let outcomes = fleet.each("history", |session| {
        if session.host == history.host { fetch_history(session, settings, history).map(Some) } else { Ok(None) }
    });
    for outcome in outcomes {
        match outcome {
            Ok(Some(fetched)) if fetched.files == 0 => {
                report.problems.push(format!("{} on {} holds no job's files", history.folder, history.host));
            }
            Ok(Some(fetched)) => {
                report.notes.push(format!(
                    "{} files of jobs are in {}",
                    fetched.files,
                    settings.out.join("job").display()
                ));
                report.problems.extend(fetched.problems);
            }
            Err(reason) if !report.hosts.iter().any(|host| host.problems.contains(&reason)) => {
                report.problems.push(format!("the jobs' histories: {reason}"));
            }
            _ => {}
        }
    }
}

fn fetch_history(session: &Session, settings: &Settings, history: &History) -> Result<Fetched, SshError> {
    let what = "find the jobs' histories";
    let failed = |message| SshError::Failed { what: what.to_owned(), message };
    let variables = [
        ("KIND", if history.in_hdfs { "hdfs" } else { "local" }),
        ("FROM", history.folder.as_str()),
        ("HADOOP", history.hadoop.as_str()),
        ("OWNER", history.user.as_str()),
        ("JOB", history.job.as_str()),
    ];
    let printed = session.run(what, &variables, &[], scripts::HISTORY)?;
    let answer = HostAnswer::parse("history", &printed).map_err(failed)?;
    let folder = answer.value("folder").unwrap_or_default().to_owned();
    if !folder.contains("/hadoptic-history.") {
        return Err(failed("the host named no folder".to_owned()));
    }
    let from = Source { folder: &folder, owner: "", reader: Reader::default() };
    let to = settings.out.join("job");
    let fetched = transfer::fetch(session, from, &choose::sizes(&answer), &to, &ProgressBar::hidden());
    let _ = session.run("tidy up", &[], &[], &format!("rm -rf -- {}", quote::word(&folder)));
    fetched
}
