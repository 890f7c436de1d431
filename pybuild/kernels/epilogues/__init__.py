"""The epilogues of layers: they turn sums into stored values, in each form proven equal
to the rule.
"""
