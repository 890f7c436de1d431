"""Graph executor modules, as scripts for TVM use them."""
