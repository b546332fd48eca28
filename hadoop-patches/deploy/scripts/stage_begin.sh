# Lays a file beside each one that will be replaced, with its mode and owner. $@: paths.
for path; do
    folder=$(dirname "$path")
    [ -d "$folder" ] || fail "$folder is not there"
    # The folder is root's or an administrator's: what lies there under this name is ours.
    rm -f -- "$path.hadoptic-new"
    if [ -e "$path" ]; then
        cp -p -- "$path" "$path.hadoptic-new" || exit 1
    else
        (umask 022 && : >"$path.hadoptic-new") || exit 1
        chown "$(stat -c %u:%g "$folder")" "$path.hadoptic-new" || exit 1
    fi
done
say end stage_begin
