"""The epilogues of layers: from sums to stored values, in each form that is proven
equal."""
