# Loads the agent into a JVM that runs, with its own Java: a JVM lets only its own user attach. PID, WHO, JAR, OPTIONS.
uid=$(id -u -- "$WHO") || fail "there is no user $WHO"
# Only what that user may see of the process is looked at, and what is run runs with his rights.
java=$(as "$uid" readlink "/proc/$PID/exe") || exit 0
if [ "$uid" = 0 ] && [ "$(java_keeper "$java")" != 0 ]; then
    fail "others than root can change $java, so root does not run it: restart the daemon"
fi
cd / && as "$uid" timeout 60 "$java" -jar "$JAR" "$PID" "$OPTIONS"
