# Makes a folder beside where the programs will lie, prints its name. PREFIX.
folder=$(mktemp -d "$(above "$PREFIX")/.hadoptic-check.XXXXXX") || fail "no folder can be made in $(above "$PREFIX")"
say folder "$folder"
say end fit
