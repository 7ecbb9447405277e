"""Spanning trees: minimum trees, and random trees at any temperature."""
