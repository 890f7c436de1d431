"""From a float graph to an integer one, by what its tensors hold on example data.

Works on the Graph IR and its numpy meaning; knows no file format, kernel or plan.
"""

# what users choose by name: the range of values that integers cover; what is outside;
# and of the values, the per cent that lie inside unless they say so
METHODS = ("minmax", "percentile", "entropy")
BOUNDARIES = ("float", "int8")
PERCENTILE = 99.999
