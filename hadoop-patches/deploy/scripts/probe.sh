# What a host is, has and says. PREFIX, CAPTURE, CONF ("" = find it).
say name "$(uname -n)"
say system "$(uname -s)"
say machine "$(uname -m)"
say kernel "$(uname -r)"
say libc "$(ldd --version 2>&1 | head -n 1)"
for tool in sha256sum stat readlink head tail setsid setcap setpriv systemctl bash; do
    command -v "$tool" >/dev/null 2>&1 && say tool "$tool"
done

conf=
for folder in ${CONF:+"$CONF"} ${CONF:-"${HADOOP_CONF_DIR:-/etc/hadoop/conf}" /etc/hadoop/conf /etc/hadoop \
    ${HADOOP_HOME:+"$HADOOP_HOME/etc/hadoop"} /opt/hadoop/etc/hadoop /usr/local/hadoop/etc/hadoop \
    /opt/hadoop/conf /usr/local/hadoop/conf}; do
    if [ -f "$folder/core-site.xml" ] || [ -f "$folder/hadoop-env.sh" ] || [ "$folder" = "$CONF" -a -d "$CONF" ]; then
        conf=$folder
        break
    fi
done
if [ -n "$conf" ]; then
    say conf "$conf"
    say conf_real "$(readlink -f "$conf")"
    [ -w "$conf" ] || say unwritable "$conf"
    for name in hadoop-env.sh yarn-env.sh mapred-env.sh mapred-site.xml; do
        emit "$name" "$conf/$name"
        [ ! -e "$conf/$name" ] || [ -w "$conf/$name" ] || say unwritable "$conf/$name"
    done
fi

all=$(jvms)
[ -z "$all" ] || printf '%s\n' "$all"
home=
[ -z "$conf" ] || [ ! -f "$conf/hadoop-env.sh" ] ||
    home=$(sed -n 's/^[ \t]*\(export[ \t]*\)\{0,1\}JAVA_HOME=["'\'']\{0,1\}\(\/[A-Za-z0-9._+\/-]*\)["'\'']\{0,1\}[ \t]*$/\2/p' "$conf/hadoop-env.sh" | tail -n 1)
java=$(printf '%s\n' "$all" | sed -n 's/^jvm.* //p' | head -n 1)
[ -n "$java" ] || { [ -n "$home" ] && [ -x "$home/bin/java" ] && java=$home/bin/java; }
[ -n "$java" ] || java=$(command -v java)
[ -n "$java" ] || java=$(ls /usr/lib/jvm/*/bin/java 2>/dev/null | head -n 1)
if [ -n "$java" ]; then
    say java "$java"
    say java_version "$("$java" -version 2>&1 | grep -i version | head -n 1)"
fi
for folder in ${HADOOP_HOME:+"$HADOOP_HOME"} ${HADOOP_PREFIX:+"$HADOOP_PREFIX"} /usr/lib/hadoop /usr/lib/hadoop-* /opt/hadoop* \
    /usr/local/hadoop* /usr/hdp/current/hadoop-client /opt/cloudera/parcels/CDH/lib/hadoop; do
    for jar in "$folder"/hadoop-common-[0-9]*.jar "$folder"/share/hadoop/common/hadoop-common-[0-9]*.jar \
        "$folder"/hadoop-core-[0-9]*.jar; do
        case $jar in *tests.jar | *sources.jar) continue ;; esac
        [ -f "$jar" ] && say hadoop "$(basename "$jar" .jar | sed 's/^hadoop-[a-z]*-//')"
    done
done

say disk "$(df -Pk "$(above "$CAPTURE")" | awk 'NR == 2 { print $4, $2 }')"
[ -w "$(above "$PREFIX")" ] || say unwritable "$PREFIX"
[ -w "$(above "$CAPTURE")" ] || say unwritable "$CAPTURE"
if [ -f /sys/kernel/tracing/events/sock/inet_sock_set_state/id ] ||
    [ -f /sys/kernel/debug/tracing/events/sock/inet_sock_set_state/id ]; then
    say tracepoint yes
elif grep -q tracefs /proc/filesystems && [ -d /sys/kernel/tracing ]; then
    say tracepoint mountable
else
    say tracepoint no
fi
[ ! -d /run/systemd/system ] || say systemd yes
emit installed.json "$PREFIX/installed.json"
for name in hadoop-env.sh yarn-env.sh mapred-env.sh mapred-site.xml; do
    [ ! -f "$PREFIX/backup/$name" ] || emit "backup/$name" "$PREFIX/backup/$name"
done
if [ -f "$PREFIX/lib/hadoptic-agent.jar" ]; then
    say jar "$(checksum "$PREFIX/lib/hadoptic-agent.jar")"
fi
say end probe
