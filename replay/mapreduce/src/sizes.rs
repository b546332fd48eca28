//! Bytes of messages, and the time that daemons take for a call. Sizes are medians of the golden terasort, Hadoop 3.4.2
//! (`merger characterise`, table `calls`).

use std::collections::BTreeMap;

use crate::samples::CallSample;

/// A packet of block data, by which `dfs.client.write.max-packets-in-flight` counts as well.
pub(crate) const PACKET_BYTES: u64 = 65_536;

/// A block's bytes on the wire: a checksum of 4 bytes for each 512, and a header of 31 for each packet. A recorded block of
/// 32,000,000 bytes has 32,265,440 on the wire, here 32,265,159.
pub(crate) const fn block_wire_bytes(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(512) * 4 + bytes.div_ceil(PACKET_BYTES) * 31
}

/// The acknowledgements of so much data: 11 bytes a packet, in a pipeline of two.
pub(crate) const fn block_ack_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(PACKET_BYTES) * 11
}

/// A block operation's request.
pub(crate) const READ_REQUEST_BYTES: u64 = 121;
pub(crate) const WRITE_REQUEST_BYTES: u64 = 365;
/// The first answer to a write.
pub(crate) const WRITE_RESPONSE_BYTES: u64 = 5;
/// A fetch, and the headers of one map's output.
pub(crate) const FETCH_REQUEST_BYTES: u64 = 297;
pub(crate) const OUTPUT_HEADER_BYTES: u64 = 184;

/// A call: name, bytes of its request and of its response, and what its server takes for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) request: u64,
    pub(crate) response: u64,
    pub(crate) service_ps: u64,
}

const fn call(name: &'static str, request: u64, response: u64) -> Call {
    Call { name, request, response, service_ps: SERVICE_PS }
}

pub(crate) const SUBMIT: Call = call("submitApplication", 1706, 32);
pub(crate) const REGISTER: Call = call("registerApplicationMaster", 196, 140);
pub(crate) const UNREGISTER: Call = call("finishApplicationMaster", 229, 34);
pub(crate) const START_CONTAINERS: Call = call("startContainers", 1998, 78);
pub(crate) const GET_TASK: Call = call("getTask", 263, 376);
pub(crate) const DONE: Call = call("done", 263, 118);
pub(crate) const STATUS_UPDATE: Call = call("statusUpdate", 635, 107);
pub(crate) const STOP_CONTAINERS: Call = call("stopContainers", 128, 51);
pub(crate) const ADD_BLOCK: Call = call("addBlock", 282, 474);
pub(crate) const COMPLETE: Call = call("complete", 334, 34);
pub(crate) const NODE_HEARTBEAT: Call = call("nodeHeartbeat", 318, 42);
pub(crate) const ALLOCATE: Call = call("allocate", 163, 90);
pub(crate) const DATANODE_HEARTBEAT: Call = call("sendHeartbeat", 394, 43);
pub(crate) const COMPLETION_EVENTS: Call = call("getMapCompletionEvents", 384, 148);
pub(crate) const JOB_REPORT: Call = call("getJobReport", 127, 255);

/// All calls of the model.
pub(crate) const CALLS: [Call; 15] = [
    SUBMIT,
    REGISTER,
    UNREGISTER,
    START_CONTAINERS,
    GET_TASK,
    DONE,
    STATUS_UPDATE,
    STOP_CONTAINERS,
    ADD_BLOCK,
    COMPLETE,
    NODE_HEARTBEAT,
    ALLOCATE,
    DATANODE_HEARTBEAT,
    COMPLETION_EVENTS,
    JOB_REPORT,
];

/// Calls by name, where a job file says another size or time than the golden terasort.
#[derive(Debug, Default)]
pub(crate) struct CallSizes(BTreeMap<String, CallSample>);

impl CallSizes {
    pub(crate) fn new(samples: &BTreeMap<String, CallSample>) -> Self {
        Self(samples.clone())
    }

    /// The call as it is in this job file.
    pub(crate) fn of(&self, call: Call) -> Call {
        self.0.get(call.name).map_or(call, |sample| Call {
            name: call.name,
            request: sample.request.0,
            response: sample.response.0,
            service_ps: sample.service.ps(),
        })
    }
}

/// What a daemon thinks about a call: the medians of most lie between 1 and 2 ms.
pub(crate) const SERVICE_PS: u64 = 1_000_000_000;
/// Between two questions of a reduce for completed maps: `EventFetcher.SLEEP_TIME`.
pub(crate) const EVENTS_PAUSE_PS: u64 = 1_000_000_000_000;
/// Map outputs of a host that one fetch takes at most: `ShuffleSchedulerImpl.MAX_MAPS_AT_ONCE`.
pub(crate) const MAX_MAPS_AT_ONCE: usize = 20;
/// Pieces that a sender may be ahead of its receiver.
pub(crate) const WINDOW: usize = 4;
