package hadoptic.agent;

import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What is believed of a process that was started for a host. */
class HostAgentsTest {
    private static final int STARTS = 300;

    @Test
    void aProcessThatBecomesAnotherProgramAlwaysHasACommandLine() throws Exception {
        for (int i = 0; i < STARTS; i++) {
            Process process = new ProcessBuilder("setsid", "sleep", "60").start();
            try {
                String pid = Long.toString(HostAgents.pid(process));
                long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
                String line = "";
                while (!line.startsWith("sleep") && System.nanoTime() < until) {
                    line = HostAgents.commandLine(pid);
                    assertFalse(line.isEmpty(), "start " + i);
                }
            } finally {
                process.destroyForcibly().waitFor();
            }
        }
    }
}
