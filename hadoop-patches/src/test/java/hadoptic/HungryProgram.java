package hadoptic;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/** Runs in a JVM with a small heap: fills it, stays so for a while, and recovers. It opens a connection before and after. */
public final class HungryProgram {
    /** How long it has no memory, milliseconds. */
    private static final int HUNGRY_MS = 4000;
    private static List<long[]> food = new ArrayList<>(1 << 16);

    private HungryProgram() {}

    public static void main(String[] arguments) throws Exception {
        connect();
        Thread.sleep(1500);
        Thread[] ready = new Thread[64];
        for (int i = 0; i < ready.length; i++) {
            // each start is a record, and they are made before there is no memory for them
            ready[i] = new Thread(() -> {}, "hungry");
        }
        long until = System.nanoTime() + HUNGRY_MS * 1_000_000L;
        int started = 0;
        while (System.nanoTime() < until) {
            eat();
            if (started < ready.length) {
                start(ready[started++]);
            }
            pause();
        }
        food = null;
        System.gc();
        connect();
        Thread.sleep(1500);
        System.out.println("recovered");
    }

    /** Takes all that is there, down to the last bytes. */
    private static void eat() {
        for (int longs = 1 << 14; longs > 0; longs /= 2) {
            try {
                while (food.size() < 1 << 16) {
                    food.add(new long[longs]);
                }
            } catch (OutOfMemoryError full) {
                // smaller ones
            }
        }
    }

    private static void start(Thread thread) {
        try {
            thread.start();
        } catch (OutOfMemoryError full) {
            // it is not there then
        }
    }

    private static void pause() throws InterruptedException {
        try {
            Thread.sleep(1);
        } catch (OutOfMemoryError full) {
            // on
        }
    }

    private static void connect() throws Exception {
        InetAddress here = InetAddress.getByName("127.0.0.1");
        try (ServerSocket server = new ServerSocket(0, 5, here)) {
            new Socket(here, server.getLocalPort()).close();
            server.accept().close();
        }
    }
}
