# Takes away what was laid beside files. $@: path, keeper, ...
while [ $# -gt 1 ]; do
    as "$2" rm -f -- "$1.hadoptic-new"
    shift 2
done
say end unstage
