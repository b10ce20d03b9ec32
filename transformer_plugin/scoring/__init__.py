"""BLEU and its variants, chrF and significance tests, without fairseq and torch."""
