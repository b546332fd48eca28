package hadoptic;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.net.NetUtils;

/** Runs in a JVM with the agent: blocks in reads and in a write, over the JDK's streams and over Hadoop's. */
public final class WaitProgram {
    /** How long a peer keeps a reader or writer waiting, milliseconds. */
    public static final int PAUSE_MS = 400;

    private WaitProgram() {}

    /** Prints the ports that were read from by "plain" and by "channel", and the one written to by "full". */
    public static void main(String[] arguments) throws Exception {
        InetAddress here = InetAddress.getByName("127.0.0.1");
        try (ServerSocket server = new ServerSocket(0, 5, here);
                Socket client = new Socket(here, server.getLocalPort());
                Socket peer = server.accept()) {
            InputStream in = client.getInputStream();
            later(() -> peer.getOutputStream().write(new byte[10]));
            in.read(new byte[100]);
            System.out.println("plain " + client.getLocalPort());
        }
        try (ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress(here, 0));
                SocketChannel client = SocketChannel.open(server.getLocalAddress());
                SocketChannel peer = server.accept()) {
            InputStream in = NetUtils.getInputStream(client.socket(), 10_000);
            later(() -> peer.socket().getOutputStream().write(new byte[10]));
            in.read(new byte[100]);
            System.out.println("channel " + client.socket().getLocalPort());
        }
        try (ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress(here, 0));
                SocketChannel client = SocketChannel.open(server.getLocalAddress());
                SocketChannel peer = server.accept()) {
            byte[] much = new byte[32 << 20];
            OutputStream out = NetUtils.getOutputStream(client.socket(), 10_000);
            Thread reader = later(() -> {
                InputStream in = peer.socket().getInputStream();
                for (int left = much.length; left > 0;) {
                    left -= in.read(new byte[1 << 16]);
                }
            });
            out.write(much);
            reader.join();
            System.out.println("full " + client.socket().getLocalPort());
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private static Thread later(Work work) {
        Thread thread = new Thread(() -> {
            try {
                Thread.sleep(PAUSE_MS);
                work.run();
            } catch (Exception failure) {
                failure.printStackTrace();
                System.exit(1);
            }
        });
        thread.start();
        return thread;
    }
}
