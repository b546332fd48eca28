package hadoptic.patch;

import hadoptic.hook.Handler;
import hadoptic.hook.Hooks;
import hadoptic.log.Cpu;
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
    private static final LongAdder CPU = new LongAdder();
    /** Classes of which it was told that they are not as expected: more than one loader may load a class. */
    private final Set<String> drifted = ConcurrentHashMap.newKeySet();

    private final Map<String, List<Numbered>> points = new HashMap<String, List<Numbered>>();
    private final Set<String> tagged;
    /** Classes with points, as Class.getName() tells them. */
    private final Set<String> dotted = new HashSet<String>();
    private final Handler[] handlers;

    /** A hook point and the number by which the patched code names it. */
    static final class Numbered {
        final HookPoint point;
        final int number;

        Numbered(HookPoint point, int number) {
            this.point = point;
            this.number = number;
        }
    }

    /** For these points and tagged classes. */
    public Patcher(List<HookPoint> all, List<String> tagged) {
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

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        if (name == null) {
            return UNCHANGED;
        }
        List<Numbered> ofClass = points.get(name);
        if (ofClass == null && !tagged.contains(name)) {
            return UNCHANGED;
        }
        long begin = System.nanoTime();
        long used = Cpu.ofThread();
        try {
            return patch(bytes, ofClass == null ? new ArrayList<Numbered>() : ofClass,
                    redefined == null && tagged.contains(name), name);
        } catch (Throwable refused) {
            drifted(name, "", "class " + name.replace('/', '.') + " is not patched: " + refused);
            return UNCHANGED;
        } finally {
            CPU.add(Cpu.ofThread() - used);
            NANOSECONDS.add(System.nanoTime() - begin);
        }
    }

    /** Time spent with patching so far, nanoseconds. */
    public static long nanoseconds() {
        return NANOSECONDS.sum();
    }

    /** CPU time of that, nanoseconds: each class has an error of a tick, their sum has not. */
    public static long cpu() {
        return CPU.sum();
    }

    private void drifted(String name, String method, String said) {
        if (drifted.add(name + ' ' + method)) {
            Hooks.record(new Drift(System.nanoTime(), name, method));
            System.err.println("hadoptic: " + said);
        }
    }

    private byte[] patch(byte[] bytes, List<Numbered> points, boolean tag, String name) {
        ClassReader reader = new ClassReader(bytes);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        ClassPatch patch = new ClassPatch(writer, points, tag);
        reader.accept(patch, ClassReader.EXPAND_FRAMES);
        for (HookPoint missing : patch.missing()) {
            drifted(name, missing.method, name.replace('/', '.') + " has no method " + missing.method
                    + " as expected in this version of Hadoop");
        }
        return writer.toByteArray();
    }
}
