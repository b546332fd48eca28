a
# >>> hadoptic: set by `hadoptic install`, taken out by `hadoptic remove`
x
# <<< hadoptic
