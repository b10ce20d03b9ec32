"""Checkpoints of and for other software: stock fairseq, CTranslate2, Hugging Face."""
