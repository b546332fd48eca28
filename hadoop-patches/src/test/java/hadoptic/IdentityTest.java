package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.agent.Identity;
import hadoptic.agent.Options;
import hadoptic.agent.Roles;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.junit.jupiter.api.Test;

/** Who a JVM is: from the kernel and its command line, of which no argument is kept. */
class IdentityTest {
    @Test
    void pidAndStartTimeAreTheKernels() throws Exception {
        Identity me = Identity.read();
        String pid = Files.readSymbolicLink(Paths.get("/proc/self")).toString();
        assertEquals(pid, String.valueOf(me.pid));
        assertEquals(Files.readAllLines(Paths.get("/proc/sys/kernel/hostname")).get(0), me.host);
        assertTrue(me.startTicks > 0);
        assertTrue(Identity.netns() > 0);
        assertTrue(Identity.addresses().contains("127.0.0.1"));
    }

    @Test
    void commandsWithBlanksAndParenthesesDoNotShiftTheStartTime() {
        String rest = "S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 239776 1 1";
        assertEquals(239776, Identity.startTicks("42 (java) " + rest));
        assertEquals(239776, Identity.startTicks("42 (a b) c) (d) " + rest));
    }

    @Test
    void argumentsAreCutOff() {
        assertEquals("org.x.Main", Identity.mainClass("org.x.Main -password secret"));
        assertEquals("app.jar", Identity.mainClass("/home/secret/app.jar x"));
        assertEquals("", Identity.mainClass(""));
    }

    @Test
    void attemptOfATaskIsKnownFromItsCommandLineOnly() {
        String command = "org.apache.hadoop.mapred.YarnChild 10.1.0.12 41000 attempt_1_0001_m_000002_0 4";
        assertEquals("attempt_1_0001_m_000002_0", Identity.attemptOf("YarnChild", command));
        assertEquals("", Identity.attemptOf("Client", command));
        assertEquals("", Identity.attemptOf("YarnChild", "org.apache.hadoop.mapred.YarnChild"));
    }

    @Test
    void rolesAreThoseOfTheMainClass() {
        assertEquals("DataNode", Roles.of("org.apache.hadoop.hdfs.server.datanode.DataNode"));
        assertEquals("YarnChild", Roles.of("org.apache.hadoop.mapred.YarnChild"));
        assertEquals("Client", Roles.of("org.apache.hadoop.util.RunJar"));
        assertEquals("", Roles.of("org.example.Main"));
        assertTrue(Roles.isDaemon("NodeManager") && !Roles.isDaemon("YarnChild") && !Roles.isDaemon("MRAppMaster"));
    }

    @Test
    void versionComesFromTheNameOfTheJar() {
        assertEquals("3.4.2", Identity.hadoopVersion("/l/hadoop-common-3.4.2-tests.jar:/l/hadoop-common-3.4.2.jar"));
        assertEquals("1.2.1", Identity.hadoopVersion("/conf:/l/hadoop-core-1.2.1.jar"));
        assertEquals("3.3.6.7-cdh", Identity.hadoopVersion("/l/hadoop-common-3.3.6.7-cdh.jar"));
        assertEquals("", Identity.hadoopVersion("/conf:/l/hadoop-common-util.jar"));
    }

    @Test
    void optionsKeepTheirDefaultsWhereTheyAreWrong() {
        Options options = Options.parse("out=/c,sniffer=/s,wait_ms=x,buffer=3,colour=red");
        assertEquals("/c", options.out);
        assertEquals("/s", options.sniffer);
        assertEquals("", options.dumpingd);
        assertEquals(5000, options.waitMs);
        assertEquals(65536, options.buffer);
        assertEquals(3, options.problems.size());
        assertEquals("", Options.parse(null).out);
        assertEquals(-1, Options.parse("out=/c,limit=-5").limit);
        assertEquals(0, Options.parse("out=/c,limit=0").limit);
    }
}
