//! What the lab writes for a cluster, without starting one: one file a behaviour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod configuration_fits_the_plan;
mod launcher_takes_options_as_hadoops_scripts_do;
