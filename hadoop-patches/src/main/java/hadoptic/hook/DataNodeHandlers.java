package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;

/** Operations of the data transfer protocol that a DataNode serves; one record an operation, and one about a megabyte. */
public final class DataNodeHandlers {
    private DataNodeHandlers() {}

    private static final ThreadLocal<Operation> CURRENT = new ThreadLocal<Operation>();

    private static final class Operation implements Record {
        private final Operation outer = CURRENT.get();
        private final long thread = Thread.currentThread().getId();
        private final String op;
        private final long begin;
        private final long readBefore = Waits.mine()[0];
        private final long writeBefore = Waits.mine()[1];
        private final String didBefore;
        private long readWait;
        private long writeWait;
        private long end;
        private long block;
        private long offset;
        private long length;
        private long bytes;
        private String client;
        private InetSocketAddress local;
        private InetSocketAddress remote;
        private String mirror = "";
        /** What its thread does with the packets; null = none has come. */
        private Step step;
        /** Bytes of the block before the next packet's. */
        private long reached;

        Operation(String op, long begin) {
            this.op = op;
            this.begin = begin;
            this.didBefore = Purposes.begin(op.equals("write") ? "pipeline" : op);
        }

        void ends(long now) {
            CURRENT.set(outer);
            Purposes.begin(didBefore);
            readWait = Waits.mine()[0] - readBefore;
            writeWait = Waits.mine()[1] - writeBefore;
            end = now;
            if (step != null) {
                step.ends(now);
                step.note(block, local, remote);
            }
        }

        void packet(long now, long packetBytes, Packet packet) {
            long[] waits = Waits.mine();
            step.readWait += waits[0] - packet.readBefore;
            step.writeWait += waits[1] - packet.writeBefore;
            step.work += Math.max(0, now - packet.begin - (waits[0] - packet.readBefore) - (waits[1] - packet.writeBefore));
            step.bytes += Math.max(0, packetBytes);
            reached += Math.max(0, packetBytes);
            if (step.isFull()) {
                step.ends(now);
                step.note(block, local, remote);
                step = step.next(reached);
            }
        }

        @Override
        public void write(JsonLine line) {
            line.begin("block").time("t0", begin).time("t1", end).number("th", thread).string("op", op)
                    .unsigned("block", block).number("offset", offset).number("length", length).number("bytes", bytes)
                    .string("client", client).address("local", local).address("remote", remote)
                    .optional("mirror", mirror).some("read_wait", readWait).some("write_wait", writeWait).end();
        }
    }

    /** A packet that is being received or sent. */
    private static final class Packet {
        private final long begin;
        private final long readBefore = Waits.mine()[0];
        private final long writeBefore = Waits.mine()[1];

        Packet(long begin) {
            this.begin = begin;
        }
    }

    /** {@code BlockReceiver.receivePacket()}, {@code BlockSender.sendPacket(..)}: return how many bytes of data it has. */
    public static final class TakesPacket extends Handler {
        private final String op;

        /** "receive" or "send". */
        public TakesPacket(String op) {
            this.op = op;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Operation operation = CURRENT.get();
            if (operation == null) {
                return null;
            }
            if (operation.step == null) {
                operation.step = new Step(op, operation.reached, now);
            }
            return new Packet(now);
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Operation operation = CURRENT.get();
            if (operation != null && operation.step != null && token != null) {
                operation.packet(now, result instanceof Number ? ((Number) result).longValue() : 0, (Packet) token);
            }
        }
    }

    /** What a received packet's data goes through: its checksums, the disk, and its flush or sync. */
    public enum Part { CHECKSUM, DISK, SYNC }

    /** {@code BlockReceiver.verifyChunks, flushOrSync}, {@code ReplicaOutputStreams.writeDataToDisk}. */
    public static final class Spends extends Handler {
        private final Part part;

        /** On this part. */
        public Spends(Part part) {
            this.part = part;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            return now;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Operation operation = CURRENT.get();
            if (operation != null && operation.step != null && token != null) {
                long ns = now - (Long) token;
                if (part == Part.CHECKSUM) {
                    operation.step.checksum += ns;
                } else if (part == Part.DISK) {
                    operation.step.disk += ns;
                } else {
                    operation.step.sync += ns;
                }
            }
        }
    }

    /** {@code DataXceiver.readBlock, writeBlock, ...}. */
    public static final class Serves extends Handler {
        private final String op;

        /** For operations of a name. */
        public Serves(String op) {
            this.op = op;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = new Operation(op, now);
            CURRENT.set(operation);
            operation.block = Fields.numberOf(Arguments.named(arguments, "ExtendedBlock"), "getBlockId", 0);
            operation.client = Arguments.text(arguments, 0);
            if (op.equals("read")) {
                operation.offset = Arguments.number(arguments, 0);
                operation.length = Arguments.number(arguments, 1);
            }
            operation.local = Sockets.parse(Fields.get(self, "localAddress"));
            operation.remote = Sockets.parse(Fields.get(self, "remoteAddress"));
            Purposes.server(now, operation.local, operation.remote, op);
            return operation;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            Operation operation = (Operation) token;
            if (operation != null) {
                operation.ends(now);
                Hooks.record(operation);
            }
        }
    }

    /** {@code BlockSender.sendBlock}: its offset moves on with each packet that was sent whole. */
    public static final class Sends extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            long offset = Fields.number(self, "offset", 0);
            Operation operation = CURRENT.get();
            if (operation != null) {
                operation.reached = offset;
            }
            return offset;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null && token instanceof Long) {
                operation.bytes += Fields.number(self, "offset", 0) - (Long) token;
            }
        }
    }

    /** {@code BlockReceiver.receiveBlock}: the replica grows. */
    public static final class Receives extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = CURRENT.get();
            long there = replicaBytes(self);
            if (operation != null) {
                operation.mirror = Arguments.text(arguments, 0);
                operation.reached = there;
            }
            return there;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null && token instanceof Long) {
                operation.bytes += Math.max(0, replicaBytes(self) - (Long) token);
            }
        }

        private static long replicaBytes(Object receiver) throws ReflectiveOperationException {
            Object replica = Fields.get(receiver, "replicaInfo");
            return replica == null ? Fields.number(receiver, "offsetInBlock", 0) : Fields.numberOf(replica, "getNumBytes", 0);
        }
    }

    /** Constructor of Hadoop 1.x's {@code BlockSender(Block, offset, length, .., client trace)}: what is read. */
    public static final class Reads extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null) {
                operation.block = Fields.numberOf(Arguments.named(arguments, "Block"), "getBlockId", 0);
                operation.offset = Arguments.number(arguments, 0);
                operation.length = Arguments.number(arguments, 1);
                operation.client = clientOf(Arguments.text(arguments, 0));
            }
            return null;
        }

        /** "src: .., dest: .., bytes: %d, op: HDFS_READ, cliID: NAME, offset: .." */
        private static String clientOf(String trace) {
            int at = trace.indexOf("cliID: ");
            int end = at < 0 ? -1 : trace.indexOf(',', at);
            return end < 0 ? "" : trace.substring(at + 7, end);
        }
    }

    /** Constructor of Hadoop 1.x's {@code BlockReceiver(Block, stream, from, here, recovery, client, ..)}: what is written. */
    public static final class Writes extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Operation operation = CURRENT.get();
            if (operation != null) {
                operation.block = Fields.numberOf(Arguments.named(arguments, "Block"), "getBlockId", 0);
                operation.client = Arguments.text(arguments, 2);
            }
            return null;
        }
    }
}
