# Looks whether the new files arrived whole, and whether shells still read them. $@: path, keeper, checksum, ...
shell=$(command -v bash || command -v sh)
while [ $# -gt 2 ]; do
    [ "$(sum_by "$2" "$1.hadoptic-new")" = "$3" ] || fail "$1.hadoptic-new did not arrive as it was sent (is the disk full?)"
    case $1 in
    *.sh)
        if [ -e "$1" ] && as "$2" "$shell" -n "$1" 2>/dev/null && ! as "$2" "$shell" -n "$1.hadoptic-new" 2>/dev/null; then
            fail "$1 would not be a whole script with lines behind its end: does a here-document or quote stay open?"
        fi
        ;;
    esac
    shift 3
done
say end stage_end
