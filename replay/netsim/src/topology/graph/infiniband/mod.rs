//! Files of InfiniBand's tools: topologies of `ibnetdiscover`, ibsim and ibdiagnet, forwarding tables of OpenSM, `ibroute` and
//! ibdiagnet.

mod devices;
mod discover;
mod lst;
mod tables;
mod write;

pub(super) use discover::parse as parse_discover;
pub(super) use lst::parse as parse_lst;
pub(super) use tables::read as read_tables;
pub(super) use write::{discover as write_discover, fdbs as write_fdbs, lfts as write_lfts, lst as write_lst};
