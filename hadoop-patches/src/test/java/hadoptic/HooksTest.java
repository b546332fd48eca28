package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.hook.Handler;
import hadoptic.hook.Hooks;
import hadoptic.log.Buffer;
import org.junit.jupiter.api.Test;

/** A hook never throws into Hadoop, whatever happens in it. */
class HooksTest {
    private static final class Throwing extends Handler {
        private final Throwable thrown;

        Throwing(Throwable thrown) {
            this.thrown = thrown;
        }

        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            throw thrown;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable of, long now) throws Throwable {
            throw thrown;
        }
    }

    @Test
    void whatAHandlerThrowsIsSwallowedAndCounted() {
        Handler[] handlers = {
            new Throwing(new IllegalStateException("broken")),
            new Throwing(new OutOfMemoryError("no room")),
            new Throwing(new StackOverflowError()),
            new Throwing(new NoClassDefFoundError("gone")),
        };
        Hooks.install(handlers, new Buffer(16));
        long before = Hooks.failures();
        for (int i = 0; i < handlers.length; i++) {
            assertNull(Hooks.enter(i, this, null));
            Hooks.exit(i, null, this, null, null);
        }
        // a number that no handler has
        assertNull(Hooks.enter(99, this, null));
        assertEquals(before + 2 * handlers.length + 1, Hooks.failures());
    }

    @Test
    void timeInHooksIsAddedUp() {
        Hooks.install(new Handler[] {new Handler() {}}, new Buffer(16));
        long before = Hooks.nanoseconds();
        Object[] arguments = {1};
        assertEquals(arguments, Hooks.enter(0, this, arguments));
        assertTrue(Hooks.nanoseconds() > before);
    }
}
