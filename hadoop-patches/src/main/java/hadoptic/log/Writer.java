package hadoptic.log;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.HashSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/** The one thread that formats records and writes them, in batches that each begin with both clocks. */
public final class Writer implements Runnable {
    /** An idle JVM says so often that it lives, in nanoseconds. */
    private static final long SIGN_OF_LIFE_NS = 2_000_000_000L;
    /** Records of one batch; a batch is formatted in memory. */
    private static final int BATCH = 4096;

    /** What is looked at before each batch. */
    public interface Sampler {
        /** Adds records of what ended unseen. */
        void sample();

        /** Adds to the record of the clocks. */
        default void tell(JsonLine clock) {}
    }

    private final SeekableByteChannel file;
    private final Buffer buffer;
    private final Record header;
    private final Sampler sampler;
    private final WallClock clock = new WallClock();
    private final JsonLine line = new JsonLine();
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile long intervalNs;
    private volatile boolean stop;
    private final AtomicLong asked = new AtomicLong();
    private volatile long answered;
    private volatile Record last;
    private long droppedTold;
    private boolean headerWritten;
    private long lastWrite;
    private boolean afterTornBatch;
    private boolean failureTold;

    /** Opens the file, which must not exist, for this user only; {@link #start()} begins to write. */
    public Writer(Path path, Buffer buffer, Record header, Sampler sampler, long intervalMs) throws IOException {
        this.file = Files.newByteChannel(path,
                new HashSet<OpenOption>(Arrays.asList(
                        StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        this.buffer = buffer;
        this.header = header;
        this.sampler = sampler;
        this.intervalNs = TimeUnit.MILLISECONDS.toNanos(intervalMs);
        this.thread = new Thread(this, "hadoptic-writer");
        this.thread.setDaemon(true);
    }

    /** Begins to write. */
    public void start() {
        thread.start();
    }

    /** Asks for a batch now; returns at once. */
    public void kick() {
        asked.incrementAndGet();
        LockSupport.unpark(thread);
    }

    /** Asks for a batch that holds all that was added before, and waits for it, so long at most. */
    public void flush(long waitMs) {
        long mine = asked.incrementAndGet();
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
        while (answered < mine && System.nanoTime() < until && ended.getCount() > 0) {
            LockSupport.unpark(thread);
            LockSupport.parkNanos(200_000);
        }
    }

    /** From now on batches are written so often: the JVM is about to end. */
    public void hurry(long intervalMs) {
        intervalNs = TimeUnit.MILLISECONDS.toNanos(intervalMs);
        kick();
    }

    /** Writes what is there and a last record, and ends; waits so long at most. */
    public void close(Record lastRecord, long waitMs) {
        last = lastRecord;
        stop = true;
        LockSupport.unpark(thread);
        try {
            ended.await(waitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException hurried) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void run() {
        try {
            batch();
            long pause = intervalNs;
            while (!stop) {
                LockSupport.parkNanos(pause);
                long question = asked.get();
                boolean idle = !batches();
                answered = question;
                // who has nothing to say is woken less often, but is not late with a sign of life
                pause = idle ? Math.max(intervalNs, Math.min(2 * pause, SIGN_OF_LIFE_NS)) : intervalNs;
            }
            batches();
            line.clock(clock.read());
            last.write(line);
            put(0);
            file.close();
        } catch (Throwable failure) {
            tell(failure);
        } finally {
            ended.countDown();
        }
    }

    /** Writes all that waits; false = nothing did. */
    private boolean batches() {
        try {
            sampler.sample();
        } catch (Throwable failure) {
            tell(failure);
        }
        int first = batch();
        for (int records = first; records == BATCH; records = batch()) {
            // more is waiting
        }
        return first > 0;
    }

    private int batch() {
        int records = 0;
        Record record = buffer.poll();
        long dropped = buffer.dropped();
        if (record == null && headerWritten && dropped == droppedTold && System.nanoTime() - lastWrite < SIGN_OF_LIFE_NS) {
            return 0;
        }
        line.clock(clock.read());
        if (afterTornBatch) {
            line.tear();
        }
        if (!headerWritten) {
            header.write(line);
        }
        line.begin("clock").number("t", clock.wall).number("mono", clock.monotonic)
                .number("dropped", dropped - droppedTold);
        sampler.tell(line);
        line.end();
        for (; record != null; record = buffer.poll()) {
            int begin = line.length();
            try {
                record.write(line);
            } catch (Throwable failure) {
                line.cut(begin);
                buffer.addDropped(1);
                tell(failure);
            }
            records++;
            if (records == BATCH) {
                break;
            }
        }
        if (put(records)) {
            headerWritten = true;
            droppedTold = dropped;
        }
        return records;
    }

    /** Writes what was formatted; false = it could not be, and the records of it are lost and counted. */
    private boolean put(int records) {
        ByteBuffer bytes = line.view();
        int whole = bytes.remaining();
        lastWrite = System.nanoTime();
        try {
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
            afterTornBatch = false;
            failureTold = false;
            return true;
        } catch (IOException failure) {
            // a full disk: the next batch starts on a new line
            afterTornBatch |= bytes.remaining() < whole;
            buffer.addDropped(records);
            tell(failure);
            return false;
        } finally {
            line.cut(0);
        }
    }

    private void tell(Throwable failure) {
        if (!failureTold) {
            failureTold = true;
            System.err.println("hadoptic: records of this JVM are not written: " + failure);
        }
    }
}
