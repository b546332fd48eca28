# Says "there" if the program that makes digests is the one with this checksum already; else makes a folder for it.
# PREFIX, SUM.
[ -f "$PREFIX/installed.json" ] || fail "nothing is installed in $PREFIX: hadoptic install first (or --prefix)"
[ "$(keeper "$PREFIX/bin/x")" = 0 ] || fail "others than root can write on the way to $PREFIX/bin: chmod go-w there"
if [ -f "$PREFIX/bin/merger" ] && [ ! -L "$PREFIX/bin/merger" ] && [ "$(stat -c '%u %a' "$PREFIX/bin/merger")" = "0 755" ] &&
    [ "$(checksum "$PREFIX/bin/merger")" = "$SUM" ]; then
    say there yes
else
    rm -rf -- "$PREFIX/new" && mkdir -m 700 -- "$PREFIX/new" || exit 1
fi
say end merger_begin
