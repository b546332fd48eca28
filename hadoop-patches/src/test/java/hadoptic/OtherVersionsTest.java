package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.hook.Hooks;
import hadoptic.log.Buffer;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import hadoptic.patch.HookPoints;
import hadoptic.patch.Patcher;
import hadoptic.patch.Prepared;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.analysis.Analyzer;
import org.objectweb.asm.tree.analysis.BasicValue;
import org.objectweb.asm.tree.analysis.BasicVerifier;

/** The stock classes of Hadoop 1.2.1, 2.10.2, 3.3.6 and 3.5.0: what is followed is there, and nothing is broken by it. */
class OtherVersionsTest {
    private static final Patcher PATCHER = new Patcher(HookPoints.all(), HookPoints.tagged(), Prepared.none());

    private static URLClassLoader jars(String version) throws IOException {
        Path folder = Paths.get("target", "hadoop-" + version);
        List<URL> jars = new ArrayList<>();
        try (Stream<Path> all = Files.list(folder)) {
            for (Path jar : all.collect(Collectors.toList())) {
                jars.add(jar.toUri().toURL());
            }
        }
        assertTrue(!jars.isEmpty(), "no jars in " + folder);
        return new URLClassLoader(jars.toArray(new URL[0]), null);
    }

    private static Set<String> names() {
        Set<String> names = new TreeSet<>(HookPoints.tagged());
        names.addAll(HookPoints.owners());
        names.removeIf(name -> !name.startsWith("org/apache/hadoop/"));
        return names;
    }

    @ParameterizedTest
    @ValueSource(strings = {"1.2.1", "2.10.2", "3.3.6", "3.5.0"})
    void noMethodIsMissingInAClassThatIsThere(String version) throws Exception {
        Buffer records = new Buffer(100);
        Hooks.install(PATCHER.handlers(), records);
        int patched = 0;
        try (URLClassLoader loader = jars(version)) {
            for (String name : names()) {
                byte[] original = original(loader, name);
                if (original != null) {
                    assertNotNull(PATCHER.transform(null, name, null, null, original), name);
                    patched++;
                }
            }
        }
        StringBuilder drift = new StringBuilder();
        for (Record r = records.poll(); r != null; r = records.poll()) {
            JsonLine line = new JsonLine();
            r.write(line);
            drift.append(line.take());
        }
        assertEquals("", drift.toString());
        assertEquals(PATCHED.get(version.charAt(0) - '1'), patched, "classes that are patched");
    }

    /** Classes with hook points or tags that versions 1.x, 2.x and 3.x have. */
    private static final List<Integer> PATCHED = Arrays.asList(28, 54, 52);

    @ParameterizedTest
    @ValueSource(strings = {"1.2.1", "2.10.2", "3.3.6", "3.5.0"})
    void patchedMethodsKeepTheirStackInOrder(String version) throws Exception {
        Hooks.install(PATCHER.handlers(), new Buffer(100));
        StringWriter problems = new StringWriter();
        try (URLClassLoader loader = jars(version)) {
            for (String name : names()) {
                byte[] original = original(loader, name);
                if (original == null) {
                    continue;
                }
                ClassNode node = new ClassNode();
                new ClassReader(PATCHER.transform(null, name, null, null, original)).accept(node, 0);
                for (MethodNode method : node.methods) {
                    try {
                        new Analyzer<BasicValue>(new BasicVerifier()).analyze(name, method);
                    } catch (Exception wrong) {
                        problems.append(name).append(' ').append(method.name).append(": ");
                        wrong.printStackTrace(new PrintWriter(problems));
                    }
                }
            }
        }
        assertEquals("", problems.toString());
    }

    private static byte[] original(URLClassLoader loader, String name) throws IOException {
        try (InputStream in = loader.getResourceAsStream(name + ".class")) {
            return in == null ? null : PatchedClassesTest.bytes(in);
        }
    }
}
