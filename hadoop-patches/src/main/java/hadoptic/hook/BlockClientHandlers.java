package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.lang.ref.WeakReference;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;

/** What a client of HDFS reads and writes, block by block. */
public final class BlockClientHandlers {
    private static final ConcurrentLinkedQueue<Reading> OPEN = new ConcurrentLinkedQueue<Reading>();

    private BlockClientHandlers() {}

    /** The use of one block reader: its tag, and its record. */
    private static final class Reading implements Record {
        private final AtomicBoolean noted = new AtomicBoolean();
        private final long thread = Thread.currentThread().getId();
        private final long begin;
        private final long block;
        private final long offset;
        private final long length;
        private final InetSocketAddress local;
        private final InetSocketAddress remote;
        private WeakReference<Object> reader;
        private volatile long skipped;
        private volatile long consumed;
        private volatile long end;
        private final long waitedBefore = Waits.mine()[0];
        private volatile long waited;
        /** When its thread saw a packet's begin. */
        private long waitedSoFar = waitedBefore;
        private final Consumption consumption;

        Reading(long begin, Object[] arguments) throws Throwable {
            this.begin = begin;
            this.end = begin;
            if (arguments[0] instanceof Socket) {
                // Hadoop 1.x: (socket, file, block id, token, generation, offset, length, ..)
                this.block = Arguments.number(arguments, 0);
                this.offset = Arguments.number(arguments, 2);
                this.length = Arguments.number(arguments, 3);
                this.local = Sockets.local(arguments[0]);
                this.remote = Sockets.remote(arguments[0]);
                this.consumption = new Consumption(block, offset, local, remote);
                return;
            }
            this.block = Fields.numberOf(Arguments.named(arguments, "ExtendedBlock"), "getBlockId", 0);
            this.offset = Arguments.number(arguments, 0);
            this.length = Arguments.number(arguments, 1);
            Object peer = null;
            for (Object argument : arguments) {
                if (argument != null && Fields.call(argument, "getRemoteAddressString") != null) {
                    peer = argument;
                    break;
                }
            }
            this.local = Sockets.parse(Fields.call(peer, "getLocalAddressString"));
            this.remote = Sockets.parse(Fields.call(peer, "getRemoteAddressString"));
            this.consumption = new Consumption(block, offset, local, remote);
        }

        /**
         * Data packets take their length off bytesNeededToFinish, which began as the length asked for and the way from
         * the chunk's begin to the offset; what is left in the slice was received and not taken.
         */
        void look(Object from, long now) throws Throwable {
            Object slice = Fields.get(from, "curDataSlice");
            if (slice instanceof ByteBuffer) {
                long left = Fields.number(from, "bytesNeededToFinish", 0);
                consumed = Math.max(0, Math.min(length, length - left - ((ByteBuffer) slice).remaining()) - skipped);
            } else if (Fields.get(from, "chunkPos") != null) {
                // An FSInputChecker counts from the begin of the offset's chunk; what it holds ahead is not taken.
                long ahead = Math.max(0, Fields.number(from, "count", 0) - Fields.number(from, "pos", 0));
                long intoChunk = Fields.number(from, "startOffset", 0) - Fields.number(from, "firstChunkOffset", 0);
                consumed = Math.max(0, Fields.number(from, "chunkPos", 0) - ahead - intoChunk - skipped);
            }
            end = now;
        }

        void note() {
            if (noted.compareAndSet(false, true)) {
                OPEN.remove(this);
                Hooks.record(this);
            }
        }

        @Override
        public void write(JsonLine line) {
            line.begin("block_read").time("t0", begin).time("t1", end).number("th", thread).unsigned("block", block)
                    .number("offset", offset).number("length", length).number("consumed", consumed)
                    .address("local", local).address("remote", remote).some("read_wait", waited).end();
        }
    }

    private static Reading reading(Object reader) {
        Object tag = Tags.get(reader);
        return tag instanceof Reading ? (Reading) tag : null;
    }

    /** What a block's reader does with its packets; null = it is not known. */
    static Consumption consumption(Object reader) {
        Reading reading = reading(reader);
        return reading == null ? null : reading.consumption;
    }

    /** A packet of so many bytes begins, at a reader that is seen only then. */
    static void readsHeader(Object reader, long bytes, long now) {
        Reading reading = reading(reader);
        if (reading != null && reading.thread == Thread.currentThread().getId()) {
            long waited = Waits.mine()[0];
            reading.consumption.asksAndGets(now, bytes, waited - reading.waitedSoFar);
            reading.waitedSoFar = waited;
        }
    }

    /** {@code BlockReaderRemote.newBlockReader(..)}. */
    public static final class OpensReader extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            return new Reading(now, arguments);
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            if (token != null && result != null) {
                Reading reading = (Reading) token;
                Purposes.client(now, reading.local, reading.remote, "read");
                reading.reader = new WeakReference<Object>(result);
                Tags.put(result, reading);
                OPEN.add(reading);
            }
        }
    }

    /** {@code BlockReaderRemote.skip(long)}: passed over, not given to the application. */
    public static final class Skips extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Reading reading = reading(self);
            if (reading != null && result instanceof Long) {
                reading.skipped += (Long) result;
            }
        }
    }

    /** {@code BlockReaderRemote.close()}. */
    public static final class ClosesReader extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Reading reading = reading(self);
            if (reading != null && !reading.noted.get()) {
                reading.look(self, now);
                if (reading.thread == Thread.currentThread().getId()) {
                    reading.waited = Waits.mine()[0] - reading.waitedBefore;
                    reading.consumption.ends(now);
                }
                reading.note();
            }
            return null;
        }
    }

    /** Looks at the open readers; notes those that nobody can close any more, at the end all. */
    public static void sample(boolean last) {
        long now = System.nanoTime();
        for (Iterator<Reading> open = OPEN.iterator(); open.hasNext();) {
            Reading reading = open.next();
            Object reader = reading.reader.get();
            try {
                if (reader != null) {
                    reading.look(reader, now);
                }
            } catch (Throwable unreadable) {
                // what was seen last stays
            }
            if (reader == null || last) {
                reading.note();
            }
        }
    }

    /** A block that is being written, through one pipeline, and its record. */
    private static final class Writing implements Record {
        private final long thread = Thread.currentThread().getId();
        private final long begin;
        private final long block;
        private final long bytesBefore;
        private final InetSocketAddress local;
        private final InetSocketAddress remote;
        private final List<String> pipeline = new ArrayList<String>();
        private final long waitedBefore = Waits.mine()[1];
        private long waited;
        private long bytes;
        private long end;

        Writing(Opening opening, Object streamer) throws Throwable {
            this.begin = opening.begin;
            if (opening.nodes instanceof Object[]) {
                for (Object node : (Object[]) opening.nodes) {
                    Object address = Fields.call(node, "getXferAddr");
                    pipeline.add(String.valueOf(address == null ? Fields.call(node, "getName") : address));
                }
            }
            Object extended = currentBlock(streamer);
            this.block = Fields.numberOf(extended, "getBlockId", 0);
            this.bytesBefore = Fields.numberOf(extended, "getNumBytes", 0);
            Object socket = Fields.get(streamer, "s");
            this.local = socket == null ? null : Sockets.local(socket);
            this.remote = socket == null ? null : Sockets.remote(socket);
        }

        void ends(long now) {
            end = now;
            if (thread == Thread.currentThread().getId()) {
                waited = Waits.mine()[1] - waitedBefore;
            }
        }

        private static Object currentBlock(Object streamer) throws IllegalAccessException {
            Object block = Fields.get(streamer, "block");
            Object inside = Fields.get(block, "currentBlock");
            return inside == null ? block : inside;
        }

        @Override
        public void write(JsonLine line) {
            line.begin("block_write").time("t0", begin).time("t1", end).number("th", thread).unsigned("block", block)
                    .number("bytes", bytes).address("local", local).address("remote", remote)
                    .some("pipeline", pipeline).some("write_wait", waited).end();
        }
    }

    private static final class Opening {
        private final long begin;
        private final Object nodes;

        Opening(long begin, Object nodes) {
            this.begin = begin;
            this.nodes = nodes;
        }
    }

    /** {@code DataStreamer.createBlockOutputStream(nodes, ..)}: returns whether the pipeline stands. */
    public static final class OpensPipeline extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return new Opening(now, arguments[0]);
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            if (Boolean.TRUE.equals(result) && token != null) {
                Writing writing = new Writing((Opening) token, self);
                Output output = Output.of(self);
                output.writing = writing;
                output.production.opens(writing.block, writing.local, writing.remote);
                Purposes.client(now, writing.local, writing.remote, "write");
            }
        }
    }

    /** {@code DataStreamer.closeStream()}: at the end of the block, of the file, or of a broken pipeline. */
    public static final class ClosesPipeline extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Writing writing = writing(self);
            if (writing != null) {
                Output.of(self).writing = null;
                writing.ends(now);
                writing.bytes = Math.max(0, Fields.number(self, "bytesSent", 0) - writing.bytesBefore);
                Hooks.record(writing);
            }
            return null;
        }
    }

    private static Writing writing(Object writer) {
        Object tag = Tags.get(writer);
        Object writing = tag instanceof Output ? ((Output) tag).writing : null;
        return writing instanceof Writing ? (Writing) writing : null;
    }

    /** {@code DFSOutputStream$Packet.getBuffer()} of Hadoop 1.x: a packet is about to be sent. */
    public static final class SendsPacket extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Writing writing = writing(Fields.get(self, "this$1"));
            if (writing != null) {
                long data = Fields.number(self, "dataPos", 0) - Fields.number(self, "dataStart", 0);
                writing.bytes = Math.max(writing.bytes, Fields.number(self, "offsetInBlock", 0) + data - writing.bytesBefore);
            }
            return null;
        }
    }

    /** {@code DFSOutputStream$ResponseProcessor.close()} of Hadoop 1.x: the block's last acknowledgement has come. */
    public static final class ClosesResponses extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Object writer = Fields.get(self, "this$1");
            Writing writing = writing(writer);
            if (writing != null) {
                Output.of(writer).writing = null;
                writing.ends(now);
                Hooks.record(writing);
            }
            return null;
        }
    }
}
