//! What the packet fabrics promise: one file a behaviour. One program, because each would translate the fabrics once more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod channel_load;
mod common;
mod configuration;
mod credit_allocation;
mod credit_arbitration;
mod credit_buffers;
mod credit_configuration;
mod credit_escape;
mod credit_flow_control;
mod credit_latency;
mod ethernet;
mod ethernet_against_linux;
mod ethernet_cells;
mod ethernet_host_queue;
mod exactness;
mod exactness_credit;
mod exactness_credit_windows;
mod exactness_faults;
mod exactness_input_queued;
mod exactness_omni_path;
mod exactness_store_and_forward;
mod exactness_windows;
mod extremes;
mod flit_model;
mod flit_model_by_hand;
mod input_queued;
mod lightness;
mod lightness_published;
mod omni_path;
mod properties;
mod rotor;
mod rotor_model;
mod store_and_forward_md1;
mod store_and_forward_queues;
mod topology;
