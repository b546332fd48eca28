# What a host is, has and says. PREFIX, CAPTURE, CONF ("" = find it), JAVA_GIVEN ("" = find one).
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
home=
if [ -n "$conf" ]; then
    say conf "$conf"
    say conf_real "$(readlink -f "$conf")"
    if who=$(keeper "$conf/x"); then
        say conf_keeper "$who"
        as "$who" test -w "$conf" || say unwritable "$conf"
        for name in hadoop-env.sh yarn-env.sh mapred-env.sh mapred-site.xml; do
            emit "$name" "$conf/$name" 4194304
            [ ! -e "$conf/$name" ] || as "$who" test -w "$conf/$name" || say unwritable "$conf/$name"
        done
        [ ! -f "$conf/hadoop-env.sh" ] ||
            home=$(head_of "$who" "$(readlink -f "$conf/hadoop-env.sh")" 4194304 | sed -n 's/^[ \t]*\(export[ \t]*\)\{0,1\}JAVA_HOME=["'\'']\{0,1\}\(\/[A-Za-z0-9._+\/-]*\)["'\'']\{0,1\}[ \t]*$/\2/p' | tail -n 1)
    else
        say unsafe "$conf"
    fi
fi

jvms
# Of processes no path is taken: who runs one chooses it.
for java in ${JAVA_GIVEN:+"$JAVA_GIVEN"} ${JAVA_GIVEN:-${home:+"$home/bin/java"} "$(command -v java)" /usr/lib/jvm/*/bin/java}; do
    [ -f "$java" ] && [ -x "$java" ] || continue
    if who=$(java_keeper "$java"); then
        say java "$java"
        say java_keeper "$who"
        say java_version "$(cd / && as "$who" timeout 20 "$java" -version 2>&1 | head -c 4000 | grep -i version | head -n 1)"
        break
    fi
    say java_refused "$java"
done
hadoop_homes | while IFS= read -r folder; do
    for jar in "$folder"/hadoop-common-[0-9]*.jar "$folder"/share/hadoop/common/hadoop-common-[0-9]*.jar \
        "$folder"/hadoop-core-[0-9]*.jar; do
        case $jar in *tests.jar | *sources.jar) continue ;; esac
        [ -f "$jar" ] && say hadoop "$(basename "$jar" .jar | sed 's/^hadoop-[a-z]*-//')"
    done
done

say disk "$(df -Pk "$(above "$CAPTURE")" | awk 'NR == 2 { print $4, $2 }')"
for folder in "$PREFIX" "$CAPTURE"; do
    [ -w "$(above "$folder")" ] || say unwritable "$folder"
    if [ -e "$folder" ]; then way=$folder; else way=$(above "$folder")/x; fi
    [ "$(keeper "$way")" = 0 ] || say open_place "$folder"
done
if [ -f /sys/kernel/tracing/events/sock/inet_sock_set_state/id ] ||
    [ -f /sys/kernel/debug/tracing/events/sock/inet_sock_set_state/id ]; then
    say tracepoint yes
elif grep -q tracefs /proc/filesystems && [ -d /sys/kernel/tracing ]; then
    say tracepoint mountable
else
    say tracepoint no
fi
[ ! -d /run/systemd/system ] || say systemd yes
emit installed.json "$PREFIX/installed.json" 4194304
for name in hadoop-env.sh yarn-env.sh mapred-env.sh mapred-site.xml; do
    [ ! -f "$PREFIX/backup/$name" ] || emit "backup/$name" "$PREFIX/backup/$name" 4194304
done
if [ -f "$PREFIX/lib/hadoptic-agent.jar" ]; then
    say jar "$(checksum "$PREFIX/lib/hadoptic-agent.jar")"
fi
for name in sniffer dumpingd; do
    if agent "$name"; then say runs "$name"; fi
done
say end probe
