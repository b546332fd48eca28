# Replaces files by those that lie beside them. $@: path, keeper, checksum that it has now ("-" = it is not there), "new" or
# "delete", ... JAR and SUM_JAR ("" = no matter): without this jar nothing is done.
if [ -n "$SUM_JAR" ]; then
    [ -f "$JAR" ] && [ "$(checksum "$JAR")" = "$SUM_JAR" ] || fail "$JAR is not the one that was installed"
fi
while [ $# -gt 3 ]; do
    kept "$1" "$2"
    if [ -e "$1" ]; then now=$(sum_by "$2" "$1"); else now=-; fi
    [ "$now" = "$3" ] || fail "$1 was changed by others in the meantime: look at it, then run this again"
    case $4 in
    delete) as "$2" rm -f -- "$1" || exit 1 ;;
    *) as "$2" sync -- "$1.hadoptic-new" 2>/dev/null; as "$2" mv -f -- "$1.hadoptic-new" "$1" || exit 1 ;;
    esac
    say done "$1"
    shift 4
done
say end commit
