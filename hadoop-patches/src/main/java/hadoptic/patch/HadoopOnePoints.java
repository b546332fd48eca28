package hadoptic.patch;

import static hadoptic.patch.HookPoint.at;

import hadoptic.hook.BlockClientHandlers;
import hadoptic.hook.DataNodeHandlers;
import hadoptic.hook.DataNodeHandlers.Part;
import hadoptic.hook.HadoopOneHandlers;
import hadoptic.hook.HeartbeatHandlers;
import hadoptic.hook.RpcClientHandlers;
import hadoptic.hook.RpcServerHandlers;
import hadoptic.hook.StepHandlers;
import hadoptic.hook.TaskHandlers;
import hadoptic.hook.ThreadHandlers;
import java.util.Arrays;
import java.util.List;

/** What only Apache Hadoop 1.x has. Where later versions have the class, they have another method in its place. */
final class HadoopOnePoints {
    /** Reads blocks. */
    static final String READER = "org/apache/hadoop/hdfs/DFSClient$RemoteBlockReader";
    /** Writes a file, block by block. */
    static final String WRITER = "org/apache/hadoop/hdfs/DFSClient$DFSOutputStream";

    private static final String IPC = "org/apache/hadoop/ipc/";
    private static final String DATANODE = "org/apache/hadoop/hdfs/server/datanode/";
    private static final String COPIER = "org/apache/hadoop/mapred/ReduceTask$ReduceCopier$";

    private HadoopOnePoints() {}

    static List<HookPoint> all() {
        String xceiver = DATANODE + "DataXceiver";
        return Arrays.asList(
                at(IPC + "Server$Call", "<init>", new RpcServerHandlers.Created())
                        .ending("Lorg/apache/hadoop/io/Writable;Lorg/apache/hadoop/ipc/Server$Connection;)V")
                        .withArguments().exitOnly().optional(),
                at(IPC + "RPC$Server", "call", new HadoopOneHandlers.Processes())
                        .ending("(Ljava/lang/Class;Lorg/apache/hadoop/io/Writable;J)Lorg/apache/hadoop/io/Writable;")
                        .withExit().optional(),
                at(IPC + "Client$Connection", "sendParam", new RpcClientHandlers.SendsAndWrites())
                        .withArguments().insteadOf("sendRpcRequest"),
                at(xceiver, "getBlockChecksum", new DataNodeHandlers.Serves("checksum"))
                        .withArguments().withExit().insteadOf("blockChecksum", "transferBlock"),
                at(DATANODE + "BlockSender", "<init>", new DataNodeHandlers.Reads())
                        .containing("(Lorg/apache/hadoop/hdfs/protocol/Block;JJZZZ").ending("Ljava/lang/String;)V")
                        .withArguments().optional(),
                at(DATANODE + "BlockReceiver", "<init>", new DataNodeHandlers.Writes())
                        .containing("(Lorg/apache/hadoop/hdfs/protocol/Block;Ljava/io/DataInputStream;")
                        .withArguments().optional(),
                // The other methods of this name call it.
                at(READER, "newBlockReader", new BlockClientHandlers.OpensReader())
                        .containing("IZLjava/lang/String;)").withArguments().withExit(),
                at(READER, "skip", new BlockClientHandlers.Skips()).ending("(J)J").exitOnly(),
                at(READER, "close", new BlockClientHandlers.ClosesReader()),
                at(READER, "adjustChecksumBytes", new StepHandlers.ReadsHeader()).withArguments(),
                at(WRITER, "createBlockOutputStream", new BlockClientHandlers.OpensPipeline())
                        .withArguments().withExit(),
                at(WRITER + "$Packet", "<init>", new StepHandlers.BeginsPacket()).ending("IIJ)V").exitOnly(),
                at(WRITER, "enqueueCurrentPacket", new StepHandlers.QueuesPacket()),
                at(DATANODE + "BlockReceiver", "flush", new DataNodeHandlers.Spends(Part.SYNC))
                        .withExit().insteadOf("flushOrSync"),
                at(DATANODE + "BlockSender", "sendChunks", new DataNodeHandlers.TakesPacket("send"))
                        .withExit().insteadOf("sendPacket"),
                at(WRITER + "$Packet", "getBuffer", new BlockClientHandlers.SendsPacket()),
                at(WRITER + "$ResponseProcessor", "close", new BlockClientHandlers.ClosesResponses()),
                at("org/apache/hadoop/mapred/TaskTracker$MapOutputServlet", "doGet", new HadoopOneHandlers.ServesMapOutput())
                        .withArguments().withExit(),
                // 2.x has a class of this name for an enumeration
                at("org/apache/hadoop/mapred/JobTracker", "heartbeat", new HeartbeatHandlers.OfTracker())
                        .containing("TaskTrackerStatus;ZZZS)").withArguments().withExit().optional(),
                at("org/apache/hadoop/mapred/TaskTracker", "getMapCompletionEvents", new HeartbeatHandlers.OfMapOutputs())
                        .exitOnly(),
                at("org/apache/hadoop/mapred/JobTracker", "getTaskCompletionEvents", new HeartbeatHandlers.OfMapOutputs())
                        .exitOnly().optional(),
                at("org/apache/hadoop/hdfs/server/namenode/NameNode", "sendHeartbeat", new HeartbeatHandlers.OfDataNode())
                        .exitOnly().optional(),
                at(COPIER + "InMemFSMergeThread", "doInMemMerge", new TaskHandlers.Works("merge")).withExit(),
                // a reduce learns of map outputs in one thread and fetches them in others
                at(COPIER + "MapOutputLocation", "<init>", new ThreadHandlers.LeavesItself()),
                at(COPIER + "MapOutputCopier", "start", new ThreadHandlers.Taken())
                        .containing("MapOutputLocation;").withArguments(),
                at(COPIER + "MapOutputCopier", "getMapOutput", new HadoopOneHandlers.FetchesMapOutput())
                        .withArguments().withExit());
    }
}
