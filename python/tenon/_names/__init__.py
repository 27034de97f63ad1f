"""Names that PyTorch or other libraries expect: former ones, switches without effect, absent ones with what to write instead."""
