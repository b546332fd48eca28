# Replaces files by those that lie beside them. $@: path, checksum that it has now ("-" = it is not there), "new" or
# "delete", ... JAR and SUM_JAR ("" = no matter): without this jar nothing is done.
if [ -n "$SUM_JAR" ]; then
    [ -f "$JAR" ] && [ "$(checksum "$JAR")" = "$SUM_JAR" ] || fail "$JAR is not the one that was installed"
fi
while [ $# -gt 2 ]; do
    if [ -e "$1" ]; then now=$(checksum "$1"); else now=-; fi
    [ "$now" = "$2" ] || fail "$1 was changed by others in the meantime: look at it, then run this again"
    case $3 in
    delete) rm -f -- "$1" || exit 1 ;;
    *) sync -- "$1.hadoptic-new" 2>/dev/null; mv -f -- "$1.hadoptic-new" "$1" || exit 1 ;;
    esac
    say done "$1"
    shift 3
done
say end commit
