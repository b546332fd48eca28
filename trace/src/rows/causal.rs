//! The causal graph: events, what they wait for, and timers.
//!
//! An **event** is either a *send* (a process hands bytes of a message to a connection) or a *mark* (something happens
//! in a process: a phase ends, a container is free). A message that left in one go is one send; a long one that its
//! sender produced, or its receiver took, piece by piece is a chain of sends.
//!
//! **When an event happens** in a simulated world: let T be the latest of the times that its dependencies yield (the
//! recorded time, relative to the trace's start, if it has none). It happens at T + `delay_ns`.
//!
//! **What a dependency yields**: `on` = `sent`: the time when the event `on_event` happened; `delivered`: the time when
//! the last byte of that send had arrived (of a mark: when it happened). Call this N. Without a timer it yields N. With
//! a `timer`, N is news that waits for that timer's next beat:
//! - carrier `request`: the first beat whose request happens (is sent) at or after N carries it; the dependency yields
//!   the time when this request has been delivered.
//! - carrier `response`: the first beat whose response happens (is sent) at or after N carries it; the dependency
//!   yields the time when this response has been delivered.
//!
//! **Beats** of a timer are pairs of sends, a request and a response (`timer` and `beat` are set on both), with
//! ordinary dependencies: the response on its request, the next request on the response before it, with the pause as
//! its delay. So they go on whatever the news. When the recorded beats have run out while news still waits, a replay
//! goes on beating with the timer's typical figures ([`TimerRow`]).

use super::column::{named, row};
use crate::ids::{ConnectionId, EventId, MessageId, ProcessId, TaskId, TimerId};

named! {
    /// What an event is.
    EventKind {
        /// Bytes of a message are handed to a connection.
        Send = "send",
        /// Something happens in a process.
        Mark = "mark",
    }
}

row! {
    /// A node of the causal graph.
    EventRow in "events" {
        /// Row number. In the order of `recorded_ns`.
        event: EventId,
        /// What it is.
        kind: EventKind,
        /// Marks: "job.submit", "job.finish", "task.start", "task.shuffle_end", "task.sort_end", "task.finish", or
        /// another name; sends: "".
        name: String,
        /// Where it happens; null = the owner is not known.
        process: Option<ProcessId>,
        /// Message of which these bytes are (part).
        message: Option<MessageId>,
        /// Connection on which they go.
        connection: Option<ConnectionId>,
        /// True from client to server.
        from_client: bool,
        /// Payload bytes handed over; 0 for marks.
        bytes: u64,
        /// When it happened in the recording (for sends: the first byte left).
        recorded_ns: u64,
        /// When the last byte had arrived in the recording; equal to `recorded_ns` for marks.
        recorded_delivered_ns: u64,
        /// Time from the latest of its causes to the event: thinking, computing, reading a disk, a timer's pause.
        delay_ns: u64,
        /// Task to which it belongs, if one.
        task: Option<TaskId>,
        /// Timer whose beat it is, if one.
        timer: Option<TimerId>,
        /// Number of the beat, from 0.
        beat: Option<u32>,
    }
}

named! {
    /// Which moment of the event that is waited for counts.
    On {
        /// It happened: the bytes were handed over.
        Sent = "sent",
        /// Its last byte had arrived.
        Delivered = "delivered",
    }
}

named! {
    /// Which half of a beat carries news.
    Carrier {
        /// The request, from who beats to the server.
        Request = "request",
        /// The response.
        Response = "response",
    }
}

named! {
    /// Why the merger believes in a dependency, surest first.
    Evidence {
        /// A response to its call id.
        CallId = "call-id",
        /// Request and answer of one operation on one connection (data transfer, HTTP).
        Exchange = "exchange",
        /// Done by the handler thread within the processing span.
        Span = "span",
        /// The same thread did both, one after the other.
        Thread = "thread",
        /// The thread was started by that one.
        ThreadStart = "thread-start",
        /// Bytes of one message, in the order of its stream.
        Stream = "stream",
        /// A pipeline forwards what it has received.
        Pipeline = "pipeline",
        /// A timer's pause.
        Timer = "timer",
        /// Known from how Hadoop works (an assignment follows a heartbeat, a fetch follows a completion event).
        Protocol = "protocol",
        /// A container was free because another ended.
        Slot = "slot",
        /// The last thing that this process had received.
        Heuristic = "heuristic",
    }
}

row! {
    /// An edge of the causal graph. The edges of an event are alternatives of nothing: it waits for all.
    DependencyRow in "dependencies" {
        /// The event that waits.
        event: EventId,
        /// What it waits for; recorded no later than `event`.
        on_event: EventId,
        /// Which moment of that.
        on: On,
        /// The timer by which the news travels, if one.
        timer: Option<TimerId>,
        /// The half of the beat that carries it; set with `timer`.
        carrier: Option<Carrier>,
        /// Why this is believed.
        evidence: Evidence,
    }
}

row! {
    /// A loop that sends on its own account: heartbeats, polls.
    TimerRow in "timers" {
        /// Row number.
        timer: TimerId,
        /// RPC method.
        name: String,
        /// Who beats.
        process: Option<ProcessId>,
        /// Connection of the beats (of the last one, if it was opened anew).
        connection: ConnectionId,
        /// Median pause from a response's delivery to the next request, nanoseconds.
        pause_ns: u64,
        /// Median time from a request's delivery to its response.
        service_ns: u64,
        /// Median bytes of a request.
        request_bytes: u64,
        /// Median bytes of a response.
        response_bytes: u64,
        /// Recorded beats.
        beats: u32,
    }
}
