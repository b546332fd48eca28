package hadoptic.patch;

import hadoptic.hook.Handler;
import hadoptic.hook.Hooks;
import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;

/** Patches classes as they load. What is not asked for costs one look into a hash table. */
public final class Patcher implements ClassFileTransformer {
    private static final byte[] UNCHANGED = null;
    private static final LongAdder NANOSECONDS = new LongAdder();
    private static final LongAdder PATCHED = new LongAdder();
    private static final LongAdder PREPARED = new LongAdder();
    /** Classes of which it was told that they are not as expected: more than one loader may load a class. */
    private final Set<String> drifted = ConcurrentHashMap.newKeySet();

    private final Map<String, List<Numbered>> points = new HashMap<String, List<Numbered>>();
    private final Set<String> tagged;
    /** Classes with points, as Class.getName() tells them. */
    private final Set<String> dotted = new HashSet<String>();
    private final Handler[] handlers;
    private final Prepared prepared;

    /** A hook point and the number by which the patched code names it. */
    static final class Numbered {
        final HookPoint point;
        final int number;

        Numbered(HookPoint point, int number) {
            this.point = point;
            this.number = number;
        }
    }

    /** For these points and tagged classes; what is prepared was prepared for the same. */
    public Patcher(List<HookPoint> all, List<String> tagged, Prepared prepared) {
        this.prepared = prepared;
        this.tagged = new HashSet<String>(tagged);
        this.handlers = new Handler[all.size()];
        for (int i = 0; i < handlers.length; i++) {
            HookPoint point = all.get(i);
            handlers[i] = point.handler;
            List<Numbered> ofClass = points.get(point.owner);
            if (ofClass == null) {
                ofClass = new ArrayList<Numbered>();
                points.put(point.owner, ofClass);
                dotted.add(point.owner.replace('/', '.'));
            }
            ofClass.add(new Numbered(point, i));
        }
    }

    /** Handlers, at the numbers of their points. */
    public Handler[] handlers() {
        return handlers;
    }

    /** Whether a class (as in Class.getName()) is to be patched. */
    public boolean wants(String className) {
        return dotted.contains(className);
    }

    /** Whether a class (as in byte code) is patched or tagged when it loads. */
    boolean wantsToLoad(String name) {
        return points.containsKey(name) || tagged.contains(name);
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (name == null || !wantsToLoad(name)) {
            return UNCHANGED;
        }
        long begin = System.nanoTime();
        try {
            // a class that is loaded cannot be given a tag any more
            boolean tag = redefined == null && tagged.contains(name);
            byte[] known = tag == tagged.contains(name) ? prepared.patched(bytes) : null;
            PATCHED.increment();
            if (known != null) {
                PREPARED.increment();
                return known;
            }
            List<HookPoint> missing = new ArrayList<HookPoint>();
            byte[] patched = patch(bytes, ofClass(name), tag, missing);
            for (HookPoint point : missing) {
                drifted(name, point.method, name.replace('/', '.') + " has no method " + point.method
                        + " as expected in this version of Hadoop");
            }
            return patched;
        } catch (Throwable refused) {
            drifted(name, "", "class " + name.replace('/', '.') + " is not patched: " + refused);
            return UNCHANGED;
        } finally {
            NANOSECONDS.add(System.nanoTime() - begin);
        }
    }

    /** What a class becomes when it loads; null = it lacks a method that is expected. */
    byte[] patchWhole(String name, byte[] bytes) {
        List<HookPoint> missing = new ArrayList<HookPoint>();
        byte[] patched = patch(bytes, ofClass(name), tagged.contains(name), missing);
        return missing.isEmpty() ? patched : null;
    }

    /** Time spent with patching so far, nanoseconds. */
    public static long nanoseconds() {
        return NANOSECONDS.sum();
    }

    /** Classes patched so far. */
    public static long patched() {
        return PATCHED.sum();
    }

    /** Of these, those that were patched beforehand. */
    public static long preparedBefore() {
        return PREPARED.sum();
    }

    private List<Numbered> ofClass(String name) {
        List<Numbered> ofClass = points.get(name);
        return ofClass == null ? new ArrayList<Numbered>() : ofClass;
    }

    private void drifted(String name, String method, String said) {
        if (drifted.add(name + ' ' + method)) {
            Hooks.record(new Drift(System.nanoTime(), name, method));
            System.err.println("hadoptic: " + said);
        }
    }

    private static byte[] patch(byte[] bytes, List<Numbered> points, boolean tag, List<HookPoint> missing) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        ClassPatch patch = new ClassPatch(writer, points, tag);
        reader.accept(patch, ClassReader.EXPAND_FRAMES);
        missing.addAll(patch.missing());
        return writer.toByteArray();
    }
}
