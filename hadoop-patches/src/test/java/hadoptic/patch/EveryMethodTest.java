package hadoptic.patch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.hook.Handler;
import hadoptic.hook.Hooks;
import hadoptic.log.Buffer;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A class that the JVM refuses would end the program that loads it, and nobody could help it then. So whatever method is
 * patched, of whatever class of Hadoop's, the JVM takes it: each method of each class is patched, and verified by this JVM.
 */
class EveryMethodTest {
    /** Of each jar one class in so many, for the time that it takes. */
    private static final int ONE_IN = 5;

    /** Defines all classes of Hadoop's, those that were patched as patched, and leaves only others to the class path. */
    private static final class Loader extends ClassLoader {
        private final Map<String, byte[]> patched;

        Loader(Map<String, byte[]> patched) {
            super(EveryMethodTest.class.getClassLoader());
            this.patched = patched;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                if (known != null || !name.startsWith("org.apache.hadoop.")) {
                    return known != null ? known : super.loadClass(name, resolve);
                }
                byte[] bytes = patched.get(name.replace('.', '/'));
                try (InputStream original = getResourceAsStream(name.replace('.', '/') + ".class")) {
                    if (bytes == null && original == null) {
                        throw new ClassNotFoundException(name);
                    }
                    byte[] taken = bytes == null ? all(original) : bytes;
                    return defineClass(name, taken, 0, taken.length);
                } catch (IOException unreadable) {
                    throw new ClassNotFoundException(name, unreadable);
                }
            }
        }
    }

    private static List<HookPoint> everyMethod(String owner, byte[] bytes, boolean arguments) {
        Map<String, HookPoint> points = new HashMap<>();
        Handler nothing = new Handler() {};
        new ClassReader(bytes).accept(new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] thrown) {
                if (!name.equals("<clinit>")) {
                    HookPoint point = HookPoint.at(owner, name, nothing).withExit().optional();
                    points.put(name, arguments ? point.withArguments() : point);
                }
                return null;
            }
        }, ClassReader.SKIP_CODE);
        return new ArrayList<>(points.values());
    }

    private static byte[] all(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] part = new byte[8192];
        for (int n = in.read(part); n > 0; n = in.read(part)) {
            bytes.write(part, 0, n);
        }
        return bytes.toByteArray();
    }

    /** Classes of a jar of Hadoop's, by name. */
    private static Map<String, byte[]> classes(File path) throws IOException {
        Map<String, byte[]> classes = new HashMap<>();
        int seen = 0;
        try (ZipFile jar = new ZipFile(path)) {
            for (ZipEntry entry : Collections.list(jar.entries())) {
                String name = entry.getName();
                if (name.startsWith("org/apache/hadoop/") && name.endsWith(".class") && seen++ % ONE_IN == 0) {
                    classes.put(name.substring(0, name.length() - 6), all(jar.getInputStream(entry)));
                }
            }
        }
        return classes;
    }

    @Test
    void theJvmTakesEachClassOfHadoopWithEachOfItsMethodsPatched() throws Exception {
        Hooks.install(new Handler[0], new Buffer(16));
        List<File> jars = Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(part -> part.matches(".*/hadoop-(common|hdfs-client|mapreduce-client-core)-3[^/]*\\.jar"))
                .map(File::new).collect(Collectors.toList());
        assertEquals(3, jars.size(), jars.toString());
        int verified = 0;
        List<String> refused = new ArrayList<>();
        for (File jar : jars) {
            Map<String, byte[]> patched = new HashMap<>();
            Map<String, byte[]> originals = classes(jar);
            for (Map.Entry<String, byte[]> each : originals.entrySet()) {
                Patcher patcher = new Patcher(everyMethod(each.getKey(), each.getValue(), patched.size() % 2 == 0),
                        Collections.<String>emptyList(), Prepared.none());
                byte[] bytes = patcher.patchWhole(each.getKey(), each.getValue());
                patched.put(each.getKey(), bytes);
            }
            Loader loader = new Loader(patched);
            for (String name : originals.keySet()) {
                try {
                    // links the class, and so verifies it, and runs nothing of it
                    Class.forName(name.replace('/', '.'), false, loader).getDeclaredMethods();
                    verified++;
                } catch (VerifyError | ClassFormatError refusal) {
                    refused.add(name + ": " + refusal);
                } catch (LinkageError missing) {
                    // a class of a library that is not there, or that another loader has
                }
            }
        }
        assertEquals("[]", refused.toString());
        assertTrue(verified > 600, "only " + verified);
    }
}
