package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import hadoptic.agent.Identity;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * JVMs in namespaces, as containers have them: what the header says leads to one process of the machine, and its records lie
 * where those of the others do.
 */
class NamespacesTest {
    @TempDir
    static Path built;

    @TempDir
    Path capture;

    private Path shared;

    @BeforeAll
    static void build() throws Exception {
        Jvm.build(built);
    }

    @BeforeEach
    void makeShared() throws Exception {
        assumeTrue(Jvm.isRoot(), "namespaces need root");
        Files.setPosixFilePermissions(capture, PosixFilePermissions.fromString("rwxr-xr-x"));
        shared = Files.createDirectory(capture.resolve("jvm"));
        Files.setAttribute(shared, "unix:mode", 03777);
    }

    /** What one says of itself that stays until it has been looked for from outside. */
    private static final class Seen {
        private String header;
        private final List<String> processes = new ArrayList<>();
        private Path file;

        long number(String key) {
            return Long.parseLong(header.replaceAll(".*\"" + key + "\":(\\d+).*", "$1"));
        }
    }

    private Seen look(String... namespace) throws Exception {
        List<String> command = new ArrayList<>(Arrays.asList(namespace));
        command.addAll(Jvm.command(built, "flush_ms=20,out=" + shared, "hadoptic.SocketProgram", "stay"));
        Path out = Files.createTempFile(capture, "jvm", ".out");
        Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
        try {
            Seen seen = new Seen();
            for (int i = 0; i < 600 && process.isAlive() && seen.header == null; i++) {
                Thread.sleep(100);
                for (Path file : Jvm.records(shared)) {
                    List<String> lines = Files.readAllLines(file);
                    seen.header = lines.isEmpty() ? null : lines.get(0);
                    seen.file = file;
                }
            }
            String said = new String(Files.readAllBytes(out), StandardCharsets.UTF_8);
            assumeTrue(process.isAlive() || !said.contains("unshare"), "this kernel allows no such namespace: " + said);
            assertTrue(seen.header != null, said);
            seen.processes.addAll(sameProcesses(seen));
            return seen;
        } finally {
            try {
                process.getOutputStream().write('\n');
                process.getOutputStream().close();
            } catch (IOException ended) {
                // it did not start
            }
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }
    }

    /** Processes of the machine that have a header's start, its network namespace, and its id outside or innermost. */
    private static List<String> sameProcesses(Seen seen) throws IOException {
        List<String> same = new ArrayList<>();
        try (Stream<Path> all = Files.list(Paths.get("/proc"))) {
            for (Path each : all.filter(p -> p.getFileName().toString().matches("\\d+")).collect(Collectors.toList())) {
                try {
                    String pid = each.getFileName().toString();
                    long ticks = Identity.startTicks(text(each.resolve("stat")));
                    String[] ids = text(each.resolve("status")).replaceAll("(?s).*\nNSpid:\\s*([^\n]*)\n.*", "$1").split("\\s+");
                    String netns = Files.readSymbolicLink(each.resolve("ns/net")).toString().replaceAll("\\D", "");
                    if (ticks == seen.number("start_ticks") && netns.equals("" + seen.number("netns"))
                            && Arrays.asList(pid, ids[ids.length - 1]).contains("" + seen.number("pid"))) {
                        same.add(pid);
                    }
                } catch (IOException | RuntimeException ended) {
                    // between two looks
                }
            }
        }
        return same;
    }

    private static String text(Path path) throws IOException {
        return new String(Files.readAllBytes(path), StandardCharsets.UTF_8);
    }

    @Test
    void inAProcessNamespaceItIsKnownByItsIdThereAndItsStart() throws Exception {
        Seen seen = look("unshare", "--pid", "--fork", "--mount-proc");
        assertEquals(1, seen.processes.size(), seen.header);
        assertTrue(seen.number("pid") < 10, seen.header);
        assertFalse(seen.processes.contains("" + seen.number("pid")), "another id outside");
        assertFalse(seen.header.contains("ns_pid"), seen.header);
    }

    @Test
    void withTheProcOfTheMachineItSaysBothIds() throws Exception {
        Seen seen = look("unshare", "--pid", "--fork");
        assertEquals(Arrays.asList("" + seen.number("pid")), seen.processes, seen.header);
        assertTrue(seen.header.contains("\"ns_pid\":[" + seen.number("pid") + ",1]"), seen.header);
    }

    @Test
    void aHostNameOfItsOwnChangesNothingOfWhereItWrites() throws Exception {
        Seen seen = look("unshare", "--uts", "/bin/sh", "-c", "echo container-7 >/proc/sys/kernel/hostname; exec \"$@\"", "sh");
        assertTrue(seen.header.contains("\"host\":\"container-7\""), seen.header);
        assertEquals(shared.resolve("0"), seen.file.getParent());
        assertEquals(1, seen.processes.size());
    }

    @Test
    void inANetworkNamespaceThatOneIsNamed() throws Exception {
        Seen seen = look("unshare", "--net");
        assertEquals(1, seen.processes.size(), seen.header);
        String ours = Files.readSymbolicLink(Paths.get("/proc/self/ns/net")).toString().replaceAll("\\D", "");
        assertFalse(ours.equals("" + seen.number("netns")), seen.header);
    }

    @Test
    void inATimeNamespaceItsStartIsThatOfTheMachine() throws Exception {
        Seen seen = look("unshare", "--time", "--boottime", "100000", "--fork");
        assertEquals(1, seen.processes.size(), seen.header);
    }

    @Test
    void aUserWhoIsRootInHisNamespaceOnlyWritesUnderHisOwnNumber() throws Exception {
        // what root of the machine has is a stranger's in there
        Jvm.said(Jvm.command(built, "out=" + shared, "hadoptic.PremainCost"));
        for (Path file : Jvm.records(shared)) {
            Files.delete(file);
        }
        List<String> asNobody = Jvm.as(Jvm.NOBODY, Arrays.asList("unshare", "--user", "--map-root-user"));
        Seen seen = look(asNobody.toArray(new String[0]));
        assertEquals(shared.resolve("" + Jvm.NOBODY), seen.file.getParent());
        assertEquals(Jvm.NOBODY, Files.getAttribute(seen.file, "unix:uid", LinkOption.NOFOLLOW_LINKS));
        assertEquals(1, seen.processes.size(), seen.header);
    }

    @Test
    void aContainerWithAllNamespacesIsOneProcess() throws Exception {
        Seen seen = look("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--uts", "--net", "--ipc");
        assertEquals(1, seen.processes.size(), seen.header);
        assertEquals(shared.resolve("0"), seen.file.getParent());
    }
}
