"""Reports: one self-contained page per result, comparison or batch run, and single pictures."""
