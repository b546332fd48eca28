//! A run of the lab under attack: who attacks, who watches, and what the operator does meanwhile.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::error::{Context, LabError, Result};

use super::HOME;
use super::attack::{Attack, Call, HostileOptions, Report, Targets};
use super::guard::Guard;
use super::watch::Watch;
use crate::deployed::{CAPTURE, Deployment, PREFIX, texts_at};
use crate::host::Hosts;
use crate::layout::root;
use crate::plan::Plan;
use crate::stop::Stop;

/// Where a second installation goes, whose configuration is the user's own.
const OTHER_PREFIX: &str = "/opt/hadoptic-other";
const OTHER_RECORDS: &str = "/var/lib/hadoptic-other";
const OTHER_CAPTURE: &str = "/var/lib/hadoptic-other/capture";
/// Between two rounds of the operator.
const ROUND: Duration = Duration::from_secs(5);

/// Users at work on a lab, and what they are held to.
#[derive(Debug)]
pub struct Siege<'a> {
    lasts: Duration,
    plan: &'a Plan,
    run: &'a Path,
    attack: Attack<'a>,
    watch: Watch,
    guard: Option<Guard>,
    report: Report,
}

impl<'a> Siege<'a> {
    /// Has users settle on all hosts, each with a forged jar.
    ///
    /// # Errors
    /// As of [`Attack::begin`].
    pub fn begin(
        options: &HostileOptions,
        plan: &'a Plan,
        hosts: &'a Hosts,
        run: &'a Path,
        forged_jar: &Path,
        stop: &Stop,
    ) -> Result<Self> {
        let targets = Targets { capture: CAPTURE, prefix: PREFIX };
        let attack = Attack::begin(options, plan, hosts, run, targets, forged_jar, stop)?;
        Ok(Self {
            lasts: Duration::from_secs(options.seconds),
            watch: Watch::begin(plan, run, CAPTURE, PREFIX)?,
            plan,
            run,
            attack,
            guard: None,
            report: Report::default(),
        })
    }

    /// How long jobs are to run.
    #[must_use]
    pub const fn lasts(&self) -> Duration {
        self.lasts
    }

    /// Once the agents are brought: waits until users have done all that they can once, and looks at what is root's.
    ///
    /// # Errors
    /// If they do not, a file cannot be read, or a signal came.
    pub fn look(&mut self, stop: &Stop) -> Result<()> {
        self.attack.wait_until_planted(stop)?;
        self.guard = Some(Guard::look(self.plan, self.run, &[CAPTURE, OTHER_PREFIX, OTHER_RECORDS], PREFIX)?);
        Ok(())
    }

    /// Has the operator look after the agents while something is done.
    ///
    /// # Errors
    /// That of what is done, or if the program `hadoptic` does not answer.
    pub fn during<T>(&mut self, deployment: &Deployment<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let over = Stop::default();
        let (done, calls) = thread::scope(|scope| {
            let operating = scope.spawn(|| operate(deployment, &over));
            let done = work();
            over.set();
            (
                done,
                operating.join().unwrap_or_else(|_| {
                    Err(LabError::Failed("the operator broke: this is an error in the lab".to_owned()))
                }),
            )
        });
        let done = done?;
        self.report.calls = calls?;
        self.report.calls.push(call(deployment, "last", "status", &[])?);
        Ok(done)
    }

    /// Ends the users, looks at what they have achieved, and takes away what is theirs. Returns the report, which lies in the
    /// capture as well, and in words what must not be.
    ///
    /// # Errors
    /// If they do not end, or files cannot be read.
    pub fn end(mut self, capture: &Path) -> Result<(Report, Vec<String>)> {
        self.report.peaks = self.watch.end()?;
        self.attack.stop()?;
        self.report.played = self.attack.played()?;
        self.report.run_by_others = self.attack.run_by_others()?;
        self.report.forged_classes = self.attack.forged_classes(PREFIX)?;
        if let Some(guard) = &self.guard {
            self.report.of_root = guard.complaints(self.plan, self.run, CAPTURE)?;
            // It is brought when the first digest is made.
            self.report.of_root.retain(|change| !change.starts_with(&format!("{PREFIX}/bin/merger on ")));
        }
        self.attack.clean()?;
        remove_other(self.plan, self.run)?;
        let path = capture.join("deployment/hostile.json");
        fs::write(&path, serde_json::to_vec_pretty(&self.report).at("cannot write", &path)?)
            .at("cannot write", &path)?;
        let Report { run_by_others, of_root, forged_classes, .. } = &self.report;
        let ran = run_by_others.iter().map(|run| format!("a program of the hostile user's was run: {run}"));
        let changed = of_root.iter().map(|change| format!("by the hostile user's doing, {change}"));
        let forged = forged_classes.iter().map(|host| format!("{host} has patches of a class of the hostile user's"));
        let problems = ran.chain(changed).chain(forged).collect();
        Ok((self.report, problems))
    }
}

/// Rounds of an operator: one at least, and further ones until it is over. What he was told.
fn operate(deployment: &Deployment<'_>, over: &Stop) -> Result<Vec<Call>> {
    let (check, install) = (deployment.check_options(), deployment.install_options());
    let mut calls = Vec::new();
    for round in 1_u32.. {
        let digest = ["--while-recording".to_owned()];
        let steps: [(&str, &[String]); 6] = [
            ("status", &[]),
            ("check", &check),
            ("start", &[]),
            ("install", &install),
            ("digest", &digest),
            ("status", &[]),
        ];
        for (number, (step, arguments)) in steps.into_iter().enumerate() {
            if round > 1 && over.is_set() {
                return Ok(calls);
            }
            if round > 1 && step == "digest" {
                continue;
            }
            calls.push(call(deployment, &format!("round-{round}-{number}"), step, arguments)?);
        }
        calls.extend(install_elsewhere(deployment, &install)?);
        if over.sleep(ROUND).is_err() {
            break;
        }
    }
    Ok(calls)
}

/// A second installation into another place, with the user's configuration, and its end.
fn install_elsewhere(deployment: &Deployment<'_>, install: &[String]) -> Result<[Call; 2]> {
    let conf = format!("{HOME}/conf");
    let places = ["--prefix", OTHER_PREFIX, "--capture-dir", OTHER_CAPTURE, "--conf-dir", &conf].map(str::to_owned);
    let installed = call(deployment, "other-install", "install", &[install, &places].concat())?;
    // What runs with the agent is the cluster's own: it does not wait for that.
    let remove = [&places[..], &["--force".to_owned()]].concat();
    let removed = call(deployment, "other-remove", "remove", &remove)?;
    Ok([installed, removed])
}

fn call(deployment: &Deployment<'_>, name: &str, step: &str, arguments: &[String]) -> Result<Call> {
    let answer = deployment.call(&format!("{name}-{step}"), step, arguments)?;
    Ok(Call {
        command: format!("{name} {step}"),
        code: answer.status.code(),
        seconds: answer.seconds,
        said: texts_at(&answer.said, &["problems", "notes"]),
    })
}

/// Takes away what the second installation left: because of the users' processes and the jobs `remove` leaves some of it.
fn remove_other(plan: &Plan, run: &Path) -> Result<()> {
    for host in &plan.hosts {
        for folder in [OTHER_PREFIX, OTHER_RECORDS] {
            let folder = root(run, host).join(folder.trim_start_matches('/'));
            if folder.exists() {
                fs::remove_dir_all(&folder).at("cannot remove", &folder)?;
            }
        }
    }
    Ok(())
}
