"""Networks from ``.onnx`` files as unwinding graphs."""
