package hadoptic.hook;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Hadoop's own shutdown hook: closes file systems and stops services, which still talks to others. */
public final class ShutdownHandlers {
    /** Class of the thread that Hadoop 2.x and 3.x register as shutdown hook. */
    public static final String HADOOPS_HOOK = "org/apache/hadoop/util/ShutdownHookManager$1";

    private static final CountDownLatch RAN = new CountDownLatch(1);
    private static volatile boolean registered;

    private ShutdownHandlers() {}

    /** Waits until that hook has run, where there is one; the JVM waits for it anyway. */
    public static void await(long longestMs) throws InterruptedException {
        if (registered) {
            RAN.await(longestMs, TimeUnit.MILLISECONDS);
        }
    }

    /** Its constructor. */
    public static final class Registered extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            registered = true;
            return null;
        }
    }

    /** Its run(), or work(). */
    public static final class Ran extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            RAN.countDown();
        }
    }
}
