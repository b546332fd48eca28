# Takes everything away. PREFIX, CAPTURE, MODE (what CAPTURE had, "" = as now), KEEP_CAPTURES, KEEP_JAR (yes/no),
# SYSTEMD; $@: folders that install made.
host=$(uname -n)
if [ "$SYSTEMD" = yes ]; then
    rm -f /etc/systemd/system/hadoptic-sniffer.service /etc/systemd/system/hadoptic-dumpingd.service
    systemctl daemon-reload
fi
rm -f -- "$PREFIX/bin/sniffer" "$PREFIX/bin/dumpingd"
rm -rf -- "$PREFIX/backup" "$PREFIX/run" "$PREFIX/log" "$PREFIX/new"
if [ "$KEEP_CAPTURES" != yes ]; then
    rm -rf -- "${CAPTURE:?}/${host:?}"
fi
if [ "$KEEP_JAR" != yes ]; then
    rm -f -- "$PREFIX/lib/hadoptic-agent.jar" "$PREFIX/installed.json"
fi
[ -z "$MODE" ] || [ ! -d "$CAPTURE" ] || chmod "$MODE" "$CAPTURE"
rmdir -- "$PREFIX/bin" "$PREFIX/lib" 2>/dev/null
# Innermost first; what holds things of others stays.
for folder; do
    rmdir -- "$folder" 2>/dev/null
done
for folder in "$PREFIX" "$CAPTURE/$host"; do
    [ ! -e "$folder" ] || [ -z "$(ls -A "$folder")" ] || say left "$folder: $(ls -A "$folder" | head -n 5 | tr '\n' ' ')"
done
say end wipe
