//! The lab as people run it, with real daemons: one file a behaviour, one cluster at a time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod a_hostile_user_gets_nowhere;
mod arguments_are_checked_before_anything_is_touched;
mod cluster_runs_jobs_and_leaves_nothing;
mod common;
mod daemons_start_and_end_the_agents;
mod dead_daemon_is_told;
mod encrypted_cluster_is_recorded;
mod hadoop_is_recorded_fully;
mod hosts_have_logins_and_files_of_their_own;
mod interrupted_lab_leaves_nothing;
mod killed_lab_is_removed_by_down;
mod sweep_runs_on_yarn;
