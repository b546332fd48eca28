package hadoptic;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.hook.Hooks;
import hadoptic.log.Buffer;
import hadoptic.patch.HookPoints;
import hadoptic.patch.Patcher;
import hadoptic.patch.Preparation;
import hadoptic.patch.Prepared;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classes that were patched beforehand are what they would be without, and a file that does not fit changes nothing. */
class PreparedTest {
    private static final String STREAMER = "org/apache/hadoop/hdfs/DataStreamer";

    @TempDir
    Path built;

    private File jar;
    private File patches;

    @BeforeEach
    void buildJar() throws Exception {
        AgentInJvmTest.buildJar(built);
        jar = built.resolve("agent.jar").toFile();
        patches = Prepared.beside(jar);
    }

    private static Patcher patcher(Prepared prepared) {
        Patcher patcher = new Patcher(HookPoints.all(), HookPoints.tagged(), prepared);
        Hooks.install(patcher.handlers(), new Buffer(1000));
        return patcher;
    }

    private static List<File> hadoopsJars() {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(part -> part.contains("hadoop-") && part.endsWith(".jar")).map(File::new).collect(Collectors.toList());
    }

    private void prepareHadoop() throws IOException {
        Preparation preparation = new Preparation();
        for (File each : hadoopsJars()) {
            preparation.addJar(each);
        }
        assertEquals("[]", preparation.refused().toString());
        assertEquals(patches, preparation.write(jar));
    }

    @Test
    void eachClassOfHadoopIsWhatItWouldBeWithout() throws Exception {
        prepareHadoop();
        Patcher with = patcher(Prepared.of(jar));
        Patcher without = patcher(Prepared.none());
        int classes = 0;
        List<String> names = new ArrayList<>(HookPoints.owners());
        names.addAll(HookPoints.tagged());
        for (String name : names) {
            if (!name.startsWith("org/apache/hadoop/") || ClassLoader.getSystemResource(name + ".class") == null) {
                continue;
            }
            byte[] original = PatchedClassesTest.original(name);
            long before = Patcher.preparedBefore();
            assertArrayEquals(without.transform(null, name, null, null, original), with.transform(null, name, null, null, original));
            assertEquals(before + 1, Patcher.preparedBefore(), name + " was not prepared");
            classes++;
        }
        assertTrue(classes > 40, "only " + classes);
    }

    @Test
    void aClassThatIsLoadedAlreadyGetsNoTagFromTheFile() throws Exception {
        prepareHadoop();
        byte[] original = PatchedClassesTest.original(STREAMER);
        assertArrayEquals(
                patcher(Prepared.none()).transform(null, STREAMER, String.class, null, original),
                patcher(Prepared.of(jar)).transform(null, STREAMER, String.class, null, original));
    }

    @Test
    void aClassThatIsNotTheSameIsPatchedAsItLoads() throws Exception {
        prepareHadoop();
        byte[] other = PatchedClassesTest.original("hadoptic/PatchedClassesTest$Changed");
        String task = "org/apache/hadoop/mapred/Task";
        long before = Patcher.preparedBefore();
        assertArrayEquals(
                patcher(Prepared.none()).transform(null, task, null, null, other),
                patcher(Prepared.of(jar)).transform(null, task, null, null, other));
        assertEquals(before, Patcher.preparedBefore());
    }

    @Test
    void ofADamagedFileNothingWrongIsTaken() throws Exception {
        prepareHadoop();
        byte[] whole = Files.readAllBytes(patches.toPath());
        byte[] original = PatchedClassesTest.original(STREAMER);
        byte[] right = patcher(Prepared.none()).transform(null, STREAMER, null, null, original);
        Random random = new Random(1);
        for (int i = 0; i < 300; i++) {
            byte[] damaged = i % 3 == 0 ? Arrays.copyOf(whole, random.nextInt(whole.length)) : whole.clone();
            for (int flips = 0; i % 3 != 0 && flips < 20; flips++) {
                // every other one into the head and the index
                damaged[random.nextInt(i % 2 == 0 ? 1400 : whole.length)] ^= (byte) (1 << random.nextInt(8));
            }
            Files.write(patches.toPath(), damaged);
            assertArrayEquals(right, patcher(Prepared.of(jar)).transform(null, STREAMER, null, null, original));
        }
    }

    @Test
    void whatWasPreparedForAnotherAgentIsNotUsed() throws Exception {
        prepareHadoop();
        File other = built.resolve("other.jar").toFile();
        // one bit of one class differs
        byte[] bytes = Files.readAllBytes(jar.toPath());
        bytes[bytes.length - 2000] ^= 1;
        Files.write(other.toPath(), bytes);
        Files.copy(patches.toPath(), Prepared.beside(other).toPath());
        long before = Patcher.preparedBefore();
        patcher(Prepared.of(other)).transform(null, STREAMER, null, null, PatchedClassesTest.original(STREAMER));
        assertEquals(before, Patcher.preparedBefore());
    }

    @Test
    void aJvmWithTheFileRecordsTheSameAndDoesNotStartTheLibraryThatPatches() throws Exception {
        String said = java(Arrays.asList("-javaagent:" + jar + "=prepare", "-cp", jar.toString(), "hadoptic.agent.Prepare",
                hadoopsJars().get(0).toString()), 0);
        assertTrue(said.contains("classes are prepared"), said);
        Path capture = built.resolve("capture");
        String classes = java(Arrays.asList("-verbose:class", "-javaagent:" + jar + "=keep_free=0,out=" + capture,
                "-cp", Paths.get(SocketProgram.class.getProtectionDomain().getCodeSource().getLocation().toURI()).toString(),
                "hadoptic.SocketProgram", "sockets"), 0);
        assertTrue(classes.contains("hadoptic.patch.Prepared"), classes);
        assertFalse(classes.contains(" org.objectweb.asm.ClassReader"), "the library was loaded");
        List<String> lines;
        try (Stream<Path> files = Files.walk(capture)) {
            lines = Files.readAllLines(files.filter(Files::isRegularFile).findFirst().get(), StandardCharsets.UTF_8);
        }
        assertEquals(SocketProgram.CONNECTIONS, lines.stream().filter(line -> line.contains("\"k\":\"open\"")).count());
        assertEquals(SocketProgram.CONNECTIONS, lines.stream().filter(line -> line.contains("\"k\":\"accept\"")).count());
        String end = lines.get(lines.size() - 1);
        String patched = end.replaceAll(".*\"patched\":(\\d+).*", "$1");
        assertTrue(Integer.parseInt(patched) >= 5, end);
        assertEquals(patched, end.replaceAll(".*\"prepared\":(\\d+).*", "$1"), end);
    }

    @Test
    void whatCannotBePreparedIsSaid() throws Exception {
        String agent = "-javaagent:" + jar + "=prepare";
        assertTrue(java(Arrays.asList(agent, "-cp", jar.toString(), "hadoptic.agent.Prepare", "/no/such/folder"), 2)
                .contains("/no/such/folder"));
        assertTrue(java(Arrays.asList(agent, "-cp", jar.toString(), "hadoptic.agent.Prepare"), 2).contains("usage:"));
        Path broken = Files.write(built.resolve("broken.jar"), new byte[] {1, 2, 3});
        assertTrue(java(Arrays.asList(agent, "-cp", jar.toString(), "hadoptic.agent.Prepare", broken.toString()), 2)
                .contains("broken.jar"));
        assertFalse(patches.exists());
    }

    /** Runs a JVM; returns what it said. */
    private static String java(List<String> arguments, int exit) throws Exception {
        List<String> command = new ArrayList<>(Arrays.asList(System.getProperty("java.home") + "/bin/java"));
        command.addAll(arguments);
        Path out = Files.createTempFile("jvm", ".out");
        try {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
            assertTrue(process.waitFor(60, TimeUnit.SECONDS), "JVM does not end");
            String said = new String(Files.readAllBytes(out), StandardCharsets.UTF_8);
            assertEquals(exit, process.exitValue(), said);
            return said;
        } finally {
            Files.delete(out);
        }
    }
}
