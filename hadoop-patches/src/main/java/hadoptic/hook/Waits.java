package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * How long threads were blocked in reads and writes of sockets: added up by connection, and by thread for the spans that
 * it works on. One record a connection and second at most, whatever the number of reads.
 */
public final class Waits {
    /** Sums are told so often at most, in nanoseconds. */
    private static final long TELL_EVERY_NS = 1_000_000_000L;
    /** Sockets and streams that are known; a newer one may displace an older one, which is then looked at again. */
    private static final int SLOTS = 4096;
    private static final AtomicReferenceArray<Known> KNOWN = new AtomicReferenceArray<Known>(SLOTS);
    private static final ConcurrentLinkedQueue<Connection> CHANGED = new ConcurrentLinkedQueue<Connection>();
    private static final ThreadLocal<long[]> MINE = new ThreadLocal<long[]>() {
        @Override
        protected long[] initialValue() {
            return new long[2];
        }
    };
    private static volatile long reportedAt = System.nanoTime();

    private Waits() {}

    /** Sums of a connection since they were told last. */
    static final class Connection {
        private final InetSocketAddress local;
        private final InetSocketAddress remote;
        private final AtomicBoolean changed = new AtomicBoolean();
        private final AtomicLong readNs = new AtomicLong();
        private final AtomicLong writeNs = new AtomicLong();
        private final AtomicLong reads = new AtomicLong();
        private final AtomicLong writes = new AtomicLong();
        private volatile long first;
        private volatile long last;

        Connection(InetSocketAddress local, InetSocketAddress remote) {
            this.local = local;
            this.remote = remote;
        }

        /** A thread was blocked. */
        void blocked(boolean writing, long from, long to) {
            long ns = to - from;
            MINE.get()[writing ? 1 : 0] += ns;
            (writing ? writeNs : readNs).addAndGet(ns);
            (writing ? writes : reads).incrementAndGet();
            last = to;
            if (changed.compareAndSet(false, true)) {
                first = from;
                CHANGED.add(this);
            }
        }
    }

    /** A socket or stream and its connection. */
    private static final class Known extends WeakReference<Object> {
        private final Connection connection;

        Known(Object of, Connection connection) {
            super(of);
            this.connection = connection;
        }
    }

    private static final class Wait implements Record {
        private final Connection connection;
        private final long from;
        private final long to;
        private final long readNs;
        private final long writeNs;
        private final long reads;
        private final long writes;

        Wait(Connection connection) {
            this.connection = connection;
            this.from = connection.first;
            this.to = connection.last;
            this.readNs = connection.readNs.getAndSet(0);
            this.writeNs = connection.writeNs.getAndSet(0);
            this.reads = connection.reads.getAndSet(0);
            this.writes = connection.writes.getAndSet(0);
        }

        @Override
        public void write(JsonLine line) {
            line.begin("wait").time("t0", from).time("t1", to)
                    .address("local", connection.local).address("remote", connection.remote)
                    .number("read_ns", readNs).number("write_ns", writeNs)
                    .number("reads", reads).number("writes", writes).end();
        }
    }

    /** Tells the sums that have changed: once a second, at the end all. */
    public static void sample(boolean atOnce) {
        long now = System.nanoTime();
        if (!atOnce && now - reportedAt < TELL_EVERY_NS) {
            return;
        }
        reportedAt = now;
        for (Connection c = CHANGED.poll(); c != null; c = CHANGED.poll()) {
            c.changed.set(false);
            Wait wait = new Wait(c);
            if (wait.reads + wait.writes > 0) {
                Hooks.record(wait);
            }
        }
    }

    /** What this thread was blocked so far: {reads, writes}, nanoseconds; to be read only. */
    static long[] mine() {
        return MINE.get();
    }

    /** The connection of a channel or socket; null = it has none, or is closed. */
    static Connection of(Object socket) throws Exception {
        Connection known = known(socket);
        if (known == null) {
            InetSocketAddress local;
            InetSocketAddress remote;
            try {
                local = Sockets.local(socket);
                remote = Sockets.remote(socket);
            } catch (IOException closed) {
                return null;
            }
            if (local == null || remote == null) {
                return null;
            }
            known = new Connection(local, remote);
            know(socket, known);
        }
        return known;
    }

    /** The connection that was remembered for an object; null = none. */
    static Connection known(Object of) {
        Known known = KNOWN.get(slot(of));
        return known == null || known.get() != of ? null : known.connection;
    }

    /** Remembers the connection of an object. */
    static void know(Object of, Connection connection) {
        KNOWN.set(slot(of), new Known(of, connection));
    }

    private static int slot(Object of) {
        int hash = System.identityHashCode(of);
        return (hash ^ hash >>> 12) & SLOTS - 1;
    }
}
