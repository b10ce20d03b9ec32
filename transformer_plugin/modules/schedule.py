"""The learning-rate schedule, section 5.3 of the paper."""


def learning_rate(step: int, d_model: int, warmup_updates: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5), equation (3); ``step`` counts from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_updates**-1.5)
