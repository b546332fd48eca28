# Looks whether the new files arrived whole, and whether shells still read them. $@: path, checksum, ...
shell=$(command -v bash || command -v sh)
while [ $# -gt 1 ]; do
    [ "$(checksum "$1.hadoptic-new")" = "$2" ] || fail "$1.hadoptic-new did not arrive as it was sent (is the disk full?)"
    case $1 in
    *.sh)
        if [ -e "$1" ] && "$shell" -n "$1" 2>/dev/null && ! "$shell" -n "$1.hadoptic-new" 2>/dev/null; then
            fail "$1 would not be a whole script with lines behind its end: does a here-document or quote stay open?"
        fi
        ;;
    esac
    shift 2
done
say end stage_end
