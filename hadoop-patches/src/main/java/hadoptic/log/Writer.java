package hadoptic.log;

import hadoptic.file.Inode;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The one thread that formats records and writes them, in batches that each begin with both clocks.
 *
 * <p>It ends with the JVM only. Whatever it meets, want of memory too, costs records, which are counted: {@code dropped} are
 * those for which this JVM had no room or time, {@code unwritten} those for which the disk had none.
 */
public final class Writer implements Runnable {
    /** An idle JVM says so often that it lives, in nanoseconds. */
    private static final long SIGN_OF_LIFE_NS = 2_000_000_000L;
    /** Records and bytes of one batch; it is formatted in memory. */
    private static final int BATCH = 4096;
    private static final int MAX_BATCH_BYTES = 1 << 20;
    /** Readers take no longer lines. */
    private static final int MAX_LINE_BYTES = 1 << 16;
    /** Pause after a failure, in nanoseconds. */
    private static final long RECOVER_NS = 200_000_000L;

    /** What is looked at before each batch. */
    public interface Sampler {
        /** Adds records of what ended unseen. */
        void sample();

        /** Adds to the record of the clocks. */
        default void tell(JsonLine clock) {}
    }

    private final Path path;
    private final OutputStream file;
    private final DiskQuota quota;
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
    private volatile long unwritten;
    private long unwrittenTold;
    /** Records that were taken from the buffer and are neither written nor counted as lost. */
    private int inHand;
    /** Whether the last batch had no room for more. */
    private boolean full;
    private boolean headerWritten;
    private long lastWrite;
    private long bytesWritten;
    private boolean afterTornBatch;
    private boolean failureTold;

    /** Makes the file, which must not exist, for this user and its group; {@link #start()} begins to write. */
    public Writer(Path path, DiskQuota quota, Buffer buffer, Record header, Sampler sampler, long intervalMs)
            throws IOException {
        Set<PosixFilePermission> permissions = PosixFilePermissions.fromString("rw-r-----");
        // the JDK opens it with O_CREAT, O_EXCL and O_NOFOLLOW; the folder is this user's alone
        Files.createFile(path, PosixFilePermissions.asFileAttribute(permissions));
        if ((Inode.at(path).mode & 0777) != 0640) {
            // the mask of this process takes more away
            Files.setPosixFilePermissions(path, permissions);
        }
        this.path = path;
        this.file = new FileOutputStream(path.toFile(), true);
        this.quota = quota;
        this.buffer = buffer;
        this.header = header;
        this.sampler = sampler;
        this.intervalNs = TimeUnit.MILLISECONDS.toNanos(intervalMs);
        this.thread = new Thread(outermost(), this, "hadoptic-writer");
        this.thread.setDaemon(true);
    }

    /** No program interrupts the threads of the outermost group. */
    private static ThreadGroup outermost() {
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        while (group.getParent() != null) {
            group = group.getParent();
        }
        return group;
    }

    /** Begins to write. */
    public void start() {
        thread.start();
    }

    /** Takes the file away again: nothing was started. */
    public void abandon() throws IOException {
        file.close();
        Files.deleteIfExists(path);
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

    /** Records so far for which the disk had no room. */
    public long unwritten() {
        return unwritten;
    }

    @Override
    public void run() {
        long pause = intervalNs;
        while (!stop) {
            try {
                Thread.interrupted();
                long question = asked.get();
                boolean idle = !batches();
                answered = question;
                // who has nothing to say is woken less often, but is not late with a sign of life
                pause = idle ? Math.max(intervalNs, Math.min(2 * pause, SIGN_OF_LIFE_NS)) : intervalNs;
                if (!stop) {
                    LockSupport.parkNanos(pause);
                }
            } catch (Throwable failure) {
                recover(failure);
            }
        }
        try {
            batches();
        } catch (Throwable failure) {
            recover(failure);
        }
        try {
            line.clock(clock.read());
            last.write(line);
            put();
            file.close();
        } catch (Throwable failure) {
            recover(failure);
        } finally {
            ended.countDown();
        }
    }

    /** Counts what was in hand as dropped, and goes on. There may be no memory to say so. */
    private void recover(Throwable failure) {
        line.cut(0);
        buffer.addDropped(inHand);
        inHand = 0;
        try {
            tell(failure);
            LockSupport.parkNanos(RECOVER_NS);
        } catch (Throwable again) {
            // what was lost is counted
        }
    }

    /** Writes all that waits; false = nothing did. */
    private boolean batches() {
        try {
            sampler.sample();
        } catch (VirtualMachineError serious) {
            throw serious;
        } catch (Throwable failure) {
            tell(failure);
        }
        int first = batch();
        for (int records = first; records > 0 && full; records = batch()) {
            // more is waiting
        }
        return first > 0;
    }

    /** Writes what waits, as far as it fits into a batch; returns how many records that were. */
    private int batch() {
        full = false;
        Record record = take();
        long dropped = buffer.dropped();
        long unwrittenBefore = unwritten;
        if (record == null && headerWritten && dropped == droppedTold && System.nanoTime() - lastWrite < SIGN_OF_LIFE_NS) {
            return 0;
        }
        begin(dropped);
        int begun = line.length();
        int records = 0;
        while (record != null) {
            format(record);
            full = ++records == BATCH || line.length() >= MAX_BATCH_BYTES;
            record = full ? null : take();
        }
        if (!quota.take(line.length())) {
            unwritten += inHand;
            inHand = 0;
            // who the JVM is stands there in any case, and in its end what could not be written
            line.cut(headerWritten ? 0 : begun);
            if (headerWritten) {
                lastWrite = System.nanoTime();
                return records;
            }
        }
        if (put()) {
            headerWritten = true;
            droppedTold = dropped;
            unwrittenTold = unwrittenBefore;
        }
        return records;
    }

    private Record take() {
        Record record = buffer.poll();
        inHand += record == null ? 0 : 1;
        return record;
    }

    /** What stands before the records of a batch. */
    private void begin(long dropped) {
        line.clock(clock.read());
        if (afterTornBatch) {
            line.tear();
        }
        if (!headerWritten) {
            header.write(line);
        }
        line.begin("clock").number("t", clock.wall).number("mono", clock.monotonic).number("dropped", dropped - droppedTold)
                .some("unwritten", unwritten - unwrittenTold);
        sampler.tell(line);
        line.end();
    }

    private void format(Record record) {
        int begin = line.length();
        try {
            record.write(line);
            if (line.length() - begin <= MAX_LINE_BYTES) {
                return;
            }
        } catch (VirtualMachineError serious) {
            throw serious;
        } catch (Throwable failure) {
            tell(failure);
        }
        line.cut(begin);
        inHand--;
        buffer.addDropped(1);
    }

    /** Writes what was formatted; false = it could not be, and the records of it are counted. */
    private boolean put() {
        int whole = line.length();
        lastWrite = System.nanoTime();
        try {
            line.writeTo(file);
            bytesWritten += whole;
            inHand = 0;
            afterTornBatch = false;
            failureTold = false;
            return true;
        } catch (IOException failure) {
            // a full disk: the next batch starts on a new line
            long there = path.toFile().length();
            afterTornBatch |= there > bytesWritten;
            bytesWritten = Math.max(there, bytesWritten);
            unwritten += inHand;
            inHand = 0;
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
