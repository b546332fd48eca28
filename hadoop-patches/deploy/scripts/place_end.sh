# Puts what was copied to PREFIX/new in its place. PREFIX, CAPTURE, GROUP, CAPABILITIES (yes/no), JAVA, OPTIONS (of the agent),
# SUM_SNIFFER, SUM_DUMPINGD, SUM_JAR.
cd "$PREFIX/new" || exit 1
for pair in "sniffer $SUM_SNIFFER" "dumpingd $SUM_DUMPINGD" "hadoptic-agent.jar $SUM_JAR"; do
    name=${pair% *}
    [ "$(checksum "$name")" = "${pair#* }" ] || fail "$name did not arrive as it was sent: run install again"
done
chown 0:0 sniffer dumpingd hadoptic-agent.jar agent-option
chmod 755 sniffer dumpingd agent-option
chmod 644 hadoptic-agent.jar
for name in sniffer dumpingd; do
    version=$("./$name" --version 2>&1) || fail "$name does not run here: $version"
done
if [ "$CAPABILITIES" = yes ]; then
    chown "0:$GROUP" sniffer dumpingd || exit 1
    # Never setuid; and only who is in the cluster's group may start them.
    chmod 750 sniffer dumpingd
    setcap cap_net_raw+ep sniffer || fail "setcap failed on sniffer: the file system has to know extended attributes"
    setcap cap_sys_ptrace,cap_dac_read_search+ep dumpingd || fail "setcap failed on dumpingd"
fi
# That a JVM of this host loads the jar is tried before any of Hadoop's gets it.
told=$(loads "$JAVA" "$PREFIX/new/hadoptic-agent.jar") || fail "$JAVA does not load the agent: $told"
cd "$PREFIX/new" || exit 1
# Classes that are patched beforehand cost each JVM less time. Without that the agent works just as well.
blanks=$IFS
IFS='
'
set -f -- $(jar_folders)
IFS=$blanks
set +f
if [ "$(java_keeper "$JAVA")" != 0 ]; then
    say unprepared "others than root can change $JAVA"
elif [ $# = 0 ]; then
    say unprepared "no folder with Hadoop's jars was found that root alone can write"
elif told=$(timeout 300 "$JAVA" "-javaagent:$PREFIX/new/hadoptic-agent.jar=prepare" -cp "$PREFIX/new/hadoptic-agent.jar" \
    hadoptic.agent.Prepare "$@" 2>&1); then
    say prepared "$(printf '%s\n' "$told" | sed -n 's/.*: \([0-9]*\) classes are prepared.*/\1/p')"
    chown 0:0 hadoptic-agent.jar.patches && chmod 644 hadoptic-agent.jar.patches || exit 1
else
    say unprepared "$(printf '%s' "$told" | tail -n 1)"
fi
# rename() leaves those that run now as they are.
mv -f sniffer "$PREFIX/bin/sniffer" && mv -f dumpingd "$PREFIX/bin/dumpingd" &&
    mv -f hadoptic-agent.jar "$PREFIX/lib/hadoptic-agent.jar" && mv -f agent-option "$PREFIX/bin/agent-option" || exit 1
if [ -f hadoptic-agent.jar.patches ]; then
    mv -f hadoptic-agent.jar.patches "$PREFIX/lib/hadoptic-agent.jar.patches" || exit 1
else
    rm -f -- "$PREFIX/lib/hadoptic-agent.jar.patches"
fi
cd / && rmdir "$PREFIX/new"
say end place_end
