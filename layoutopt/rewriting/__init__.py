"""Networks of ONNX as conversion graphs, and back."""
