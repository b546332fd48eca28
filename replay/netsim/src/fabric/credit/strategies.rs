//! What a network of `credit` is put together from: strategies that its switches know by their traits alone.

use super::allocator::{Allocator, SeparableConfig};
use super::buffer_policy::{BufferPolicy, ConfiguredBuffers};
use super::input_arbiter::{InputArbiter, InputArbitration};

/// The strategies of a network, each a type, so that calls are static.
pub trait Strategies {
    /// Which input a link takes.
    type Inputs: InputArbiter;
    /// How the VLs of a link share the buffer at its end.
    type Buffers: BufferPolicy;
    /// How the heads of a switch are matched with its links.
    type Allocator: Allocator;
}

/// The strategies that the configuration names.
pub struct Configured;

impl Strategies for Configured {
    type Inputs = InputArbitration;
    type Buffers = ConfiguredBuffers;
    type Allocator = Option<SeparableConfig>;
}
