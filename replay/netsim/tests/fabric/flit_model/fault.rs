//! Mistakes that the slow model can be told to make, to show that the comparison finds them.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The credits that a flit frees are free when the next flit has left (the last flit's at once).
    CreditOneFlitLate,
    /// A packet needs the credits of its bytes rounded down.
    CreditsRoundedDown,
    /// Updates leave without waiting for `credit_min_time`.
    UpdateTooEarly,
    /// No pause between flits.
    FlitGapForgotten,
    /// No pause behind a packet.
    PacketGapForgotten,
    /// A link forgets the fraction of a picosecond between two packets.
    RemainderDropped,
    /// A link keeps the fraction of a picosecond although it was idle.
    RemainderKept,
    /// The input arbiter begins at the first queue each time.
    InputsFromFirst,
    /// `random` draws for a queue once and for all.
    DrawnWithoutTime,
    /// `fifo` counts from the first flit's arrival.
    FifoSinceArrival,
    /// `fifo` counts from when a packet became the head, ready or not.
    FifoSinceHead,
    /// `longest` counts packets.
    LongestInPackets,
    /// `longest` takes the first of several in order of queues.
    LongestTiesToFirst,
    /// `age` counts from the hand-over.
    AgeSinceHandOver,
    /// An input passes several packets at a time, although switches allocate.
    InputsNoResource,
    /// Links grant first where inputs ask first, and the other way round.
    OtherSideFirst,
    /// What is not matched in the first iteration is not tried again.
    OneIteration,
    /// Round robins move with every match.
    TurnsMoveInAllIterations,
    /// Round robins of links move with every grant, accepted or not.
    TurnsMoveUnmatched,
    /// An input takes its queues by the rule of links.
    QueuesByRuleOfInputs,
    /// A switch allocates at any instant.
    CycleForgotten,
    /// An input is busy until its link is free, the pause behind the packet included.
    InputBusyInGap,
    /// In a shared buffer no VL has anything for itself.
    ExclusiveForgotten,
    /// In a shared buffer a VL may have all that no other has for itself.
    MaximumForgotten,
    /// What a VL has for itself counts as taken from what is shared.
    ExclusiveCountsAsShared,
    /// Every entry of a VL table may send one credit more.
    WeightOneMore,
    /// The limit of the high table is used up by one byte more only.
    LimitOneByteLate,
    /// What went from the high table still counts after a start from the low one.
    LimitNeverReset,
    /// The next packet of a queue becomes its head when the link is free, the pause behind the packet included.
    HeadAfterGap,
    /// Packets are held back in front of a link that is as fast, too.
    HeldBackAtEqualRates,
    /// A switch's delay is forgotten where the packet waits anyway behind another one.
    DelayOnlyAtEmptyQueue,
    /// `adaptive` does not see what has chosen a link already.
    ChoicesUnseen,
    /// `adaptive` sees what has chosen a link on any VL.
    ChoicesOfAllLanesSeen,
    /// Of links with as many credits `adaptive` takes the first.
    FirstOfTheMostFree,
    /// Heads that choose in one instant begin with the first queue.
    ChoicesFromFirst,
    /// A packet enters a ring where only it has room itself.
    BubbleForgotten,
    /// Packets keep the virtual lane on which they left their host.
    DatelineForgotten,
    /// A packet takes no escape.
    EscapeForgotten,
    /// A packet takes the lane with most room, where any will do.
    MostRoomAlways,
    /// A packet that is leaving its host counts as waiting.
    LeavingPacketCounts,
    /// Of queues of a host that are as long the first is taken.
    QueuesFromFirst,
    /// A queue is chosen by the packet's own way, where another one is drawn for it.
    WayOfPacket,
    /// The length of a host's queue is counted in packets.
    ShortestInPackets,
    /// Flits in the switch's buffer do not count.
    SwitchForgotten,
    /// Of these, those that have not left the host yet do not.
    FlitsOnLinkForgotten,
    /// Where lanes are compared by flits, those of a packet have come as soon as it starts.
    FlitsComeAtOnce,
    /// They go when the last one of their packet does.
    FlitsGoWithPacket,
    /// Whether a lane has room that another packet has is told by its credits.
    HeldLanesByCredits,
    /// Packets from other switches go first at each arbitration.
    TransitAlwaysFirst,
    /// It is drawn once and for all whether they go first.
    TransitDrawnWithoutTime,
    /// Packets of hosts leave no room.
    ReserveForgotten,
    /// The packet itself counts as room that it leaves.
    ReserveHoldsPacket,
    /// The next packet without room is lost a picosecond later.
    LossTakesNoTime,
    /// A packet commits itself to a lane with any credits.
    RoomForAnything,
    /// An exclusive lane is nobody's as soon as its packet has started.
    LaneFreeAtStart,
    /// A packet looks at the next rank where it should wait for a lane that another one has.
    HeldLanesPassed,
    /// Heads that another one was preferred to ask again in a later instant.
    LosersWait,
    /// The packet on the link counts as waiting.
    PacketOnLinkCounts,
    /// Queues have room for one byte or one packet more.
    RoomForOneMore,
    /// Packets offered at one instant come in the order of links.
    TiesByLink,
    /// Packets are offered before links go on.
    OfferedBeforeLinksGoOn,
    /// A switch takes no time.
    SwitchDelayForgotten,
}
