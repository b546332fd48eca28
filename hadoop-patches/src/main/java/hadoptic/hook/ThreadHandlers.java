package hadoptic.hook;

import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** Threads that start threads, and threads that hand tasks to pools and events to dispatchers. */
public final class ThreadHandlers {
    private ThreadHandlers() {}

    private static final class Causes implements Record {
        private final long t;
        private final long from;
        private final long to;
        private final String name;

        Causes(long t, long from, Thread to) {
            this.t = t;
            this.from = from;
            this.to = to.getId();
            this.name = to.getName();
        }

        @Override
        public void write(JsonLine line) {
            line.begin("thread").time("t", t).number("th", from).number("child", to).string("name", name).end();
        }
    }

    /** Thread.start(). */
    public static final class Started extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Hooks.record(new Causes(now, Thread.currentThread().getId(), (Thread) self));
            return null;
        }
    }

    /** Runtime.halt(int): shutdown hooks do not run. */
    public static final class Halting extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Hooks.halting();
            return null;
        }
    }

    /**
     * Tasks that wait in a pool, by identity, in a table of fixed size: a newer task may displace an older one, whose
     * hand-over is then not told. Tasks are held weakly.
     */
    private static final class Waiting extends WeakReference<Object> {
        private static final int SLOTS = 4096;
        private static final AtomicReferenceArray<Waiting> TABLE = new AtomicReferenceArray<Waiting>(SLOTS);

        private final long from;

        private Waiting(Object task, long from) {
            super(task);
            this.from = from;
        }

        static void put(Object task, long from) {
            TABLE.set(slot(task), new Waiting(task, from));
        }

        /** The thread that handed the task over; 0 = not known. */
        static long take(Object task) {
            int slot = slot(task);
            Waiting waiting = TABLE.get(slot);
            if (waiting == null || waiting.get() != task) {
                return 0;
            }
            TABLE.compareAndSet(slot, waiting, null);
            return waiting.from;
        }

        private static int slot(Object task) {
            int hash = System.identityHashCode(task);
            return (hash ^ hash >>> 12) & SLOTS - 1;
        }
    }

    private static void taken(Object task, long now) {
        long from = Waiting.take(task);
        Thread to = Thread.currentThread();
        if (from != 0 && from != to.getId()) {
            Hooks.record(new Causes(now, from, to));
        }
    }

    /** A method that gets a task or an event, the last argument, to be worked on by another thread. */
    public static final class HandedOver extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Object task = arguments[arguments.length - 1];
            if (task != null) {
                Waiting.put(task, Thread.currentThread().getId());
            }
            return null;
        }
    }

    /** A method that begins to work on a task or an event, the last argument. */
    public static final class Taken extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Object task = arguments[arguments.length - 1];
            if (task != null) {
                taken(task, now);
            }
            return null;
        }
    }

    /** A method of the thing itself that is to be worked on by another thread. */
    public static final class LeavesItself extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) {
            Waiting.put(self, Thread.currentThread().getId());
            return null;
        }
    }

    /** A method that returns, perhaps after a wait, what is to be worked on. */
    public static final class Gets extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) {
            if (result != null) {
                taken(result, now);
            }
        }
    }
}
