package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The folder of a host is shared with users who are not trusted: what they have planted there is not followed. */
class SharedFolderTest {
    @TempDir
    static Path built;

    @TempDir
    Path capture;

    private Path host;

    @BeforeAll
    static void buildJar() throws Exception {
        AgentInJvmTest.buildJar(built);
    }

    @BeforeEach
    void name() throws Exception {
        host = capture.resolve(Files.readAllLines(Paths.get("/proc/sys/kernel/hostname")).get(0));
    }

    /** Runs a daemon to its end and returns what it printed. */
    private String daemon(String options) throws Exception {
        File out = File.createTempFile("jvm", ".out", built.toFile());
        Process process = new ProcessBuilder(System.getProperty("java.home") + "/bin/java",
                "-javaagent:" + built.resolve("agent.jar") + "=wait_ms=300,out=" + capture + options,
                "-cp", built + File.pathSeparator + AgentInJvmTest.classPath(), AgentInJvmTest.DAEMON, "sockets")
                .redirectErrorStream(true).redirectOutput(out).start();
        assertTrue(process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), "Hadoop goes on whatever the agent finds");
        return new String(Files.readAllBytes(out.toPath()), StandardCharsets.UTF_8);
    }

    private List<Path> recorded() throws Exception {
        try (Stream<Path> all = Files.walk(capture)) {
            return all.filter(p -> p.toString().endsWith(".jsonl")).collect(Collectors.toList());
        }
    }

    @Test
    void itIsMadeStickyAndItsFilesAreForTheirUserOnly() throws Exception {
        daemon("");
        assertEquals(01777, (Integer) Files.getAttribute(host, "unix:mode") & 07777);
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(recorded().get(0))));
    }

    @Test
    void aFolderInWhichAnybodyCouldReplaceFilesIsRefused() throws Exception {
        Files.createDirectory(host);
        Files.setPosixFilePermissions(host, PosixFilePermissions.fromString("rwxrwxrwx"));
        assertTrue(daemon("").contains("chmod +t"));
        assertTrue(recorded().isEmpty());
    }

    @Test
    void aLinkInPlaceOfTheFolderIsRefused() throws Exception {
        Path elsewhere = Files.createDirectory(capture.resolve("elsewhere"));
        Files.createSymbolicLink(host, elsewhere);
        assertTrue(daemon("").contains("is a link"));
        assertTrue(recorded().isEmpty());
    }

    @Test
    void aLinkInPlaceOfALogIsNotWrittenThrough() throws Exception {
        Files.createDirectory(host);
        Files.setAttribute(host, "unix:mode", 01777);
        Path victim = Files.write(capture.resolve("victim"), "untouched".getBytes(StandardCharsets.US_ASCII));
        Files.createSymbolicLink(host.resolve("sniffer.log"), victim);
        Files.createLink(host.resolve("dumpingd.log"), victim);
        String said = daemon(",linger_ms=0,sniffer=/bin/echo,dumpingd=/bin/echo");
        assertTrue(said.contains("sniffer.log is not a file of this user's own"), said);
        assertTrue(said.contains("dumpingd.log is not a file of this user's own"), said);
        assertEquals("untouched", new String(Files.readAllBytes(victim), StandardCharsets.US_ASCII));
        assertEquals(1, recorded().size(), "the JVM is recorded all the same");
    }

    @Test
    void aLockThatIsALinkOrAnothersIsNotBelieved() throws Exception {
        Files.createDirectory(host);
        Files.setAttribute(host, "unix:mode", 01777);
        Path victim = Files.write(capture.resolve("victim"), "untouched".getBytes(StandardCharsets.US_ASCII));
        Files.createLink(host.resolve("agents.lock"), victim);
        daemon(",linger_ms=0,sniffer=/bin/echo");
        assertEquals("untouched", new String(Files.readAllBytes(victim), StandardCharsets.US_ASCII));
        assertFalse(Files.exists(host.resolve("sniffer.log"), LinkOption.NOFOLLOW_LINKS));
    }
}
