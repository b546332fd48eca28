package hadoptic.hook;

/** Names of called methods, out of requests of Hadoop's RPC engines. */
final class RpcMethods {
    private RpcMethods() {}

    /**
     * Name of the method that a request calls, "" = unknown. Reads fields only: asking a protobuf request for its
     * header parses its buffer, and {@code RPC$Invocation.toString()} may print parameters.
     */
    static String nameOf(Object request) throws ReflectiveOperationException {
        Object name = Fields.get(request, "methodName");
        if (name == null) {
            Object header = Fields.get(request, "requestHeader");
            // a text, or its bytes until somebody has asked; to look for a method would load all classes that it names
            name = Fields.get(header, "methodName_");
            name = name instanceof String || header == null ? name : Fields.call(header, "getMethodName");
        }
        return name == null ? "" : name.toString();
    }
}
