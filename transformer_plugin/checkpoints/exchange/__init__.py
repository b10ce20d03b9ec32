"""Exchanges checkpoints with other software: stock fairseq, CTranslate2, Hugging Face."""
