//! Jobs from parameters and grown jobs, learned from one recorded run, against real runs of other sizes and networks.

pub mod cells;
pub mod learn;
pub mod plan;
pub mod record;
pub mod summary;
pub mod table;
