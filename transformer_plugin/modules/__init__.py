"""The Transformer's building blocks in torch alone: no fairseq, usable by themselves.

Shape letters used in every docstring of this package:

    B  sentences in a batch            D  d_model
    T  target length                   H  num_heads
    S  source length                   K  d_k (d_v is written out)
    N  real (not padding) tokens       F  d_ff
       of a packed batch; N_s: of      V  vocabulary
       its source sentences            k  hypotheses of a sentence
    L  a length, source or target
"""
