package hadoptic.patch;

import static hadoptic.patch.HookPoint.at;

import hadoptic.hook.BlockClientHandlers;
import hadoptic.hook.ConnectionHandlers;
import hadoptic.hook.DataNodeHandlers;
import hadoptic.hook.DataNodeHandlers.Part;
import hadoptic.hook.Handler;
import hadoptic.hook.HeartbeatHandlers;
import hadoptic.hook.Purposes;
import hadoptic.hook.RpcClientHandlers;
import hadoptic.hook.RpcServerHandlers;
import hadoptic.hook.ShuffleHandlers;
import hadoptic.hook.ShutdownHandlers;
import hadoptic.hook.StepHandlers;
import hadoptic.hook.TaskHandlers;
import hadoptic.hook.ThreadHandlers;
import hadoptic.hook.WaitHandlers;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** All that is patched: the JDK's sockets and threads, and Apache Hadoop 1.2, 2.10, 3.3, 3.4 and 3.5. */
public final class HookPoints {
    private static final String IPC = "org/apache/hadoop/ipc/";
    private static final String DATANODE = "org/apache/hadoop/hdfs/server/datanode/";
    private static final String HDFS = "org/apache/hadoop/hdfs/";
    private static final String MAPRED = "org/apache/hadoop/mapred/";
    private static final String REDUCE = "org/apache/hadoop/mapreduce/task/reduce/";

    private HookPoints() {}

    /** Classes that get a place for the agent's tag. */
    public static List<String> tagged() {
        return Arrays.asList(
                IPC + "Client$Call", IPC + "Client$Connection", IPC + "Client$IpcStreams",
                IPC + "Server$Connection", IPC + "Server$RpcCall",
                HDFS + "client/impl/BlockReaderRemote", HDFS + "client/impl/BlockReaderRemote2", HDFS + "DataStreamer",
                MAPRED + "ShuffleChannelHandler$ReduceContext", MAPRED + "ShuffleHandler$ReduceContext",
                MAPRED + "FadvisedFileRegion",
                // Hadoop 1.x
                IPC + "Server$Call", HadoopOnePoints.READER, HadoopOnePoints.WRITER);
    }

    /** All hook points. */
    public static List<HookPoint> all() {
        List<HookPoint> points = new ArrayList<HookPoint>();
        points.addAll(machine());
        points.addAll(waits());
        points.addAll(listeners());
        points.addAll(heartbeats());
        points.addAll(handOvers());
        points.addAll(rpc());
        points.addAll(hdfs());
        points.addAll(mapReduce());
        points.addAll(HadoopOnePoints.all());
        return points;
    }

    /** Classes with hook points. */
    public static Set<String> owners() {
        Set<String> owners = new TreeSet<String>();
        for (HookPoint point : all()) {
            owners.add(point.owner);
        }
        return owners;
    }

    private static List<HookPoint> machine() {
        String channel = "sun/nio/ch/SocketChannelImpl";
        return Arrays.asList(
                at("java/net/Socket", "connect", new ConnectionHandlers.Opened())
                        .ending("(Ljava/net/SocketAddress;I)V").exitOnly(),
                at("java/net/ServerSocket", "implAccept", new ConnectionHandlers.AcceptedSocket())
                        .ending("(Ljava/net/Socket;)V").withArguments().exitOnly(),
                at("java/net/ServerSocket", "bind", new ConnectionHandlers.Listens())
                        .ending("(Ljava/net/SocketAddress;I)V").exitOnly(),
                // The constructor for accepted connections is the one that takes the descriptor and the peer's address.
                at(channel, "<init>", new ConnectionHandlers.AcceptedChannel())
                        .containing("Ljava/io/FileDescriptor;").ending("SocketAddress;)V").exitOnly(),
                at(channel, "connect", new ConnectionHandlers.OpenedIfTrue())
                        .ending("(Ljava/net/SocketAddress;)Z").withExit(),
                at(channel, "finishConnect", new ConnectionHandlers.OpenedIfTrue()).ending("()Z").withExit(),
                at(channel, "blockingConnect", new ConnectionHandlers.Opened()).exitOnly().optional(),
                at("sun/nio/ch/ServerSocketChannelImpl", "bind", new ConnectionHandlers.Listens())
                        .ending("(Ljava/net/SocketAddress;I)Ljava/nio/channels/ServerSocketChannel;").exitOnly(),
                at("java/lang/Thread", "start", new ThreadHandlers.Started()).ending("()V"),
                at("java/lang/Runtime", "halt", new ThreadHandlers.Halting()),
                at(ShutdownHandlers.HADOOPS_HOOK, "<init>", new ShutdownHandlers.Registered()),
                at(ShutdownHandlers.HADOOPS_HOOK, "run", new ShutdownHandlers.Ran()).exitOnly(),
                // Hadoop 3.5: a SubjectInheritingThread, whose run() calls it.
                at(ShutdownHandlers.HADOOPS_HOOK, "work", new ShutdownHandlers.Ran()).exitOnly().insteadOf("run"));
    }

    /** Where threads block in reads and writes of sockets. */
    private static List<HookPoint> waits() {
        WaitHandlers.Streams reads = new WaitHandlers.Streams(false);
        WaitHandlers.Streams writes = new WaitHandlers.Streams(true);
        return Arrays.asList(
                at("org/apache/hadoop/net/SocketIOWithTimeout$SelectorPool", "select", new WaitHandlers.Selects())
                        .containing("(Ljava/nio/channels/SelectableChannel;IJ)").withArguments().withExit(),
                at("java/net/Socket", "getInputStream", new WaitHandlers.GivesStream()).exitOnly(),
                at("java/net/Socket", "getOutputStream", new WaitHandlers.GivesStream()).exitOnly(),
                at("java/net/Socket$SocketInputStream", "read", reads).ending("([BII)I").withExit(),
                at("java/net/Socket$SocketOutputStream", "write", writes).ending("([BII)V").withExit(),
                // before Java 13
                at("java/net/SocketInputStream", "read", reads).ending("([BIII)I").withExit().optional(),
                at("java/net/SocketOutputStream", "socketWrite", writes).ending("([BII)V").withExit().optional());
    }

    /** Methods in which connections are opened, or awaited, for one purpose. */
    private static List<HookPoint> listeners() {
        return Arrays.asList(
                at(IPC + "Server$Listener", "<init>", new Purposes.Does("rpc")).withExit(),
                at(HDFS + "net/TcpPeerServer", "<init>", new Purposes.Does("transfer")).containing("InetSocketAddress;").withExit(),
                at("org/apache/hadoop/http/HttpServer2", "openListeners", new Purposes.Does("http")).withExit(),
                // 1.x; 2.x still has the class and does not use it
                at("org/apache/hadoop/http/HttpServer", "start", new Purposes.Does("http")).withExit(),
                at(DATANODE + "DataNode$DataTransfer", "run", new Purposes.Does("transfer")).withExit(),
                at(REDUCE + "Fetcher", "copyFromHost", new Purposes.Does("shuffle")).withExit());
    }

    /** Calls that say what has ended and what is to begin. */
    private static List<HookPoint> heartbeats() {
        String manager = "org/apache/hadoop/yarn/server/resourcemanager/";
        String namenode = HDFS + "server/namenode/";
        return Arrays.asList(
                at(manager + "ResourceTrackerService", "nodeHeartbeat", new HeartbeatHandlers.OfNode()).withArguments(),
                at(manager + "ApplicationMasterService", "allocate", new HeartbeatHandlers.OfMaster())
                        .containing("AllocateRequest;").exitOnly(),
                at(MAPRED + "TaskAttemptListenerImpl", "getMapCompletionEvents", new HeartbeatHandlers.OfMapOutputs()).exitOnly(),
                at(namenode + "NameNodeRpcServer", "sendHeartbeat", new HeartbeatHandlers.OfDataNode()).exitOnly());
    }

    /** Where a thread leaves work to another one: pools, and the queues of YARN's events. */
    private static List<HookPoint> handOvers() {
        List<HookPoint> points = new ArrayList<HookPoint>();
        points.add(at("java/util/concurrent/ThreadPoolExecutor", "execute", new ThreadHandlers.HandedOver()).withArguments());
        for (String pool : new String[] {
            "java/util/concurrent/ThreadPoolExecutor",
            // these override it and do not call it
            "org/apache/hadoop/util/concurrent/HadoopThreadPoolExecutor",
            "org/apache/hadoop/util/concurrent/HadoopScheduledThreadPoolExecutor"}) {
            points.add(at(pool, "beforeExecute", new ThreadHandlers.Taken()).withArguments());
        }
        String events = "org/apache/hadoop/yarn/event/";
        points.add(event(events + "AsyncDispatcher$GenericEventHandler", "handle", new ThreadHandlers.HandedOver()));
        points.add(event(events + "AsyncDispatcher", "dispatch", new ThreadHandlers.Taken()));
        points.add(event(events + "EventDispatcher", "handle", new ThreadHandlers.HandedOver()));
        String scheduler = "org/apache/hadoop/yarn/server/resourcemanager/scheduler/";
        for (String kind : new String[] {"capacity/CapacityScheduler", "fifo/FifoScheduler", "fair/FairScheduler"}) {
            points.add(event(scheduler + kind, "handle", new ThreadHandlers.Taken()));
        }
        String master = "org/apache/hadoop/mapreduce/v2/app/";
        points.add(event(master + "launcher/ContainerLauncherImpl", "handle", new ThreadHandlers.HandedOver()));
        points.add(event(master + "launcher/ContainerLauncherImpl", "createEventProcessor", new ThreadHandlers.Taken()));
        points.add(event(master + "rm/RMContainerAllocator", "handle", new ThreadHandlers.HandedOver()));
        points.add(event(master + "rm/RMContainerAllocator", "handleEvent", new ThreadHandlers.Taken()));
        // a reduce learns of map outputs in one thread and fetches them in others
        points.add(at(REDUCE + "MapHost", "addKnownMap", new ThreadHandlers.LeavesItself()));
        points.add(at(REDUCE + "ShuffleSchedulerImpl", "getHost", new ThreadHandlers.Gets()).exitOnly());
        return points;
    }

    private static HookPoint event(String owner, String method, Handler handler) {
        return at(owner, method, handler).containing("Event;)").withArguments();
    }

    private static List<HookPoint> rpc() {
        String call = IPC + "Server$RpcCall";
        String streams = IPC + "Client$IpcStreams";
        return Arrays.asList(
                at(IPC + "Server$Connection", "<init>", new RpcServerHandlers.Connected()).exitOnly(),
                at(IPC + "Server$Connection", "processOneRpc", new RpcServerHandlers.Received()),
                at(call, "<init>", new RpcServerHandlers.Created()).withArguments().exitOnly(),
                at(call, "run", new RpcServerHandlers.Begins()).ending("()Ljava/lang/Void;"),
                at(call, "doResponse", new RpcServerHandlers.Ends()),
                at(call, "setDeferredResponse", new RpcServerHandlers.Ends()),
                at(call, "setDeferredError", new RpcServerHandlers.Ends()),
                at(IPC + "Server$Responder", "doRespond", new RpcServerHandlers.Responds()).withArguments().withExit(),
                at(IPC + "Client$Call", "<init>", new RpcClientHandlers.Created()).exitOnly(),
                at(IPC + "Client$Call", "callComplete", new RpcClientHandlers.Completes()),
                at(IPC + "Client$Connection", "sendRpcRequest", new RpcClientHandlers.Sends()).withArguments(),
                at(streams, "sendRequest", new RpcClientHandlers.Writes()).withArguments(),
                at(streams, "readResponse", new RpcClientHandlers.Read()).exitOnly());
    }

    private static List<HookPoint> hdfs() {
        String xceiver = DATANODE + "DataXceiver";
        List<HookPoint> points = new ArrayList<HookPoint>();
        // In 2.x the class without a number is an older reader that is off by default.
        for (String reader : new String[] {HDFS + "client/impl/BlockReaderRemote", HDFS + "client/impl/BlockReaderRemote2"}) {
            points.add(at(reader, "newBlockReader", new BlockClientHandlers.OpensReader()).withArguments().withExit());
            points.add(at(reader, "skip", new BlockClientHandlers.Skips()).ending("(J)J").exitOnly());
            points.add(at(reader, "close", new BlockClientHandlers.ClosesReader()));
            points.add(at(reader, "readNextPacket", new StepHandlers.ReadsPacket()).withExit().optional());
        }
        points.addAll(Arrays.asList(
                at(xceiver, "readBlock", new DataNodeHandlers.Serves("read")).withArguments().withExit(),
                at(xceiver, "writeBlock", new DataNodeHandlers.Serves("write")).withArguments().withExit(),
                at(xceiver, "copyBlock", new DataNodeHandlers.Serves("copy")).withArguments().withExit(),
                at(xceiver, "replaceBlock", new DataNodeHandlers.Serves("replace")).withArguments().withExit(),
                at(xceiver, "transferBlock", new DataNodeHandlers.Serves("transfer")).withArguments().withExit(),
                at(xceiver, "blockChecksum", new DataNodeHandlers.Serves("checksum")).withArguments().withExit(),
                at(DATANODE + "BlockSender", "sendBlock", new DataNodeHandlers.Sends()).withExit(),
                at(DATANODE + "BlockReceiver", "receiveBlock", new DataNodeHandlers.Receives()).withArguments().withExit(),
                at(DATANODE + "BlockReceiver", "receivePacket", new DataNodeHandlers.TakesPacket("receive"))
                        .ending("()I").withExit(),
                at(DATANODE + "BlockReceiver", "verifyChunks", new DataNodeHandlers.Spends(Part.CHECKSUM)).withExit(),
                at(DATANODE + "BlockReceiver", "flushOrSync", new DataNodeHandlers.Spends(Part.SYNC)).withExit(),
                at(DATANODE + "fsdataset/ReplicaOutputStreams", "writeDataToDisk", new DataNodeHandlers.Spends(Part.DISK))
                        .withExit(),
                at(DATANODE + "BlockSender", "sendPacket", new DataNodeHandlers.TakesPacket("send")).withExit(),
                at(HDFS + "DataStreamer", "waitAndQueuePacket", new StepHandlers.Queues()).withArguments().withExit(),
                at(HDFS + "DataStreamer", "createBlockOutputStream", new BlockClientHandlers.OpensPipeline())
                        .withArguments().withExit(),
                at(HDFS + "DataStreamer", "closeStream", new BlockClientHandlers.ClosesPipeline())));
        return points;
    }

    private static List<HookPoint> mapReduce() {
        List<HookPoint> points = new ArrayList<HookPoint>();
        points.add(at(MAPRED + "ShuffleChannelHandler", "channelRead0", new ShuffleHandlers.Requested())
                .containing("FullHttpRequest;").withExit());
        points.add(at(MAPRED + "ShuffleHandler$Shuffle", "messageReceived", new ShuffleHandlers.Requested())
                .containing("MessageEvent;").withExit());
        String[][] shuffles = {
            {MAPRED + "ShuffleChannelHandler", MAPRED + "ShuffleChannelHandler"},
            // 2.x: Netty's handler and what it uses lie side by side
            {MAPRED + "ShuffleHandler$Shuffle", MAPRED + "ShuffleHandler"}};
        for (String[] shuffle : shuffles) {
            points.add(at(shuffle[0], "sendMap", new ShuffleHandlers.SendsNext()).withArguments().withExit());
            points.add(at(shuffle[0], "sendMapOutput", new ShuffleHandlers.SendsOutput()).withArguments());
            points.add(at(shuffle[1] + "$ReduceContext", "<init>", new ShuffleHandlers.Understood()).exitOnly());
            points.add(at(shuffle[1] + "$ReduceMapFileCount", "operationComplete", new ShuffleHandlers.Sent())
                    .containing("ChannelFuture;").withArguments());
        }
        String region = MAPRED + "FadvisedFileRegion";
        points.add(at(region, "<init>", new ShuffleHandlers.OpensOutput()).exitOnly());
        points.add(at(region, "transferTo", new ShuffleHandlers.ReadsOutput()).withExit());
        points.addAll(Arrays.asList(
                at(REDUCE + "Fetcher", "copyMapOutput", new ShuffleHandlers.Fetches()).withArguments().withExit(),
                at(REDUCE + "IFileWrappedMapOutput", "shuffle", new ShuffleHandlers.Copies()).withArguments(),
                at(REDUCE + "MergeManagerImpl", "close", new TaskHandlers.Begins("merge")),
                at(REDUCE + "MergeManagerImpl$InMemoryMerger", "merge", new TaskHandlers.Works("merge")).withExit(),
                at(REDUCE + "MergeManagerImpl$IntermediateMemoryToMemoryMerger", "merge", new TaskHandlers.Works("merge")).withExit(),
                at(REDUCE + "MergeManagerImpl$OnDiskMerger", "merge", new TaskHandlers.Works("merge")).withExit(),
                at(MAPRED + "MapTask$MapOutputBuffer", "sortAndSpill", new TaskHandlers.Works("spill")).withExit(),
                at(MAPRED + "MapTask$MapOutputBuffer", "mergeParts", new TaskHandlers.Works("merge")).withExit(),
                at(MAPRED + "MapTask", "run", new TaskHandlers.Runs("map")).withExit(),
                at(MAPRED + "ReduceTask", "run", new TaskHandlers.Runs("shuffle")).withExit(),
                at(MAPRED + "Task", "setPhase", new TaskHandlers.Enters()).withArguments(),
                at(MAPRED + "Task", "done", new TaskHandlers.Begins("commit"))));
        return points;
    }
}
