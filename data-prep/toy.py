def write_toy_corpus(output, source, target): raise NotImplementedError
