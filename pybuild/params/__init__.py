"""Weights in files: TVM's parameter blob, our image, the codecs of its payloads; what a
file may ask for.

Knows no graph and no plan.
"""
