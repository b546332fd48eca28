package hadoptic.hook;

/** What HDFS' writers and readers do with each packet: two hooks a packet, whatever the number of their writes and reads. */
public final class StepHandlers {
    private StepHandlers() {}

    /** A packet that is being queued: when, up to which byte of its block, whether as its last. */
    private static final class Queueing {
        private final Production production;
        private final long made;
        private final long since;
        private final long end;
        private final boolean last;

        Queueing(Production production, long made, long since, long end, boolean last) {
            this.production = production;
            this.made = made;
            this.since = since;
            this.end = end;
            this.last = last;
        }
    }

    /** {@code DataStreamer.waitAndQueuePacket(packet)}: returns when there was room for it. */
    public static final class Queues extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Object packet = arguments[0];
            Output output = Output.of(self);
            long made = output.queuedAt == 0 ? 0 : now - output.queuedAt;
            return new Queueing(output.production, made, now, Fields.numberOf(packet, "getLastByteOffsetBlock", 0),
                    Boolean.TRUE.equals(Fields.get(packet, "lastPacketInBlock")));
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            if (token != null && thrown == null) {
                Queueing queueing = (Queueing) token;
                Output.of(self).queuedAt = now;
                queueing.production.queued(now, queueing.end, queueing.made, now - queueing.since, queueing.last);
            }
        }
    }

    /**
     * {@code DFSOutputStream$Packet(size, chunks, offset)} of Hadoop 1.x: the first of its chunks is there, and the queue has room. That
     * chunk's making counts as waiting.
     */
    public static final class BeginsPacket extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Object writer = Fields.get(self, "this$1");
            if (thrown == null && writer != null) {
                Output.of(writer).begunAt = now;
            }
        }
    }

    /** {@code DFSOutputStream.enqueueCurrentPacket()} of Hadoop 1.x: the packet is full. */
    public static final class QueuesPacket extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Object packet = Fields.get(self, "currentPacket");
            Output output = Output.of(self);
            if (packet != null) {
                long data = Fields.number(packet, "dataPos", 0) - Fields.number(packet, "dataStart", 0);
                long begun = output.begunAt == 0 ? now : output.begunAt;
                long waited = output.queuedAt == 0 ? 0 : Math.max(0, begun - output.queuedAt);
                output.queuedAt = now;
                output.production.queued(now, Fields.number(packet, "offsetInBlock", 0) + data, now - begun, waited,
                        Boolean.TRUE.equals(Fields.get(packet, "lastPacketInBlock")));
            }
            return null;
        }
    }

    /** {@code readNextPacket()} of a block's reader. */
    public static final class ReadsPacket extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Consumption consumption = BlockClientHandlers.consumption(self);
            if (consumption != null) {
                consumption.asks(now);
            }
            return consumption;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Object slice = token == null || thrown != null ? null : Fields.get(self, "curDataSlice");
            if (slice instanceof java.nio.ByteBuffer) {
                ((Consumption) token).gets(now, ((java.nio.ByteBuffer) slice).remaining());
            }
        }
    }

    /** {@code RemoteBlockReader.adjustChecksumBytes(bytes)} of Hadoop 1.x: the header of a packet has been read. */
    public static final class ReadsHeader extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            BlockClientHandlers.readsHeader(self, Arguments.number(arguments, 0), now);
            return null;
        }
    }
}
