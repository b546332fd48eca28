# Takes everything away. PREFIX, CAPTURE, KEEP_CAPTURES, KEEP_JAR, SYSTEMD (yes/no).
host=$(uname -n)
if [ "$SYSTEMD" = yes ]; then
    # Whoever wanted them at boot made links to them.
    systemctl -q disable hadoptic-sniffer.service hadoptic-dumpingd.service 2>/dev/null
    rm -f /etc/systemd/system/hadoptic-sniffer.service /etc/systemd/system/hadoptic-dumpingd.service
    systemctl daemon-reload
    systemctl reset-failed hadoptic-sniffer.service hadoptic-dumpingd.service 2>/dev/null
fi
made=$(sort -u -r "$PREFIX/run/made" 2>/dev/null)
mode=$(cat "$PREFIX/run/capture_mode" 2>/dev/null)
# First what daemons call when they miss an agent.
rm -f -- "$PREFIX/bin/start-sniffer" "$PREFIX/bin/start-dumpingd" "$PREFIX/bin/sniffer" "$PREFIX/bin/dumpingd"
rm -rf -- "$PREFIX/backup" "$PREFIX/log" "$PREFIX/new"
if [ "$KEEP_CAPTURES" != yes ]; then
    rm -rf -- "${CAPTURE:?}/${host:?}"
fi
if [ "$KEEP_JAR" != yes ]; then
    rm -f -- "$PREFIX/lib/hadoptic-agent.jar" "$PREFIX/lib/hadoptic-agent.jar.patches" "$PREFIX/installed.json"
    rm -rf -- "$PREFIX/run"
fi
[ -z "$mode" ] || [ ! -d "$CAPTURE" ] || chmod "$mode" "$CAPTURE"
# Innermost first; what holds things of others stays. These paths hold no blanks.
for folder in $made; do
    rmdir -- "$folder" 2>/dev/null
done
for folder in "$PREFIX" "$CAPTURE/$host"; do
    [ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || say left "$folder: $(ls -A "$folder" | head -n 5 | tr '\n' ' ')"
done
say end wipe
