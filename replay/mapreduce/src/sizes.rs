//! Bytes of messages, and the time that daemons take for a call.

/// A block's bytes on the wire: a checksum of 4 bytes for each 512, and a header for each packet of 64 KiB (31 bytes in
/// Hadoop 2 and 3: lengths, sequence number, offset).
pub(crate) const fn block_wire_bytes(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(512) * 4 + bytes.div_ceil(65_536) * 31
}

/// A packet of the writer, by which `dfs.client.write.max-packets-in-flight` counts.
pub(crate) const PACKET_BYTES: u64 = 65_536;
/// A block operation's request and its first answer.
pub(crate) const BLOCK_REQUEST_BYTES: u64 = 200;
pub(crate) const BLOCK_RESPONSE_BYTES: u64 = 40;
/// An acknowledgement of a packet of a pipeline of three.
pub(crate) const BLOCK_ACK_BYTES: u64 = 15;
/// HTTP around a fetch, and the header of one map's output.
pub(crate) const FETCH_REQUEST_BYTES: u64 = 350;
pub(crate) const OUTPUT_HEADER_BYTES: u64 = 50;

/// A call: name, bytes of its request and of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) request: u64,
    pub(crate) response: u64,
}

const fn call(name: &'static str, request: u64, response: u64) -> Call {
    Call { name, request, response }
}

pub(crate) const SUBMIT: Call = call("submitApplication", 900, 40);
pub(crate) const REGISTER: Call = call("registerApplicationMaster", 150, 150);
pub(crate) const UNREGISTER: Call = call("finishApplicationMaster", 150, 40);
pub(crate) const START_CONTAINERS: Call = call("startContainers", 3_500, 100);
pub(crate) const GET_TASK: Call = call("getTask", 150, 350);
pub(crate) const DONE: Call = call("done", 150, 50);
pub(crate) const ADD_BLOCK: Call = call("addBlock", 300, 500);
pub(crate) const COMPLETE: Call = call("complete", 250, 40);
pub(crate) const NODE_HEARTBEAT: Call = call("nodeHeartbeat", 500, 100);
pub(crate) const ALLOCATE: Call = call("allocate", 150, 150);
pub(crate) const DATANODE_HEARTBEAT: Call = call("sendHeartbeat", 400, 70);
pub(crate) const COMPLETION_EVENTS: Call = call("getMapCompletionEvents", 150, 100);
pub(crate) const JOB_REPORT: Call = call("getJobReport", 130, 350);

/// What a daemon thinks about a call.
pub(crate) const SERVICE_PS: u64 = 1_000_000_000;
/// Between two questions of a reduce for completed maps: `EventFetcher.SLEEP_TIME`.
pub(crate) const EVENTS_PAUSE_PS: u64 = 1_000_000_000_000;
/// Map outputs of a host that one fetch takes at most: `ShuffleSchedulerImpl.MAX_MAPS_AT_ONCE`.
pub(crate) const MAX_MAPS_AT_ONCE: usize = 20;
/// Pieces that a sender may be ahead of its receiver.
pub(crate) const WINDOW: usize = 4;
