"""Nearest neighbours, and random sets of k neighbours at any temperature."""
