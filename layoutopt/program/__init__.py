"""Programs that implement layouts in a framework, as steps between its ops."""
