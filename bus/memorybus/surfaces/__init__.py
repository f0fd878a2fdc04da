"""Thin surfaces over the bus: nothing below imports them."""
