# Takes away what was laid beside files. $@: paths.
for path; do rm -f -- "$path.hadoptic-new"; done
say end unstage
