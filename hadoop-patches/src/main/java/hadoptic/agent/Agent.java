package hadoptic.agent;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * Entry of the agent: {@code java -javaagent:hadoptic-agent.jar=out=DIR,...}, or {@link Attach} to a JVM that runs.
 *
 * <p>All other classes of the jar are loaded by the bootstrap loader, because patched JDK classes call them. This class
 * itself is loaded by the system loader and must therefore not be used by any other.
 */
public final class Agent {
    private Agent() {}

    /** Called by the JVM before the main class starts; whatever goes wrong here is reported and never stops the JVM. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        begin(arguments, instrumentation, false);
    }

    /** Called when the agent is loaded into a JVM that runs. */
    public static void agentmain(String arguments, Instrumentation instrumentation) {
        begin(arguments, instrumentation, true);
    }

    private static void begin(String arguments, Instrumentation instrumentation, boolean late) {
        long begin = System.nanoTime();
        try {
            File jar = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
            instrumentation.appendToBootstrapClassLoaderSearch(new JarFile(jar, false));
            if ("prepare".equals(arguments)) {
                Prepare.with(instrumentation, jar);
            } else {
                Start.run(arguments, jar, instrumentation, begin, late);
            }
        } catch (Throwable failure) {
            try {
                System.err.println("hadoptic: agent is off in this JVM: " + failure);
            } catch (Throwable again) {
                // no memory to say it
            }
        }
    }
}
