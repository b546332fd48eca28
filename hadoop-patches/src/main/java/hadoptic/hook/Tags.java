package hadoptic.hook;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What the agent knows of objects of Hadoop's. Classes that load while it is there get a field for it ({@link Tagged});
 * classes that were there before, in a JVM to which it was attached, cannot: theirs lies in a table beside them.
 */
public final class Tags {
    private static final ConcurrentHashMap<Key, Object> BESIDE = new ConcurrentHashMap<Key, Object>();
    private static final ReferenceQueue<Object> GONE = new ReferenceQueue<Object>();
    private static volatile boolean attached;

    private Tags() {}

    /** The agent came late: some classes have no field. */
    public static void attached() {
        attached = true;
    }

    /** What was put last, null = nothing. */
    static Object get(Object object) {
        if (object instanceof Tagged) {
            return ((Tagged) object).hadoptic$tag();
        }
        return object == null || !attached ? null : BESIDE.get(new Key(object, null));
    }

    /** Puts something, null = nothing. */
    static void put(Object object, Object tag) {
        if (object instanceof Tagged) {
            ((Tagged) object).hadoptic$tag(tag);
        } else if (object != null && attached) {
            for (Reference<?> gone = GONE.poll(); gone != null; gone = GONE.poll()) {
                BESIDE.remove(gone);
            }
            if (tag == null) {
                BESIDE.remove(new Key(object, null));
            } else {
                BESIDE.put(new Key(object, GONE), tag);
            }
        }
    }

    /** An object by its identity, which may go. */
    private static final class Key extends WeakReference<Object> {
        private final int hash;

        Key(Object object, ReferenceQueue<Object> queue) {
            super(object, queue);
            hash = System.identityHashCode(object);
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return this == other || other instanceof Key && get() != null && ((Key) other).get() == get();
        }
    }
}
