package hadoptic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import hadoptic.hook.Handler;
import hadoptic.hook.HeartbeatHandlers;
import hadoptic.hook.Hooks;
import hadoptic.hook.RpcServerHandlers;
import hadoptic.hook.Tagged;
import hadoptic.log.Buffer;
import hadoptic.log.JsonLine;
import hadoptic.log.Record;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.mapred.MapTaskCompletionEventsUpdate;
import org.apache.hadoop.mapred.TaskAttemptID;
import org.apache.hadoop.mapred.TaskCompletionEvent;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.api.protocolrecords.NodeHeartbeatRequest;
import org.apache.hadoop.yarn.server.api.records.NodeStatus;
import org.apache.hadoop.yarn.util.Records;
import org.junit.jupiter.api.Test;

/** What a heartbeat carries stands in the record of its call, by Hadoop's own requests and responses. */
class HeartbeatsTest {
    private static final ContainerId FIRST = container(1);
    private static final ContainerId SECOND = container(2);

    /** A call and its connection as the hooks see them, by the names of their fields. */
    static class Carrier implements Tagged {
        private Object tag;

        @Override
        public Object hadoptic$tag() {
            return tag;
        }

        @Override
        public void hadoptic$tag(Object newTag) {
            tag = newTag;
        }
    }

    /** {@code Server$Connection}. */
    static final class FakeConnection extends Carrier {}

    /** {@code Server$RpcCall}. */
    static final class FakeCall extends Carrier {
        final int callId = 7;
        final FakeConnection connection = new FakeConnection();
    }

    private static ContainerId container(long number) {
        return ContainerId.newContainerId(ApplicationAttemptId.newInstance(ApplicationId.newInstance(1, 1), 1), number);
    }

    /** The record of a call during which a method with a handler is called. */
    private static String during(Handler handler, Object[] arguments, Object result) throws Throwable {
        Buffer records = new Buffer(10);
        Hooks.install(new Handler[0], records);
        FakeCall call = new FakeCall();
        new RpcServerHandlers.Created().exit(new Object[2], call, null, null, 10);
        new RpcServerHandlers.Begins().enter(call, null, 20);
        Object token = handler.enter(null, arguments, 30);
        handler.exit(token, null, result, null, 40);
        new RpcServerHandlers.Ends().enter(call, null, 50);
        // another call of this thread, of which nothing may be told in the first one
        handler.exit(handler.enter(null, arguments, 60), null, result, null, 60);
        new RpcServerHandlers.Responds().exit(call, null, null, null, 70);
        List<String> lines = new ArrayList<>();
        for (Record r = records.poll(); r != null; r = records.poll()) {
            JsonLine line = new JsonLine();
            r.write(line);
            lines.add(line.take());
        }
        assertEquals(1, lines.size(), lines.toString());
        return lines.get(0);
    }

    @Test
    void aNodeTellsWhichContainersHaveEnded() throws Throwable {
        NodeHeartbeatRequest request = Records.newRecord(NodeHeartbeatRequest.class);
        NodeStatus status = Records.newRecord(NodeStatus.class);
        status.setContainersStatuses(Arrays.asList(
                ContainerStatus.newInstance(FIRST, ContainerState.COMPLETE, "", 0),
                ContainerStatus.newInstance(SECOND, ContainerState.RUNNING, "", 0)));
        request.setNodeStatus(status);
        String record = during(new HeartbeatHandlers.OfNode(), new Object[] {request}, null);
        assertTrue(record.contains("\"completed\":[\"" + FIRST + "\"]"), record);
        assertFalse(record.contains("assigned"), record);
    }

    @Test
    void aMasterGetsContainersAndLearnsOfOthersEnds() throws Throwable {
        AllocateResponse response = Records.newRecord(AllocateResponse.class);
        response.setAllocatedContainers(Arrays.asList(Container.newInstance(
                SECOND, NodeId.newInstance("w1", 1), "w1:2", Resource.newInstance(1, 1), Priority.newInstance(1), null)));
        response.setCompletedContainersStatuses(Arrays.asList(ContainerStatus.newInstance(FIRST, ContainerState.COMPLETE, "", 0)));
        String record = during(new HeartbeatHandlers.OfMaster(), null, response);
        assertTrue(record.contains("\"completed\":[\"" + FIRST + "\"],\"assigned\":[\"" + SECOND + "\"]"), record);
    }

    @Test
    void aReduceLearnsOfMapsThatHaveEnded() throws Throwable {
        TaskAttemptID map = TaskAttemptID.forName("attempt_1_0001_m_000003_0");
        TaskCompletionEvent event = new TaskCompletionEvent(0, map, 3, true, TaskCompletionEvent.Status.SUCCEEDED, "");
        Object result = new MapTaskCompletionEventsUpdate(new TaskCompletionEvent[] {event}, false);
        String record = during(new HeartbeatHandlers.OfMapOutputs(), null, result);
        assertTrue(record.contains("\"completed\":[\"" + map + "\"]"), record);
    }

    @Test
    void manyIdsAreCutOffAndCounted() throws Throwable {
        TaskCompletionEvent[] events = new TaskCompletionEvent[300];
        for (int i = 0; i < events.length; i++) {
            events[i] = new TaskCompletionEvent(i, TaskAttemptID.forName("attempt_1_0001_m_000003_" + i), 3, true,
                    TaskCompletionEvent.Status.SUCCEEDED, "");
        }
        String record = during(new HeartbeatHandlers.OfMapOutputs(), null, events);
        assertTrue(record.contains("_255\",\"+44\"]"), record);
    }
}
