"""Strided boxes: their intersections, images, covers and unions, exact at any size."""
