"""SVG pictures made of arrays and text, independent of graphs."""
