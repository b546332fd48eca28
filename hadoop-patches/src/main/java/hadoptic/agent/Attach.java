package hadoptic.agent;

import java.io.File;
import java.lang.reflect.InvocationTargetException;

/**
 * Loads the agent into a JVM that runs: {@code java -jar hadoptic-agent.jar PID out=DIR,...}, as the user of that JVM and
 * with a JDK. What the JVM did before stays unknown, and its open connections are known by dumpingd only.
 */
public final class Attach {
    private static final String MACHINE = "com.sun.tools.attach.VirtualMachine";

    private Attach() {}

    /** Process id and options; ends with 2 if it could not be done. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 2) {
            System.err.println("usage: java -jar hadoptic-agent.jar PID out=CAPTUREFOLDER[,sniffer=FILE][,dumpingd=FILE]...");
            System.exit(2);
        }
        File jar = new File(Attach.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try {
            Class<?> type = Class.forName(MACHINE);
            Object machine = type.getMethod("attach", String.class).invoke(null, arguments[0]);
            type.getMethod("loadAgent", String.class, String.class).invoke(machine, jar.getPath(), arguments[1]);
            type.getMethod("detach").invoke(machine);
        } catch (ClassNotFoundException missing) {
            System.err.println("hadoptic: this Java has no " + MACHINE
                    + ": use a JDK; with Java 8 put its lib/tools.jar on the class path, and name the class hadoptic.agent.Attach");
            System.exit(2);
        } catch (InvocationTargetException failure) {
            System.err.println("hadoptic: cannot attach to process " + arguments[0] + ": " + failure.getCause());
            System.exit(2);
        }
    }
}
