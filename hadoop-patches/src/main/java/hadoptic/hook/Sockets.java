package hadoptic.hook;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.UnknownHostException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** Addresses of sockets of all kinds. */
final class Sockets {
    private Sockets() {}

    /** This side of a socket or channel; null = not bound, or no TCP. */
    static InetSocketAddress local(Object socket) throws Exception {
        SocketAddress address = null;
        if (socket instanceof SocketChannel) {
            address = ((SocketChannel) socket).getLocalAddress();
        } else if (socket instanceof Socket) {
            address = ((Socket) socket).getLocalSocketAddress();
        } else if (socket instanceof ServerSocketChannel) {
            address = ((ServerSocketChannel) socket).getLocalAddress();
        } else if (socket instanceof ServerSocket) {
            address = ((ServerSocket) socket).getLocalSocketAddress();
        }
        return address instanceof InetSocketAddress ? (InetSocketAddress) address : null;
    }

    /** The other side of a socket or channel; null = not connected, or no TCP. */
    static InetSocketAddress remote(Object socket) throws Exception {
        SocketAddress address = null;
        if (socket instanceof SocketChannel) {
            address = ((SocketChannel) socket).getRemoteAddress();
        } else if (socket instanceof Socket) {
            address = ((Socket) socket).getRemoteSocketAddress();
        }
        return address instanceof InetSocketAddress ? (InetSocketAddress) address : null;
    }

    /** An address that Hadoop keeps as text: "/10.1.0.11:9866" or "w1/10.1.0.11:9866"; null = none of these. */
    static InetSocketAddress parse(Object text) throws UnknownHostException {
        String address = text == null ? "" : text.toString();
        address = address.substring(address.lastIndexOf('/') + 1);
        int colon = address.lastIndexOf(':');
        if (colon <= 0 || !Character.isDigit(address.charAt(colon - 1)) && address.charAt(colon - 1) != ']'
                && Character.digit(address.charAt(colon - 1), 16) < 0) {
            return null;
        }
        String ip = address.substring(0, colon).replace("[", "").replace("]", "");
        for (int i = 0; i < ip.length(); i++) {
            // a host name would be looked up, and that may take long
            if (Character.digit(ip.charAt(i), 16) < 0 && ":.%".indexOf(ip.charAt(i)) < 0) {
                return null;
            }
        }
        return ip.indexOf('.') < 0 && ip.indexOf(':') < 0
                ? null
                : new InetSocketAddress(InetAddress.getByName(ip), Integer.parseInt(address.substring(colon + 1)));
    }
}
