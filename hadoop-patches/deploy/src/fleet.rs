//! All hosts at once: connections, parallel steps, progress.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use crate::ssh::{Session, Ssh, SshError, SshSettings};

/// Why no host can be reached from this machine.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Connections cannot be made.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// An interrupt could not be noticed.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// Hosts cannot be worked on in parallel.
    #[error("cannot start threads")]
    Threads(#[source] rayon::ThreadPoolBuildError),
}

/// What came of a step on a host.
pub type Outcome<T> = Result<T, String>;

/// The hosts of a cluster, in the operator's order, and how they are reached.
pub struct Fleet {
    ssh: Arc<Ssh>,
    pool: rayon::ThreadPool,
    /// A connection each, or why there is none.
    pub hosts: Vec<(String, Outcome<Session>)>,
}

impl Fleet {
    /// Connects to all hosts, so many at a time.
    ///
    /// # Errors
    /// If this machine cannot do that at all.
    pub fn connect(hosts: &[String], settings: SshSettings, jobs: usize) -> Result<Self, FleetError> {
        let ssh = Arc::new(Ssh::new(settings)?);
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&ssh.interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&ssh.interrupted)))
                .map_err(FleetError::Signals)?;
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.max(1)).build().map_err(FleetError::Threads)?;
        let bar = bar("connect", hosts.len());
        let hosts = pool.install(|| {
            hosts
                .par_iter()
                .map(|host| {
                    let session = ssh.connect(host).map_err(|error| error.to_string());
                    bar.inc(1);
                    (host.clone(), session)
                })
                .collect()
        });
        bar.finish_and_clear();
        Ok(Self { ssh, pool, hosts })
    }

    /// Does a step on each host that can be reached; the others keep their reason.
    pub fn each<T: Send>(
        &self,
        label: &'static str,
        step: impl Fn(&Session) -> Result<T, SshError> + Sync,
    ) -> Vec<Outcome<T>> {
        self.each_with(label, &vec![(); self.hosts.len()], |session, ()| step(session))
    }

    /// The same, with something for each host.
    pub fn each_with<A: Sync, T: Send>(
        &self,
        label: &'static str,
        with: &[A],
        step: impl Fn(&Session, &A) -> Result<T, SshError> + Sync,
    ) -> Vec<Outcome<T>> {
        self.all(&bar(label, self.hosts.len()), with, step)
    }

    /// The same for steps that take long: each host has a line of its own while it is at work, in which `step` counts bytes.
    pub fn each_shown<A: Sync, T: Send>(
        &self,
        label: &'static str,
        with: &[A],
        step: impl Fn(&Session, &A, &ProgressBar) -> Result<T, SshError> + Sync,
    ) -> Vec<Outcome<T>> {
        let lines = MultiProgress::new();
        if !io::stderr().is_terminal() {
            lines.set_draw_target(ProgressDrawTarget::hidden());
        }
        let total = lines.add(bar(label, self.hosts.len()));
        let outcomes = self.all(&total, with, |session, with| {
            let line = lines.insert_before(&total, ProgressBar::new(0));
            if let Ok(style) = ProgressStyle::with_template("{prefix:>9} [{bar:30}] {bytes}/{total_bytes} {eta} {msg}")
            {
                line.set_style(style);
            }
            line.set_prefix(session.host.clone());
            let outcome = step(session, with, &line);
            line.finish_and_clear();
            outcome
        });
        let _ = lines.clear();
        outcomes
    }

    fn all<A: Sync, T: Send>(
        &self,
        bar: &ProgressBar,
        with: &[A],
        step: impl Fn(&Session, &A) -> Result<T, SshError> + Sync,
    ) -> Vec<Outcome<T>> {
        let all = self.pool.install(|| {
            self.hosts
                .par_iter()
                .zip(with.par_iter())
                .map(|((_, session), with)| {
                    let outcome = match session {
                        Ok(session) => step(session, with).map_err(|error| error.to_string()),
                        Err(reason) => Err(reason.clone()),
                    };
                    bar.inc(1);
                    outcome
                })
                .collect()
        });
        bar.finish_and_clear();
        all
    }

    /// Whether the user wants an end.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.ssh.interrupted.load(Ordering::Relaxed)
    }
}

/// A bar on a terminal, nothing elsewhere.
#[must_use]
pub fn bar(label: &'static str, length: usize) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
    if io::stderr().is_terminal() {
        if let Ok(style) = ProgressStyle::with_template("{prefix:>9} [{bar:30}] {pos}/{len} {msg}") {
            bar.set_style(style);
        }
    } else {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.set_prefix(label);
    bar
}
