package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where records lie: a folder of each user in one that all may write to, whatever others have planted there. */
class RecordFolderTest {
    private static final int GROUP = 4711;

    @TempDir
    static Path built;

    @TempDir
    Path capture;

    private Path shared;
    private String me;

    @BeforeAll
    static void build() throws Exception {
        Jvm.build(built);
    }

    @BeforeEach
    void makeShared() throws Exception {
        Files.setPosixFilePermissions(capture, PosixFilePermissions.fromString("rwxr-xr-x"));
        shared = Files.createDirectory(capture.resolve("jvm"));
        Files.setAttribute(shared, "unix:mode", 03777);
        me = Files.getAttribute(shared, "unix:uid").toString();
    }

    private List<String> hello() {
        return Jvm.command(built, "out=" + shared, "hadoptic.PremainCost");
    }

    @Test
    void eachUserHasAFolderOfHisOwnThatTheGroupMayRead() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        Files.setAttribute(shared, "unix:gid", GROUP);
        Files.setAttribute(shared, "unix:mode", 03777);
        Jvm.said(Jvm.as(Jvm.NOBODY, hello()));
        Jvm.said(hello());
        assertEquals(Jvm.NOBODY + ":" + GROUP + " 2750", Jvm.about(shared.resolve("" + Jvm.NOBODY)));
        assertEquals("0:" + GROUP + " 2750", Jvm.about(shared.resolve("0")));
        List<Path> files = Jvm.records(shared);
        assertEquals(2, files.size());
        assertEquals("0:" + GROUP + " 640", Jvm.about(files.get(0)));
        assertEquals(Jvm.NOBODY + ":" + GROUP + " 640", Jvm.about(files.get(1)));
    }

    @Test
    void aStrictMaskTakesNothingFromTheGroup() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        Files.setAttribute(shared, "unix:gid", GROUP);
        Files.setAttribute(shared, "unix:mode", 03777);
        Jvm.said(Jvm.as(Jvm.NOBODY, Arrays.asList("/bin/sh", "-c", "umask 077; exec " + String.join(" ", hello()))));
        assertEquals(Jvm.NOBODY + ":" + GROUP + " 2750", Jvm.about(shared.resolve("" + Jvm.NOBODY)));
        assertEquals(Jvm.NOBODY + ":" + GROUP + " 640", Jvm.about(Jvm.records(shared).get(0)));
    }

    @Test
    void aFolderThatIsMissingIsMadeForItsUserAlone() throws Exception {
        Files.delete(shared);
        String host = new String(Files.readAllBytes(Paths.get("/proc/sys/kernel/hostname")), StandardCharsets.UTF_8).trim();
        Jvm.said(Jvm.command(built, "out=" + capture + "/%h/jvm", "hadoptic.PremainCost"));
        Path made = capture.resolve(host).resolve("jvm");
        assertTrue(Jvm.about(made).endsWith(" 700"), Jvm.about(made));
        assertEquals(1, Jvm.records(made.resolve(me)).size());
    }

    @Test
    void aFolderInWhichAnybodyCouldReplaceFilesIsRefused() throws Exception {
        Files.setAttribute(shared, "unix:mode", 0777);
        assertTrue(Jvm.said(hello()).contains("chmod +t"));
        assertTrue(Jvm.records(capture).isEmpty());
    }

    @Test
    void aFolderThatBelongsToAnotherUserIsRefused() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        Files.setAttribute(shared, "unix:uid", Jvm.NOBODY);
        assertTrue(Jvm.said(hello()).contains("belongs to user 65534"));
        assertTrue(Jvm.records(capture).isEmpty());
    }

    @Test
    void aLinkInPlaceOfTheFolderIsRefused() throws Exception {
        Files.move(shared, capture.resolve("elsewhere"));
        Files.createSymbolicLink(shared, capture.resolve("elsewhere"));
        assertTrue(Jvm.said(hello()).contains("is a link"));
        assertTrue(Jvm.records(capture).isEmpty());
    }

    @Test
    void whatAnotherUserPlantedInPlaceOfTheOwnFolderIsLeftAlone() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        Path victim = Files.createDirectory(capture.resolve("victim"));
        Files.createSymbolicLink(shared.resolve(me), victim);
        Files.createDirectory(shared.resolve(me + ".1"));
        Files.setAttribute(shared.resolve(me + ".1"), "unix:uid", Jvm.NOBODY);
        Files.createDirectory(shared.resolve(me + ".2"));
        Files.setAttribute(shared.resolve(me + ".2"), "unix:mode", 0777);
        Files.createFile(shared.resolve(me + ".3"));
        String said = Jvm.said(hello());
        assertTrue(said.contains("records go to " + shared.resolve(me + ".4")), said);
        assertEquals(1, Jvm.records(shared.resolve(me + ".4")).size());
        assertEquals(1, Jvm.records(capture).size());
    }

    /** A daemon of this user, to its end. */
    private String daemon(String options) throws Exception {
        return Jvm.said(Jvm.command(built, "wait_ms=300,linger_ms=0,out=" + shared + options, AgentInJvmTest.DAEMON, "sockets"));
    }

    private Path agents() throws Exception {
        return Files.createDirectory(capture.resolve("agents"));
    }

    @Test
    void aLinkInPlaceOfALogIsNotWrittenThrough() throws Exception {
        Path agents = agents();
        Path victim = Files.write(capture.resolve("victim"), "untouched".getBytes(StandardCharsets.US_ASCII));
        Files.createSymbolicLink(agents.resolve("sniffer.log"), victim);
        Files.createLink(agents.resolve("dumpingd.log"), victim);
        String said = daemon(",sniffer=/bin/echo,dumpingd=/bin/echo,agents=" + agents);
        assertTrue(said.contains("sniffer.log is not a file of this user's own"), said);
        assertTrue(said.contains("dumpingd.log is not a file of this user's own"), said);
        assertEquals("untouched", new String(Files.readAllBytes(victim), StandardCharsets.US_ASCII));
        assertEquals(1, Jvm.records(shared).size(), "the JVM is recorded all the same");
    }

    @Test
    void aLockThatIsALinkOrAnothersIsNotBelieved() throws Exception {
        Path agents = agents();
        Path victim = Files.write(capture.resolve("victim"), "untouched".getBytes(StandardCharsets.US_ASCII));
        Files.createLink(agents.resolve("agents.lock"), victim);
        daemon(",sniffer=/bin/echo,agents=" + agents);
        assertEquals("untouched", new String(Files.readAllBytes(victim), StandardCharsets.US_ASCII));
        assertFalse(Files.exists(agents.resolve("sniffer.log"), LinkOption.NOFOLLOW_LINKS));
    }

    @Test
    void anAgentsFolderThatOthersMayWriteToIsRefused() throws Exception {
        Path agents = agents();
        Files.setAttribute(agents, "unix:mode", 01777);
        assertTrue(daemon(",sniffer=/bin/echo,agents=" + agents).contains("chmod go-w"));
        assertFalse(Files.exists(agents.resolve("sniffer.log")));
        assertEquals(1, Jvm.records(shared).size(), "the JVM is recorded all the same");
    }

    @Test
    void theAgentsOfAnotherUsersDaemonsAreHis() throws Exception {
        assumeTrue(Jvm.isRoot(), "a second user needs root");
        Path agents = agents();
        Files.setAttribute(agents, "unix:uid", Jvm.NOBODY);
        assertTrue(daemon(",sniffer=/bin/echo,agents=" + agents).contains("is another user's"));
        assertFalse(Files.exists(agents.resolve("agents.lock")));
    }

    @Test
    void aLockThatNamesSomeOtherProcessDoesNotPassForAnAgent() throws Exception {
        Path agents = agents();
        Process other = new ProcessBuilder("sleep", "100").start();
        try {
            String pid = String.valueOf(Process.class.getMethod("pid").invoke(other));
            String stat = new String(Files.readAllBytes(Paths.get("/proc", pid, "stat")), StandardCharsets.UTF_8);
            long ticks = hadoptic.agent.Identity.startTicks(stat);
            Path lock = agents.resolve("agents.lock");
            Files.write(lock, ("sniffer " + pid + " " + ticks + " 1\n").getBytes(StandardCharsets.US_ASCII));
            Jvm.said(Jvm.command(built, "wait_ms=300,linger_ms=1000,out=" + shared + ",sniffer=/bin/echo,agents=" + agents,
                    AgentInJvmTest.DAEMON, "sockets"));
            assertTrue(Files.exists(agents.resolve("sniffer.log")), "it was started");
            // and whoever stops the agents does not end it either
            Files.write(lock, ("sniffer " + pid + " " + ticks + " 1\n").getBytes(StandardCharsets.US_ASCII));
            Thread.sleep(4000);
            assertTrue(other.isAlive());
        } finally {
            other.destroyForcibly();
        }
    }
}
