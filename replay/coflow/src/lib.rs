//! Coflows over the ports of one non-blocking switch.
//!
//! A coflow is a set of flows that somebody waits for as a whole: the shuffle of a MapReduce job. Its completion time (CCT)
//! runs from its arrival to the end of its last flow. Ports are the only places where flows meet: each sends and receives
//! at one rate.
//!
//! [`packet::simulate`] divides the ports' rates as a packet-switched network could; [`circuit`] connects a port to one other
//! at a time and pays for each new circuit. [`bounds`] tells what no scheduler can beat.

pub mod benchmark;
pub mod bounds;
pub mod circuit;
mod demand;
pub mod packet;

pub use demand::{Coflow, CoflowError, Flow, MAX_PORTS, PortId, Workload};
