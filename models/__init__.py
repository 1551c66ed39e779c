"""Optimisation models as statements; the package never imports them."""
