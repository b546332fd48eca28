package hadoptic.hook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import hadoptic.log.Buffer;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a connection is for is told when it becomes known or changes, and not with each use. */
class PurposesTest {
    private static final InetSocketAddress HERE = new InetSocketAddress("10.0.0.1", 40000);
    private static final InetSocketAddress THERE = new InetSocketAddress("10.0.0.2", 9866);
    private static final InetSocketAddress PAGES = new InetSocketAddress("10.0.0.1", 50070);

    private final Buffer records = new Buffer(100);

    @BeforeEach
    void install() {
        Hooks.install(new Handler[0], records);
        Purposes.opened(0, HERE, THERE);
        Purposes.begin(null);
    }

    /** Purposes and sides that were told. */
    private String stated() {
        StringBuilder stated = new StringBuilder();
        for (Record r = records.poll(); r != null; r = records.poll()) {
            JsonLine line = new JsonLine();
            r.write(line);
            stated.append(line.take().replaceAll(".*\"purpose\":\"([^\"]*)\",\"side\":\"([^\"]*)\".*\n", "$1 $2;"));
        }
        return stated.toString();
    }

    @Test
    void aUseIsToldOnceAndAChangeAgain() {
        for (int i = 0; i < 5; i++) {
            Purposes.client(i, HERE, THERE, "read");
        }
        assertEquals("read client;", stated());
        Purposes.client(6, HERE, THERE, "write");
        Purposes.client(7, HERE, THERE, "read");
        assertEquals("write client;read client;", stated());
    }

    @Test
    void aNewConnectionBetweenTheSamePortsIsToldAnew() {
        Purposes.client(1, HERE, THERE, "read");
        Purposes.opened(2, HERE, THERE);
        Purposes.client(3, HERE, THERE, "read");
        assertEquals("read client;read client;", stated());
    }

    @Test
    void whatAThreadDoesIsWhatItsConnectionsAreFor() {
        Handler shuffle = new Purposes.Does("shuffle");
        Object token = assertDoesNotThrow(shuffle);
        Purposes.opened(1, HERE, THERE);
        assertEquals("shuffle client;", stated());
        end(shuffle, token);
        Purposes.opened(2, HERE, THERE);
        assertEquals("", stated());
    }

    @Test
    void connectionsToAPortOfPagesAreForPages() {
        Purposes.accepted(1, PAGES, THERE);
        assertEquals("", stated());
        Purposes.begin("http");
        assertEquals("http", Purposes.listens(PAGES));
        Purposes.begin(null);
        Purposes.accepted(2, PAGES, THERE);
        assertEquals("http server;", stated());
        // another server has the port now
        Purposes.listens(PAGES);
        Purposes.accepted(3, PAGES, THERE);
        assertEquals("", stated());
    }

    @Test
    void callsOfATaskToItsMasterAreTheUmbilical() {
        Purposes.rpc(1, HERE, THERE, false, "org.apache.hadoop.mapred.TaskUmbilicalProtocol");
        Purposes.rpc(2, HERE, THERE, false, Runnable.class);
        Purposes.rpc(3, null, THERE, false, Runnable.class);
        assertEquals("umbilical client;rpc client;", stated());
    }

    private static Object assertDoesNotThrow(Handler handler) {
        return org.junit.jupiter.api.Assertions.assertDoesNotThrow(() -> handler.enter(null, null, 0));
    }

    private static void end(Handler handler, Object token) {
        org.junit.jupiter.api.Assertions.assertDoesNotThrow(() -> handler.exit(token, null, null, null, 0));
    }
}
