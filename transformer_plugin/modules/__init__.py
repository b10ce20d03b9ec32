"""The Transformer's building blocks in torch alone: no fairseq, usable by themselves.

Shape letters used in every docstring of this package:

    B  sentences in a batch            D  d_model
    T  target length                   H  num_heads
    S  source length                   K  d_k (d_v is written V_h where the two differ)
    N  real (not padding) tokens       F  d_ff
       of a packed batch               V  vocabulary
    L  a length, source or target
"""
