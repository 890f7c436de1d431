"""Weights in files: TVM's parameter blob, our image, the codecs of its payloads.

Knows no graph and no plan.
"""
