package hadoptic.hook;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * What heartbeats and polls bring and take with them: ids of what has ended and of what is assigned, told with the call.
 *
 * <p>Requests are read before they are processed, responses before they are sent: nobody else looks at them then.
 */
public final class HeartbeatHandlers {
    /** Ids that are kept of one call; how many more there were is told in their place. */
    private static final int MOST = 256;

    private HeartbeatHandlers() {}

    /** Ids, so many at most. */
    private static final class Ids {
        private final List<String> ids = new ArrayList<String>();
        private int more;

        void add(Object id) {
            if (id == null) {
                return;
            }
            if (ids.size() < MOST) {
                ids.add(id.toString());
            } else {
                more++;
            }
        }

        List<String> all() {
            if (more > 0) {
                ids.add("+" + more);
            }
            return ids;
        }
    }

    private static Object[] each(Object many) {
        if (many instanceof Collection) {
            return ((Collection<?>) many).toArray();
        }
        return many instanceof Object[] ? (Object[]) many : new Object[0];
    }

    private static boolean is(Object state, String... names) {
        for (String name : names) {
            if (name.equals(String.valueOf(state))) {
                return true;
            }
        }
        return false;
    }

    /** {@code ResourceTrackerService.nodeHeartbeat}: containers that have ended on a node, and those to be ended. */
    public static final class OfNode extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Ids completed = new Ids();
            Object node = Fields.call(arguments[0], "getNodeStatus");
            for (Object status : each(Fields.call(node, "getContainersStatuses"))) {
                if (is(Fields.call(status, "getState"), "COMPLETE")) {
                    completed.add(Fields.call(status, "getContainerId"));
                }
            }
            RpcServerHandlers.carries(completed.all(), null);
            return null;
        }
    }

    /** {@code ApplicationMasterService.allocate}: containers that a master gets, and those of its that have ended. */
    public static final class OfMaster extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Ids assigned = new Ids();
            for (Object container : each(Fields.call(result, "getAllocatedContainers"))) {
                assigned.add(Fields.call(container, "getId"));
            }
            Ids completed = new Ids();
            for (Object status : each(Fields.call(result, "getCompletedContainersStatuses"))) {
                completed.add(Fields.call(status, "getContainerId"));
            }
            RpcServerHandlers.carries(completed.all(), assigned.all());
        }
    }

    /** {@code JobTracker.heartbeat} of Hadoop 1.x: attempts that have ended on a tracker, and those to be launched there. */
    public static final class OfTracker extends Handler {
        @Override
        public Object enter(Object self, Object[] arguments, long now) throws Throwable {
            Ids completed = new Ids();
            for (Object report : each(Fields.call(Arguments.named(arguments, "TaskTrackerStatus"), "getTaskReports"))) {
                if (is(Fields.call(report, "getRunState"), "SUCCEEDED", "FAILED", "KILLED")) {
                    completed.add(Fields.call(report, "getTaskID"));
                }
            }
            RpcServerHandlers.carries(completed.all(), null);
            return null;
        }

        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Ids assigned = new Ids();
            for (Object action : each(Fields.call(result, "getActions"))) {
                assigned.add(Fields.call(Fields.call(action, "getTask"), "getTaskID"));
            }
            RpcServerHandlers.carries(null, assigned.all());
        }
    }

    /** Polls for map outputs: the attempts that have ended since the poll before. */
    public static final class OfMapOutputs extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Object events = result instanceof Object[] ? result : Fields.call(result, "getMapTaskCompletionEvents");
            Ids completed = new Ids();
            for (Object event : each(events)) {
                completed.add(Fields.call(event, "getTaskAttemptId"));
            }
            RpcServerHandlers.carries(completed.all(), null);
        }
    }

    /** {@code sendHeartbeat} of a DataNode: the commands that it takes home, with their blocks. */
    public static final class OfDataNode extends Handler {
        @Override
        public void exit(Object token, Object self, Object result, Throwable thrown, long now) throws Throwable {
            Object commands = result instanceof Object[] ? result : Fields.call(result, "getCommands");
            Ids assigned = new Ids();
            for (Object command : each(commands)) {
                if (command == null) {
                    continue;
                }
                String name = command.getClass().getName();
                name = name.substring(name.lastIndexOf('.') + 1) + ":" + Fields.numberOf(command, "getAction", 0);
                Object[] blocks = each(Fields.call(command, "getBlocks"));
                if (blocks.length == 0) {
                    assigned.add(name);
                }
                for (Object block : blocks) {
                    assigned.add(name + ":" + Long.toUnsignedString(Fields.numberOf(block, "getBlockId", 0)));
                }
            }
            RpcServerHandlers.carries(null, assigned.all());
        }
    }
}
