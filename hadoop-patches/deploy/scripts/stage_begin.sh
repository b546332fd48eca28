# Lays a file beside each one that will be replaced, with its mode and owner. $@: path, keeper, ...
# In a folder of another user all is done with his rights: a link that he plants leads nowhere else.
lay='
    rm -f -- "$1.hadoptic-new" || exit 1
    if [ -e "$1" ]; then
        cp -p -- "$1" "$1.hadoptic-new"
    else
        umask 022 && : >"$1.hadoptic-new" || exit 1
        [ "$2" != 0 ] || chown "$(stat -c %u:%g "$(dirname "$1")")" "$1.hadoptic-new"
    fi'
while [ $# -gt 1 ]; do
    folder=$(dirname "$1")
    [ -d "$folder" ] || fail "$folder is not there"
    kept "$1" "$2"
    as "$2" sh -c "$lay" sh "$1" "$2" || exit 1
    shift 2
done
say end stage_begin
