# How the agents are. PREFIX, CAPTURE.
say name "$(uname -n)"
say now "$(date +%s)"
emit installed.json "$PREFIX/installed.json" 4194304
[ ! -f "$PREFIX/lib/hadoptic-agent.jar" ] || say jar "$(checksum "$PREFIX/lib/hadoptic-agent.jar")"
for name in sniffer dumpingd; do
    if agent "$name"; then
        say runs "$name $pid $began"
    elif [ -f "$PREFIX/run/$name.pid" ]; then
        say gone "$name"
    fi
    [ ! -f "$PREFIX/log/$name.log" ] || say log "$name $(last_words "$PREFIX/log/$name.log")"
done
host_folder
say reader "$service $(getent passwd "$service" | cut -d: -f4)"
jvms
[ ! -d "$CAPTURE" ] || say disk "$(df -Pk "$CAPTURE" | awk 'NR == 2 { print $4, $2 }')"
say end status
