# Makes a folder beside where the programs will lie, prints its name. PREFIX.
upper=$(above "$PREFIX")
[ "$(keeper "$upper/x")" = 0 ] || fail "others than root can write on the way to $upper: choose another --prefix"
folder=$(mktemp -d "$upper/.hadoptic-check.XXXXXX") || fail "no folder can be made in $upper"
say folder "$folder"
say end fit
