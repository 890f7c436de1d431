"""How a layer ends: from sums to stored values, in each form that is proven equal."""
