package hadoptic.hook;

import hadoptic.log.Buffer;
import hadoptic.log.Record;
import hadoptic.log.Writer;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/**
 * What patched classes call. Nothing is thrown into them and nothing waits; the time spent here is added up.
 *
 * <p>State is static because byte code in foreign classes can reach nothing else; it is set once, before the first
 * class is patched.
 */
public final class Hooks {
    private static final LongAdder NANOSECONDS = new LongAdder();
    private static final LongAdder STALLED = new LongAdder();
    /** What else a hook costs: its call, and this accounting; measured by HookCost. */
    private static final long BESIDE_NS = 40;
    /** The first hooks of a point load its classes: so many are all measured. */
    private static final int ALL_MEASURED = 64;
    /** Of the others one in so many is measured, and counts for them: to ask for the time costs as much as most hooks do. */
    private static final int ONE_IN = 16;
    /** A hook that takes longer is loading its classes, or its thread was not running. */
    private static final long STALL_NS = 1_000_000L;
    private static final AtomicLong FAILURES = new AtomicLong();
    /**
     * So many records are written at once, however short they have waited: what waits for long outlives collections of
     * the young garbage and makes them slow.
     */
    private static final int MANY_WAIT = 1024;
    private static volatile Handler[] handlers = new Handler[0];
    /** By point: how many were measured at its begin. Threads may overwrite each other here; it does not matter. */
    private static int[] measured = new int[0];
    private static volatile Buffer buffer = new Buffer(1024);
    private static volatile Writer writer;
    private static volatile boolean installed;

    private Hooks() {}

    /** Sets where calls and records go; handlers stand at the number of their hook point. */
    public static void install(Handler[] byNumber, Buffer records) {
        measured = new int[byNumber.length];
        handlers = byNumber;
        buffer = records;
        installed = true;
    }

    /** From now on hooks do nothing: the agent could not start. */
    public static void turnOff() {
        Handler[] idle = new Handler[handlers.length];
        Arrays.fill(idle, new Handler() {});
        handlers = idle;
        installed = false;
        buffer = new Buffer(0);
        writer = null;
    }

    /** Whether an agent is in this JVM already. */
    public static boolean areInstalled() {
        return installed;
    }

    /** Sets who is asked to write early. */
    public static void writer(Writer w) {
        writer = w;
    }

    /** A patched method begins. */
    public static Object enter(int point, Object self, Object[] arguments) {
        try {
            long now = System.nanoTime();
            Object token = handlers[point].enter(self, arguments, now);
            measure(point, now);
            return token;
        } catch (Throwable failure) {
            failed(point, failure);
            return null;
        }
    }

    /** A patched method ends. */
    public static void exit(int point, Object token, Object self, Object result, Throwable thrown) {
        try {
            long now = System.nanoTime();
            handlers[point].exit(token, self, result, thrown, now);
            measure(point, now);
        } catch (Throwable failure) {
            failed(point, failure);
        }
    }

    /** Notes something that happened. */
    public static void record(Record record) {
        if (buffer.add(record) == MANY_WAIT) {
            hurry();
        }
    }

    /** Asks for what is noted to be written soon: the JVM may end at any moment. */
    public static void hurry() {
        Writer w = writer;
        if (w != null) {
            w.kick();
        }
    }

    /** The JVM stops without its shutdown hooks: waits shortly for what is noted to be written. */
    public static void halting() {
        Writer w = writer;
        if (w != null) {
            w.flush(300);
        }
    }

    /** Time spent in hooks so far, nanoseconds; of points that are often passed an estimate. */
    public static long nanoseconds() {
        return NANOSECONDS.sum();
    }

    /** The part of it that passed in single hooks of more than 1 ms. */
    public static long stalled() {
        return STALLED.sum();
    }

    private static void measure(int point, long begin) {
        int[] begins = measured;
        if (point < begins.length && begins[point] < ALL_MEASURED) {
            begins[point]++;
            add(System.nanoTime() - begin, 1);
        } else if (begin * 0x9E3779B97F4A7C15L >>> 60 == 0) {
            // by the last digits of the clock, which are as good as any dice
            add(System.nanoTime() - begin, ONE_IN);
        }
    }

    private static void add(long ns, int hooks) {
        NANOSECONDS.add(hooks * (ns + BESIDE_NS));
        if (ns > STALL_NS) {
            STALLED.add(hooks * ns);
        }
    }

    /** Hooks that failed so far. */
    public static long failures() {
        return FAILURES.get();
    }

    private static void failed(int point, Throwable failure) {
        try {
            long count = FAILURES.incrementAndGet();
            if (failure instanceof VirtualMachineError) {
                // no memory or stack for the record of it
                buffer.addDropped(1);
            }
            if (count <= 3) {
                System.err.println("hadoptic: hook " + point + " failed: " + failure
                        + (failure.getStackTrace().length > 0 ? " at " + failure.getStackTrace()[0] : ""));
            }
        } catch (Throwable again) {
            // out of memory or stack: Hadoop goes on
        }
    }
}
