"""From a float graph to an integer one, by what its tensors hold on example data.

Works on the Graph IR and its numpy meaning; knows no file format, kernel or plan.
"""
