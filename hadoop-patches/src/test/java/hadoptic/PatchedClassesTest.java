package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.hook.Hooks;
import hadoptic.hook.Tagged;
import hadoptic.log.Buffer;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import hadoptic.patch.HookPoints;
import hadoptic.patch.Patcher;
import hadoptic.patch.Prepared;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.util.CheckClassAdapter;

/** Each class that is patched, out of the real Hadoop and this JDK: all methods are found, the result is valid. */
class PatchedClassesTest {
    private static final Patcher PATCHER = new Patcher(HookPoints.all(), HookPoints.tagged(), Prepared.none());

    static Stream<String> classes() {
        return Stream.concat(HookPoints.owners().stream(), HookPoints.tagged().stream()).distinct()
                .filter(name -> ClassLoader.getSystemResource(name + ".class") != null);
    }

    @ParameterizedTest
    @MethodSource("classes")
    void findsEachMethodOfHadoop342AndOfThisJdk(String name) throws Exception {
        Buffer records = new Buffer(100);
        Hooks.install(PATCHER.handlers(), records);
        byte[] patched = PATCHER.transform(null, name, null, null, original(name));
        assertNotNull(patched, "not patched: " + name);
        StringBuilder drift = new StringBuilder();
        for (Record r = records.poll(); r != null; r = records.poll()) {
            JsonLine line = new JsonLine();
            r.write(line);
            drift.append(line.take());
        }
        assertEquals("", drift.toString());
    }

    @ParameterizedTest
    @MethodSource("classes")
    void isValidByteCodeAfterwards(String name) throws Exception {
        Hooks.install(PATCHER.handlers(), new Buffer(100));
        byte[] patched = PATCHER.transform(null, name, null, null, original(name));
        StringWriter problems = new StringWriter();
        CheckClassAdapter.verify(new ClassReader(patched), getClass().getClassLoader(), false, new PrintWriter(problems));
        assertEquals("", problems.toString());
    }

    @ParameterizedTest
    @MethodSource("classes")
    void hadoopsClassesPassTheJvmsVerifier(String name) throws Exception {
        if (!name.startsWith("org/apache/hadoop/")) {
            return;
        }
        ClassLoader loader = new PatchingLoader();
        // static initializers of the schedulers load further classes through it
        Thread.currentThread().setContextClassLoader(loader);
        Class<?> patched;
        try {
            patched = Class.forName(name.replace('/', '.'), true, loader);
        } finally {
            Thread.currentThread().setContextClassLoader(getClass().getClassLoader());
        }
        assertEquals(HookPoints.tagged().contains(name), Tagged.class.isAssignableFrom(patched));
        // links it, whatever it has
        assertNotNull(patched.getDeclaredMethods());
    }

    @Test
    void leavesOtherClassesAlone() throws Exception {
        assertEquals(null, PATCHER.transform(null, "java/util/ArrayList", null, null, original("java/util/ArrayList")));
        assertEquals(null, PATCHER.transform(null, null, null, null, new byte[0]));
    }

    @Test
    void tellsOnceWhichMethodIsMissingAndStillPatchesTheRest() throws Exception {
        Buffer records = new Buffer(100);
        Hooks.install(PATCHER.handlers(), records);
        // A class of another shape under the name of a known one, as a later version of Hadoop may bring it.
        byte[] other = original("hadoptic/PatchedClassesTest$Changed");
        Patcher patcher = new Patcher(HookPoints.all(), HookPoints.tagged(), Prepared.none());
        assertNotNull(patcher.transform(null, "org/apache/hadoop/mapred/Task", null, null, other));
        // by another loader
        assertNotNull(patcher.transform(getClass().getClassLoader(), "org/apache/hadoop/mapred/Task", null, null, other));
        JsonLine line = new JsonLine();
        records.poll().write(line);
        assertTrue(line.take().contains("\"class\":\"org.apache.hadoop.mapred.Task\",\"method\":\"setPhase\""));
        assertEquals(null, records.poll());
    }

    @Test
    void refusesGarbageWithoutThrowing() {
        Buffer records = new Buffer(100);
        Hooks.install(PATCHER.handlers(), records);
        assertEquals(null, PATCHER.transform(null, "org/apache/hadoop/mapred/Task", null, null, new byte[] {1, 2, 3}));
        JsonLine line = new JsonLine();
        records.poll().write(line);
        assertTrue(line.take().contains("\"method\":\"\""));
    }

    /** Has one of the two methods that are looked for in {@code mapred.Task}. */
    static final class Changed {
        void done() {}
    }

    static byte[] original(String name) throws IOException {
        try (InputStream in = ClassLoader.getSystemResourceAsStream(name + ".class")) {
            assertNotNull(in, "no class " + name);
            return bytes(in);
        }
    }

    static byte[] bytes(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] part = new byte[8192];
        for (int n = in.read(part); n > 0; n = in.read(part)) {
            bytes.write(part, 0, n);
        }
        return bytes.toByteArray();
    }

    /** Defines Hadoop's classes itself, patched. */
    private static final class PatchingLoader extends ClassLoader {
        PatchingLoader() {
            super(PatchedClassesTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.hadoop.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null) {
                    return known;
                }
                try {
                    byte[] bytes = original(name.replace('.', '/'));
                    byte[] patched = PATCHER.transform(this, name.replace('.', '/'), null, null, bytes);
                    byte[] all = patched == null ? bytes : patched;
                    return defineClass(name, all, 0, all.length);
                } catch (IOException | AssertionError missing) {
                    throw new ClassNotFoundException(name, missing);
                }
            }
        }
    }
}
